"""A run's report, brought up to date from what a round read back."""

from causeway.core.copy.report import RunReport
from causeway.core.copy.round_plan import PartitionFacts, RoundPlan
from causeway.core.kernel.identity import Generation, TopicPartition
from causeway.core.state.parked import Parked, ParkReason
from causeway.usecases.copy.update_report import update_report
from tests.support import builders

SOURCE, TARGET = TopicPartition("t", 0), TopicPartition("sf.t", 0)
PAIR = builders.pair(0, "t")


def report() -> RunReport:
    return RunReport(flow="f", run="r", holder="h", generation=3, began_at="now")


def plan_with(records: int, *, repeats: int = 0, source_next: int = 10, end: int = 30) -> RoundPlan:
    position = builders.position(
        source_next,
        source_next,
        generation=Generation(3),
        producer_id=9,
        records=records,
        aborted_records=repeats,
    )
    facts = PartitionFacts(pair=PAIR, position=position, log_start=0, last_stable=end, start=None, known=True)
    return RoundPlan(tasks=(), partitions=(facts,))


def test_records_are_what_the_positions_gained_since_the_run_began() -> None:
    mine = report()
    update_report(mine, plan_with(1_000, repeats=5), print)
    update_report(mine, plan_with(1_020, repeats=12, source_next=30), print)

    (partition,) = mine.partitions.values()
    assert (partition.records, partition.repeats, partition.repeats_in_all) == (20, 7, 12)
    assert (partition.source_from, partition.source_next, partition.lag) == (10, 30, 0)


def test_a_partition_that_waited_first_counts_from_its_first_position() -> None:
    mine = report()
    said: list[str] = []
    waiting = RoundPlan(tasks=(), partitions=(), later={SOURCE: "LEADER_NOT_AVAILABLE"})
    update_report(mine, waiting, said.append)
    update_report(mine, waiting, said.append)
    update_report(mine, plan_with(1_000), said.append)

    assert said == ["f: waits t-0: LEADER_NOT_AVAILABLE"]
    assert mine.records == 0
    assert mine.partitions[SOURCE].target == "sf.t-0"


def test_what_a_plan_parked_is_free_again_once_a_plan_says_so() -> None:
    mine, parked = report(), Parked(ParkReason.TARGET_RECREATED, "facts", "remedy")
    update_report(mine, plan_with(1_000), print)
    update_report(mine, RoundPlan(tasks=(), partitions=(), parked={SOURCE: parked}), print)
    assert [p.source for p in mine.parked] == [str(SOURCE)]

    update_report(mine, plan_with(1_000), print)

    assert mine.parked == []


def test_what_a_lane_parked_stays_parked_until_a_lane_says_more() -> None:
    mine = report()
    update_report(mine, plan_with(1_000), print)
    mine.partitions[SOURCE].parked = {"reason": "batch refused by the target"}

    update_report(mine, plan_with(1_000), print)

    assert [p.source for p in mine.parked] == [str(SOURCE)]


def test_who_waits_is_counted_until_what_it_waited_for_has_come() -> None:
    mine = report()
    said: list[str] = []
    update_report(mine, plan_with(1_000), said.append)
    mine.partitions[SOURCE].later = "NODE_UNREACHABLE (node 3 at h:1 doesn't answer)"  # by a lane
    update_report(mine, plan_with(1_000), said.append)
    assert mine.as_dict()["waiting"] == 1
    update_report(mine, plan_with(1_020, source_next=30), said.append)
    assert mine.as_dict()["waiting"] == 0
