"""Adopt: a person says where a partition goes on.

For pairs of topics that have data and no position, or whose history is broken and a person has decided
where to go on. What the offset map knew before says nothing about it any more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from causeway.brokers.log_reader import LATEST, READ_COMMITTED
from causeway.core.beginnings import How
from causeway.core.counting import counted
from causeway.core.endpoint import ClusterEndpoint
from causeway.core.errors import BadInput
from causeway.core.flow import Flow
from causeway.core.flow_state import FlowState, KnownPair, adopted_record
from causeway.core.identity import Generation, Pair, TopicPartition
from causeway.core.naming import FLOWS_TOPIC
from causeway.core.ports import LogEnd, Unreachable
from causeway.core.position import Position
from causeway.flows.by_hand import (
    Beginning,
    Reason,
    at_both_clusters,
    commit_beginnings,
    enter_beginnings,
    fenced,
    pair_at,
    refuse_leading_back,
)
from causeway.flows.clusters import Clusters
from causeway.flows.look import look


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted:
    source: TopicPartition
    target: TopicPartition
    source_offset: int
    target_offset: int
    """Where the next record is appended."""
    generation: int
    """-1: a dry run, nothing was written."""
    stood_at: int | None = None
    """The source offset where the partition would have gone on by itself, if that is known."""
    is_healthy: bool = False
    """It would have gone on there: it has a position and wasn't parked."""


def adopt_partition(
    flow: Flow,
    source: ClusterEndpoint,
    target: ClusterEndpoint,
    at: TopicPartition,
    source_offset: int,
    reason: Reason,
    *,
    dry_run: bool = False,
    even_though_healthy: bool = False,
) -> Adopted:
    """:raises BadInput: an offset that the source's log doesn't hold, or nothing is wrong with where the
    partition stands and nobody said that it is to move all the same; nothing is written then."""
    with at_both_clusters(flow, source, target, f"adoption of {at}") as (clusters, state):
        beginning = clusters.network.run(lambda: beginning_at(flow, clusters, at, source_offset))
        stood_at = clusters.network.run(lambda: _stood_at(flow, clusters, beginning.pair))
        is_healthy = False
        if stood_at is not None:
            beginning = replace(beginning, stood_at=stood_at)
            is_healthy = at not in clusters.network.run(lambda: look(flow, clusters)).parked
        if is_healthy and stood_at != source_offset and not (even_though_healthy or dry_run):
            raise _is_healthy(flow, beginning)
        done = go_on_at(flow, clusters, target, state, beginning, reason, how="adopt", dry_run=dry_run)
        return replace(done, stood_at=stood_at, is_healthy=is_healthy)


def _is_healthy(flow: Flow, beginning: Beginning) -> BadInput:
    at = beginning.pair.source
    return BadInput(
        f"adoption of {at}",
        value=beginning.source_next,
        rule=f"isn't needed: it stands at source offset {beginning.stood_at} and isn't parked; "
        f"{in_words(beginning.stood_at, beginning.source_next)}",
        remedy=f"leave it to `causeway run {flow.name}`, or say --even-though-healthy",
    )


def in_words(stood_at: int, source_offset: int) -> str:
    """The price of moving a position."""
    first, behind = sorted((stood_at, source_offset))
    records = f"the records of {counted(behind - first, 'source offset')} ({first} to {behind - 1})"
    if source_offset < stood_at:
        return f"{records} would be copied again, and readers see them twice"
    return f"{records} would never be copied"


async def _stood_at(flow: Flow, clusters: Clusters, pair: Pair) -> int | None:
    found = (await clusters.target.positions(flow.group, [pair.target], stable=False))[pair.target]
    if not isinstance(found, Position):
        return None
    ids = (found.source_topic_id, found.target_topic_id)
    return int(found.source_next) if ids == (pair.source_topic_id, pair.target_topic_id) else None


async def beginning_at(
    flow: Flow, clusters: Clusters, at: TopicPartition, source_offset: int, *, epoch: int = -1
) -> Beginning:
    """`epoch` of the record in front of the offset, where that is known.

    :raises BadInput: an offset that the source's log doesn't hold.
    """
    pair = await pair_at(flow, clusters, at)
    at_end = await _check_offset(clusters, pair, source_offset)
    return Beginning(pair=pair, source_next=source_offset, source_epoch=epoch if epoch >= 0 else at_end)


def go_on_at(
    flow: Flow,
    clusters: Clusters,
    target: ClusterEndpoint,
    state: FlowState,
    beginning: Beginning,
    reason: Reason,
    *,
    how: How | None,
    dry_run: bool,
) -> Adopted:
    """The one way in which a single partition's position is set by hand.

    `how` goes into the ledger of beginnings; None: both logs go on as they were, and no comparison need end.
    """
    pair, run = beginning.pair, clusters.network.run
    run(lambda: refuse_leading_back(flow, clusters, [beginning]))
    if dry_run:
        end, generation = run(lambda: _end_of(clusters, pair)), Generation(-1)
    else:
        with fenced(flow, clusters, target, reason) as generation:
            run(lambda: remember_pair(flow, clusters, state, pair, generation))
            done = run(lambda: commit_beginnings(flow, clusters, [beginning], generation))
            if how is not None:
                run(lambda: enter_beginnings(flow, clusters, how, [beginning], done, reason, generation))
        end = done[pair.source]
    return Adopted(
        source=pair.source,
        target=pair.target,
        source_offset=beginning.source_next,
        target_offset=end,
        generation=generation,
    )


async def _end_of(clusters: Clusters, pair: Pair) -> int:
    end = (await clusters.target.log_ends([pair.target]))[pair.target]
    if not isinstance(end, LogEnd):
        raise Unreachable(f"end of {pair.target}: {end}")
    return end.offset


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


async def remember_pair(
    flow: Flow, clusters: Clusters, state: FlowState, pair: Pair, generation: Generation, partitions: int = 0
) -> None:
    """Known as it is now; of earlier times the map says nothing about where to go on."""
    before = state.pairs.get(pair.target.topic)
    known = KnownPair(
        source_topic=pair.source.topic,
        source_topic_id=pair.source_topic_id,
        target_topic_id=pair.target_topic_id,
        partitions=max(pair.target.partition + 1, partitions, before.partitions if before else 0),
        adopted_at=generation,
    )
    key, value = adopted_record(flow.name, pair.target.topic, known)
    await clusters.target.append_plain(FLOWS_TOPIC, key, value)
