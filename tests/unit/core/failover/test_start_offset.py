"""Two answers for one moment: compared, explained, the safer one taken; "past the end" is never 0 or -1."""

from __future__ import annotations

import pytest

from causeway.core.failover.start_offset import (
    Answer,
    PartitionTimes,
    Reason,
    RecordedTimes,
    StartOffset,
    decide_start,
    first_possible,
    recorded_times,
    shown,
)
from causeway.core.kernel.identity import Generation, TargetOffset
from causeway.core.offsets.offset_map import MappedRange
from tests.support import builders

MOMENT = 1_000_000
SILENT = Answer(why_not="the source can't be asked", detail="it is gone")


def run(first: int, count: int, times: tuple[int, int]) -> MappedRange:
    return builders.mapped_range(
        first,
        first,
        (count, 0),
        first_timestamp_ms=times[0],
        last_timestamp_ms=times[1],
        generation=Generation(1),
    )


def at(offset: int, **more: object) -> Answer:
    return Answer(at=TargetOffset(offset), **more)  # type: ignore[arg-type]


END = at(100, is_past_end=True)
RISING = RecordedTimes(oldest_ms=0, newest_ms=MOMENT + 50)


def decided(index: Answer, source: Answer, recorded: RecordedTimes = RISING, **more: object) -> StartOffset:
    facts: dict[str, object] = {
        "moment_ms": MOMENT,
        "now_ms": MOMENT + 1_000,
        "log_start": TargetOffset(0),
        "end": TargetOffset(100),
        "index": index,
        "source": source,
        "recorded": recorded,
    }
    return decide_start(PartitionTimes(**{**facts, **more}))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "place", "expected", "reasons"),
    [
        ("both agree", lambda: decided(at(40), at(40)), 40, set()),
        ("the source is dead", lambda: decided(at(40), SILENT), 40, set()),
        ("the index is refused", lambda: decided(Answer(why_not="refused"), at(41)), 41, set()),
        ("nothing explains it", lambda: decided(at(40), at(44)), 40, {Reason.UNEXPLAINED}),
        (
            "out of order",
            lambda: decided(at(44), at(40), RecordedTimes(newest_ms=MOMENT, rises=False)),
            40,
            {Reason.NOT_RISING},
        ),
        ("a hole on the source", lambda: decided(at(44), at(40, fell_in_hole=True)), 40, {Reason.HOLE}),
        ("after the end", lambda: decided(END, END), 100, {Reason.PAST_THE_END}),
        ("after the end, source dead", lambda: decided(END, SILENT), 100, {Reason.PAST_THE_END}),
        (
            "not mirrored yet",
            lambda: decided(END, at(100, is_past_end=True, is_not_mirrored=True)),
            100,
            {Reason.NOT_MIRRORED},
        ),
        (
            "an empty partition",
            lambda: decided(END, END, log_start=TargetOffset(100)),
            100,
            {Reason.EMPTY},
        ),
        (
            "before retention",
            lambda: decided(at(30), at(12), log_start=TargetOffset(30), first=(TargetOffset(30), MOMENT + 5)),
            30,
            {Reason.TRIMMED, Reason.UNEXPLAINED},
        ),
        (
            "before the mirror began",
            lambda: decided(at(0), at(0), first=(TargetOffset(0), MOMENT + 5)),
            0,
            {Reason.OLDER},
        ),
        (
            "the oldest record is of that very moment",
            lambda: decided(at(30), at(30), log_start=TargetOffset(30), first=(TargetOffset(30), MOMENT)),
            30,
            set(),
        ),
        (
            "LogAppendTime: the target's index isn't asked",
            lambda: decided(at(3), at(40), is_append_time=True),
            40,
            {Reason.APPEND_TIME},
        ),
        (
            "LogAppendTime and the source is dead: the map's times",
            lambda: decided(
                at(3),
                SILENT,
                RecordedTimes(newest_ms=MOMENT + 9, bracket=(TargetOffset(30), TargetOffset(50))),
                is_append_time=True,
            ),
            30,
            {Reason.APPEND_TIME, Reason.BRACKETED},
        ),
        (
            "a clock that is ahead",
            lambda: decided(at(7), at(7), RecordedTimes(newest_ms=MOMENT + 3_600_000)),
            7,
            {Reason.AHEAD_OF_CLOCK},
        ),
        (
            "some records without a time",
            lambda: decided(at(40), at(40), RecordedTimes(newest_ms=MOMENT, has_timeless=True)),
            40,
            {Reason.SOME_TIMELESS},
        ),
        (
            "the last records without a time, and the moment is later than all others",
            lambda: decided(
                END,
                END,
                RecordedTimes(newest_ms=MOMENT - 1, has_timeless=True, timeless_tail=TargetOffset(80)),
            ),
            80,
            {Reason.SOME_TIMELESS},
        ),
        (
            "the end of a transaction",
            lambda: decided(at(40, passed_markers=True), at(40)),
            40,
            {Reason.MARKER},
        ),
        (
            "too much to read behind the end of a transaction",
            lambda: decided(at(3, passed_markers=True, is_bound=True), at(40)),
            40,
            {Reason.BOUND},
        ),
        (
            "too much to read, and the source is dead",
            lambda: decided(at(3, passed_markers=True, is_bound=True), SILENT),
            3,
            {Reason.BOUND},
        ),
        ("never behind the end", lambda: decided(at(120), SILENT), 100, set()),
        ("never in front of the log", lambda: decided(at(3), SILENT, log_start=TargetOffset(9)), 9, set()),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_safer_answer_with_its_reason(
    name: str, place: object, expected: int, reasons: set[Reason]
) -> None:
    found = place()  # type: ignore[operator]
    assert (found.at, set(found.reasons)) == (expected, reasons), name


def test_records_without_any_time_have_no_place() -> None:
    timeless = recorded_times([run(0, 100, (-1, -1))], MOMENT)
    found = decided(END, END, timeless)
    assert found.at is None
    assert "carry no time" in found.why_not


def test_without_any_answer_the_reasons_of_both_are_reported() -> None:
    found = decided(Answer(why_not="index: refused"), SILENT, RecordedTimes())
    assert found.at is None
    assert found.why_not == "index: refused; the source can't be asked"
    assert found.detail == "it is gone"
    assert shown(found.source) == "the source can't be asked: it is gone"


def test_times_that_the_map_recorded() -> None:
    runs = [run(0, 10, (100, 200)), run(11, 10, (200, 300)), run(22, 10, (-1, -1))]
    found = recorded_times(runs, 250)
    assert (found.oldest_ms, found.newest_ms, found.rises) == (100, 300, True)
    assert (found.has_timeless, found.timeless_tail) == (True, 22)
    assert found.bracket == (11, 21)
    assert recorded_times(runs, 301).bracket is None
    assert not recorded_times([run(0, 10, (100, 200)), run(11, 10, (150, 300))], 250).rises
    merged = [run(0, 10, (100, 300)), run(11, 10, (100, 300)), run(22, 10, (300, 400))]
    assert recorded_times(merged, 250).rises, "merged runs share the times of the whole"
    assert recorded_times(merged, 250).bracket == (0, 10)


def test_the_map_spares_reading_what_is_too_early() -> None:
    runs = [run(0, 10, (100, 200)), run(11, 10, (200, 300))]
    assert first_possible(runs, 3, 150) == 3
    assert first_possible(runs, 3, 250) == 11
    assert first_possible(runs, 15, 250) == 15
    assert first_possible(runs, 3, 301) is None
