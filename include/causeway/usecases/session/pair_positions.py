"""Where the partitions of a flow stand: by their committed positions, or by what doesn't expire.

For everybody but a lane, which proves each of its answers in an order of its own.
`core/offsets/pair_position.py` has the rules; *unknown* is None, and whoever gets it refuses or reports it:
it is never taken for the beginning.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.ports import LogEnd
from causeway.core.kernel.identity import Pair, TopicPartition
from causeway.core.offsets.map_entries import MapOf
from causeway.core.offsets.pair_position import Kept, set_position, where_it_ended, where_it_stands
from causeway.core.state.flow_state import FlowState
from causeway.core.state.position import ForeignPosition, Position

Standing = Position | ForeignPosition | None


class FlowPositions(Protocol):
    """What a flow keeps its positions and its map under. A `Flow` has both."""

    @property
    def group(self) -> str: ...
    @property
    def map_topic(self) -> str: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeps:
    """The same, for whoever has no `Flow`."""

    group: str
    map_topic: str


def known_pair(state: FlowState, target: TopicPartition) -> Pair:
    """As the flow has begun with it."""
    known = state.pairs[target.topic]
    return Pair(
        source=TopicPartition(known.source_topic, target.partition),
        target=target,
        source_topic_id=known.source_topic_id,
        target_topic_id=known.target_topic_id,
    )


async def read_pair_positions(
    flow: FlowPositions,
    at: WireTarget,
    state: FlowState,
    partitions: Sequence[TopicPartition],
    *,
    stable: bool,
    marked: bool = False,
) -> dict[TopicPartition, Standing]:
    """By target partition, of pairs that the flow has begun with."""
    committed = await at.positions(flow.group, list(partitions), stable=stable, marked=marked)
    return await with_what_is_kept(flow, at, state, committed)


async def with_what_is_kept(
    flow: FlowPositions, at: WireTarget, state: FlowState, committed: Mapping[TopicPartition, Standing]
) -> dict[TopicPartition, Standing]:
    """`committed`, and where there is nothing, what the map and the flow's state know."""
    lost = [tp for tp, found in committed.items() if found is None and tp.topic in state.pairs]
    if not lost:
        return dict(committed)
    known = await at.map_of(flow.map_topic, lost)
    pairs = {tp: known_pair(state, tp) for tp in lost}
    kept = {tp: kept_of(state, pair, known[tp]) for tp, pair in pairs.items()}
    ends = await log_ends_beside(at, kept)  # after the map: what is written in between makes it unknown
    return {**committed, **{tp: where_it_stands(pairs[tp], kept[tp], ends.get(tp)) for tp in lost}}


async def log_ends_beside(at: WireTarget, kept: Mapping[TopicPartition, Kept]) -> dict[TopicPartition, int]:
    """Of those that may have nothing but a start; whoever refuses to say it isn't among them."""
    begun = [tp for tp, each in kept.items() if each.start is not None]
    ends = await at.log_ends(begun) if begun else {}
    return {tp: end.offset for tp, end in ends.items() if isinstance(end, LogEnd)}


async def read_pair_ends(
    flow: FlowPositions, at: WireTarget, state: FlowState, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, Standing]:
    """Up to where the records of this flow reach, though others may have written after them since. It is for
    the flow in the other direction; nobody goes on from there."""
    found: dict[TopicPartition, Standing] = {}
    found.update(await at.positions(flow.group, list(partitions), stable=False))
    lost = [tp for tp, position in found.items() if position is None and tp.topic in state.pairs]
    if not lost or not await at.map_partitions(flow.map_topic):
        return found
    known = await at.map_of(flow.map_topic, lost)
    pairs = {tp: known_pair(state, tp) for tp in lost}
    ended = {tp: where_it_ended(pair, kept_of(state, pair, known[tp])) for tp, pair in pairs.items()}
    return {**found, **ended}


def begins_at(state: FlowState, target: TopicPartition) -> Position | None:
    """Where the start rule began, whatever has been written since; None: it wasn't asked, or a person has
    set the partition later."""
    pair = known_pair(state, target)
    return where_it_ended(pair, kept_of(state, pair, MapOf([])))


def has_begun(state: FlowState, target: TopicPartition) -> bool:
    """False: no lane has ever had it. It came later, or nobody could say where it begins."""
    has_start = state.start_of(known_pair(state, target)) is not None
    return state.pairs[target.topic].has_begun(target.partition, has_start=has_start)


def kept_of(state: FlowState, pair: Pair, known: MapOf) -> Kept:
    pairs = state.pairs.get(pair.target.topic)
    return Kept(
        runs=known.runs,
        place=known.place,
        set_by_hand=set_position(state.set_by_hand.values(), pair),
        start=state.start_of(pair),
        adopted_at=pairs.adopted_at_of(pair.target.partition) if pairs else -1,
    )
