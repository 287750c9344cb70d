"""What a failover stands on: the flow's mirrors on the target, how far they reach, and their map.

Read in this order, so that nothing is promised that isn't mirrored: what groups have committed on the source
(`group_offsets.py`), then the map, then the flow's positions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from causeway.brokers.transport.lagging_nodes import known_topics
from causeway.brokers.transport.topic_metadata import TopicMetadata
from causeway.brokers.wire.log_reader import LATEST, READ_COMMITTED
from causeway.core.copy.ports import LogEnd, Refused
from causeway.core.failover.request import FailoverRequest, meets
from causeway.core.kernel.acl_vocabulary import Operation
from causeway.core.kernel.errors import UnknownName
from causeway.core.kernel.identity import SourceOffset, TargetOffset, TopicPartition
from causeway.core.kernel.kafka_errors import error_name
from causeway.core.model.flow import Flow
from causeway.core.offsets.map_entries import MapOf
from causeway.core.offsets.mm2_offset_syncs import Inherited
from causeway.core.offsets.offset_map import MappedRange, ranges_of_topics
from causeway.core.offsets.translation import PartitionMap, reach_of
from causeway.core.state.flow_state import FlowState
from causeway.core.state.known_pairs import KnownPair
from causeway.core.state.position import Position
from causeway.usecases.failover.reverse_map import NOTHING_TURNED, ReversedMap, ReversedPartition
from causeway.usecases.offsets.translate import inherited_of
from causeway.usecases.session.pair_positions import read_pair_positions
from causeway.usecases.session.source_may_be_gone import FlowSession

_NAMED_AT_MOST = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorPartition:
    source: TopicPartition
    target: TopicPartition
    pair: KnownPair
    log_start: TargetOffset
    end: TargetOffset
    """After the last mirrored record, as far as the target's log still goes."""
    source_next: SourceOffset | None
    """The mirror's position; None: it has none for these two topics."""
    runs: tuple[MappedRange, ...]
    map: PartitionMap


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorState:
    flow: Flow
    state: FlowState
    partitions: Mapping[TopicPartition, MirrorPartition]
    """By target partition."""
    topic_ids: Mapping[str, UUID]
    """Of the target's topics."""
    notes: tuple[str, ...]

    @property
    def by_source(self) -> dict[TopicPartition, MirrorPartition]:
        return {each.source: each for each in self.partitions.values()}

    @property
    def source_topic_ids(self) -> dict[str, UUID]:
        return {each.source.topic: each.pair.source_topic_id for each in self.partitions.values()}


async def select_topics(
    flow: Flow, sides: FlowSession, wish: FailoverRequest, state: FlowState
) -> tuple[dict[str, TopicMetadata], tuple[str, ...]]:
    """The mirrors that the wish is about and that still are the flow's own; why others aren't.

    :raises BadInput: none is, or one that is named isn't there. | :raises NotAuthorized: one may not be read.
    """
    has = sorted(pair.source_topic for pair in state.pairs.values())
    missing = [wanted for wanted in wish.topics if not any(meets(wanted, topic) for topic in has)]
    if missing:
        more = f" and {len(has) - _NAMED_AT_MOST} more" if len(has) > _NAMED_AT_MOST else ""
        raise UnknownName(
            "topics",
            value=", ".join(missing),
            rule=f"flow {flow.name} has mirrored none of that name",
            remedy=f"it has: {', '.join(has[:_NAMED_AT_MOST])}{more}",
        )
    pairs = {name: pair for name, pair in state.pairs.items() if wish.selects_topic(pair.source_topic)}
    known = {name: pair.target_topic_id for name, pair in pairs.items()}
    described = await known_topics(sides.target.wire, known)
    fit: dict[str, TopicMetadata] = {}
    notes: list[str] = []
    for name, topic in sorted(described.items()):
        if topic.lacks(Operation.READ):
            raise sides.target.wire.lacks_right(name, Operation.READ)
        if topic.error:
            notes.append(f"{name} isn't moved to: {error_name(topic.error)} on the target")
        elif topic.topic_id != pairs[name].target_topic_id:
            notes.append(f"{name} isn't moved to: it was recreated on the target since the flow wrote it")
        else:
            fit[name] = topic
    return fit, tuple(notes)


async def read_mirror_state(
    flow: Flow,
    sides: FlowSession,
    state: FlowState,
    topics: Mapping[str, TopicMetadata],
    notes: tuple[str, ...],
    *,
    is_fenced: bool,
    turned: ReversedMap = NOTHING_TURNED,
) -> MirrorState:
    """`is_fenced`: nothing can change any more, and what is read has to be proved."""
    target = sides.target
    wanted = [
        TopicPartition(name, number) for name, topic in topics.items() for number in sorted(topic.leaders)
    ]
    maps = await target.map_of(flow.map_topic, wanted)
    positions = await read_pair_positions(flow, target, state, wanted, stable=is_fenced, marked=is_fenced)
    starts = await target.log_starts(wanted)
    ends = await target.list_offsets(dict.fromkeys(wanted, LATEST), isolation=READ_COMMITTED)
    inherited = await inherited_of(flow.name, target, [state.pairs[tp.topic] for tp in wanted])
    found: dict[TopicPartition, MirrorPartition] = {}
    for tp in wanted:
        start, end, pair = starts[tp], ends[tp], state.pairs[tp.topic]
        if isinstance(start, Refused) or not isinstance(end, LogEnd):
            why = start if isinstance(start, Refused) else end
            notes = (*notes, f"{tp} isn't moved to: {why}")
            continue
        found[tp] = (
            _partition(tp, pair, start, end.offset, maps[tp], positions[tp], inherited.get(tp))
            if tp not in turned.partitions
            else _turned_partition(tp, pair, start, end.offset, turned.partitions[tp])
        )
    ids = {name: topic.topic_id for name, topic in topics.items()}
    return MirrorState(flow=flow, state=state, partitions=found, topic_ids=ids, notes=notes)


def _turned_partition(
    tp: TopicPartition, pair: KnownPair, start: int, log_end: int, turned: ReversedPartition
) -> MirrorPartition:
    return MirrorPartition(
        source=TopicPartition(pair.source_topic, tp.partition),
        target=tp,
        pair=pair,
        log_start=TargetOffset(start),
        end=TargetOffset(min(log_end, turned.reach.target_next)),
        source_next=turned.reach.source_next,
        runs=turned.runs,
        map=turned.map,
    )


def _partition(
    tp: TopicPartition,
    pair: KnownPair,
    start: int,
    log_end: int,
    known: MapOf,
    position: object,
    inherited: Inherited | None,
) -> MirrorPartition:
    found = position if isinstance(position, Position) else None
    reach = reach_of(found, pair, tp.partition, place=known.place)
    end = log_end if reach is None else min(log_end, reach.target_next)
    return MirrorPartition(
        source=TopicPartition(pair.source_topic, tp.partition),
        target=tp,
        pair=pair,
        log_start=TargetOffset(start),
        end=TargetOffset(end),
        source_next=reach.source_next if reach else None,
        runs=tuple(ranges_of_topics(known.runs, pair.ids)),
        map=PartitionMap(
            known.runs,
            reach,
            source_topic_id=pair.source_topic_id,
            target_topic_id=pair.target_topic_id,
            inherited=inherited,
        ),
    )
