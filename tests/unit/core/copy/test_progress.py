import pytest

from causeway.core.copy.progress import Progress
from causeway.core.kernel.timestamps import rfc3339


def test_a_line_comes_every_two_seconds_and_not_before() -> None:
    progress = Progress("f", None)
    assert progress.line(1.9, 0) == ""
    assert progress.line(2.0, 0) != ""
    assert progress.line(3.9, 0) == ""
    assert progress.line(4.0, 0) != ""


def test_a_line_says_records_speed_lag_and_time_left() -> None:
    progress = Progress("f", None)
    progress.add(10_000, 30_000_000)
    assert progress.line(2.0, 50_000) == "f: 10,000 records, 15.0 MB/s, lag 50,000, about 10 s left"


def test_speed_is_that_since_the_last_line_not_since_the_beginning() -> None:
    progress = Progress("f", None)
    progress.add(10_000, 30_000_000)
    progress.line(2.0, 0)
    progress.add(10_500, 31_000_000)
    assert progress.line(4.0, 1_000) == "f: 10,500 records, 0.5 MB/s, lag 1,000, about 4 s left"


def test_a_run_with_an_end_says_its_own_time_left_never_less_than_none() -> None:
    progress = Progress("f", 600.0)
    progress.add(10, 10)
    assert progress.line(2.0, 5).endswith("lag 5, 598 s left")
    assert progress.line(700.0, 5).endswith("lag 5, 0 s left")


def test_nobody_knows_the_time_left_when_nothing_moves() -> None:
    assert Progress("f", None).line(2.0, 7) == "f: 0 records, nothing moves, lag 7"


def test_little_is_not_nothing() -> None:
    progress = Progress("f", None)
    progress.add(1, 4_200)
    assert progress.line(2.0, 0) == "f: 1 record, 2.1 kB/s, lag 0, about 0 s left"


@pytest.mark.parametrize(
    ("time_ms", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1_700_000_000_999, "2023-11-14T22:13:20Z"),
        (253_402_300_799_000, "9999-12-31T23:59:59Z"),
        (-1_000, "1969-12-31T23:59:59Z"),
    ],
)
def test_instants_are_rfc_3339_in_utc_to_the_second(time_ms: int, text: str) -> None:
    assert rfc3339(time_ms) == text


def test_lanes_in_doubt_are_on_the_line_whatever_the_others_do() -> None:
    progress = Progress("f", None)
    progress.add(10_000, 30_000_000)
    assert progress.line(2.0, 50_000, in_doubt=1).endswith("about 10 s left, 1 lane in doubt")
    assert "doubt" not in progress.line(4.0, 50_000)
