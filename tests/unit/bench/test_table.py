"""The table: what its numbers are about, and that it says so for everybody alike."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from tests.bench.data import values
from tests.bench.idle import Idleness
from tests.bench.page import raw, write_page
from tests.bench.slow_line import LineOutcome, LineTurn
from tests.bench.table import YARDSTICK, Outcome, markdown, plain_text, rows
from tests.bench.turn import Measurement, StoodStill
from tests.bench.workloads import LINE, WORKLOADS, Workload, chosen

WORK = WORKLOADS[0]  # 5,000,000 records of 100 B: 0.5 GB


def measured(contender: str, **changes: Any) -> Measurement:
    facts: dict[str, Any] = {
        "workload": WORK.name,
        "contender": contender,
        "records": WORK.records,
        "repeated": 0,
        "starting_seconds": 4.0,
        "copying_seconds": 10.0,
        "copying_records": WORK.records,
        "wall_seconds": 15.0,
        "cpu_seconds": 9.0,
        "copying_cpu_seconds": {"JVM": 2.0, "Python workers": 3.0},
        "peak_bytes": 500_000_000,
        "peak_bytes_by_kind": {"JVM": 400_000_000, "Python workers": 120_000_000},
    }
    return Measurement(**(facts | changes))


OUTCOME = Outcome(
    workload=WORK,
    log_bytes=600_000_000,
    limit_seconds=(4.0, 6.0),
    turns=(
        measured(YARDSTICK, copying_seconds=20.0, repeated=7),
        measured("Causeway"),
        measured("Causeway", copying_seconds=12.5, peak_bytes=600_000_000),
        measured(YARDSTICK, copying_seconds=20.0),
    ),
    idleness=(
        Idleness(
            workload=WORK.name,
            partitions=4,
            run_wall_seconds=6.0,
            run_cpu_seconds=5.0,
            rounds=20,
            round_wall_seconds=0.03,
            round_cpu_seconds=0.01,
        ),
    ),
)


def test_a_row_is_the_mean_of_the_turns_with_their_spread() -> None:
    _, causeway = rows(OUTCOME)
    assert causeway.records_per_second == 450_000  # of 500,000 and 400,000
    assert causeway.spread == pytest.approx(100_000 / 450_000)
    assert causeway.peak_megabytes == 600


def test_the_yardstick_is_tuned_mirror_maker() -> None:
    yardstick, causeway = rows(OUTCOME)
    assert yardstick.ratio == 1.0
    assert causeway.ratio == pytest.approx(1.8)


def test_there_is_no_ratio_without_the_yardstick() -> None:
    alone = Outcome(workload=WORK, log_bytes=1, limit_seconds=(), turns=(measured("Causeway"),))
    assert [(row.ratio, row.share_of_limit) for row in rows(alone)] == [(None, None)]


def test_rates_are_of_log_and_of_values() -> None:
    _, causeway = rows(OUTCOME)
    assert causeway.log_megabytes_per_second == pytest.approx(54)  # 600 MB at 0.09 of the whole a second
    assert causeway.value_megabytes_per_second == pytest.approx(45)


def test_the_share_of_the_limit_is_the_limits_time_by_ours() -> None:
    _, causeway = rows(OUTCOME)
    assert causeway.share_of_limit == pytest.approx(5.0 / (5_000_000 / 450_000))


def test_cpu_is_per_gigabyte_of_values_with_starting_apart() -> None:
    _, causeway = rows(OUTCOME)
    assert causeway.copying_cpu_per_gigabyte == pytest.approx(10.0)
    assert causeway.copying_cpu_by_kind == pytest.approx({"JVM": 4.0, "Python workers": 6.0})
    assert causeway.starting_cpu_seconds == pytest.approx(4.0)


def test_repeats_show() -> None:
    assert [row.repeated for row in rows(OUTCOME)] == [7, 0]


def test_every_line_of_the_table_has_every_column() -> None:
    lines = markdown(OUTCOME).splitlines()
    assert len(lines) == 5
    assert len({line.count("|") for line in lines}) == 1
    assert len(plain_text(OUTCOME).splitlines()) == 4


def test_the_limit_has_a_line_by_its_own_clocks() -> None:
    limit = plain_text(OUTCOME).splitlines()[1]
    assert limit.split()[-4:] == ["1,041,667", "40%", "125", "104"]  # of 1,250,000 and 833,333


def test_what_is_still_to_come_when_the_first_record_is_seen_is_what_counts() -> None:
    turn = measured("Causeway", copying_records=1_000, copying_seconds=2.0)
    assert turn.records_per_second == 500


def test_a_smaller_size_keeps_the_kind() -> None:
    small = {work.name: work for work in chosen("", 0.02, None)}
    assert (small["plain"].records, small["plain"].partitions) == (100_000, 4)
    assert small["wide"].partitions == 50 * max(round(20 * 0.02), 1)
    assert all(work.records >= work.partitions for work in small.values())


@pytest.mark.parametrize("work", WORKLOADS, ids=lambda work: work.name)
def test_values_have_their_size_and_are_the_same_each_time(work: Workload) -> None:
    first, again = (list(islice(values(work), 1_100)) for _ in range(2))
    assert {len(value) for value in first} == {work.value_bytes}
    assert first == again
    assert len(set(first)) == len(first)


def test_an_unknown_workload_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="WORKLOADS = plane: known are plain, lz4, singles, wide"):
        chosen("plain, plane", 1, None)


def test_the_page_holds_every_part_and_the_raw_numbers_lie_beside_it(tmp_path: Path) -> None:
    page = tmp_path / "docs" / "benchmarks.md"
    turns = [
        LineTurn(contender="Causeway", delay_seconds=delay, records_per_second=rate)
        for delay, rate in ((0.0, 100_000.0), (0.05, 70_000.0), (0.0, 60_000.0), (0.05, 66_000.0))
    ]
    line = LineOutcome(workload=LINE, turns=tuple(turns))
    write_page([OUTCOME], line, page)
    text = page.read_text(encoding="utf-8")
    for part in ("cores", "How it is measured", WORK.title, "Nothing to do", "| 4 | 6.0 | 5.0 | 30 | 10 |"):
        assert part in text
    assert "| Causeway | 80.0 | 68.0 | 85% |" in text
    told = json.loads(page.with_suffix(".json").read_text())
    assert told == json.loads(raw([OUTCOME], line))
    assert [turn["records_per_second"] for turn in told["outcomes"][0]["turns"]][1:3] == [500_000, 400_000]


def test_who_stopped_is_reported_under_the_table_and_not_counted() -> None:
    still = StoodStill(YARDSTICK, 4_999_000, "OUT_OF_ORDER_SEQUENCE_NUMBER")
    outcome = replace(OUTCOME, stood_still=(still,))
    for text in (markdown(outcome), plain_text(outcome)):
        assert f"{YARDSTICK} stopped in one turn, at 4,999,000 of 5,000,000 records" in text
    assert rows(outcome) == rows(OUTCOME)
    alone = replace(outcome, turns=tuple(t for t in outcome.turns if t.contender != YARDSTICK))
    assert {row.ratio for row in rows(alone)} == {None}
