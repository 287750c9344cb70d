"""When a run is done: after its time, or once it has caught up.

Caught up means: each source partition is mirrored up to where it ended when the run began. Under steady
traffic a source always has something more to copy; a run that waited for a lag of 0 would never end. What was
written since is the next run's. Some of it is mirrored already, if it shared a round with the rest.

A partition that couldn't be asked when the run began, or wasn't there yet, counts with the first end that the
run sees of it. What a lane has to do besides records (a first position, a lost tail, an old position) is
always part of the run.

A planned failover is another matter: its writers are at rest, and it moves groups only with a lag of 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from causeway.core.copy.lane_task import LaneTask
from causeway.core.copy.round_plan import PartitionFacts, RoundPlan, needs_a_lane_anyway
from causeway.core.kernel.identity import TopicPartition

Ended = Literal["caught up", "time over"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    run_for_seconds: float | None = None
    """None: until caught up."""
    to_the_last_record: bool = False
    """Until nothing is left, whatever is still written: only where writers were proved to be at rest."""
    ends: Mapping[TopicPartition, int] = field(default_factory=dict)
    """By source partition: the last stable offset that the run saw first."""

    def after_seeing(self, plan: RoundPlan) -> RunEnd:
        new = {f.pair.source: f.last_stable for f in plan.partitions if f.pair.source not in self.ends}
        return replace(self, ends={**self.ends, **new}) if new else self

    def left_of(self, plan: RoundPlan, now_ms: int) -> RoundPlan:
        """The same plan with what this run still has to do: lanes without such work aren't started, and the
        run doesn't wait for partitions that are far enough. A run for a time follows all."""
        if self.run_for_seconds is not None or self.to_the_last_record:
            return plan
        facts = {each.pair.source: each for each in plan.partitions}
        return replace(
            plan,
            tasks=tuple(task for task in plan.tasks if self._is_wanted(task, facts, now_ms)),
            later={tp: why for tp, why in plan.later.items() if not self._has_reached(tp, facts)},
        )

    def outcome(self, left: RoundPlan, seconds: float) -> Ended | None:
        """None: the run goes on. `left` as `left_of` gives it, `seconds` since the run began."""
        if self.run_for_seconds is None:
            return None if left.tasks or left.later else "caught up"
        return "time over" if seconds >= self.run_for_seconds else None

    def _is_wanted(self, task: LaneTask, facts: Mapping[TopicPartition, PartitionFacts], now_ms: int) -> bool:
        sources = [each.pair.source for each in task.assignments]
        return any(
            not self._has_reached(tp, facts) or needs_a_lane_anyway(facts[tp], now_ms) for tp in sources
        )

    def _has_reached(self, tp: TopicPartition, facts: Mapping[TopicPartition, PartitionFacts]) -> bool:
        """False if it isn't known."""
        return tp in facts and tp in self.ends and facts[tp].source_next >= self.ends[tp]
