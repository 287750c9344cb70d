"""What is known of each pair of partitions: how far its mirror has come, its map, what can be read there.

Read in the order that `share.py` says: what groups have committed, the map, positions, the log's ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from causeway.brokers.wire.log_reader import LATEST, READ_COMMITTED
from causeway.brokers.wire.mm2_topics import read_inherited
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.ports import LogEnd, Refused
from causeway.core.groups.sync_rules import Offsets, Outcome, TargetRange, Translated, Untranslated
from causeway.core.groups.task import GroupTask
from causeway.core.kernel.identity import Pair, SourceOffset, TargetOffset, TopicPartition
from causeway.core.offsets.mm2_offset_syncs import LowerBound
from causeway.core.offsets.translation import PartitionMap, Reach, reach_of
from causeway.core.offsets.why_not import AheadOfMirror, OlderThanMap
from causeway.core.records.mm2_formats import OffsetSync
from causeway.core.state.flow_state import FlowState
from causeway.core.state.known_pairs import KnownPair
from causeway.core.state.position import ForeignPosition, Position
from causeway.usecases.session.pair_positions import Keeps, read_pair_positions

NOT_BEGUN = Untranslated(Outcome.NEVER, "the flow hasn't begun with this partition")
NOTHING = TargetRange(log_start=TargetOffset(0), end=TargetOffset(0), log_end=TargetOffset(0))


@dataclass(frozen=True, slots=True)
class MirrorSeen:
    pair: Pair
    position: Position | ForeignPosition | None
    reach: Reach | None
    map: PartitionMap | None
    """None: no group stands before the position, and nothing was read."""
    range: TargetRange

    def translate(self, offset: int) -> Translated | Untranslated:
        reach = self.reach
        if reach is not None and offset >= reach.source_next:
            return Translated(reach.target_next, ahead_by=offset - reach.source_next)
        if self.map is not None:
            return _by_map(self.map, self.range, offset)
        if self.position is None:
            return NOT_BEGUN
        return Untranslated(Outcome.OTHER_GENERATION, "the flow's position belongs to other topics")

    @property
    def last_sync(self) -> OffsetSync | None:
        """Of offsets before both ends: who stands right there reads at most this record again."""
        reach = self.reach
        if reach is None or min(reach.source_next, reach.target_next) < 1:
            return None
        return OffsetSync(
            source=self.pair.source,
            source_offset=SourceOffset(reach.source_next - 1),
            target_offset=TargetOffset(reach.target_next - 1),
        )


async def read_mirrors(
    task: GroupTask, target: WireTarget, committed: Mapping[str, Offsets]
) -> dict[TopicPartition, MirrorSeen | Untranslated]:
    """By source partition; the map is read only where a group stands before its end."""
    targets = [pair.target for pair in task.pairs]
    state = await target.flow_state(task.flow)
    keeps = Keeps(group=task.position_group, map_topic=task.map_topic)
    before = await read_pair_positions(keeps, target, state, targets, stable=False)
    lagging = _lagging(task, before, committed)
    maps = await target.map_of(task.map_topic, lagging) if lagging else {}
    after = await read_pair_positions(keeps, target, state, lagging, stable=False) if lagging else {}
    positions = {**before, **after}  # the others' are old as well, and no map was read to go with newer ones
    is_adopted = any(pair.adopted_at >= 0 for pair in state.pairs.values())
    inherited = await read_inherited(target, task.flow) if is_adopted and lagging else {}
    starts = await target.log_starts(targets)
    ends = await target.list_offsets(dict.fromkeys(targets, LATEST), isolation=READ_COMMITTED)
    found: dict[TopicPartition, MirrorSeen | Untranslated] = {}
    for pair in task.pairs:
        position = positions[pair.target]
        kept = maps.get(pair.target)
        place = kept.place if kept is not None else None
        reach = reach_of(position, _known_pair(pair, state), pair.target.partition, place=place)
        held = _range(starts[pair.target], ends[pair.target], reach)
        if isinstance(held, Refused):
            found[pair.source] = Untranslated(Outcome.MISSING, f"{pair.target} can't be asked: {held}")
            continue
        ids = {"source_topic_id": pair.source_topic_id, "target_topic_id": pair.target_topic_id}
        known = None
        if kept is not None:
            known = PartitionMap(kept.runs, reach, **ids, inherited=inherited.get(pair.target))
        found[pair.source] = MirrorSeen(pair, position, reach, known, held)
    return found


def _lagging(
    task: GroupTask,
    positions: Mapping[TopicPartition, Position | ForeignPosition | None],
    committed: Mapping[str, Offsets],
) -> list[TopicPartition]:
    """Target partitions where somebody has still to read what is mirrored already."""
    least: dict[TopicPartition, int] = {}
    for offsets in committed.values():
        for tp, stands in offsets.items():
            least[tp] = min(stands.offset, least.get(tp, stands.offset))
    found: list[TopicPartition] = []
    for pair in task.pairs:
        position, tp = positions[pair.target], pair.source
        if tp in least and not (isinstance(position, Position) and least[tp] >= position.source_next):
            found.append(pair.target)
    return found


def _by_map(found: PartitionMap, held: TargetRange, offset: int) -> Translated | Untranslated:
    match found.to_target(SourceOffset(offset)):
        case int(at):
            return Translated(TargetOffset(at))
        case LowerBound(at):
            return Translated(TargetOffset(at), is_lower_bound=True)
        case AheadOfMirror(source_next, target_next):
            return Translated(target_next, ahead_by=max(offset - source_next, 0))
        case OlderThanMap() as older if 0 < held.log_start >= older.target_begins:
            return Translated(held.log_start)  # retention took all that may lie in front
        case why:
            return Untranslated(Outcome(why.reason), str(why))


def _range(start: int | Refused, end: LogEnd | Refused, reach: Reach | None) -> TargetRange | Refused:
    if isinstance(start, Refused):
        return start
    if isinstance(end, Refused):
        return end
    mirrored = end.offset if reach is None else min(end.offset, reach.target_next)
    return TargetRange(
        log_start=TargetOffset(start), end=TargetOffset(mirrored), log_end=TargetOffset(end.offset)
    )


def _known_pair(pair: Pair, state: FlowState) -> KnownPair:
    """As the task was given it, with what is known of its adoptions."""
    known = state.pairs.get(pair.target.topic)
    if known is not None and known.ids == pair.ids:
        return known
    return KnownPair(
        source_topic=pair.source.topic,
        source_topic_id=pair.source_topic_id,
        target_topic_id=pair.target_topic_id,
        partitions=pair.target.partition + 1,
    )
