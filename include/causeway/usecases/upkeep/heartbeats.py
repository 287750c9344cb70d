"""Heartbeats: written on a flow's source, and seen again downstream.

The only thing that Causeway ever writes on a source, and only where `emit.heartbeats.enabled` says so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from typing import TypeVar

from causeway.brokers.admin.topics import ClusterAdmin
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.ports import Unreachable
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import BadInput, ClusterUnreachable, ProtocolFault
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.model.flow import Flow
from causeway.core.model.naming import HEARTBEATS_TOPIC
from causeway.core.topics.heartbeats import Heartbeat, Upstream, decode_heartbeat, encode_heartbeat, upstreams
from causeway.core.topics.plan import NewTopicPlan
from causeway.usecases.session.blocking import blocking
from causeway.usecases.session.both_clusters import run_at_target

_LATEST_OFFSETS = 10_000
"""Where the newest heartbeats are: each that is mirrored brings a marker, too."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenUpstream:
    upstream: Upstream
    last_ms: int | None
    """Time of its newest heartbeat; None: none is there any more."""


def write_heartbeat(flow: Flow, source: ClusterEndpoint) -> Heartbeat:
    """:raises BadInput: the flow's heartbeats are switched off.

    :raises CausewayError: the source can't be used, or a right is missing.
    """
    if not flow.upkeep.emit_heartbeats:
        raise BadInput(
            f"flow {flow.name}",
            rule="writes no heartbeats",
            remedy="write emit.heartbeats.enabled: true; it needs rights on the source (docs/rights.md)",
        )

    async def write(log: WireTarget) -> Heartbeat:
        found = (await log.wire.topics([HEARTBEATS_TOPIC]))[HEARTBEATS_TOPIC]
        if found.error == Code.UNKNOWN_TOPIC_OR_PARTITION:
            await blocking(lambda: _make_topic(ClusterAdmin(source)))
        heartbeat = Heartbeat(flow.source, flow.target, log.wire.network.time_ms())
        await log.append_plain(HEARTBEATS_TOPIC, *encode_heartbeat(heartbeat))
        return heartbeat

    return _run(source, write)


def _run(cluster: ClusterEndpoint, work: Callable[[WireTarget], Awaitable[T]]) -> T:
    try:
        return run_at_target(cluster, work)
    except Unreachable as trouble:
        raise ClusterUnreachable(f"cluster {cluster}", rule=str(trouble), remedy="try again") from trouble


def _make_topic(admin: ClusterAdmin) -> None:
    for error in admin.create_topics(
        [NewTopicPlan(HEARTBEATS_TOPIC, 1, (("cleanup.policy", "compact"),))]
    ).values():
        raise error
    admin.wait_for_leaders({HEARTBEATS_TOPIC: 1})


def see_upstreams(cluster: ClusterEndpoint, separators: Collection[str]) -> tuple[SeenUpstream, ...]:
    """The clusters whose heartbeats arrive at this one, the nearest first."""

    async def look(reader: WireTarget) -> tuple[SeenUpstream, ...]:
        topics = await blocking(lambda: ClusterAdmin(cluster).topics())
        seen = upstreams((topic.name for topic in topics), separators)
        newest = {each.topic: await _newest(reader, each.topic) for each in seen}
        return tuple(SeenUpstream(upstream=each, last_ms=newest[each.topic]) for each in seen)

    return _run(cluster, look)


async def _newest(reader: WireTarget, topic: str) -> int | None:
    """When the newest heartbeat was written, by its own word: a mirror's markers have the mirror's time.

    The last one in the log, because clocks are set; what else somebody writes there is passed over.
    """
    place = TopicPartition(topic, 0)
    end, newest = await reader.end_of(place), None
    async for record in reader.records(place, max(end - _LATEST_OFFSETS, 0), end):
        with suppress(ProtocolFault):
            newest = decode_heartbeat(record.key or b"", record.value or b"").at_ms
    return newest
