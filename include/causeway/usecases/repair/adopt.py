"""Adopt: a person says where a partition goes on.

For pairs of topics that have data and no position, or whose history is broken and a person has decided
where to go on. What the offset map knew before says nothing about it any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

from causeway.brokers.wire.log_reader import LATEST, READ_COMMITTED
from causeway.core.copy.ports import LogEnd, Refused, Unreachable
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import BadInput
from causeway.core.kernel.identity import Generation, Pair, TopicPartition
from causeway.core.kernel.kafka_errors import error_name
from causeway.core.kernel.plurals import counted
from causeway.core.model.flow import Flow
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.state.flow_records import adopted_record
from causeway.core.state.flow_state import FlowState
from causeway.core.state.known_pairs import KnownPair
from causeway.core.state.parked import ParkReason
from causeway.core.state.position import Position
from causeway.core.state.position_ledger import How
from causeway.usecases.copy.round_facts import starts_at_end
from causeway.usecases.inspect.flow_status import inspect
from causeway.usecases.repair.asked_partition import pair_at, refuse_of_another_flow
from causeway.usecases.repair.record_positions import record_positions
from causeway.usecases.repair.set_positions import (
    NewPosition,
    Reason,
    commit_positions,
    fenced,
    refuse_leading_back,
    run_command,
    seen_again,
    target_ends,
)
from causeway.usecases.session.both_clusters import Clusters
from causeway.usecases.session.pair_positions import read_pair_positions


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
    partition stands and the operator didn't say that it is to move all the same; nothing is written then."""

    async def work(clusters: Clusters, state: FlowState) -> Adopted:
        refuse_of_another_flow(flow, state, at.topic)
        beginning = await position_at(flow, clusters, at, source_offset)
        stood_at = await _stood_at(flow, clusters, beginning.pair)
        is_healthy = False
        if stood_at is not None:
            beginning = replace(beginning, stood_at=stood_at)
            parked = (await inspect(flow, clusters)).parked.get(at)
            is_healthy = parked is None or parked.reason is ParkReason.FENCED
        if is_healthy and stood_at != source_offset and not (even_though_healthy or dry_run):
            raise _is_healthy(flow, beginning)
        done = await go_on_at(flow, clusters, target, state, beginning, reason, how="adopt", dry_run=dry_run)
        return replace(done, stood_at=stood_at, is_healthy=is_healthy)

    return run_command(flow, source, target, f"adoption of {at}", work)


def _is_healthy(flow: Flow, beginning: NewPosition) -> BadInput:
    at = beginning.pair.source
    return BadInput(
        f"adoption of {at}",
        value=beginning.source_next,
        rule=f"isn't needed: it stands at source offset {beginning.stood_at} and isn't parked; "
        f"{in_words(beginning.stood_at, beginning.source_next)}",
        remedy=f"leave it to `causeway run {flow.name}`",
    )


def in_words(stood_at: int, source_offset: int) -> str:
    """The price of moving a position."""
    first, behind = sorted((stood_at, source_offset))
    records = f"the records of {counted(behind - first, 'source offset')} ({first} to {behind - 1})"
    if source_offset < stood_at:
        return f"{records} would be copied again, and readers see them twice"
    return f"{records} would never be copied"


async def _stood_at(flow: Flow, clusters: Clusters, pair: Pair) -> int | None:
    state = await clusters.flow_state(flow)
    found = (await read_pair_positions(flow, clusters.target, state, [pair.target], stable=False))[
        pair.target
    ]
    if not isinstance(found, Position):
        return None
    return int(found.source_next) if found.ids == pair.ids else None


async def position_at(
    flow: Flow, clusters: Clusters, at: TopicPartition, source_offset: int, *, epoch: int = -1
) -> NewPosition:
    """`epoch` of the record before the offset, where that is known.

    :raises BadInput: an offset that the source's log doesn't hold.
    """
    pair = await pair_at(flow, clusters, at)
    at_end = await _check_offset(clusters, pair, source_offset)
    return NewPosition(
        pair=pair,
        source_next=source_offset,
        source_epoch=epoch if epoch >= 0 else at_end,
        target_end=(await target_ends(clusters, [pair]))[pair.target],
    )


async def go_on_at(
    flow: Flow,
    clusters: Clusters,
    target: ClusterEndpoint,
    state: FlowState,
    beginning: NewPosition,
    reason: Reason,
    *,
    how: How | None,
    dry_run: bool,
) -> Adopted:
    """The one way in which a single partition's position is set by hand.

    `how` goes into the ledger of beginnings; None: both logs go on as they were, and no comparison need end.
    """
    pair = beginning.pair
    await refuse_leading_back(flow, clusters, [beginning])
    if dry_run:
        end, generation = beginning.target_end, Generation(-1)
    else:
        async with fenced(flow, clusters, target, reason) as own:
            generation = own.generation
            seen = await seen_again(clusters, [beginning])
            remember = partial(remember_pair, flow, clusters, state, [pair], generation)
            done = await commit_positions(flow, clusters, seen, own, remember)
            if how is not None:
                await record_positions(flow, clusters, how, seen, done, reason, generation)
        end = int(done[pair.source])
    return Adopted(
        source=pair.source,
        target=pair.target,
        source_offset=beginning.source_next,
        target_offset=end,
        generation=generation,
    )


async def _check_offset(clusters: Clusters, pair: Pair, source_offset: int) -> int:
    """The epoch of the source's last record if the offset is inside the log; else a refusal."""
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
    if source_offset != end.offset:
        return -1
    found = (await starts_at_end(source, {pair.source: end}))[pair.source]
    if isinstance(found, Refused):
        raise Unreachable(f"leader epochs of {pair.source}: {found}")
    return found.epoch


async def remember_pair(
    flow: Flow,
    clusters: Clusters,
    state: FlowState,
    pairs: Sequence[Pair],
    generation: Generation,
    partitions: int = 0,
) -> None:
    """Of one topic, and known as it is now; of earlier times the map says nothing about where these go on."""
    pair, numbers = pairs[0], [each.target.partition for each in pairs]
    begun = max(max(numbers) + 1, partitions, await _begun_before(clusters, state, pair))
    known = KnownPair(
        source_topic=pair.source.topic,
        source_topic_id=pair.source_topic_id,
        target_topic_id=pair.target_topic_id,
        partitions=begun,
        adopted_at=generation,
    )
    key, value = adopted_record(flow.name, pair.target.topic, known, numbers)
    await clusters.target.append_plain(FLOWS_TOPIC, key, value)


async def _begun_before(clusters: Clusters, state: FlowState, pair: Pair) -> int:
    """How many partitions of the topic don't begin by themselves. Of one that was recreated since: as many as
    the source's has now, because nothing is recorded of where they go on."""
    before = state.pairs.get(pair.target.topic)
    if before is None:
        return 0
    if before.ids == pair.ids:
        return before.partitions
    there = (await clusters.source.wire.topics([pair.source.topic]))[pair.source.topic]
    if there.error:
        raise Unreachable(f"partitions of {pair.source.topic}: {error_name(there.error)}")
    return len(there.leaders)
