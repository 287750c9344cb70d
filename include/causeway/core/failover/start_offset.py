"""Where the readers of one target partition begin for a moment in time: two answers, compared.

One is the target's own timestamp index. The other goes through the source: its index, then the offset map.
Each names the first record that is as late as the moment, in the order of the log. They should agree; where
they don't, a reason says why, and the smaller one is taken: a record read twice is better than one not read.
Where the source can't be asked, the times that the map recorded of its runs bracket the answer.

Invariants
    A. A place lies from the log's start to the mirror's end; nothing as late as the moment is the end, never
       0 or -1.
    B. Nothing before a place is known to be as late as the moment, unless a reason says so.
    C. Where nothing tells the time of records there is no place, with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from causeway.core.kernel.identity import TargetOffset
from causeway.core.kernel.timestamps import rfc3339
from causeway.core.offsets.offset_map import MappedRange

NO_TIMESTAMP = -1
_SKEW_MS = 60_000


class Reason(StrEnum):
    PAST_THE_END = "nothing is as late as that: the end of the mirror"
    EMPTY = "no record is there"
    TRIMMED = "records of that moment are gone from the target: its oldest record"
    OLDER = "the mirror begins later than that: its first record"
    NOT_MIRRORED = "the source's first record of that moment isn't mirrored: the end of the mirror"
    NOT_RISING = "record times don't rise with the offsets"
    APPEND_TIME = (
        "the target's times say when records arrived there (LogAppendTime), so its index isn't asked"
    )
    AHEAD_OF_CLOCK = "some records carry times that lie ahead of the clock"
    SOME_TIMELESS = "some records carry no time"
    HOLE = (
        "the source's record of that moment isn't mirrored (compacted, a marker, aborted, quarantined): "
        "the next one"
    )
    MARKER = "the target's index pointed at the end of a transaction: the next record of that moment"
    BOUND = "the target's index pointed at the end of a transaction, and too much lies behind it to be read"
    BRACKETED = "only the times that the map recorded tell: the run that holds the moment begins here"
    UNEXPLAINED = "the two indexes disagree, and nothing here explains it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Of one of the two ways: an offset, or why there is none."""

    at: TargetOffset | None = None
    why_not: str = ""
    detail: str = ""
    """To that, in somebody else's words: the next time they may be others for the same trouble."""
    is_past_end: bool = False
    at_ms: int | None = None
    """Time of the record there, where it was read."""
    passed_markers: bool = False
    is_bound: bool = False
    """Not the place, but nothing before it is as late as the moment."""
    fell_in_hole: bool = False
    is_not_mirrored: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedTimes:
    """What the map's runs say of times, without a look at any record."""

    oldest_ms: int = NO_TIMESTAMP
    newest_ms: int = NO_TIMESTAMP
    rises: bool = True
    has_timeless: bool = False
    timeless_tail: TargetOffset | None = None
    """From here to the end no run has a time."""
    bracket: tuple[TargetOffset, TargetOffset] | None = None
    """The run that holds the moment; None: all are older."""


def recorded_times(runs: Sequence[MappedRange], moment_ms: int) -> RecordedTimes:
    """Of the runs that hold, in the order of the target's offsets."""
    timed = [run for run in runs if run.last_timestamp_ms != NO_TIMESTAMP]
    newest, rises, before = NO_TIMESTAMP, True, (NO_TIMESTAMP, NO_TIMESTAMP)
    for run in timed:
        times = (run.first_timestamp_ms, run.last_timestamp_ms)
        rises = rises and (times == before or newest <= times[0])  # merged runs share the times of the whole
        newest, before = max(newest, times[1]), times
    first = next((run for run in timed if run.last_timestamp_ms >= moment_ms), None)
    tail: TargetOffset | None = None
    for run in reversed(runs):
        if run.last_timestamp_ms != NO_TIMESTAMP:
            break
        tail = run.target_first
    return RecordedTimes(
        oldest_ms=min((run.first_timestamp_ms for run in timed), default=NO_TIMESTAMP),
        newest_ms=newest,
        rises=rises,
        has_timeless=len(timed) < len(runs),
        timeless_tail=tail,
        bracket=None if first is None else (first.target_first, first.target_next),
    )


def first_possible(runs: Sequence[MappedRange], at: int, moment_ms: int) -> int | None:
    """Where the first visible record as late as the moment can be, from `at` on; None: in no run.

    A run's last time is the latest of all its records, so a run that is older can't hold it. Runs that the
    map has merged share the times of the whole: then the first of them is where to begin.
    """
    for run in runs:
        if run.target_next > at and run.last_timestamp_ms >= moment_ms:
            return max(at, run.target_first)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionTimes:
    """All that was learned of one target partition for one moment."""

    moment_ms: int
    now_ms: int
    log_start: TargetOffset
    end: TargetOffset
    """After the last mirrored record."""
    index: Answer
    source: Answer
    recorded: RecordedTimes
    first: tuple[TargetOffset, int] | None = None
    """The log's first record, and its time."""
    is_append_time: bool = False
    """The target gives records times of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StartOffset:
    at: TargetOffset | None
    reasons: tuple[Reason, ...] = ()
    why_not: str = ""
    detail: str = ""
    index: Answer = Answer()
    source: Answer = Answer()

    @property
    def is_too_early(self) -> bool:
        """It is the oldest record there, and later than the moment."""
        return Reason.TRIMMED in self.reasons or Reason.OLDER in self.reasons


def decide_start(times: PartitionTimes) -> StartOffset:
    if times.log_start >= times.end:
        return _place(times, times.end, [Reason.EMPTY])
    if times.recorded.has_timeless and times.recorded.newest_ms == NO_TIMESTAMP:
        return _nowhere(times, "its records carry no time (-1)")
    answers = [a for a in (_usable_index(times), times.source) if a is not None and a.at is not None]
    answers = [answer for answer in answers if not answer.is_bound] or answers
    if not answers:
        return _from_recorded(times)
    reasons = _reasons(times)
    at = min(int(a.at) for a in answers if a.at is not None)
    if all(a.is_past_end for a in answers):
        return _past_the_end(times, at, reasons)
    return _place(times, at, reasons)


def _usable_index(times: PartitionTimes) -> Answer | None:
    return None if times.is_append_time else times.index


def _from_recorded(times: PartitionTimes) -> StartOffset:
    """Neither index tells: the beginning of the run is safe, whatever lies inside."""
    bracket = times.recorded.bracket
    if times.recorded.newest_ms == NO_TIMESTAMP:
        answers = (times.index, times.source)
        whys = "; ".join(answer.why_not for answer in answers if answer.why_not)
        details = "; ".join(answer.detail for answer in answers if answer.detail)
        return _nowhere(times, whys or "nothing tells the times of its records", details)
    reasons = _reasons(times)
    if bracket is None:
        return _past_the_end(times, times.end, reasons)
    return _place(times, bracket[0], [*reasons, Reason.BRACKETED])


def _past_the_end(times: PartitionTimes, at: int, reasons: list[Reason]) -> StartOffset:
    """Records without a time after the last one that has one may be as late as anything."""
    tail = times.recorded.timeless_tail
    if tail is not None:
        return _place(times, min(at, tail), reasons)
    found = [r for r in reasons if r is not Reason.NOT_MIRRORED]
    last = Reason.NOT_MIRRORED if times.source.is_not_mirrored else Reason.PAST_THE_END
    return _place(times, at, [*found, last])


def _reasons(times: PartitionTimes) -> list[Reason]:
    recorded = times.recorded
    found = {
        Reason.APPEND_TIME: times.is_append_time,
        Reason.AHEAD_OF_CLOCK: recorded.newest_ms > times.now_ms + _SKEW_MS,
        Reason.SOME_TIMELESS: recorded.has_timeless,
        Reason.NOT_RISING: not recorded.rises,
        Reason.HOLE: times.source.fell_in_hole,
        Reason.BOUND: times.index.is_bound and not times.is_append_time,
        Reason.MARKER: times.index.passed_markers and not (times.is_append_time or times.index.is_bound),
        Reason.NOT_MIRRORED: times.source.is_not_mirrored,
    }
    reasons = [reason for reason, holds in found.items() if holds]
    if _disagree(times) and not set(reasons) & _EXPLAINS:
        reasons.append(Reason.UNEXPLAINED)
    return reasons


_EXPLAINS = {
    Reason.BOUND,
    Reason.AHEAD_OF_CLOCK,
    Reason.SOME_TIMELESS,
    Reason.NOT_RISING,
    Reason.HOLE,
    Reason.NOT_MIRRORED,
}


def _disagree(times: PartitionTimes) -> bool:
    index, source = _usable_index(times), times.source
    return (
        index is not None
        and not index.is_bound
        and index.at is not None
        and source.at is not None
        and index.at != source.at
    )


def _place(times: PartitionTimes, at: int, reasons: list[Reason]) -> StartOffset:
    """Clamped to what is there."""
    clamped = max(min(at, times.end), times.log_start)
    if _is_too_early(times, clamped):
        reasons = [*reasons, Reason.TRIMMED if times.log_start > 0 else Reason.OLDER]
    return StartOffset(
        at=TargetOffset(clamped), reasons=tuple(reasons), index=times.index, source=times.source
    )


def _is_too_early(times: PartitionTimes, at: int) -> bool:
    """Also what lay before the log's first record may have been as late as the moment."""
    if times.first is None or times.is_append_time:
        return False
    first_at, first_ms = times.first
    return at <= first_at and first_ms > times.moment_ms


def _nowhere(times: PartitionTimes, why: str, detail: str = "") -> StartOffset:
    return StartOffset(at=None, why_not=why, detail=detail, index=times.index, source=times.source)


def shown(answer: Answer) -> str:
    """For the sheet."""
    if answer.at is None:
        return ": ".join(filter(None, (answer.why_not or "not asked", answer.detail)))
    if answer.is_past_end:
        return f"{answer.at:,} (the end)"
    return f"{answer.at:,}" + (f" ({rfc3339(answer.at_ms)})" if answer.at_ms is not None else "")
