"""What one round copies: positions and ends in, lane tasks out, biggest first.

A plan is a hint for the lanes and the truth for lag. Pure: everything that it needs was read once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from causeway.core.copy.lane_task import Assignment, LaneResult, LaneTask, LastOwner, Quarantine
from causeway.core.copy.lanes import lane_of
from causeway.core.copy.ports import LogEnd
from causeway.core.copy.target_limits import TargetLimits
from causeway.core.kernel.identity import Generation, Pair, SourceOffset, TopicPartition
from causeway.core.kernel.plurals import counted
from causeway.core.model.flow import Flow
from causeway.core.state.flow_state import FlowState
from causeway.core.state.gaps import Gap, uncopied_gap
from causeway.core.state.parked import Parked
from causeway.core.state.position import ForeignPosition, Position
from causeway.core.state.reverse_flow import ReverseLimit
from causeway.core.state.start_ledger import StartAt


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFacts:
    """One pair as a round found it; an error on either side is a reason to leave it for later."""

    pair: Pair
    position: Position | ForeignPosition | None
    log_start: int
    last_stable: int
    start: StartAt | None
    """Where it begins if it has no history; None: nowhere by itself."""
    known: bool
    stands: Position | None = None
    """Where it was left, by what doesn't expire, if its committed position is gone."""
    adopted_at: int = -1
    set_by_hand: Position | None = None
    target_end: LogEnd | None = None
    """Of the target partition now; None: not known."""
    source_turned: bool = False
    """The source's log took another turn before the position."""
    opposite: ReverseLimit | None = None

    @property
    def source_next(self) -> int:
        """Where the partition stands, or would begin."""
        if self.standing is not None:
            return self.standing.source_next
        return self.start.offset if self.start else self.log_start

    @property
    def standing(self) -> Position | None:
        """Its position, or where it was left."""
        return self.position if isinstance(self.position, Position) else self.stands

    @property
    def begins_now(self) -> bool:
        """The start rule was asked in this round: its answer has to be written down before a lane begins."""
        return self.position is None and self.start is not None and self.start.generation < 0

    @property
    def lag(self) -> int:
        """Offsets still to be read; an upper bound of the records, because some of them are markers."""
        return max(self.last_stable - self.source_next, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundPlan:
    tasks: tuple[LaneTask, ...]
    partitions: tuple[PartitionFacts, ...]
    parked: dict[TopicPartition, Parked] = field(default_factory=dict)
    """By source partition: what can't even be given to a lane."""
    later: dict[TopicPartition, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def lag(self) -> int:
        return sum(p.lag for p in self.partitions)

    @property
    def waits(self) -> str:
        """Of what nothing is known now, in a line: how many, and why the first one."""
        why = next(iter(self.later.values()))
        return f"{counted(len(self.later), 'partition')} wait{'s' if len(self.later) == 1 else ''}: {why}"


def plan_tasks(
    flow: Flow,
    generation: Generation,
    partitions: Iterable[PartitionFacts],
    *,
    now_ms: int,
    map_partitions: int,
    put_off: frozenset[TopicPartition] = frozenset(),
) -> tuple[LaneTask, ...]:
    """Only lanes with work become tasks, and the biggest come first, so that they don't end last."""
    lanes: dict[int, list[PartitionFacts]] = {}
    for facts in partitions:
        if needs_work(facts, now_ms):
            lanes.setdefault(lane_of(facts.pair.target, flow.lanes), []).append(facts)
    by_size = sorted(lanes.items(), key=lambda item: (-sum(f.lag for f in item[1]), item[0]))
    return tuple(
        LaneTask(
            flow=flow.name,
            group=flow.group,
            lane=lane,
            transactional_id=flow.transactional_id(lane),
            generation=generation,
            map_topic=flow.map_topic,
            map_partitions=map_partitions,
            limits=flow.limits,
            assignments=tuple(_assignment(f) for f in members),
            settles=flow.settle,
            on_refused=flow.on_refused,
            quarantine=_quarantine(flow),
            put_off=put_off if flow.settle else frozenset(),
        )
        for lane, members in by_size
    )


def _quarantine(flow: Flow) -> Quarantine | None:
    return Quarantine(topic=flow.quarantine_topic, source=flow.source) if flow.quarantines else None


def needs_work(facts: PartitionFacts, now_ms: int) -> bool:
    return facts.lag > 0 or needs_a_lane_anyway(facts, now_ms)


def needs_a_lane_anyway(facts: PartitionFacts, now_ms: int) -> bool:
    """Without a record to copy: a first position to commit, one that would expire (after seven days), one
    that nothing but a committed offset knows of, or a log that isn't what it was."""
    position = facts.position
    if not isinstance(position, Position):
        return True
    if position.is_old(now_ms) or position.needs_a_place(facts.adopted_at):
        return True
    return _shrank(facts) or facts.source_turned or _target_has_turned(facts)


def _shrank(facts: PartitionFacts) -> bool:
    """The source ends before the position: a lane has to say what happened."""
    return facts.last_stable < facts.source_next


def _target_has_turned(facts: PartitionFacts) -> bool:
    """Another leader than the position's, or a shorter log: what is mirrored has to be proved again, also
    where nothing new waits on the source. A mirror at rest must not lack records until the next one comes."""
    end, position = facts.target_end, facts.position
    if end is None or not isinstance(position, Position):
        return False
    return end.leader_epoch != position.target_epoch or end.offset < position.target_next


def _assignment(facts: PartitionFacts) -> Assignment:
    return Assignment(
        pair=facts.pair,
        end=SourceOffset(facts.last_stable),
        start=facts.start,
        known=facts.known,
        adopted_at=facts.adopted_at,
        set_by_hand=facts.set_by_hand,
        opposite=facts.opposite,
    )


def lost_in_front(facts: PartitionFacts) -> Gap | None:
    """What retention took from the source before it was copied, as far as the plan can see it."""
    position = facts.standing
    if position is None or position.source_topic_id != facts.pair.source_topic_id:
        return None
    return uncopied_gap(facts.pair.source, position.source_next, facts.log_start)


def with_last_owners(plan: RoundPlan, last: Mapping[int, LastOwner]) -> RoundPlan:
    """By lane; who directly follows its own run's last owner needn't prove again what that one proved."""
    tasks = tuple(
        replace(task, last_owner=last[task.lane].of(a.pair.target for a in task.assignments))
        if task.lane in last
        else task
        for task in plan.tasks
    )
    return replace(plan, tasks=tasks)


def last_owners_after(before: Mapping[int, LastOwner], results: Iterable[LaneResult]) -> dict[int, LastOwner]:
    """By lane, as this round left them. Of a lane that isn't done the one before stays: an epoch tells
    whether anybody came after it."""
    left = {r.lane: r.last_owner.after(before.get(r.lane)) for r in results if r.last_owner is not None}
    return {**before, **left}


def with_starts(plan: RoundPlan, state: FlowState) -> RoundPlan:
    """The same work, with each start as the flow's state has it."""

    def recorded(task: LaneTask) -> LaneTask:
        assignments = (replace(a, start=state.start_of(a.pair)) if a.start else a for a in task.assignments)
        return replace(task, assignments=tuple(assignments))

    return replace(plan, tasks=tuple(map(recorded, plan.tasks)))


def with_limits(plan: RoundPlan, demands: Mapping[TopicPartition, TargetLimits]) -> RoundPlan:
    """The same work, with what the target is known to ask, by source partition."""

    def told(task: LaneTask) -> LaneTask:
        assignments = (replace(a, demands=demands.get(a.pair.source, a.demands)) for a in task.assignments)
        return replace(task, assignments=tuple(assignments))

    return replace(plan, tasks=tuple(map(told, plan.tasks))) if demands else plan
