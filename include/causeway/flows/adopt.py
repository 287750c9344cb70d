"""Adopt: the one way to set a position by hand.

For pairs of topics that have data and no position, or whose history is broken and a person has decided
where to go on: the flow is fenced, the lane claimed, and (source offset, target end) committed without
data. The fence stays if it stood before, else it is lifted again.
"""

from __future__ import annotations

from dataclasses import dataclass

from causeway.brokers.admin import ClusterAdmin
from causeway.brokers.log_reader import LATEST, READ_COMMITTED
from causeway.core.endpoint import ClusterEndpoint
from causeway.core.errors import BadInput, ClusterUnreachable, UnknownName
from causeway.core.flow import Flow
from causeway.core.flow_state import Fence, KnownPair, pair_record
from causeway.core.identity import Generation, Pair, SourceOffset, TargetOffset, TopicPartition
from causeway.core.lanes import lane_of
from causeway.core.naming import FLOWS_TOPIC
from causeway.core.ports import Beaten, Doubt, LogEnd, Unreachable
from causeway.core.position import Position
from causeway.flows.clusters import Clusters, open_clusters, refuse_one_cluster, refuse_other_clusters
from causeway.flows.fence import claim_all_lanes
from causeway.flows.internal_topics import create_internal_topics
from causeway.flows.ownership import remember_clusters, write_fence, write_lift


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    source: TopicPartition
    target: TopicPartition
    source_offset: int
    target_offset: int
    generation: int


def adopt_partition(
    flow: Flow,
    source: ClusterEndpoint,
    target: ClusterEndpoint,
    at: TopicPartition,
    source_offset: int,
    *,
    by: str,
    because: str,
) -> Adopted:
    """:raises BadInput: an offset that the source's log doesn't hold; nothing is written then."""
    with open_clusters(source, target) as clusters:
        refuse_one_cluster(flow, clusters)
        try:
            return clusters.network.run(
                lambda: _adopt(
                    flow, clusters, ClusterAdmin(target), at, source_offset, by=by, because=because
                )
            )
        except (Unreachable, Doubt, Beaten) as trouble:
            raise ClusterUnreachable(
                f"adoption of {at}",
                rule=str(trouble),
                remedy=f"run the same command again; `causeway status {flow.name}` tells whether a fence is "
                "left standing",
            ) from trouble


async def _adopt(
    flow: Flow,
    clusters: Clusters,
    admin: ClusterAdmin,
    at: TopicPartition,
    source_offset: int,
    *,
    by: str,
    because: str,
) -> Adopted:
    state = await clusters.flow_state(flow)
    refuse_other_clusters(flow, clusters, state)
    pair = await _pair(flow, clusters, at)
    epoch = await _check_offset(clusters, pair, source_offset)
    target, clock = clusters.target, clusters.network
    create_internal_topics(flow, admin, frozenset(await target.wire.topics(None)))
    generation = await write_fence(target, clock, flow, by=by, because=because)
    fenced = await target.flow_state(flow.name)
    try:
        await claim_all_lanes(target, clock, flow, fenced)
        if state.source_cluster_id is None:
            await remember_clusters(
                target,
                flow.name,
                source_id=clusters.source.wire.cluster_id,
                target_id=target.wire.cluster_id,
            )
        await _remember_pair(clusters, flow, pair, state.pairs.get(pair.target.topic), generation)
        return await _commit(flow, clusters, pair, source_offset, epoch, generation)
    finally:  # also if it failed: else the next try would take the fence for somebody else's
        if fenced.fence is not None and fenced.fence.generation == generation:  # else another one stands
            await _uncover(clusters, flow, fenced.fence)


async def _uncover(clusters: Clusters, flow: Flow, own: Fence) -> None:
    """Take the adoption's own fence away; one that stood is raised again in the words of who raised it."""
    target, clock, stood = clusters.target, clusters.network, own.over
    if stood is not None:
        await write_fence(target, clock, flow, by=stood.by, because=stood.because)
    else:
        await write_lift(target, clock, flow, lifts=own.generation, by=own.by, because=own.because)


async def _pair(flow: Flow, clusters: Clusters, at: TopicPartition) -> Pair:
    name = flow.naming.target_topic(at.topic)
    here = (await clusters.source.wire.topics([at.topic]))[at.topic]
    there = (await clusters.target.wire.topics([name]))[name]
    for side, topic in (("source", here), ("target", there)):
        if topic.error or at.partition not in topic.leaders:
            raise UnknownName(
                f"partition {at.partition} of {topic.name}",
                rule=f"isn't on the {side} cluster",
                remedy="adopt begins with topics that are there: create or restore it first",
            )
    return Pair(
        source=at,
        target=TopicPartition(name, at.partition),
        source_topic_id=here.topic_id,
        target_topic_id=there.topic_id,
    )


async def _check_offset(clusters: Clusters, pair: Pair, source_offset: int) -> int:
    """The epoch of the source's log end if the offset is inside the log; else a refusal."""
    source = clusters.source
    start = (await source.log_starts([pair.source]))[pair.source]
    end = (await source.list_offsets({pair.source: LATEST}, isolation=READ_COMMITTED))[pair.source]
    if not isinstance(start, int) or not isinstance(end, LogEnd):
        raise Unreachable(f"offsets of {pair.source}: {start if not isinstance(start, int) else end}")
    if not start <= source_offset <= end.offset:
        raise BadInput(
            f"source offset of {pair.source}",
            value=source_offset,
            rule=f"must be from {start} (log start) to {end.offset} (last stable offset)",
            remedy="choose the offset of the first record that is still to be copied",
        )
    return end.leader_epoch if source_offset == end.offset else -1


async def _remember_pair(
    clusters: Clusters, flow: Flow, pair: Pair, before: KnownPair | None, generation: Generation
) -> None:
    known = KnownPair(
        source_topic=pair.source.topic,
        source_topic_id=pair.source_topic_id,
        target_topic_id=pair.target_topic_id,
        partitions=max(pair.target.partition + 1, before.partitions if before else 0),
        adopted_at=generation,
    )
    key, value = pair_record(flow.name, pair.target.topic, known)
    await clusters.target.append_plain(FLOWS_TOPIC, key, value)


async def _commit(
    flow: Flow, clusters: Clusters, pair: Pair, source_offset: int, epoch: int, generation: Generation
) -> Adopted:
    target, clock = clusters.target, clusters.network
    lane = lane_of(pair.target, flow.lanes)
    owner = await target.claim(flow.transactional_id(lane), timeout_ms=flow.limits.transaction_timeout_ms)
    end = (await target.log_ends([pair.target]))[pair.target]
    if not isinstance(end, LogEnd):
        raise Unreachable(f"end of {pair.target}: {end}")
    position = Position(
        source_next=SourceOffset(source_offset),
        target_next=TargetOffset(end.offset),
        source_topic_id=pair.source_topic_id,
        target_topic_id=pair.target_topic_id,
        source_epoch=epoch,
        target_epoch=end.leader_epoch,
        generation=generation,
        producer_id=owner.producer.producer_id,
        time_ms=clock.time_ms(),
    )
    await owner.commit_positions(flow.group, {pair.target: position})
    await owner.end(commit=True)
    return Adopted(
        source=pair.source,
        target=pair.target,
        source_offset=source_offset,
        target_offset=end.offset,
        generation=generation,
    )
