"""When a run is done: its time, or the source's ends as they were when it began."""

from __future__ import annotations

from dataclasses import replace

from causeway.core.copy.round_plan import PartitionFacts, RoundPlan, plan_tasks
from causeway.core.copy.run_end import RunEnd
from causeway.core.kernel.identity import Generation, TopicPartition
from tests.support import builders
from tests.unit.core.copy.stage import NOW_MS

SILENT = TopicPartition("silent", 0)
FLOW = builders.flow(lanes=64)


def facts(topic: str, at: int | None, end: int) -> PartitionFacts:
    """`at`: its position; None: it has none yet."""
    pair = builders.pair(0, topic)
    position = None
    if at is not None:
        position = builders.position(at, at, time_ms=NOW_MS, records=at, is_placed=True)
    return PartitionFacts(
        pair=pair, position=position, log_start=0, last_stable=end, start=None, known=at is not None
    )


def plan(*partitions: PartitionFacts, later: tuple[TopicPartition, ...] = ()) -> RoundPlan:
    tasks = plan_tasks(FLOW, Generation(1), partitions, now_ms=NOW_MS, map_partitions=8)
    return RoundPlan(tasks=tasks, partitions=partitions, later=dict.fromkeys(later, "node 3 is silent"))


def ended(end: RunEnd, seen: RoundPlan, seconds: float = 1.0) -> str | None:
    return end.after_seeing(seen).outcome(end.after_seeing(seen).left_of(seen, NOW_MS), seconds)


def begun(*partitions: PartitionFacts, later: tuple[TopicPartition, ...] = ()) -> RunEnd:
    return RunEnd().after_seeing(plan(*partitions, later=later))


def test_a_run_ends_at_the_ends_of_when_it_began_though_the_source_grows_on() -> None:
    end = begun(facts("orders", 10, 100))
    assert ended(end, plan(facts("orders", 90, 150))) is None
    assert ended(end, plan(facts("orders", 100, 190))) == "caught up"
    assert ended(end, plan(facts("orders", 170, 190))) == "caught up"


def test_where_nothing_is_left_when_it_begins_nothing_is_copied() -> None:
    assert ended(RunEnd(), plan(facts("orders", 100, 100))) == "caught up"


def test_lanes_that_are_as_far_as_they_have_to_be_are_not_started_again() -> None:
    end = begun(facts("orders", 0, 100), facts("words", 0, 100))
    seen = plan(facts("orders", 120, 150), facts("words", 40, 100))
    assert len(seen.tasks) == 2, "two lanes"
    (task,) = end.left_of(seen, NOW_MS).tasks
    assert [str(each.pair.source) for each in task.assignments] == ["words-0"]
    assert end.left_of(seen, NOW_MS).partitions == seen.partitions, "the report is of all"


def test_work_besides_records_is_done_in_any_case() -> None:
    end = begun(facts("orders", 100, 100))
    reached = facts("orders", 100, 150)
    assert ended(end, plan(reached)) == "caught up"
    assert ended(end, plan(replace(reached, source_turned=True))) is None
    assert ended(RunEnd(), plan(facts("empty", None, 0))) is None, "its first position"


def test_a_source_that_cannot_be_asked_is_waited_for_and_counts_with_its_first_answer() -> None:
    end = begun(facts("orders", 100, 100), later=(SILENT,))
    seen = plan(facts("orders", 120, 150), later=(SILENT,))
    left = end.left_of(seen, NOW_MS)
    assert (left.tasks, list(left.later)) == ((), [SILENT]), "so the run waits, and its patience can end"
    assert ended(end, seen) is None
    answered = end.after_seeing(plan(facts("silent", 5, 30)))
    assert ended(answered, plan(facts("silent", 29, 60))) is None
    assert ended(answered, plan(facts("silent", 30, 90))) == "caught up"


def test_who_waits_for_the_target_is_not_waited_for_once_it_is_far_enough() -> None:
    end = begun(facts("orders", 10, 100))
    orders = TopicPartition("orders", 0)
    waiting = replace(plan(facts("orders", 100, 150), later=(orders,)), tasks=())
    assert ended(end, waiting) == "caught up"
    short = replace(plan(facts("orders", 99, 150), later=(orders,)), tasks=())
    assert ended(end, short) is None


def test_a_topic_that_comes_later_counts_with_its_first_end() -> None:
    end = begun(facts("orders", 100, 100)).after_seeing(
        plan(facts("orders", 100, 100), facts("new", None, 7))
    )
    assert ended(end, plan(facts("orders", 100, 100), facts("new", 6, 9))) is None
    assert ended(end, plan(facts("orders", 100, 100), facts("new", 7, 9))) == "caught up"


def test_a_planned_failover_waits_for_the_last_record() -> None:
    """A heartbeat may come between: the groups move only with a lag of 0."""
    end = RunEnd(to_the_last_record=True).after_seeing(plan(facts("heartbeats", 10, 10)))
    assert ended(end, plan(facts("heartbeats", 10, 11))) is None
    assert ended(end, plan(facts("heartbeats", 11, 11))) == "caught up"


def test_a_run_for_a_time_follows_to_its_end() -> None:
    end = RunEnd(run_for_seconds=60.0).after_seeing(plan(facts("orders", 10, 10)))
    seen = plan(facts("orders", 10, 30), later=(SILENT,))
    assert end.left_of(seen, NOW_MS) is seen
    assert ended(end, seen, 59.9) is None
    assert ended(end, plan(facts("orders", 30, 30)), 59.9) is None
    assert ended(end, seen, 60.0) == "time over"
