"""What the newest run left parked, kept for those who look later: much of it only a worker can see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.json_fields import whole_number
from causeway.core.state.position import Position


class ParkReason(StrEnum):
    FOREIGN_POSITION = "foreign position"
    POSITION_LOST = "position lost"
    FOREIGN_DATA = "foreign data on the target"
    FOREIGN_WRITER = "foreign writer on the target"
    FOREIGN_TRANSACTION = "another producer's open transaction on the target"
    SOURCE_DELETED = "source topic deleted"
    SOURCE_RECREATED = "source topic recreated"
    SOURCE_TRUNCATED = "source log truncated"
    SOURCE_GAP = "offsets gone from the source before they were copied"
    SOURCE_CORRUPT = "corrupt batch on the source"
    SOURCE_OVERSIZED = "batch on the source too large to be taken apart"
    TARGET_RECREATED = "target topic deleted or recreated"
    TARGET_TAIL_UNPROVED = "the target's last records can't be proved equal to the source's"
    TARGET_TAIL_UNMAPPED = "target lost its tail and the map doesn't reach there"
    OTHER_FLOW = "another flow's mirror"
    NOT_ADOPTED = "not adopted, and another flow leads the other way"
    REFUSED = "batch refused by the target"
    COMMIT_REFUSED = "commit refused by the target"
    NOT_AUTHORIZED = "not authorized"
    FENCED = "fenced"
    """The topic is; the flow goes on."""


@dataclass(frozen=True, slots=True)
class Parked:
    """Why a partition is parked, what was seen, and how to continue."""

    reason: ParkReason
    facts: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.reason}: {self.facts}; {self.remedy}"

    def as_dict(self) -> dict[str, str]:
        return {"reason": str(self.reason), "facts": self.facts, "remedy": self.remedy}


_KEPT = 1_000
"""Far below the megabyte that a record may have."""
_NEWER = frozenset({ParkReason.SOURCE_OVERSIZED, ParkReason.COMMIT_REFUSED, ParkReason.FENCED})
"""Reasons that the first versions don't know: they refuse the whole topic over one. So these stand apart, and
those versions count them among `more`."""
_STORED_AS = {ParkReason.SOURCE_GAP: "records gone from the source before they were copied"}
"""Where the first versions know a reason by other words."""
_READ_AS = {words: reason for reason, words in _STORED_AS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class LastParked:
    generation: int
    """Of the run that says it."""
    at_ms: int
    partitions: Mapping[TopicPartition, Parked] = field(default_factory=dict)
    """By source partition, the first ones of very many."""
    more: int = 0

    def as_dict(self) -> dict[str, object]:
        kept = sorted(self.partitions.items())[:_KEPT]
        newer = [_as_row(tp, why) for tp, why in kept if why.reason in _NEWER]
        told: dict[str, object] = {
            "generation": self.generation,
            "at_ms": self.at_ms,
            "partitions": [_as_row(tp, why) for tp, why in kept if why.reason not in _NEWER],
            "more": self.more + len(self.partitions) - len(kept) + len(newer),
        }
        return {**told, "newer": newer} if newer else told

    def still(self, positions: Mapping[TopicPartition, object]) -> dict[TopicPartition, Parked]:
        """Those, by source partition, of which nothing was recorded or done since: whoever sets a position
        has a newer generation."""
        return {
            tp: why
            for tp, why in self.partitions.items()
            if tp in positions and not self._is_cured(positions[tp])
        }

    def _is_cured(self, position: object) -> bool:
        return isinstance(position, Position) and position.generation > self.generation


def parse_last_parked(value: Mapping[str, object]) -> LastParked:
    """:raises KeyError: | :raises ValueError: it isn't one."""
    newer = [_parse_row(row) for row in _rows(value.get("newer", [])) if _is_known(row)]
    return LastParked(
        generation=whole_number(value["generation"]),
        at_ms=whole_number(value["at_ms"]),
        partitions=dict([*map(_parse_row, _rows(value["partitions"])), *newer]),
        more=whole_number(value["more"]) - len(newer),
    )


def _as_row(tp: TopicPartition, why: Parked) -> list[object]:
    return [tp.topic, tp.partition, _STORED_AS.get(why.reason, str(why.reason)), why.facts, why.remedy]


def _rows(found: object) -> list[object]:
    return found if isinstance(found, list) else [found]


def _is_known(row: object) -> bool:
    """A reason of a version newer than this one stays among `more`."""
    return not isinstance(row, list) or len(row) != 5 or str(row[2]) in set(ParkReason)


def _parse_row(row: object) -> tuple[TopicPartition, Parked]:
    if not isinstance(row, list) or len(row) != 5:
        raise ValueError(f"{row!r} isn't a parked partition")
    topic, partition, reason, facts, remedy = row
    known = _READ_AS.get(str(reason)) or ParkReason(reason)
    return TopicPartition(str(topic), whole_number(partition)), Parked(known, str(facts), str(remedy))
