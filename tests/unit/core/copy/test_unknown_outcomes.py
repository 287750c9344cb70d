"""Lanes in doubt: pauses of their own, a trial without data, and an end of it."""

from dataclasses import replace

import pytest

from causeway.core.copy.lane_task import LaneResult, Outcome, PartitionRow, RefusedCommit
from causeway.core.copy.round_plan import RoundPlan, plan_tasks
from causeway.core.copy.unknown_outcomes import UnknownOutcomes
from causeway.core.kernel.identity import Generation, TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.state.parked import Parked, ParkReason
from tests.unit.core.copy.stage import FLOW, facts

TOO_LARGE = RefusedCommit(
    why="map-3: MESSAGE_TOO_LARGE", code=Code.MESSAGE_TOO_LARGE, map_topic="map", map_bytes=7_000
)
FAR = 1e9


def plan(*lanes: int) -> RoundPlan:
    (task, *_) = plan_tasks(FLOW, Generation(7), [facts(end=110)], now_ms=0, map_partitions=8)
    return RoundPlan(tasks=tuple(replace(task, lane=lane) for lane in lanes), partitions=())


def result(
    lane: int = 0,
    outcome: Outcome = "doubt",
    *,
    refused: RefusedCommit | None = None,
    transactions: int = 0,
    why: str = "it is dark",
) -> LaneResult:
    why = "" if outcome == "done" else refused.why if refused else why
    row = PartitionRow(
        source=TopicPartition("orders", lane), target=TopicPartition("sf.orders", lane), later=why
    )
    return LaneResult(
        lane=lane, outcome=outcome, why=why, transactions=transactions, rows=(row,), refused_commit=refused
    )


def after(*results: LaneResult) -> tuple[UnknownOutcomes, list[str]]:
    """A lane's results, one after the other; each is due when it comes."""
    doubts = UnknownOutcomes("f")
    said = [line for n, each in enumerate(results) for line in doubts.learn([each], 10.0 * n)]
    return doubts, said


def lanes(told: RoundPlan) -> list[int]:
    return [task.lane for task in told.tasks]


def test_a_lane_in_doubt_pauses_and_the_others_go_on() -> None:
    doubts = UnknownOutcomes("f")
    doubts.learn([result(0), result(1, "done", transactions=1)], 100.0)
    assert lanes(doubts.told_to(plan(0, 1), 100.05)) == [1]
    assert 0 < doubts.seconds_to_next(100.05) <= 0.05
    assert lanes(doubts.told_to(plan(0, 1), 100.1)) == [0, 1]
    assert doubts.seconds_to_next(100.1) == 0


def test_its_pause_grows_up_to_some_seconds_and_not_for_ever() -> None:
    doubts, waits = UnknownOutcomes("f"), []
    for _ in range(40):
        doubts.learn([result()], 0.0)
        waits.append(doubts.seconds_to_next(0.0))
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (0.1, 5.0)


@pytest.mark.parametrize("end", [result(outcome="done"), result(transactions=1)], ids=["done", "committed"])
def test_a_lane_that_got_through_begins_with_a_short_pause_again(end: LaneResult) -> None:
    doubts, _ = after(*[result(refused=TOO_LARGE)] * 5, end, result(refused=TOO_LARGE))
    (task,) = doubts.told_to(plan(0), FAR).tasks
    assert doubts.seconds_to_next(60.0) == pytest.approx(0.1 if end.outcome == "done" else 0.2)
    assert task.refused_commit is None


def test_a_lane_whose_commit_is_refused_twice_has_to_commit_without_data_first() -> None:
    doubts, _ = after(result(refused=TOO_LARGE))
    assert doubts.told_to(plan(0), FAR).tasks[0].refused_commit is None
    doubts, _ = after(result(refused=TOO_LARGE), result(), result(refused=TOO_LARGE), result())
    first, second = doubts.told_to(plan(0, 1), FAR).tasks
    assert first.refused_commit == TOO_LARGE, "another doubt in between changes nothing"
    assert second.refused_commit is None


def test_other_doubts_never_ask_for_a_trial_and_never_park() -> None:
    rows = [result() for _ in range(50)]
    doubts, _ = after(*rows)
    assert doubts.told_to(plan(0), FAR).tasks[0].refused_commit is None
    assert all(row.parked is None and row.later for each in rows for row in each.rows)


def test_a_lane_that_is_refused_time_and_again_parks_its_partitions() -> None:
    rows = [result(refused=TOO_LARGE) for _ in range(12)]
    doubts, _ = after(*rows)
    parked = [each.rows[0].parked for each in rows]
    assert parked[:9] == [None] * 9
    assert all(each is not None for each in parked[9:]), "tried again after its pause, it is told again"
    assert rows[9].rows[0].later == ""
    tenth = parked[9]
    assert tenth is not None
    assert tenth.reason == ParkReason.COMMIT_REFUSED
    assert "10 commits of lane 0 of flow f in a row: map-3: MESSAGE_TOO_LARGE" in tenth.facts
    assert doubts.stuck() == [], "its partitions tell of it"
    assert doubts.told_to(plan(0), FAR).tasks[0].refused_commit == TOO_LARGE, "and no data is appended"


def test_a_reason_of_its_own_stays_with_a_partition() -> None:
    rows = [result(refused=TOO_LARGE) for _ in range(10)]
    mine = rows[-1].rows[0].parked = Parked(ParkReason.FENCED, "facts", "remedy")
    after(*rows)
    assert rows[-1].rows[0].parked is mine


@pytest.mark.parametrize(
    ("refused", "word"),
    [
        (TOO_LARGE, "--entity-name map --add-config max.message.bytes=1048588`"),
        (replace(TOO_LARGE, map_bytes=3 << 20), f"max.message.bytes={(3 << 20) + 2048}`"),
        (replace(TOO_LARGE, code=Code.NOT_ENOUGH_REPLICAS), "bring back the target's brokers"),
        (RefusedCommit(why="x", code=Code.OFFSET_METADATA_TOO_LARGE), "offset.metadata.max.bytes"),
        (RefusedCommit(why="x", code=Code.UNKNOWN_SERVER_ERROR), "UNKNOWN_SERVER_ERROR"),
    ],
)
def test_the_remedy_is_that_of_the_brokers_word(refused: RefusedCommit, word: str) -> None:
    rows = [result(refused=refused) for _ in range(10)]
    after(*rows)
    parked = rows[-1].rows[0].parked
    assert parked is not None
    assert word in parked.remedy


def test_a_doubt_is_reported_once_it_doesnt_pass_and_again_when_it_is_another() -> None:
    assert after(result())[1] == []
    _, said = after(*[result()] * 5, *[result(why="it rains")] * 3)
    assert said == ["f: lane 0 is in doubt: it is dark", "f: lane 0 is in doubt: it rains"]


def test_stuck_are_those_that_did_nothing_else_or_dont_get_out_of_it() -> None:
    assert [d.lane for d in after(result())[0].stuck()] == [0], "all that it did in this run"
    assert after(result(outcome="done"), result())[0].stuck() == [], "once is nothing"
    (stuck,) = after(result(outcome="done"), result(), result())[0].stuck()
    assert stuck.as_dict() == {"lane": 0, "times": 2, "why": "it is dark"}
