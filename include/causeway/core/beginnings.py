"""The ledger of positions that a person has set: where a partition began anew, who said so, and why.

Kept for good in the flow's state, one entry for each command: what lies in front of such a place was mirrored
under other terms (another topic, another place, records that are left out or come twice), so nobody who
compares the two logs may lead the comparison across it.

Invariant: an entry is written behind the positions that it tells of, under the same fence: one that is there
is true, and one that is missing was broken off. A takeover's is written in front of them, because it may be
broken off in between, and nobody enters it later: its positions are committed as they are entered, or not
at all, and a pair without a position isn't looked up here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal
from uuid import UUID

from causeway.core.identity import Pair, SourceOffset, TargetOffset, TopicPartition

_FAILBACK = re.compile(r"failback [0-9a-f]{12}")
How = Literal["adopt", "accept-gap", "import-mm2", "reconcile", "restart-topic"]
"""The command that said it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceSet:
    """Of one partition."""

    partition: int
    source_next: SourceOffset
    target_next: TargetOffset
    """The target's end then: what lies in front of it was there before."""
    stood_at: int = -1
    """The source offset where it would have gone on by itself; -1: not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetByHand:
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


def last_beginning(entries: Iterable[SetByHand], pair: Pair) -> tuple[SetByHand, PlaceSet] | None:
    """The newest word on this pair, as its topics are now."""
    told = [(entry, place) for entry in entries if (place := entry.place_of(pair)) is not None]
    return max(told, key=lambda each: each[0].generation, default=None)


def parse_set_by_hand(value: dict[str, object]) -> SetByHand:
    """:raises KeyError: | :raises ValueError: it isn't one."""
    return SetByHand(
        how=str(value["how"]),
        source_topic=str(value["source_topic"]),
        target_topic=str(value["target_topic"]),
        source_topic_id=UUID(str(value["source_id"])),
        target_topic_id=UUID(str(value["target_id"])),
        places=tuple(map(_place, _list(value["places"], None))),
        generation=_int(value["generation"]),
        by=str(value["by"]),
        because=str(value["because"]),
        at_ms=_int(value["at_ms"]),
    )


def _place(value: object) -> PlaceSet:
    partition, source_next, target_next, stood_at = map(_int, _list(value, 4))
    return PlaceSet(
        partition=partition,
        source_next=SourceOffset(source_next),
        target_next=TargetOffset(target_next),
        stood_at=stood_at,
    )


def _list(value: object, length: int | None) -> list[object]:
    if type(value) is not list or (length is not None and len(value) != length):
        raise ValueError(f"{value!r} isn't a list of {length or 'places'}")
    return value


def _int(value: object) -> int:
    if type(value) is not int:  # a bool is an int to Python, not to us
        raise ValueError(f"{value!r} isn't a number")
    return value
