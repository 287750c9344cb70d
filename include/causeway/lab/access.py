"""Users and rights of a running cluster with SASL, changed by its super user."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.lab.clients import admin_client
from causeway.lab.errors import LabTrouble

_ANSWER_SECONDS = 15.0
_CLUSTER = "kafka-cluster"
_RESOURCES = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "cluster": ResourceType.BROKER,  # the protocol's number of CLUSTER, under librdkafka's name
    "transactional-id": ResourceType.TRANSACTIONAL_ID,
}


@dataclass(frozen=True, slots=True)
class Right:
    """One ACL, in the words of kafka-acls: `Right("topic", "orders", "read")`; `*` is any name."""

    resource: Literal["topic", "group", "cluster", "transactional-id"]
    name: str
    operation: str
    pattern: Literal["literal", "prefixed"] = "literal"

    @classmethod
    def on_cluster(cls, operation: str) -> Right:
        return cls("cluster", _CLUSTER, operation)


def set_password(endpoint: ClusterEndpoint, user: str, password: str) -> None:
    """Make a user, or change the password of one."""
    strength = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    wish = UserScramCredentialUpsertion(user, strength, password.encode())
    client = admin_client(endpoint)
    for answer in client.alter_user_scram_credentials([wish]).values():
        answer.result(_ANSWER_SECONDS)


def grant(endpoint: ClusterEndpoint, user: str, *rights: Right) -> None:
    """Back when the broker's authorizer knows them, which is a moment after they have been written."""
    client = admin_client(endpoint)
    bindings = [AclBinding(*_pattern(right), *_rule(user, right)) for right in dict.fromkeys(rights)]
    for answer in client.create_acls(bindings).values():
        answer.result(_ANSWER_SECONDS)
    for right in rights:
        _wait_until(client, user, right, present=True)


def revoke(endpoint: ClusterEndpoint, user: str, *rights: Right) -> None:
    """:raises LabTrouble: the user doesn't have one of them, so taking it away proves nothing."""
    client = admin_client(endpoint)
    for answer in client.delete_acls([_filter(user, right) for right in rights]).values():
        if not answer.result(_ANSWER_SECONDS):
            raise LabTrouble(f"user {user}", value=rights, rule="has no such right to take away")
    for right in rights:
        _wait_until(client, user, right, present=False)


def _pattern(right: Right) -> tuple[ResourceType, str, ResourcePatternType]:
    return _RESOURCES[right.resource], right.name, ResourcePatternType[right.pattern.upper()]


def _rule(user: str, right: Right) -> tuple[str, str, AclOperation, AclPermissionType]:
    operation = AclOperation[right.operation.upper().replace("-", "_")]
    return f"User:{user}", "*", operation, AclPermissionType.ALLOW


def _filter(user: str, right: Right) -> AclBindingFilter:
    return AclBindingFilter(*_pattern(right), *_rule(user, right))


def _wait_until(client: AdminClient, user: str, right: Right, *, present: bool) -> None:
    deadline = time.monotonic() + _ANSWER_SECONDS
    while bool(client.describe_acls(_filter(user, right)).result(_ANSWER_SECONDS)) is not present:
        if time.monotonic() > deadline:
            raise KafkaException(f"the authorizer did not take over {right} of {user}")
        time.sleep(0.02)
