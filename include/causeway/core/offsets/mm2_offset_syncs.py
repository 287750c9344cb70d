"""Offsets from before a takeover: what MirrorMaker 2's offset syncs tell of them, kept with the flow.

    key    JSON [version, target topic, partition]
    value  JSON {v, source_id, target_id, source_next, target_next, points: [[source, target], ...]}

A sync knows one record on both sides. Of an offset between two of them MirrorMaker 2 only says that its
record comes after the earlier one: so does this, and calls it a lower bound. Nobody who goes on there skips a
record; some are read again.

Invariants
    A. Points rise on both sides. Where MirrorMaker 2 had begun again, the later copy counts.
    B. No answer is given for offsets that Causeway has copied itself: there the map is exact.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from causeway.core.kernel.errors import ProtocolFault
from causeway.core.kernel.identity import SourceOffset, TargetOffset, TopicPartition
from causeway.core.records.mm2_formats import OffsetSync

_VERSION = 1
MOST_POINTS = 512
Point = tuple[int, int]
"""A record's offset on the source and on the target."""


def inherited_topic_of(flow: str) -> str:
    return f"causeway-inherited.{flow}.internal"


@dataclass(frozen=True, slots=True)
class LowerBound:
    """A place that isn't after the right one; between the two lie records that were read already."""

    at: int
    reason = "lower bound"
    why = "a lower bound, by MirrorMaker 2's offset syncs"

    def __str__(self) -> str:
        return f"{self.at} ({self.why})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Inherited:
    """Of one partition, up to where Causeway took over."""

    source_topic_id: UUID
    target_topic_id: UUID
    source_next: SourceOffset
    target_next: TargetOffset
    points: tuple[Point, ...]

    def to_target(self, offset: int) -> LowerBound | None:
        """None: older than the oldest sync, or not from before the takeover."""
        return None if offset >= self.source_next else _behind(self.points, 0, offset)

    def to_source(self, offset: int) -> LowerBound | None:
        return None if offset >= self.target_next else _behind(self.points, 1, offset)

    @property
    def ids(self) -> tuple[UUID, UUID]:
        return self.source_topic_id, self.target_topic_id


def _behind(points: tuple[Point, ...], side: int, offset: int) -> LowerBound | None:
    at = bisect_right(points, offset, key=lambda point: point[side]) - 1
    if at < 0:
        return None
    here, there = points[at][side], points[at][1 - side]
    return LowerBound(there if here == offset else there + 1)


def points_of(syncs: Iterable[OffsetSync], last: OffsetSync) -> tuple[Point, ...]:
    """`syncs` in the order in which they were written; `last` is the furthest source record on the target.

    What lies after that one are repeats that didn't come as far: who began among them would miss the rest.
    """
    points: list[Point] = []
    for sync in (*syncs, last):
        if sync.source_offset > last.source_offset or sync.target_offset > last.target_offset:
            continue
        while points and (points[-1][0] >= sync.source_offset or points[-1][1] >= sync.target_offset):
            points.pop()
        points.append((int(sync.source_offset), int(sync.target_offset)))
    return _thinned(points)


def _thinned(points: list[Point]) -> tuple[Point, ...]:
    """Evenly, from the newest on: what is kept is read by everybody who translates."""
    step = -(-len(points) // MOST_POINTS) or 1
    return tuple(points[::-step][::-1])


def inherited_record(target: TopicPartition, inherited: Inherited) -> tuple[bytes, bytes]:
    key = json.dumps([_VERSION, target.topic, target.partition], separators=(",", ":"))
    value = {
        "v": _VERSION,
        "source_id": str(inherited.source_topic_id),
        "target_id": str(inherited.target_topic_id),
        "source_next": inherited.source_next,
        "target_next": inherited.target_next,
        "points": inherited.points,
    }
    return key.encode(), json.dumps(value, separators=(",", ":")).encode()


def parse_inherited(key: bytes | None, value: bytes | None) -> tuple[TopicPartition, Inherited] | None:
    """None: it was taken away.

    :raises ProtocolFault: of another version, or nothing of ours.
    """
    try:
        version, topic, partition = json.loads(key or b"")
        said = json.loads(value) if value else None
        target = TopicPartition(str(topic), int(partition))
        return None if said is None else (target, _inherited(said, version))
    except (ValueError, KeyError, TypeError, RecursionError) as cause:
        raise ProtocolFault(
            "a record of what was inherited from MirrorMaker 2",
            value=(key or b"")[:200],
            rule=f"isn't one that this version knows: {cause}",
            remedy="run the newest version of Causeway that works on this cluster",
        ) from cause


def _inherited(said: dict[str, object], version: object) -> Inherited:
    if (version, said["v"]) != (_VERSION, _VERSION):
        raise ValueError(f"version {version}")
    points = said["points"]
    if not isinstance(points, list):
        raise TypeError("points must be a list")
    return Inherited(
        source_topic_id=UUID(str(said["source_id"])),
        target_topic_id=UUID(str(said["target_id"])),
        source_next=SourceOffset(int(str(said["source_next"]))),
        target_next=TargetOffset(int(str(said["target_next"]))),
        points=tuple((int(here), int(there)) for here, there in points),
    )
