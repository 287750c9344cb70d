"""Groups that go home with prefixes: what they read of a mirror, turned round to the topic that it mirrors.

With names of its own a mirror is written by the forward flow only. So its groups go back through the forward
flow's map, read the other way, beside those that go through the reverse flow's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from causeway.brokers.log_reader import WireLogReader
from causeway.brokers.target_log import WireTarget
from causeway.core.failback.handover import turned_round
from causeway.core.flow import Flow
from causeway.core.flow_state import FlowState
from causeway.core.identity import Generation, SourceOffset, TargetOffset, TopicPartition
from causeway.core.known_pairs import KnownPair
from causeway.core.lane_rules import is_covered
from causeway.core.naming import is_heartbeats
from causeway.core.offset_map import Run, runs_of_topics
from causeway.core.position import Position
from causeway.core.translation import PartitionMap, Reach
from causeway.flows.clusters import state_on
from causeway.flows.failover.sides import Sides
from causeway.flows.standing import where_they_stand


@dataclass(frozen=True, slots=True)
class TurnedPartition:
    runs: tuple[Run, ...]
    reach: Reach
    map: PartitionMap


@dataclass(frozen=True, slots=True)
class Turned:
    """Mirrors of the forward flow, as pairs of the other direction; by the old primary's topics."""

    pairs: Mapping[str, KnownPair] = field(default_factory=dict)
    partitions: Mapping[TopicPartition, TurnedPartition] = field(default_factory=dict)

    def beside(self, state: FlowState) -> FlowState:
        return replace(state, pairs={**state.pairs, **self.pairs})


NOTHING_TURNED = Turned()


async def look_at_returning(reverse: Flow, sides: Sides) -> Turned:
    """What the reverse flow doesn't lead back itself; nothing with names that stay."""
    forward = sides.home_of
    if forward is None:
        return NOTHING_TURNED
    found = await sides.of_source(lambda reader: _look(forward, reverse, reader))
    return NOTHING_TURNED if found is None else found


async def _look(forward: Flow, reverse: Flow, reader: WireLogReader) -> Turned:
    at = WireTarget(reader.wire)
    state = await state_on(at, forward.name)
    pairs = {
        name: pair
        for name, pair in state.pairs.items()
        if reverse.naming.comes_from(name, reverse.target) and not is_heartbeats(pair.source_topic)
    }
    wanted = [TopicPartition(name, n) for name, pair in pairs.items() for n in range(pair.partitions)]
    runs = await at.map_runs(forward.map_topic, wanted)
    positions = await where_they_stand(forward, at, state, wanted, stable=True)
    ends = {tp: await at.end_of(tp) for tp in wanted}
    partitions: dict[TopicPartition, TurnedPartition] = {}
    for tp in wanted:
        pair, position = pairs[tp.topic], positions[tp]
        if isinstance(position, Position) and position.target_topic_id == pair.target_topic_id:
            old = TopicPartition(pair.source_topic, tp.partition)
            partitions[old] = _turned(old, runs[tp], position, ends[tp])
    return Turned({pair.source_topic: _other_way(name, pair) for name, pair in pairs.items()}, partitions)


def _other_way(name: str, pair: KnownPair) -> KnownPair:
    return KnownPair(
        source_topic=name,
        source_topic_id=pair.target_topic_id,
        target_topic_id=pair.source_topic_id,
        partitions=pair.partitions,
    )


def _turned(old: TopicPartition, runs: list[Run], position: Position, end: int) -> TurnedPartition:
    ids = position.ids
    ours = runs_of_topics((run for run in runs if is_covered(run, position)), ids)
    turned = tuple(one for run in ours for one in turned_round(run, old, Generation(-1)))
    reach = Reach(source_next=SourceOffset(end), target_next=TargetOffset(position.source_next))
    return TurnedPartition(
        turned, reach, PartitionMap(turned, reach, source_topic_id=ids[1], target_topic_id=ids[0])
    )
