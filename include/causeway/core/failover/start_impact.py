"""The price of a place: what a group that begins there reads again, and what it never reads.

Counted in the flow's map between that place and where the group was last known to stand. What stays where it
is has a price, too: nobody moves it, and its consumers begin there all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from causeway.core.failover.start_offset import NO_TIMESTAMP, StartOffset
from causeway.core.kernel.estimate import Estimate, at_least, at_most, exact, largest, total, unknown
from causeway.core.kernel.identity import TargetOffset, TopicPartition
from causeway.core.offsets.offset_map import MappedRange

BOUND = "its place is a lower bound, by MirrorMaker 2's offset syncs"


@dataclass(frozen=True, slots=True, kw_only=True)
class LastKnown:
    """Where a group stood on the source, as far as anybody knows, and what that is on the target."""

    at: TargetOffset | None
    why_not: str = ""
    """Why it has no place on the target."""
    is_live: bool = False
    """Asked of the source just now; else it may have read on since."""
    told_by: str = ""
    is_ahead: bool = False
    """It has read on the source what isn't mirrored."""
    is_older: bool = False
    """It hasn't read on the source what the target never had, or has no more."""
    is_bound: bool = False
    """Its place may lie further on: MirrorMaker 2's offset syncs know no nearer one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirrored:
    """One target partition of the flow."""

    target: TopicPartition
    target_topic_id: UUID
    log_start: TargetOffset
    end: TargetOffset
    """After the last mirrored record."""
    runs: Sequence[MappedRange]
    """Those that hold."""
    place: StartOffset | None = None
    """For the moment; None: the wish is `latest`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftImpact:
    """Of a group that stays where it stands on the target."""

    rereads: Estimate
    skips: Estimate
    seconds: Estimate
    """Between there and where it was last known to stand, by the records' own times."""

    def __str__(self) -> str:
        if self.rereads.is_nothing and self.skips.is_nothing:
            return "it stands there where it stood on the source"
        span = "" if self.seconds.is_nothing else f" (seconds between: {self.seconds})"
        return f"left there, it reads again {self.rereads} and skips {self.skips} records{span}"

    def as_dict(self) -> dict[str, object]:
        return {
            "rereads": self.rereads.as_dict(),
            "skips": self.skips.as_dict(),
            "seconds": self.seconds.as_dict(),
        }


def impact_left(stands: int, known: LastKnown | None, partition: Mirrored) -> LeftImpact:
    rereads, skips = impact_of(known, TargetOffset(stands), partition)
    if known is None or known.at is None:
        return LeftImpact(rereads=rereads, skips=skips, seconds=unknown(_why_unknown(known)))
    first, last = sorted((stands, int(known.at)))
    seconds = _seconds_between(partition.runs, first, last)
    return LeftImpact(rereads=rereads, skips=skips, seconds=seconds)


def together(parts: Sequence[LeftImpact]) -> LeftImpact:
    return LeftImpact(
        rereads=total(part.rereads for part in parts),
        skips=total(part.skips for part in parts),
        seconds=largest(part.seconds for part in parts),
    )


def _seconds_between(runs: Iterable[MappedRange], first: int, last: int) -> Estimate:
    """The map keeps times of whole runs, so it is never less than the truth."""
    touched = [run for run in runs if run.target_next > first and run.target_first < last]
    if any(run.last_timestamp_ms == NO_TIMESTAMP for run in touched):
        return unknown("records carry no time")
    if not touched:
        return exact(0)
    span_ms = max(run.last_timestamp_ms for run in touched) - min(run.first_timestamp_ms for run in touched)
    return at_most(-(-max(span_ms, 0) // 1000), "the map keeps the times of many records together")


def impact_of(
    known: LastKnown | None, after: TargetOffset, partition: Mirrored, *, stands: int = 0
) -> tuple[Estimate, Estimate]:
    """What it reads again, and what it never reads. `stands`: where it stands on the target now."""
    if known is None or known.at is None:
        why = _why_unknown(known)
        return _at_most_all(partition, after, stands, unknown(why), why), unknown(why)
    again = _counted(partition, after, known.at)
    never = _counted(partition, known.at, after)
    if known.is_bound:
        again = _at_most_all(partition, after, stands, again.or_more(BOUND), BOUND)
        return again, unknown(BOUND) if after > known.at else exact(0)
    if known.is_live:
        return again, never
    because = f"{known.told_by} is the last that is known of it, and it may have read on since"
    again = _at_most_all(partition, after, stands, again.or_more(because), because)
    return again, never.or_less(because)


def _why_unknown(known: LastKnown | None) -> str:
    return "where the group stood on the source isn't known" if known is None else known.why_not


def _at_most_all(
    partition: Mirrored, after: TargetOffset, stands: int, otherwise: Estimate, because: str
) -> Estimate:
    """However far it has read on the source, what isn't mirrored it never reads here: so at most all that
    is, and at the mirror's end nothing. Where the map doesn't reach back so far, nobody has counted that.
    A mirror that nobody has stopped may still add to it. Who has read past the mirror's end on the target has
    read records there that no mirror brought: nobody has counted them."""
    if stands > partition.end:
        return otherwise
    every = _counted(partition, after, partition.end).exactly
    return otherwise if every is None else at_most(every, f"{because}; counted to the mirror's end of now")


def _counted(partition: Mirrored, first: int, last: int) -> Estimate:
    """Records that the flow has mirrored between two places; what somebody else brought isn't in its map."""
    found = mirrored_between(partition.runs, first, last)
    begins = partition.runs[0].target_begins if partition.runs else partition.end
    if first < min(last, begins):
        return at_least(found, f"what lies before {begins:,} on {partition.target} isn't in the map")
    return exact(found)


def mirrored_between(runs: Iterable[MappedRange], first: int, last: int) -> int:
    """Mirrored records in `[first, last)` of the target: markers and aborted attempts aren't in the map."""
    return sum(
        max(0, min(run.target_next, last) - max(run.target_first, first))
        for run in runs
        if run.target_next > first and run.target_first < last
    )
