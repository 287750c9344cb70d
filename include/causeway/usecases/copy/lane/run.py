"""One lane, from the question who may run to the last commit.

    who may run -> look -> [settle] -> claim -> who may run, proved -> position, proved -> copy, commit, ...

There is one recovery rule: whatever leaves an outcome unknown ends the task. The next task begins at
the top and reads what is true. A task that was beaten never claims back; only a new task claims.
"""

from __future__ import annotations

from collections.abc import Mapping

from causeway.core.copy.lane_task import (
    Assignment,
    LaneResult,
    LaneTask,
    LastOwner,
    Outcome,
    PartitionRow,
    RefusedCommit,
)
from causeway.core.copy.park_reasons import left_out
from causeway.core.copy.ports import (
    Clock,
    LaneFenced,
    OutcomeUnknown,
    Owner,
    PositionsPending,
    Source,
    Target,
    Unreachable,
)
from causeway.core.copy.producer import ProducerEpoch
from causeway.core.kernel.identity import TopicPartition
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.state.flow_records import claimed_record
from causeway.core.state.flow_state import FlowState
from causeway.core.state.position import Position
from causeway.core.state.unreadable_records import odd_fault
from causeway.usecases.copy.lane.copying import LaneCopy
from causeway.usecases.copy.lane.inspect import LaneInspection, PartitionState, Rows
from causeway.usecases.copy.lane.lost_markers import LostMarkers
from causeway.usecases.copy.lane.partition_stream import PartitionStream
from causeway.usecases.copy.lane.settle import Settling
from causeway.usecases.copy.lane.tail import TailCheck


async def run_lane(task: LaneTask, source: Source, target: Target, clock: Clock) -> LaneResult:
    rows: Rows = {
        a.pair.target: PartitionRow(source=a.pair.source, target=a.pair.target) for a in task.assignments
    }
    lane = _Lane(task, source, target, clock, rows)
    outcome: Outcome
    try:
        outcome, why = await lane.run()
    except (OutcomeUnknown, Unreachable) as doubt:
        outcome, why = "doubt", str(doubt)
    except LaneFenced as beaten:
        outcome, why = "beaten", str(beaten)
    if outcome != "done":
        for row in rows.values():
            row.later = row.later or why
    return LaneResult(
        lane=task.lane,
        outcome=outcome,
        why=why,
        transactions=lane.transactions,
        rows=tuple(rows.values()),
        last_owner=lane.last_owner if outcome == "done" else None,
        refused_commit=lane.refused_commit if outcome == "doubt" else None,
    )


class _Lane:
    def __init__(self, task: LaneTask, source: Source, target: Target, clock: Clock, rows: Rows) -> None:
        self._task, self._source, self._target = task, source, target
        self._clock, self._rows = clock, rows
        self._copy: LaneCopy | None = None
        self._owner: Owner | None = None
        self._streams: list[PartitionStream] = []
        self._follows = False
        """Nobody has claimed between the last owner of this run and this one."""
        self._state = FlowState()
        """As it was read last."""
        self._known: Mapping[TopicPartition, Position] = {}
        """Positions of that last owner, if so."""

    @property
    def last_owner(self) -> LastOwner | None:
        if self._owner is None or self._copy is None:
            return None
        producer = ProducerEpoch(self._owner.producer.producer_id, self._owner.producer.epoch)
        committed = {s.target: s.position for s in self._streams if s.position is not None}
        return LastOwner(producer=producer, positions={**self._known, **committed}, follows=self._follows)

    @property
    def refused_commit(self) -> RefusedCommit | None:
        return self._copy.refused_commit if self._copy else None

    @property
    def transactions(self) -> int:
        return self._copy.transactions if self._copy else 0

    async def run(self) -> tuple[Outcome, str]:
        task = self._task
        if (end := await self._may_not_run()) is not None:
            return end
        survey = LaneInspection(task, self._source, self._target, self._rows)
        seen = await survey.look(self._not_left_out(), stable=False)
        if not seen:
            return "done", ""
        settling = None
        if task.settles:
            settling = Settling(task, self._source, self._target, self._clock, self._rows)
            await settling.settle(seen)
        owner = await self._target.claim(task.transactional_id, timeout_ms=task.limits.transaction_timeout_ms)
        self._owner = owner
        if (end := await self._may_not_run_by_proof(owner)) is not None:
            return end
        hanging = LostMarkers(task, self._target, owner, self._clock)
        grounds = await self._look_after_the_claim(survey, seen, hanging)
        if settling is not None:
            settling.notes = self._state.settling
            settling.count(seen, grounds)
        await hanging.settle_map()
        await hanging.settle_quarantine()
        tail_check = TailCheck(task, self._target, owner, self._clock, self._rows, settling)
        await tail_check.settle_ends(grounds)
        self._streams = streams = [
            PartitionStream(ground, self._rows[tp], task, self._clock.time_ms())
            for tp, ground in grounds.items()
        ]
        self._copy = LaneCopy(task, self._source, self._target, owner, self._clock, streams)
        is_news = any(ground.needs_a_place for ground in grounds.values())
        says_who_writes = self._says_who_writes(streams, owner)
        if task.refused_commit is not None:
            await self._copy.try_commit(task.refused_commit)
        elif says_who_writes or is_news:
            await self._copy.commit()  # position first (R2)
        await self._copy.run()
        return "done", ""

    async def _look_after_the_claim(
        self, survey: LaneInspection, seen: dict[TopicPartition, PartitionState], hanging: LostMarkers
    ) -> dict[TopicPartition, PartitionState]:
        """Positions that a lost marker left open are closed on the way."""
        assignments = [ground.assignment for ground in seen.values()]
        try:
            return await survey.look(assignments, stable=True, known=self._known)
        except PositionsPending:
            # Looked at again: until the claim, a predecessor went on from what was seen before it.
            await hanging.settle_positions(await survey.look(assignments, stable=False, known=self._known))
            return await survey.look(assignments, stable=True, known=self._known)

    def _not_left_out(self) -> list[Assignment]:
        """Less what single topics' fences leave out. One that is raised now is a turn: it ends this task."""
        kept: list[Assignment] = []
        for each in self._task.assignments:
            target = each.pair.target
            if (fence := self._state.fence_over(target.topic)) is None:
                kept.append(each)
            else:
                self._rows[target].parked = left_out(self._task.flow, fence, self._state.standing)
        return kept

    def _says_who_writes(self, streams: list[PartitionStream], owner: Owner) -> bool:
        """Whose records are proved, if this lane dies, is decided by the producer that the position names."""
        for stream in streams if self._task.settles else ():
            stream.is_due |= (
                stream.position is None or stream.position.producer_id != owner.producer.producer_id
            )
        return self._task.settles and any(stream.is_due for stream in streams)

    async def _may_not_run_by_proof(self, owner: Owner) -> tuple[Outcome, str] | None:
        """After the claim, whoever answers: a fence that a deposed leader doesn't know of counts, too.

        A fence that isn't seen here claims all lanes after this claim.
        """
        task, last = self._task, self._task.last_owner
        if last is not None and last.producer.is_followed_by(owner.producer):
            self._follows, self._known = True, last.positions
        else:
            key, value = claimed_record(task.flow, lane=task.lane, generation=task.generation)
            await self._target.append_plain(FLOWS_TOPIC, key, value)
        return await self._may_not_run()

    async def _may_not_run(self) -> tuple[Outcome, str] | None:
        """:raises OutcomeUnknown: whoever answers doesn't know of this run yet; what it says of others is as
        old."""
        self._state = state = await self._target.flow_state(self._task.flow)
        if state.generation < self._task.generation:
            raise OutcomeUnknown(
                f"{FLOWS_TOPIC} was read up to generation {state.generation}, and this run has "
                f"{self._task.generation}: its leader may be cut off from the other brokers"
            )
        if state.odd:
            return "fenced", str(odd_fault(self._task.flow, state.odd[min(state.odd)]))
        if state.fence is not None:
            return "fenced", f"fenced by {state.fence.by}: {state.fence.because}"
        if state.generation != self._task.generation:
            return "superseded", _successor(state)
        return None


def _successor(state: FlowState) -> str:
    if state.run is None:
        return f"generation {state.generation} came after this run's"
    return f"{state.run.holder} took over with generation {state.run.generation}"
