"""The position of a mirrored partition: what a committed offset of `causeway.<flow>` says.

The committed number is the next source offset; the metadata holds all that a later owner needs to
prove that the two logs are still the ones that this position was written about. It travels in the
data's own transaction, so it can't disagree with the data.

Invariants
    A. A committed offset whose metadata isn't ours is never taken for a position.
    B. `target_next` is the offset after the last mirrored record; transaction markers may follow it.
    C. A place without records is kept in the offset map as well, in the same transaction (`is_placed`):
       committed offsets expire, and what was never written to has no run to be found again by.
    D. `aborted_records` only grows: the records of aborted attempts that default readers saw and will
       see again, since the flow began. They count once `target_next` has passed them, so never twice.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from uuid import UUID

from causeway.core.kernel.errors import ProtocolFault
from causeway.core.kernel.identity import Generation, SourceOffset, TargetOffset

_VERSION = 1
RENEW_AFTER_MS = 24 * 3_600_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    source_next: SourceOffset
    target_next: TargetOffset
    source_topic_id: UUID
    target_topic_id: UUID
    source_epoch: int
    """Leader epoch of the source batch before `source_next`; -1: not known."""
    target_epoch: int
    generation: Generation
    producer_id: int
    time_ms: int
    records: int = 0
    """Records mirrored since the flow began with this partition."""
    aborted_records: int = 0
    is_placed: bool = False
    """Whether the offset map has the place where the partition began or was set."""

    @property
    def ids(self) -> tuple[UUID, UUID]:
        return self.source_topic_id, self.target_topic_id

    def is_old(self, now_ms: int) -> bool:
        """Committed offsets of an idle partition expire after seven days: commit it again each day.

        A time in the future comes from a clock that was wrong: it says nothing, so that one is old too.
        """
        return abs(now_ms - self.time_ms) > RENEW_AFTER_MS

    def needs_a_place(self, adopted_at: int) -> bool:
        """Nothing but a committed offset may know of it: it has no record, a person set it before places were
        kept, or began an adoption that was broken off, since when what map and state know counts no more."""
        is_outdated = self.generation < adopted_at
        return is_outdated or (not self.is_placed and (self.records == 0 or adopted_at >= 0))

    def metadata(self) -> str:
        """Everything but the number itself, small enough for the broker's 4,096 bytes."""
        placed = {"pl": 1} if self.is_placed else {}
        return json.dumps(
            {
                "v": _VERSION,
                "t": self.target_next,
                "sid": self.source_topic_id.hex,
                "tid": self.target_topic_id.hex,
                "se": self.source_epoch,
                "te": self.target_epoch,
                "g": self.generation,
                "pid": self.producer_id,
                "ms": self.time_ms,
                "n": self.records,
                "ab": self.aborted_records,
                **placed,
            },
            separators=(",", ":"),
        )


@dataclass(frozen=True, slots=True)
class ForeignPosition:
    """A committed offset that Causeway didn't write, or wrote in a format that is newer than this code."""

    source_next: int
    why: str


def parse_position(offset: int, metadata: str | None) -> Position | ForeignPosition:
    """Read what was committed. Nothing is guessed: what isn't ours is a value that says so."""
    try:
        fields = json.loads(metadata or "")
        version = fields["v"]
        if version != _VERSION:
            return ForeignPosition(offset, f"its format is version {version}, this code knows {_VERSION}")
        return Position(
            source_next=SourceOffset(offset),
            target_next=TargetOffset(_as_number(fields["t"])),
            source_topic_id=UUID(hex=str(fields["sid"])),
            target_topic_id=UUID(hex=str(fields["tid"])),
            source_epoch=_as_number(fields["se"]),
            target_epoch=_as_number(fields["te"]),
            generation=Generation(_as_number(fields["g"])),
            producer_id=_as_number(fields["pid"]),
            time_ms=_as_number(fields["ms"]),
            records=_as_number(fields["n"]),
            aborted_records=_as_number(fields["ab"]),
            is_placed=bool(fields.get("pl", 0)),
        )
    except (ValueError, KeyError, TypeError, RecursionError) as cause:
        return ForeignPosition(offset, f"its metadata isn't Causeway's ({type(cause).__name__})")


def _as_number(value: object) -> int:
    if type(value) is not int:  # a bool is an int to Python, not to us
        raise TypeError(value)
    return value


def require_position(found: Position | ForeignPosition | None) -> Position:
    """For callers that have just read back what they committed."""
    if isinstance(found, Position):
        return found
    raise ProtocolFault("committed position", value=found, rule="must be readable right after its commit")
