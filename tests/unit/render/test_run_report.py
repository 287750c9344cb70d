"""A run's report, made to be read: nothing invented, nothing too big for Airflow's database."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from causeway.core.copy.report import PartitionReport, RunReport
from causeway.core.kernel.errors import BadInput
from causeway.core.kernel.identity import Generation, TopicPartition
from causeway.render.run_report import (
    KEPT_LINES,
    SHOWN_TOPICS,
    read_report,
    report_lines,
    report_path,
    spell_bytes,
    summary,
)


def partition(name: str, number: int, **facts: Any) -> tuple[TopicPartition, PartitionReport]:
    place = TopicPartition(name, number)
    report = PartitionReport(
        source=str(place), target=f"sf.{place}", source_from=0, source_next=10, last_stable=12, **facts
    )
    return place, report


def report(*partitions: tuple[TopicPartition, PartitionReport]) -> dict[str, Any]:
    run = RunReport(
        flow="sf_to_nyc", run="r1", holder="a test", generation=Generation(7), began_at="2026-01-01T00:00:00Z"
    )
    run.outcome, run.seconds, run.partitions = "caught up", 12.5, dict(partitions)
    written: dict[str, Any] = json.loads(json.dumps(run.as_dict()))
    return written


def parked(number: int, facts: str = "a record of somebody else") -> tuple[TopicPartition, PartitionReport]:
    why = {"reason": "foreign data on the target", "facts": facts, "remedy": "use another topic"}
    return partition("orders", number, parked=why)


def test_what_readers_saw_twice_and_what_was_kept_instead_is_one_line() -> None:
    lines = list(report_lines(report(partition("orders", 0, repeats=5, settled=1_200))))
    said = "generation 7; lag 2; default readers saw 5 records again"
    assert f"{said}, 1,200 of dead workers were kept" in lines
    assert said in list(report_lines(report(partition("orders", 0, repeats=5))))


def test_topics_are_summed_over_their_partitions_and_the_busiest_comes_first() -> None:
    lines = list(
        report_lines(
            report(
                partition("a-few", 0, records=1, size_bytes=100),
                partition("orders-eu", 0, records=1_000, size_bytes=5_000, repacked_batches={"holes": 2}),
                partition("orders-eu", 1, records=234, size_bytes=1_000, verbatim_batches=3),
            )
        )
    )
    assert lines[0] == "sf_to_nyc: caught up; 1,235 records, 6.0 KiB in 12.5 s"
    assert "batches: 3 verbatim, 2 repacked (2 holes)" in lines
    assert [line.split() for line in lines[-2:]] == [
        ["orders-eu", "2", "1,234", "6,000", "4"],
        ["a-few", "1", "1", "100", "2"],
    ]


def test_many_topics_are_cut_and_counted() -> None:
    lines = list(report_lines(report(*(partition(f"t{number}", 0) for number in range(SHOWN_TOPICS + 5)))))
    assert lines[-1] == "and 5 topics more, in the report"


def test_a_parked_partition_says_why_and_what_to_do() -> None:
    lines = list(report_lines(report(parked(1))))
    assert lines[-1] == (
        "PARKED orders-1: foreign data on the target: a record of somebody else; use another topic"
    )


def test_the_summary_fits_into_airflows_database_however_bad_the_run(tmp_path: Path) -> None:
    bad = report(*(parked(number, facts="x" * 10_000) for number in range(1_000)))
    short = summary(bad, tmp_path / "r.json")
    assert short["parked_count"] == 1_000
    assert len(short["left_out"]) == KEPT_LINES
    assert len(json.dumps(short)) < 5_000


def test_the_summary_has_the_reports_numbers(tmp_path: Path) -> None:
    one = partition(
        "a", 0, records=5, size_bytes=9, verbatim_batches=1, repacked_batches={"holes": 2, "v1": 1}
    )
    short = summary(report(one), tmp_path / "r.json")
    wanted = {"flow": "sf_to_nyc", "outcome": "caught up", "records": 5, "bytes": 9, "repacked": 3, "lag": 2}
    assert {name: short[name] for name in wanted} == wanted


def test_a_reports_place_is_a_plain_name_below_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CAUSEWAY_REPORTS", "/reports")
    path = report_path("sf_to_nyc", "manual__2026-01-01T00:00:00+00:00/../x", 2)
    assert path == Path("/reports/sf_to_nyc/manual__2026-01-01T00_00_00+00_00_.._x.2.json")


@pytest.mark.parametrize("content", [None, "", "{"])
def test_a_missing_or_broken_report_names_the_shared_folder(tmp_path: Path, content: str | None) -> None:
    path = tmp_path / "r.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(BadInput, match=r"r\.json: can't be read: .*; .*CAUSEWAY_REPORTS"):
        read_report(path)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 KiB"), (5 << 20, "5.0 MiB"), (3 << 40, "3072.0 GiB")],
)
def test_sizes_are_spelled_in_the_largest_fitting_unit(size: int, text: str) -> None:
    assert spell_bytes(size) == text
