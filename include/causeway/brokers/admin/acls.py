"""The authorizer of a cluster, as far as topics go: its rules read, added and removed.

Plain values go in and come out. A cluster without an authorizer is a value too (None), not an error: many
have none. Removing takes exact rules only, never a filter that could match more.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import groupby
from typing import Any, Literal

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from kafka.protocol.admin import DescribeAclsRequest, DescribeClusterRequest

from causeway.brokers.admin.probe import SILENT
from causeway.brokers.error_map import mapped, mapped_error
from causeway.brokers.transport.connection import Wire
from causeway.core.copy.ports import Unreachable
from causeway.core.kernel.acl_vocabulary import Operation
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import CausewayError
from causeway.core.kernel.kafka_errors import KafkaErrorCode, error_name
from causeway.core.state.acl import Acl

_SECONDS = 30.0
_RULES_IN_A_REQUEST = 1_000
"""A controller takes 10,000 changes at once."""
_WORDS = {op.value: op.word for op in Operation} | {AclOperation.ALL.value: "All"}
_NUMBERS = {word: number for number, word in _WORDS.items()}
_PATTERNS: Mapping[int, Literal["literal", "prefixed"]] = {
    ResourcePatternType.LITERAL.value: "literal",
    ResourcePatternType.PREFIXED.value: "prefixed",
}
_PERMISSIONS: Mapping[int, Literal["Allow", "Deny"]] = {
    AclPermissionType.ALLOW.value: "Allow",
    AclPermissionType.DENY.value: "Deny",
}


async def topic_acls(wire: Wire) -> frozenset[Acl] | None:
    """All rules about topics that any broker knows; None: this cluster has no authorizer.

    Asked at wire level: librdkafka's answer to "you may not" and to "there is none" is an empty list, and a
    sync would take away everything that it ever added. And of each broker: one that is cut off from its
    controllers answers what was true earlier, and what one of them still grants isn't gone.

    :raises NotAuthorized: this user may not see them.
    """
    found = [await _topic_acls_of(wire, node) for node in wire.nodes()]
    if not found:
        raise Unreachable(f"ACLs of {wire.endpoint}: it lists no broker")
    known = [acls for acls in found if acls is not None]
    return frozenset().union(*known) if len(known) == len(found) else None


async def right_to_change_acls(wire: Wire) -> CausewayError | None:
    """The one that is missing. A user that may not even Describe the cluster sees no rights at all."""
    request = DescribeClusterRequest(include_cluster_authorized_operations=True, max_version=1)
    answer = await wire.ask_anyone(request)
    if Operation.ALTER in (answer.authorized_operations or ()):
        return None
    return wire.not_authorized(KafkaErrorCode.CLUSTER_AUTHORIZATION_FAILED, "", Operation.ALTER)


async def _topic_acls_of(wire: Wire, node: int) -> frozenset[Acl] | None:
    request = DescribeAclsRequest(
        resource_type_filter=ResourceType.TOPIC.value,
        resource_name_filter=None,
        pattern_type_filter=ResourcePatternType.ANY.value,
        principal_filter=None,
        host_filter=None,
        operation=AclOperation.ANY.value,
        permission_type=AclPermissionType.ANY.value,
        min_version=1,
    )
    answer = await wire.send(request, node)
    if answer.error_code == KafkaErrorCode.SECURITY_DISABLED:
        return None
    if answer.error_code == KafkaErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        raise wire.not_authorized(answer.error_code, "", Operation.DESCRIBE)
    if answer.error_code:
        raise Unreachable(f"ACLs of {wire.endpoint}: {error_name(answer.error_code)}")
    found = (_acl(resource, rule) for resource in answer.resources for rule in resource.acls)
    return frozenset(acl for acl in found if acl is not None)


Ask = Callable[[], "dict[Acl, CausewayError]"]
Around = Callable[[Sequence[Acl], Ask], Awaitable["dict[Acl, CausewayError]"]]
"""What is done around each request for these rules; the request itself blocks."""


class AclChanges:
    """Adds and removes rules about topics of one cluster."""

    def __init__(self, endpoint: ClusterEndpoint, around: Around | None = None) -> None:
        self._endpoint, self._around = endpoint, around
        with mapped(cluster=endpoint):
            self._client = AdminClient(dict(endpoint.settings), logger=SILENT)

    async def create(self, acls: Iterable[Acl]) -> dict[Acl, CausewayError]:
        """Those that the broker refused, with its reasons; one that is there already is as good as made.

        In their order; what comes after a refusal isn't asked for, and is refused like it.
        """
        return await self._in_portions(acls, self._create)

    async def remove(self, acls: Iterable[Acl]) -> dict[Acl, CausewayError]:
        """The same; one that is gone already is as good as removed."""
        return await self._in_portions(acls, self._remove)

    def _create(self, acls: Sequence[Acl]) -> dict[Acl, CausewayError]:
        bindings = {_binding(acl): acl for acl in acls}
        with mapped(cluster=self._endpoint, operation="Alter"):
            answers = self._client.create_acls(list(bindings), request_timeout=_SECONDS)
        return self._refusals({bindings[binding]: answer for binding, answer in answers.items()})

    def _remove(self, acls: Sequence[Acl]) -> dict[Acl, CausewayError]:
        filters = {_exactly(acl): acl for acl in acls}
        with mapped(cluster=self._endpoint, operation="Alter"):
            answers = self._client.delete_acls(list(filters), request_timeout=_SECONDS)
        return self._refusals({filters[each]: answer for each, answer in answers.items()})

    async def _in_portions(
        self, acls: Iterable[Acl], ask: Callable[[Sequence[Acl]], dict[Acl, CausewayError]]
    ) -> dict[Acl, CausewayError]:
        refused: dict[Acl, CausewayError] = {}
        for portion in _rules_by_request(acls):
            if refused:
                refused |= dict.fromkeys(portion, next(iter(refused.values())))
            elif self._around is None:
                refused |= ask(portion)
            else:
                refused |= await self._around(portion, partial(ask, portion))
        return refused

    def _refusals(self, answers: Mapping[Acl, Future[Any]]) -> dict[Acl, CausewayError]:
        refused: dict[Acl, CausewayError] = {}
        for acl, answer in answers.items():
            exc = answer.exception()
            if exc is not None:
                refused[acl] = mapped_error(
                    exc, cluster=self._endpoint, resource=acl.topic, operation="Alter"
                )
        return refused


def _rules_by_request(acls: Iterable[Acl]) -> Iterator[Sequence[Acl]]:
    """None has rules of both kinds: where a denial isn't taken, what it denies isn't allowed."""
    for _, alike in groupby(acls, key=lambda acl: acl.permission):
        rules = list(alike)
        for first in range(0, len(rules), _RULES_IN_A_REQUEST):
            yield rules[first : first + _RULES_IN_A_REQUEST]


def _acl(resource: Any, rule: Any) -> Acl | None:
    """None: of a kind that this version doesn't know, and so leaves alone."""
    operation, permission = _WORDS.get(rule.operation), _PERMISSIONS.get(rule.permission_type)
    pattern = _PATTERNS.get(resource.pattern_type)
    if operation is None or permission is None or pattern is None:
        return None
    return Acl(resource.resource_name, pattern, rule.principal, rule.host, operation, permission)


def _binding(acl: Acl) -> AclBinding:
    return AclBinding(*_binding_parts(acl))


def _exactly(acl: Acl) -> AclBindingFilter:
    return AclBindingFilter(*_binding_parts(acl))


def _binding_parts(acl: Acl) -> tuple[Any, ...]:
    pattern = ResourcePatternType.PREFIXED if acl.pattern == "prefixed" else ResourcePatternType.LITERAL
    permission = AclPermissionType.ALLOW if acl.permission == "Allow" else AclPermissionType.DENY
    return (
        ResourceType.TOPIC,
        acl.topic,
        pattern,
        acl.principal,
        acl.host,
        AclOperation(_NUMBERS[acl.operation]),
        permission,
    )
