import json
from typing import TypedDict, Unpack

import pytest

from causeway.core.copy.lane_task import LaneResult, Outcome, PartitionRow
from causeway.core.copy.report import PartitionReport, RunReport, parked_dict
from causeway.core.kernel.identity import TopicPartition
from causeway.core.state.parked import Parked, ParkReason

A, B = TopicPartition("orders", 0), TopicPartition("orders", 1)
PARKED = Parked(ParkReason.REFUSED, "facts", "remedy")


def report() -> RunReport:
    run = RunReport(flow="f", run="r1", holder="amy", generation=7, began_at="2026-01-01T00:00:00Z")
    for tp in (A, B):
        run.partitions[tp] = PartitionReport(
            source=str(tp), target=f"sf.{tp}", source_from=-1, source_next=0, last_stable=100
        )
    return run


class Fields(TypedDict, total=False):
    source_from: int
    source_next: int
    records: int
    size_bytes: int
    verbatim_batches: int
    repacked_batches: dict[str, int]
    aborted_records: int
    settled_records: int
    recopied_from: int
    parked: Parked
    later: str


def row(tp: TopicPartition = A, **fields: Unpack[Fields]) -> PartitionRow:
    return PartitionRow(source=tp, target=TopicPartition(f"sf.{tp.topic}", tp.partition), **fields)


def result(*rows: PartitionRow, outcome: Outcome = "done", transactions: int = 1) -> LaneResult:
    return LaneResult(lane=0, outcome=outcome, why="", transactions=transactions, rows=rows)


def test_rows_of_many_rounds_add_up() -> None:
    run = report()
    run.fold(
        [
            result(
                row(
                    source_from=10,
                    source_next=20,
                    records=9,
                    size_bytes=90,
                    verbatim_batches=2,
                    repacked_batches={"holes": 1},
                    aborted_records=3,
                )
            )
        ]
    )
    run.fold(
        [
            result(
                row(
                    source_from=20,
                    source_next=40,
                    records=1,
                    size_bytes=10,
                    verbatim_batches=1,
                    repacked_batches={"holes": 2, "old": 1},
                ),
                row(B, source_from=0, source_next=5, records=5, size_bytes=50),
                transactions=3,
            )
        ]
    )
    a = run.partitions[A]
    assert (a.source_from, a.source_next, a.records, a.size_bytes) == (10, 40, 10, 100)
    assert (a.verbatim_batches, a.repacked_batches, a.repeats) == (3, {"holes": 3, "old": 1}, 3)
    assert (run.records, run.size_bytes, run.transactions) == (15, 150, 4)


def test_a_row_that_never_got_a_position_moves_nothing() -> None:
    run = report()
    run.partitions[A].source_next = 33
    run.fold([result(row(later="no leader"))])
    assert (run.partitions[A].source_from, run.partitions[A].source_next) == (-1, 33)
    assert run.partitions[A].later == "no leader"


@pytest.mark.parametrize(
    ("outcome", "doubts"),
    [("done", 0), ("doubt", 1), ("beaten", 1), ("superseded", 0), ("fenced", 0), ("failed", 0)],
)
def test_doubts_are_the_lanes_that_had_to_begin_again(outcome: Outcome, doubts: int) -> None:
    run = report()
    run.fold([result(outcome=outcome)])
    assert run.doubts == doubts


def test_a_partition_that_goes_on_is_parked_no_more() -> None:
    run = report()
    run.fold([result(row(parked=PARKED, later="x"))])
    assert [p.source for p in run.parked] == ["orders-0"]
    run.fold([result(row(source_from=0, source_next=5))])
    assert run.parked == []
    assert run.partitions[A].later == ""


def test_a_lost_round_says_nothing_about_what_was_parked() -> None:
    run = report()
    run.fold([result(row(parked=PARKED))])
    run.fold([result(row(later="Spark lost the round"), outcome="doubt")])
    assert [p.source for p in run.parked] == ["orders-0"]


def test_a_tail_that_was_copied_again_stays_reported() -> None:
    run = report()
    run.fold([result(row(recopied_from=0))])
    run.fold([result(row())])
    assert run.partitions[A].recopied_from == 0


def test_lag_is_what_is_left_and_never_negative() -> None:
    run = report()
    run.partitions[A].source_next, run.partitions[B].source_next = 70, 130
    assert (run.partitions[A].lag, run.partitions[B].lag, run.lag) == (30, 0, 30)


def test_a_partition_that_nobody_planned_is_no_silent_row() -> None:
    with pytest.raises(KeyError):
        report().fold([result(row(TopicPartition("unplanned", 0)))])


def test_the_report_is_json_with_sums_that_match_its_rows() -> None:
    run = report()
    run.fold(
        [
            result(
                row(
                    source_from=0,
                    source_next=60,
                    records=50,
                    verbatim_batches=4,
                    aborted_records=2,
                    settled_records=7,
                )
            ),
            result(
                row(B, source_from=0, source_next=9, records=9, repacked_batches={"holes": 2}, parked=PARKED)
            ),
        ]
    )
    run.partitions[A].repeats_in_all = 12
    run.seconds, run.outcome, run.rounds = 1.23456, "caught up", 3
    told = json.loads(json.dumps(run.as_dict()))
    assert told["version"] == 1
    assert (told["flow"], told["run"], told["holder"], told["generation"]) == ("f", "r1", "amy", 7)
    assert (told["outcome"], told["seconds"], told["rounds"], told["transactions"]) == (
        "caught up",
        1.235,
        3,
        2,
    )
    assert (told["records"], told["lag"], told["verbatim"], told["repacked"]) == (59, 131, 4, {"holes": 2})
    assert (told["repeats"], told["repeats_in_all"], told["settled"]) == (2, 12, 7)
    assert told["parked"] == [
        {
            "source": "orders-1",
            "target": "sf.orders-1",
            "reason": "batch refused by the target",
            "facts": "facts",
            "remedy": "remedy",
        }
    ]
    assert [(p["source"], p["lag"]) for p in told["partitions"]] == [("orders-0", 40), ("orders-1", 91)]


def test_the_small_report_leaves_the_partitions_out() -> None:
    assert "partitions" not in report().as_dict(with_partitions=False)


def test_a_run_that_says_nothing_has_failed() -> None:
    assert report().as_dict()["outcome"] == "failed"


def test_parked_is_plain_text_for_every_reason() -> None:
    assert parked_dict(None) is None
    for reason in ParkReason:
        told = parked_dict(Parked(reason, "f", "r"))
        assert told == {"reason": reason.value, "facts": "f", "remedy": "r"}
        assert type(told["reason"]) is str


def test_a_lane_that_stays_in_doubt_is_reported_and_is_no_success() -> None:
    run = report()
    assert not run.leaves_something_out
    run.in_doubt = [{"lane": 3, "times": 7, "why": "it is dark"}]
    assert run.leaves_something_out
    assert json.loads(json.dumps(run.as_dict()))["in_doubt"] == run.in_doubt
