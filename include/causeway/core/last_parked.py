"""What the newest run left standing still, kept for whoever looks later: much of it only a worker can see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from causeway.core.identity import TopicPartition
from causeway.core.lane_task import Parked, ParkReason
from causeway.core.position import Position

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
        """Those, by source partition, of which nothing was said or done since: whoever sets a position has a
        newer generation."""
        return {
            tp: why
            for tp, why in self.partitions.items()
            if tp in positions and not self._is_cured(positions[tp])
        }

    def _is_cured(self, position: object) -> bool:
        return isinstance(position, Position) and position.generation > self.generation


def parse_last_parked(value: Mapping[str, object]) -> LastParked:
    """:raises KeyError: | :raises ValueError: it isn't one."""
    newer = [_row(row) for row in _rows(value.get("newer", [])) if _is_known(row)]
    return LastParked(
        generation=_int(value["generation"]),
        at_ms=_int(value["at_ms"]),
        partitions=dict([*map(_row, _rows(value["partitions"])), *newer]),
        more=_int(value["more"]) - len(newer),
    )


def _as_row(tp: TopicPartition, why: Parked) -> list[object]:
    return [tp.topic, tp.partition, _STORED_AS.get(why.reason, str(why.reason)), why.facts, why.remedy]


def _rows(found: object) -> list[object]:
    return found if isinstance(found, list) else [found]


def _is_known(row: object) -> bool:
    """A reason of a version newer than this one stays among `more`."""
    return not isinstance(row, list) or len(row) != 5 or str(row[2]) in set(ParkReason)


def _row(row: object) -> tuple[TopicPartition, Parked]:
    if not isinstance(row, list) or len(row) != 5:
        raise ValueError(f"{row!r} isn't a parked partition")
    topic, partition, reason, facts, remedy = row
    known = _READ_AS.get(str(reason)) or ParkReason(reason)
    return TopicPartition(str(topic), _int(partition)), Parked(known, str(facts), str(remedy))


def _int(value: object) -> int:
    if type(value) is not int:  # a bool is an int to Python, not to us
        raise ValueError(f"{value!r} isn't a number")
    return value
