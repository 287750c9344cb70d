"""Look and position: where each partition of a lane stands, proved against both logs.

The same questions are asked twice: before the claim, to leave parked lanes alone, and after it, when
no older owner can change the answers any more. Only the second answers are used to copy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from causeway.core.copy.lane_rules import (
    Fresh,
    LostPosition,
    found_again,
    judge_position,
    judge_source_lineage,
    kept_to,
    source_cut,
    source_next_at,
    source_turned,
    target_tail_is_lost,
)
from causeway.core.copy.lane_task import Assignment, LaneTask, PartitionRow
from causeway.core.copy.park_reasons import refusal_of_rights, tail_unmapped
from causeway.core.copy.ports import EpochEnd, LogEnd, Refused, Source, Target, is_unreachable
from causeway.core.copy.tail_comparison import SettledTail
from causeway.core.kernel.acl_vocabulary import Side
from causeway.core.kernel.identity import SourceOffset, TargetOffset, TopicPartition
from causeway.core.offsets.offset_map import MappedRange
from causeway.core.state.parked import Parked
from causeway.core.state.position import Position
from causeway.usecases.copy.lane.stale_leader import DEPOSED, is_from_stale_leader, is_stale_leader


@dataclass(slots=True, kw_only=True)
class PartitionState:
    """One partition as it was found: where to read on, where to append on."""

    assignment: Assignment
    position: Position | None
    source_next: SourceOffset
    source_epoch: int
    target_next: TargetOffset
    """After the last mirrored record."""
    target_end: int
    """The end of the log: what the next append's base offset must be."""
    target_epoch: int
    log_start: int
    leader_epoch: int
    """Of the target's leader now."""
    aborted_seen: int = 0
    recopied_from: int | None = None
    kept_to: int | None = None
    """Of a log that lost its tail: up to where the map says that it shows what was mirrored."""
    settled: SettledTail | None = None
    """After the position, and proved: what it has to be moved over before anything is appended."""

    @property
    def target(self) -> TopicPartition:
        return self.assignment.pair.target

    @property
    def has_records(self) -> bool:
        """Whether the position covers a record. What was settled after it isn't known."""
        return self.position is not None and self.position.records > 0

    @property
    def begins(self) -> tuple[SourceOffset, TargetOffset] | None:
        """Where the mirror begins, as long as it has no record."""
        p = self.position
        if self.has_records:
            return None
        return (p.source_next, p.target_next) if p else (self.source_next, self.target_next)

    @property
    def leader_changed(self) -> bool:
        """The position was written under another leader: its last run has to be proved again."""
        return self.position is not None and self.position.target_epoch != self.leader_epoch

    @property
    def writers(self) -> set[int]:
        """Whom the position names. Not the -1 of one that was rebuilt: that is any plain producer's."""
        p = self.position
        return {p.producer_id} if p is not None and p.producer_id >= 0 else set()

    def take(self, settled: SettledTail) -> None:
        last = settled.batches[-1]
        self.settled = settled
        self.source_next, self.target_next = (
            SourceOffset(settled.source_next),
            TargetOffset(settled.target_next),
        )
        self.source_epoch, self.target_epoch = last.source_epoch, settled.target_epoch
        self.aborted_seen = settled.aborted_behind

    @property
    def needs_a_place(self) -> bool:
        """Whether the offset map must have the place where it goes on: no record leads there."""
        p = self.position
        return self.differs_from_committed or (p is not None and p.needs_a_place(self.assignment.adopted_at))

    @property
    def differs_from_committed(self) -> bool:
        """Whether a position has to be committed before the first append (rule R2)."""
        p = self.position
        return p is None or (p.source_next, p.target_next) != (self.source_next, self.target_next)


Rows = dict[TopicPartition, PartitionRow]


class LaneInspection:
    """Asks both clusters about the partitions of one lane; what can't go on is parked in its row."""

    def __init__(
        self, task: LaneTask, source: Source, target: Target, rows: Rows, *, only_asks: bool = False
    ) -> None:
        """`only_asks`: for people who look; a lane proves by a mark that a position isn't there."""
        self._task, self._source, self._target, self._rows = task, source, target, rows
        self._only_asks = only_asks

    async def look(
        self,
        assignments: Iterable[Assignment],
        *,
        stable: bool,
        known: Mapping[TopicPartition, Position] | None = None,
    ) -> dict[TopicPartition, PartitionState]:
        """Grounds by target partition, of those that can go on.

        `known`, after the claim: positions of which it is proved that they are the committed ones.
        """
        asked = {a.pair.target: a for a in assignments}
        positions = await self._read_positions(asked, stable=stable, known=known)
        starts = await self._target.log_starts(list(positions))
        ends = await self._target.log_ends(list(positions))
        grounds: dict[TopicPartition, PartitionState] = {}
        for tp, position in positions.items():
            start, end = starts[tp], ends[tp]
            if isinstance(start, Refused) or isinstance(end, Refused):
                self._take_refusal(tp, tp.topic, "target", start if isinstance(start, Refused) else end)
                continue
            if position is not None and is_stale_leader(self._target, tp, position.target_epoch, end):
                self._rows[tp].later = f"{tp}: {DEPOSED}"
                continue
            grounds[tp] = _ground(asked[tp], position, start, end)
        await self._check_source(grounds)
        await self._check_target(grounds)
        return grounds

    async def _read_positions(
        self,
        asked: dict[TopicPartition, Assignment],
        *,
        stable: bool,
        known: Mapping[TopicPartition, Position] | None,
    ) -> dict[TopicPartition, Position | None]:
        group, partitions = self._task.group, list(asked)
        committed = await self._target.positions(group, partitions, stable=stable)
        is_doubtful = (
            any(committed[tp] is None and asked[tp].known for tp in partitions)
            if known is None
            else any(tp not in known or committed[tp] != known[tp] for tp in partitions)
        )
        if is_doubtful and not self._only_asks:
            committed = await self._target.positions(group, partitions, stable=stable, marked=True)
        positions: dict[TopicPartition, Position | None] = {}
        lost: list[TopicPartition] = []
        for tp, assignment in asked.items():
            verdict = judge_position(self._task.flow, assignment, committed.get(tp))
            match verdict:
                case Parked():
                    self.park(tp, verdict)
                case LostPosition():
                    lost.append(tp)
                case Fresh():
                    positions[tp] = None
                case Position():
                    positions[tp] = verdict
        if lost:
            positions.update(await self._rebuild_positions(asked, lost))
        return positions

    async def _rebuild_positions(
        self, asked: dict[TopicPartition, Assignment], lost: list[TopicPartition]
    ) -> dict[TopicPartition, Position | None]:
        """Committed offsets expire; the map and the flow's state don't. Never "earliest" for these."""
        ends = await self._target.log_ends(lost)
        known = await self._target.map_of(self._task.map_topic, lost)
        rebuilt: dict[TopicPartition, Position | None] = {}
        for tp in lost:
            end = ends[tp]
            if isinstance(end, Refused):
                # A leader that moves says nothing of the past.
                self._take_refusal(tp, tp.topic, "target", end)
                continue
            verdict = found_again(self._task.flow, asked[tp], known[tp], end.offset)
            if isinstance(verdict, Parked):
                self.park(tp, verdict)
            else:
                rebuilt[tp] = verdict if isinstance(verdict, Position) else None
        return rebuilt

    async def _check_source(self, grounds: dict[TopicPartition, PartitionState]) -> None:
        epochs = {
            g.assignment.pair.source: g.position.source_epoch
            for g in grounds.values()
            if g.position is not None and g.position.source_epoch >= 0
        }
        ends = await self._source.epoch_ends(epochs) if epochs else {}
        for tp, ground in list(grounds.items()):
            if ground.position is None:
                continue
            end = ends.get(ground.assignment.pair.source)
            verdict = judge_source_lineage(self._task.flow, ground.assignment, ground.position, end)
            if isinstance(verdict, Parked) and isinstance(end, EpochEnd):
                if not await self._was_deposed(grounds, tp):
                    self.park(tp, await self._turned(ground, end))
                    del grounds[tp]
            elif isinstance(verdict, Parked):
                self.park(tp, verdict)
                del grounds[tp]
            elif verdict is not None:
                self._rows[tp].later = verdict
                del grounds[tp]
        await self._check_source_ends(grounds)

    async def _turned(self, ground: PartitionState, end: EpochEnd) -> Parked:
        """The exact offsets, so that they can be accepted."""
        position, source = ground.position, ground.assignment.pair.source
        assert position is not None
        runs: list[MappedRange] = []
        if 0 <= end.epoch < position.source_epoch:
            runs = (await self._target.map_runs(self._task.map_topic, [ground.target]))[ground.target]
        start = (await self._source.log_starts([source]))[source]
        shared = EpochEnd(end.epoch, kept_to(runs, ground.assignment, position, end))
        log_start = start if isinstance(start, int) else 0
        return source_turned(self._task.flow, source, position, shared, log_start=log_start)

    async def _was_deposed(self, grounds: dict[TopicPartition, PartitionState], tp: TopicPartition) -> bool:
        """Whether it was only a deposed leader that showed a log that was cut; then the partition waits."""
        source = grounds[tp].assignment.pair.source
        why = await is_from_stale_leader(self._source, source, grounds[tp].source_epoch)
        if not why:
            return False
        self._rows[tp].later = f"{source}: {why}"
        del grounds[tp]
        return True

    async def _check_source_ends(self, grounds: dict[TopicPartition, PartitionState]) -> None:
        """A source that ends before the position was cut, whether or not an epoch tells."""
        short = {tp: g for tp, g in grounds.items() if g.source_next > g.assignment.end}
        if not short:
            return  # else the plan may only be older than the position: ask again
        ends = await self._source.log_ends([g.assignment.pair.source for g in short.values()])
        for tp, ground in short.items():
            source = ground.assignment.pair.source
            end = ends[source]
            if isinstance(end, Refused):
                self._take_refusal(tp, source.topic, "source", end)
                del grounds[tp]
            elif end.offset < ground.source_next:
                if not await self._was_deposed(grounds, tp):
                    cut = source_cut(self._task.flow, ground.assignment, ground.source_next, end.offset)
                    self.park(tp, cut)
                    del grounds[tp]
            elif ground.position is not None:
                self._rows[
                    tp
                ].later = f"{source} is stable to {ground.assignment.end} only, before {ground.source_next}"
                del grounds[tp]

    async def _check_target(self, grounds: dict[TopicPartition, PartitionState]) -> None:
        epochs = {
            tp: g.position.target_epoch
            for tp, g in grounds.items()
            if g.position is not None and g.position.target_epoch >= 0
        }
        ends = await self._target.epoch_ends(epochs) if epochs else {}
        for tp, answer in ends.items():
            if is_unreachable(answer):
                self._take_refusal(tp, tp.topic, "target", answer)
                del grounds[tp]
        lost = [
            tp
            for tp, g in grounds.items()
            if g.position is not None
            and target_tail_is_lost(g.position, ends.get(tp), g.log_start, g.target_end)
        ]
        runs = await self._target.map_runs(self._task.map_topic, lost) if lost else {}
        for tp in lost:
            ground, found = grounds[tp], ends.get(tp)
            known_end = ground.target_end
            if not isinstance(found, Refused) and found is not None and found.end >= 0:
                known_end = min(known_end, found.end)
            again = source_next_at(runs.get(tp, []), ground.assignment, ground.target_next, known_end)
            if again is None:
                self.park(
                    tp, tail_unmapped(self._task.flow, ground.assignment, ground.target_next, known_end)
                )
                del grounds[tp]
            else:
                ground.source_next, ground.recopied_from = again, int(again)
                ground.source_epoch = -1
                ground.target_next = TargetOffset(known_end)

    def park(self, tp: TopicPartition, parked: Parked) -> None:
        self._rows[tp].parked = parked

    def _take_refusal(self, tp: TopicPartition, topic: str, side: Side, refused: object) -> None:
        parked = refusal_of_rights(topic, side, refused)
        if parked is None:
            self._rows[tp].later = str(refused)
        else:
            self.park(tp, parked)


def _ground(assignment: Assignment, position: Position | None, log_start: int, end: LogEnd) -> PartitionState:
    if position is None:
        start = assignment.start
        return PartitionState(
            assignment=assignment,
            position=None,
            source_next=start.offset if start else SourceOffset(0),
            source_epoch=start.epoch if start else -1,
            target_next=TargetOffset(log_start),  # what others aborted there is no record of ours
            target_end=end.offset,
            target_epoch=end.leader_epoch,
            leader_epoch=end.leader_epoch,
            log_start=log_start,
        )
    return PartitionState(
        assignment=assignment,
        position=position,
        source_next=position.source_next,
        source_epoch=position.source_epoch,
        target_next=position.target_next,
        target_end=end.offset,
        target_epoch=position.target_epoch,
        log_start=log_start,
        leader_epoch=end.leader_epoch,
    )
