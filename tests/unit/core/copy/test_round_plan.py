from dataclasses import replace
from uuid import UUID

import pytest

from causeway.core.copy.lane_task import LaneTask
from causeway.core.copy.lanes import lane_of
from causeway.core.copy.park_reasons import (
    is_of_other_flow,
    source_is_gone,
    topic_is_gone,
    topic_was_recreated,
)
from causeway.core.copy.ports import LogEnd
from causeway.core.copy.round_plan import PartitionFacts, RoundPlan, lost_in_front, needs_work, plan_tasks
from causeway.core.kernel.identity import Generation, SourceOffset, TopicPartition
from causeway.core.state.parked import ParkReason
from causeway.core.state.position import RENEW_AFTER_MS, ForeignPosition
from causeway.core.state.start_ledger import StartAt
from tests.unit.core.copy.stage import FLOW, LIMITS, NOW_MS, facts

RESTART = '`causeway restart-topic f orders --because "..."`'


def planned(*partitions: PartitionFacts) -> tuple[LaneTask, ...]:
    return plan_tasks(FLOW, Generation(42), partitions, now_ms=NOW_MS, map_partitions=8)


def test_a_partition_that_is_caught_up_and_fresh_is_left_alone() -> None:
    assert not needs_work(facts(), NOW_MS)
    assert not needs_work(facts(target=LogEnd(103, 0)), NOW_MS)
    assert planned(facts(0), facts(1)) == ()


@pytest.mark.parametrize(
    "partition",
    [
        facts(end=101),
        facts(position=None, end=0),
        facts(position=ForeignPosition(5, "why")),
        facts(age_ms=RENEW_AFTER_MS + 1),
        facts(end=99),
        facts(target=LogEnd(101, 1)),
        facts(target=LogEnd(99, 0)),
    ],
    ids=[
        "lag",
        "no position yet",
        "foreign position",
        "a day old",
        "shrunken source",
        "another leader of the target",
        "shrunken target",
    ],
)
def test_what_has_work(partition: PartitionFacts) -> None:
    assert needs_work(partition, NOW_MS)
    assert len(planned(partition)) == 1


def test_a_source_that_turned_has_work_though_nothing_waits_there() -> None:
    assert not needs_work(facts(), NOW_MS)
    assert needs_work(replace(facts(), source_turned=True), NOW_MS)


def test_positions_are_renewed_after_a_day_and_not_before() -> None:
    assert RENEW_AFTER_MS == 86_400_000
    assert not needs_work(facts(age_ms=RENEW_AFTER_MS), NOW_MS)


def test_a_partition_stands_at_its_position_or_where_it_would_begin() -> None:
    assert facts(at=70).source_next == 70
    assert facts(position=None, log_start=30).source_next == 30
    assert (
        facts(position=None, log_start=30, start=StartAt(offset=SourceOffset(60), epoch=2)).source_next == 60
    )
    assert facts(position=ForeignPosition(5, "why"), log_start=30).source_next == 30
    assert facts(at=70, log_start=80, start=StartAt(offset=SourceOffset(60), epoch=2)).source_next == 70


def test_lag_is_never_negative_and_adds_up() -> None:
    assert facts(at=100, end=130).lag == 30
    assert facts(at=100, end=99).lag == 0
    plan = RoundPlan(tasks=(), partitions=(facts(0, end=130), facts(1, end=99), facts(2, end=102)))
    assert plan.lag == 32


def test_only_lanes_with_work_become_tasks_and_only_with_the_partitions_that_have_some() -> None:
    partitions = [facts(p, end=101 if p % 2 else 100) for p in range(12)]
    tasks = planned(*partitions)
    given = [(a.pair.target.partition, task.lane) for task in tasks for a in task.assignments]
    assert sorted(p for p, _ in given) == [1, 3, 5, 7, 9, 11]
    assert all(lane == lane_of(TopicPartition("sf.orders", p), FLOW.lanes) for p, lane in given)
    assert len({task.lane for task in tasks}) == len(tasks)


def test_the_biggest_lane_comes_first_and_equals_come_by_number() -> None:
    partitions = [facts(p, end=101 + p) for p in range(12)]
    tasks = planned(*partitions)
    assert len(tasks) > 2
    sizes = [sum(a.end - 100 for a in task.assignments) for task in tasks]
    assert sizes == sorted(sizes, reverse=True)
    idle = planned(*(facts(p, age_ms=RENEW_AFTER_MS * 2) for p in range(12)))
    assert [task.lane for task in idle] == sorted(task.lane for task in idle)


def test_a_task_holds_all_that_a_lane_gets() -> None:
    (task,) = planned(facts(3, end=130, start=StartAt(offset=SourceOffset(9), epoch=1), known=False))
    assert (task.flow, task.group, task.generation) == ("f", "causeway.f", 42)
    assert task.transactional_id == f"causeway.f.{task.lane}"
    assert (task.map_topic, task.map_partitions) == ("causeway-offset-map.sf.internal", 8)
    assert task.limits == LIMITS
    assert not task.settles
    waiting = [facts(3, end=130)]
    (settling,) = plan_tasks(
        replace(FLOW, settle=True), Generation(42), waiting, now_ms=NOW_MS, map_partitions=8
    )
    assert settling.settles
    (assignment,) = task.assignments
    assert (assignment.end, assignment.start, assignment.known) == (
        130,
        StartAt(offset=SourceOffset(9), epoch=1),
        False,
    )
    assert assignment.pair == facts(3).pair


def test_a_target_that_is_gone_or_recreated_parks_with_the_remedy() -> None:
    gone = topic_is_gone("f", "orders", "sf.orders")
    assert gone.reason is ParkReason.TARGET_RECREATED
    assert "sf.orders" in gone.facts
    assert RESTART in gone.remedy
    again = topic_was_recreated("f", "sf.orders", "orders", "old", "new")
    assert again.reason is ParkReason.TARGET_RECREATED
    assert again.facts == "sf.orders had id old when this flow began with it and has new"


def test_a_recreated_source_is_distinguished_from_a_recreated_target() -> None:
    parked = topic_was_recreated("f", "orders", "orders", "old", "new")
    assert parked.reason is ParkReason.SOURCE_RECREATED
    assert RESTART in parked.remedy


def test_a_source_that_is_gone_parks_and_says_how_to_end_the_matter() -> None:
    parked = source_is_gone("f", "orders", "sf.orders")
    assert parked.reason is ParkReason.SOURCE_DELETED
    assert "the mirror stays" in parked.facts
    assert RESTART in parked.remedy


def test_a_mirror_of_another_flow_parks_with_both_names() -> None:
    parked = is_of_other_flow("new", "old", TopicPartition("orders", 3), TopicPartition("sf.orders", 3))
    assert parked.reason is ParkReason.OTHER_FLOW
    assert "call the flow old again" in parked.remedy
    assert '`causeway reconcile new orders 3 --because "..."`' in parked.remedy


def test_a_plan_sees_what_retention_took_before_a_position() -> None:
    assert lost_in_front(facts(at=100, end=200, log_start=100)) is None
    gap = lost_in_front(facts(at=100, end=200, log_start=130))
    assert gap is not None
    assert (gap.first, gap.end, gap.goes_on_at) == (100, 130, 130)
    assert lost_in_front(facts(position=None, log_start=130)) is None
    foreign = ForeignPosition(100, "not ours")
    assert lost_in_front(facts(position=foreign, log_start=130)) is None
    another = replace(facts(at=100, log_start=130), pair=replace(facts().pair, source_topic_id=UUID(int=9)))
    assert lost_in_front(another) is None, "offsets of another topic say nothing"


def test_who_waits_is_reported_in_a_line() -> None:
    first, second = TopicPartition("orders", 0), TopicPartition("orders", 1)
    one = RoundPlan(tasks=(), partitions=(), later={first: "node 3 doesn't answer"})
    assert one.waits == "1 partition waits: node 3 doesn't answer"
    assert replace(one, later={**one.later, second: "x"}).waits == "2 partitions wait: node 3 doesn't answer"


@pytest.mark.parametrize("settles", [True, False])
def test_a_lane_that_settles_gets_what_its_round_leaves_alone(settles: bool) -> None:
    put_off = frozenset({TopicPartition("sf.orders", 7)})
    flow = replace(FLOW, settle=settles)
    (task,) = plan_tasks(flow, Generation(1), [facts(at=0)], now_ms=NOW_MS, map_partitions=8, put_off=put_off)
    assert task.put_off == (put_off if settles else frozenset())
