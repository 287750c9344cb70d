"""What a source has lost of what a flow still needs, or already mirrored: which offsets, and where to go on.

Two kinds. *Uncopied*: retention or DeleteRecords passed the position; the records never came and never will.
*Unsaid*: the source's log was cut before the position, perhaps to grow again with other records; the
mirror keeps what it got before.

Holes that a log may have (compaction, markers, aborted data) are no gaps: positions move over them, and the
start of a log moves only when a log's beginning is deleted. Once they are deleted, nothing tells them from
records: a position that was rebuilt from the map lies at its last record, before that one's marker, and if
retention empties the source then, the marker alone is a gap. So a gap speaks of offsets, and is never passed
in silence.

Invariant: a gap is a pure function of position, log start and what the source says of the position's epoch,
so a person who repeats it and the command that checks it mean the same offsets.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from causeway.core.kernel.identity import SourceOffset, TopicPartition
from causeway.core.state.parked import Parked, ParkReason
from causeway.core.state.repair_commands import accept_gap_command, adopt_remedy


class GapKind(StrEnum):
    UNCOPIED = "gone before it was copied"
    UNSAID = "cut from the source behind the mirror's back"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """Source offsets `[first, end)`."""

    kind: GapKind
    source: TopicPartition
    first: int
    end: int
    log_start: int = 0
    epoch: int = -1
    """Leader epoch of the record before `goes_on_at`; -1: not known."""

    @property
    def goes_on_at(self) -> SourceOffset:
        """Uncopied: after what is gone. Unsaid: where the source's log is another one from."""
        if self.kind is GapKind.UNCOPIED:
            return SourceOffset(self.end)
        return SourceOffset(max(self.first, self.log_start))


def uncopied_gap(source: TopicPartition, source_next: int, log_start: int) -> Gap | None:
    """The log begins after the position."""
    if log_start <= source_next:
        return None
    return Gap(kind=GapKind.UNCOPIED, source=source, first=source_next, end=log_start, log_start=log_start)


def unsaid_gap(
    source: TopicPartition, source_next: int, kept_to: int, *, log_start: int = 0, epoch: int = -1
) -> Gap | None:
    """The log that was read to `source_next` is the same up to `kept_to` only."""
    if kept_to >= source_next:
        return None
    return Gap(
        kind=GapKind.UNSAID,
        source=source,
        first=kept_to,
        end=source_next,
        log_start=log_start,
        epoch=epoch,
    )


def gap_parked(flow: str, gap: Gap, seen: str) -> Parked:
    """`seen` says how it was found."""
    accept = accept_gap_command(flow, gap.source, gap.first, gap.end)
    if gap.kind is GapKind.UNCOPIED:
        return Parked(
            ParkReason.SOURCE_GAP,
            f"offsets {gap.first} to {gap.end - 1} of {gap.source} are gone and were never copied: {seen}; "
            "whether they held records, or only markers (each transaction leaves one), nothing tells any "
            "more",
            f"{accept} does without them and goes on at {gap.goes_on_at}",
        )
    return Parked(
        ParkReason.SOURCE_TRUNCATED,
        f"offsets {gap.first} to {gap.end - 1} of {gap.source} were mirrored and are cut from the source: "
        f"{seen}",
        f"bring the old log back, or {accept} keeps them on the mirror and appends what the source has from "
        f"{gap.goes_on_at} on",
    )


def unknown_turn(flow: str, source: TopicPartition, seen: str) -> Parked:
    """The source's history is another one, and nothing tells from where on."""
    return Parked(ParkReason.SOURCE_TRUNCATED, seen, adopt_remedy(flow, source))
