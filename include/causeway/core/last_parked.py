"""What the newest run left standing still, kept for whoever looks later: much of it only a worker can see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from causeway.core.identity import TopicPartition
from causeway.core.lane_task import Parked, ParkReason
from causeway.core.position import Position

_KEPT = 1_000
"""Far below the megabyte that a record may have."""


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
        return {
            "generation": self.generation,
            "at_ms": self.at_ms,
            "partitions": [
                [tp.topic, tp.partition, str(why.reason), why.facts, why.remedy] for tp, why in kept
            ],
            "more": self.more + len(self.partitions) - len(kept),
        }

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
    rows = value["partitions"]
    return LastParked(
        generation=_int(value["generation"]),
        at_ms=_int(value["at_ms"]),
        partitions=dict(_row(row) for row in (rows if isinstance(rows, list) else [rows])),
        more=_int(value["more"]),
    )


def _row(row: object) -> tuple[TopicPartition, Parked]:
    if not isinstance(row, list) or len(row) != 5:
        raise ValueError(f"{row!r} isn't a parked partition")
    topic, partition, reason, facts, remedy = row
    return TopicPartition(str(topic), _int(partition)), Parked(ParkReason(reason), str(facts), str(remedy))


def _int(value: object) -> int:
    if type(value) is not int:  # a bool is an int to Python, not to us
        raise ValueError(f"{value!r} isn't a number")
    return value
