"""Groups that return, with prefixes: what they read of a mirror, turned round to the topic that it mirrors.

With names of its own a mirror is written by the forward flow only. So its groups go back through the forward
flow's map, read the other way, beside those that go through the reverse flow's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from causeway.brokers.wire.log_reader import WireLogReader
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.lane_rules import is_covered
from causeway.core.failback.map_handover import reverse_range
from causeway.core.kernel.identity import Generation, SourceOffset, TargetOffset, TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.model.naming import is_heartbeats
from causeway.core.offsets.offset_map import MappedRange, ranges_of_topics
from causeway.core.offsets.translation import PartitionMap, Reach
from causeway.core.state.flow_state import FlowState
from causeway.core.state.known_pairs import KnownPair
from causeway.core.state.position import Position
from causeway.usecases.session.both_clusters import state_on
from causeway.usecases.session.pair_positions import read_pair_positions
from causeway.usecases.session.source_may_be_gone import FlowSession


@dataclass(frozen=True, slots=True)
class ReversedPartition:
    runs: tuple[MappedRange, ...]
    reach: Reach
    map: PartitionMap


@dataclass(frozen=True, slots=True)
class ReversedMap:
    """Mirrors of the forward flow, as pairs of the other direction; by the old primary's topics."""

    pairs: Mapping[str, KnownPair] = field(default_factory=dict)
    partitions: Mapping[TopicPartition, ReversedPartition] = field(default_factory=dict)

    def beside(self, state: FlowState) -> FlowState:
        return replace(state, pairs={**state.pairs, **self.pairs})


NOTHING_TURNED = ReversedMap()


async def read_reverse_map(reverse: Flow, sides: FlowSession) -> ReversedMap:
    """What the reverse flow doesn't mirror back itself; nothing under equal names."""
    forward = sides.home_of
    if forward is None:
        return NOTHING_TURNED
    found = await sides.of_source(lambda reader: _look(forward, reverse, reader))
    return NOTHING_TURNED if found is None else found


async def _look(forward: Flow, reverse: Flow, reader: WireLogReader) -> ReversedMap:
    at = WireTarget(reader.wire)
    state = await state_on(at, forward.name)
    pairs = {
        name: pair
        for name, pair in state.pairs.items()
        if reverse.naming.comes_from(name, reverse.target) and not is_heartbeats(pair.source_topic)
    }
    wanted = [TopicPartition(name, n) for name, pair in pairs.items() for n in range(pair.partitions)]
    runs = await at.map_runs(forward.map_topic, wanted)
    positions = await read_pair_positions(forward, at, state, wanted, stable=True)
    ends = {tp: await at.end_of(tp) for tp in wanted}
    partitions: dict[TopicPartition, ReversedPartition] = {}
    for tp in wanted:
        pair, position = pairs[tp.topic], positions[tp]
        if isinstance(position, Position) and position.target_topic_id == pair.target_topic_id:
            old = TopicPartition(pair.source_topic, tp.partition)
            partitions[old] = _turned(old, runs[tp], position, ends[tp])
    return ReversedMap(
        {pair.source_topic: _other_way(name, pair) for name, pair in pairs.items()}, partitions
    )


def _other_way(name: str, pair: KnownPair) -> KnownPair:
    return KnownPair(
        source_topic=name,
        source_topic_id=pair.target_topic_id,
        target_topic_id=pair.source_topic_id,
        partitions=pair.partitions,
    )


def _turned(old: TopicPartition, runs: list[MappedRange], position: Position, end: int) -> ReversedPartition:
    ids = position.ids
    ours = ranges_of_topics((run for run in runs if is_covered(run, position)), ids)
    turned = tuple(one for run in ours for one in reverse_range(run, old, Generation(-1)))
    reach = Reach(source_next=SourceOffset(end), target_next=TargetOffset(position.source_next))
    return ReversedPartition(
        turned, reach, PartitionMap(turned, reach, source_topic_id=ids[1], target_topic_id=ids[0])
    )
