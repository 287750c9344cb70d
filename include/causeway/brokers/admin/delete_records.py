"""Delete the beginning of logs, up to exact offsets: for a rebuild, after an export that was compared.

What is appended at such an offset or after it stays, whenever it comes: nothing is deleted that nobody has
looked at. Topics stay, with their ids, settings, ACLs and ends. No broker fences who deletes, so before each
request the caller proves that it may.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping

from confluent_kafka import KafkaException
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient

from causeway import interruption
from causeway.brokers.admin.probe import SILENT
from causeway.brokers.error_map import mapped, mapped_error
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code

_REQUEST_SECONDS = 30.0
_PASSING = {
    Code.POLICY_VIOLATION,
    Code.NOT_LEADER_OR_FOLLOWER,
    Code.LEADER_NOT_AVAILABLE,
    Code.REQUEST_TIMED_OUT,
}
"""A policy that was widened just now reaches brokers a moment later than the controller."""
_PATIENCE_SECONDS, _PAUSE_SECONDS = 20.0, 0.1
_AT_ONCE = 200
"""Partitions of one request: no more is deleted on one proof."""


async def delete_before(
    endpoint: ClusterEndpoint, ends: Mapping[TopicPartition, int], prove: Callable[[], Awaitable[None]]
) -> None:
    """Doing it again changes nothing. `prove` raises where nothing may be deleted any more.

    :raises CausewayError: the first refusal; other partitions may be done.
    """
    with mapped(cluster=endpoint):
        client = AdminClient(dict(endpoint.settings), logger=SILENT)
    waiting = {tp: end for tp, end in ends.items() if end > 0}  # -1 would mean: all that is there
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while waiting:
        refused: dict[TopicPartition, KafkaException] = {}
        for portion in _ends_by_request(waiting):
            interruption.check()
            await prove()
            refused |= _delete(client, endpoint, portion)
        for tp, error in refused.items():
            if error.args[0].code() not in _PASSING or time.monotonic() > deadline:
                raise mapped_error(error, cluster=endpoint, resource=tp.topic, operation="Delete") from error
        waiting = {tp: waiting[tp] for tp in refused}
        if waiting:
            time.sleep(_PAUSE_SECONDS)


def _ends_by_request(ends: Mapping[TopicPartition, int]) -> Iterator[dict[TopicPartition, int]]:
    rest = list(ends.items())
    return (dict(rest[at : at + _AT_ONCE]) for at in range(0, len(rest), _AT_ONCE))


def _delete(
    client: AdminClient, endpoint: ClusterEndpoint, ends: Mapping[TopicPartition, int]
) -> dict[TopicPartition, KafkaException]:
    asked = [ClientPartition(tp.topic, tp.partition, end) for tp, end in ends.items()]
    with mapped(cluster=endpoint, operation="Delete"):
        answers = client.delete_records(asked, request_timeout=_REQUEST_SECONDS)
    refused: dict[TopicPartition, KafkaException] = {}
    for place, answer in answers.items():
        error = answer.exception()
        if isinstance(error, KafkaException):
            refused[TopicPartition(place.topic, place.partition)] = error
        elif error is not None:
            raise error
    return refused
