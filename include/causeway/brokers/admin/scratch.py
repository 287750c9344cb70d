"""A scratch topic, group and transactional id on a cluster: made, misused and deleted by `causeway doctor`.

It deletes only names that a `Scratch` has made up, and the clones of a drill.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from causeway.brokers.admin.probe import SILENT
from causeway.brokers.error_map import mapped, mapped_error
from causeway.brokers.transport.append_request import AppendRequest
from causeway.brokers.transport.connection import Wire
from causeway.core.copy.ports import AppendAnswer, Unreachable
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import CausewayError
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.model.naming import SCRATCH_PREFIX

_SECONDS = 30.0
_GONE_SECONDS = 15.0
_POLL_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Scratch:
    """Names that nobody else has: `token` is the run's own, in hexadecimal digits."""

    token: str

    @property
    def topic(self) -> str:
        """Ends in .internal, so that no mirror ever takes it along."""
        return f"{SCRATCH_PREFIX}{self.token}.internal"

    @property
    def group(self) -> str:
        return f"{SCRATCH_PREFIX}{self.token}"

    @property
    def transactional_id(self) -> str:
        return f"{SCRATCH_PREFIX}{self.token}"


def delete_scratch(endpoint: ClusterEndpoint, scratch: Scratch) -> list[CausewayError]:
    """Topic and group, whether they are there or not; what can't be deleted, with the reason.

    With a client of its own: it must work whatever state an interrupted one was left in.
    """
    with mapped(cluster=endpoint):
        client = AdminClient(dict(endpoint.settings), logger=SILENT)
        groups = client.delete_consumer_groups([scratch.group], request_timeout=_SECONDS)
    refused = _refusals(endpoint, groups, Code.GROUP_ID_NOT_FOUND)
    with mapped(cluster=endpoint):
        topics = client.delete_topics([scratch.topic], request_timeout=_SECONDS)
    refused += _refusals(endpoint, topics, Code.UNKNOWN_TOPIC_OR_PARTITION)
    deadline = time.monotonic() + _GONE_SECONDS
    try:
        while not refused and _is_there(client, endpoint, scratch) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
    except CausewayError as error:  # it is being deleted; only that it is gone couldn't be seen
        refused.append(error)
    return refused


def delete_groups(endpoint: ClusterEndpoint, groups: Collection[str]) -> None:
    """Clones that a drill has made; one that isn't there is as good as deleted.

    :raises CausewayError: the first refusal.
    """
    if not groups:
        return
    with mapped(cluster=endpoint):
        client = AdminClient(dict(endpoint.settings), logger=SILENT)
        answers = client.delete_consumer_groups(list(groups), request_timeout=_SECONDS)
    for error in _refusals(endpoint, answers, Code.GROUP_ID_NOT_FOUND):
        raise error


def _is_there(client: AdminClient, endpoint: ClusterEndpoint, scratch: Scratch) -> bool:
    with mapped(cluster=endpoint, operation="Describe"):
        return scratch.topic in client.list_topics(timeout=_SECONDS).topics


def _refusals(
    endpoint: ClusterEndpoint, answers: Mapping[str, Future[Any]], absent: Code
) -> list[CausewayError]:
    refused: list[CausewayError] = []
    for name, answer in answers.items():
        exc = answer.exception()
        if exc is None or (isinstance(exc, KafkaException) and exc.args[0].code() == absent):
            continue
        refused.append(mapped_error(exc, cluster=endpoint, resource=name, operation="Delete"))
    return refused


async def late_append(wire: Wire, transactional_id: str, tp: TopicPartition, batch: bytes) -> AppendAnswer:
    """One batch as a frozen worker's connection would deliver it: its preliminaries were done in time.

    Transactions of version 1 add a partition beforehand; what is sent here has no such request before it,
    because that one was answered before the owner was beaten.
    """
    request = AppendRequest({tp: batch}, transactional_id=transactional_id, is_v2=wire.is_v2)
    grouped = await wire.by_leader([tp])
    node = next(iter(grouped))
    if node < 0:
        raise Unreachable(f"{tp} of {wire.endpoint} has no leader")
    answer: AppendAnswer = (await wire.send(request, node)).by_partition[tp]
    return answer
