"""The ledger of positions that a person has set: where a partition began again, who decided that, and why.

Kept permanently in the flow's state, one entry for each command: what lies before such a place was
mirrored under other terms (another topic, another place, records that are left out or come twice), so nobody
who compares the two logs may compare across it.

Invariant: an entry is written after the positions that it names, under the same fence: one that is there
is true, and one that is missing was broken off. A takeover's is written before them, because it may be
broken off in between, and nobody enters it later: its positions are committed as they are entered, or not
at all, and a pair without a position isn't looked up here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from causeway.core.kernel.identity import Pair, SourceOffset, TargetOffset, TopicPartition
from causeway.core.kernel.json_fields import list_of, whole_number

_FAILBACK = re.compile(r"failback [0-9a-f]{12}")
How = Literal["adopt", "accept-gap", "import-mm2", "reconcile", "restart-topic"]
"""The command that set it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceSet:
    """Of one partition."""

    partition: int
    source_next: SourceOffset
    target_next: TargetOffset
    """The target's end then: what lies before it was there before."""
    stood_at: int = -1
    """The source offset where it would have gone on by itself; -1: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ManualPosition:
    how: str
    source_topic: str
    target_topic: str
    source_topic_id: UUID
    target_topic_id: UUID
    places: tuple[PlaceSet, ...]
    generation: int
    by: str
    because: str
    at_ms: int

    @property
    def is_of_failback(self) -> bool:
        """The flow went on after what the flow of the other direction had brought back: nothing lies between
        that neither of the two maps knows."""
        return self.how == "adopt" and bool(_FAILBACK.fullmatch(self.because))

    @property
    def name(self) -> str:
        """What no other entry of the flow has."""
        return f"{self.target_topic}/{self.generation}"

    def place_of(self, pair: Pair) -> PlaceSet | None:
        """Where it set this pair; None: it says nothing of it, or speaks of topics that are gone."""
        ids = self.target_topic, self.source_topic_id, self.target_topic_id
        if ids != (pair.target.topic, pair.source_topic_id, pair.target_topic_id):
            return None
        return next((place for place in self.places if place.partition == pair.target.partition), None)

    def source(self, place: PlaceSet) -> TopicPartition:
        return TopicPartition(self.source_topic, place.partition)

    def as_dict(self) -> dict[str, object]:
        return {
            "how": self.how,
            "source_topic": self.source_topic,
            "target_topic": self.target_topic,
            "source_id": str(self.source_topic_id),
            "target_id": str(self.target_topic_id),
            "places": [[p.partition, p.source_next, p.target_next, p.stood_at] for p in self.places],
            "generation": self.generation,
            "by": self.by,
            "because": self.because,
            "at_ms": self.at_ms,
        }


def last_manual_position(
    entries: Iterable[ManualPosition], pair: Pair
) -> tuple[ManualPosition, PlaceSet] | None:
    """The newest word on this pair, as its topics are now."""
    told = [(entry, place) for entry in entries if (place := entry.place_of(pair)) is not None]
    return max(told, key=lambda each: each[0].generation, default=None)


def parse_manual_position(value: dict[str, object]) -> ManualPosition:
    """:raises KeyError: | :raises ValueError: it isn't one."""
    return ManualPosition(
        how=str(value["how"]),
        source_topic=str(value["source_topic"]),
        target_topic=str(value["target_topic"]),
        source_topic_id=UUID(str(value["source_id"])),
        target_topic_id=UUID(str(value["target_id"])),
        places=tuple(map(_parse_place, list_of(value["places"]))),
        generation=whole_number(value["generation"]),
        by=str(value["by"]),
        because=str(value["because"]),
        at_ms=whole_number(value["at_ms"]),
    )


def _parse_place(value: object) -> PlaceSet:
    partition, source_next, target_next, stood_at = map(whole_number, list_of(value, 4))
    return PlaceSet(
        partition=partition,
        source_next=SourceOffset(source_next),
        target_next=TargetOffset(target_next),
        stood_at=stood_at,
    )
