"""The values that many tests need, with a default for whatever a test isn't about."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

from causeway.core.copy.lane_task import Assignment
from causeway.core.kernel.identity import Generation, Pair, SourceOffset, TargetOffset, TopicPartition
from causeway.core.model.flow import CopyLimits, Flow, Start
from causeway.core.model.naming import PrefixNaming
from causeway.core.model.topic_filter import TopicFilter
from causeway.core.offsets.offset_map import MappedRange
from causeway.core.state.acl import Acl
from causeway.core.state.known_pairs import KnownPair
from causeway.core.state.position import Position

SOURCE_ID, TARGET_ID = UUID(int=1), UUID(int=2)


def flow(name: str = "f", **changes: Any) -> Flow:
    """All topics of sf, under its prefix on nyc."""
    made = Flow(
        name=name,
        source="sf",
        target="nyc",
        topics=TopicFilter((".*",)),
        naming=PrefixNaming("sf"),
        start=Start("earliest"),
        lanes=4,
        replication_factor=None,
        config_properties_exclude=(),
        limits=CopyLimits(),
    )
    return replace(made, **changes)


def pair(partition: int = 3, topic: str = "orders", **changes: Any) -> Pair:
    """With the mirror's name that `flow()` gives it."""
    made = Pair(
        source=TopicPartition(topic, partition),
        target=TopicPartition(f"sf.{topic}", partition),
        source_topic_id=SOURCE_ID,
        target_topic_id=TARGET_ID,
    )
    return replace(made, **changes)


def assignment(end: int = 500, **changes: Any) -> Assignment:
    """Of `pair()`, which an earlier run has written."""
    made = Assignment(pair=pair(), end=SourceOffset(end), start=None, known=True)
    return replace(made, **changes)


def known_pair(partitions: int = 1, **changes: Any) -> KnownPair:
    """The topics of `pair()`, as the flow's state knows them."""
    made = KnownPair(
        source_topic="orders", source_topic_id=SOURCE_ID, target_topic_id=TARGET_ID, partitions=partitions
    )
    return replace(made, **changes)


def position(source_next: int, target_next: int, **changes: Any) -> Position:
    """Of the two topics of `pair()`."""
    made = Position(
        source_next=SourceOffset(source_next),
        target_next=TargetOffset(target_next),
        source_topic_id=SOURCE_ID,
        target_topic_id=TARGET_ID,
        source_epoch=0,
        target_epoch=0,
        generation=Generation(1),
        producer_id=1,
        time_ms=0,
    )
    return replace(made, **changes)


def mapped_range(
    source_first: int, target_first: int, *segments: tuple[int, int], **changes: Any
) -> MappedRange:
    """Each segment: records copied, then offsets skipped."""
    made = MappedRange(
        target=TopicPartition("sf.orders", 0),
        source_first=SourceOffset(source_first),
        target_first=TargetOffset(target_first),
        segments=segments,
        first_timestamp_ms=1,
        last_timestamp_ms=2,
        generation=Generation(7),
        source_topic_id=SOURCE_ID,
        target_topic_id=TARGET_ID,
    )
    return replace(made, **changes)


def acl(
    topic: str = "orders",
    operation: str = "Read",
    permission: str = "Allow",
    who: str = "amy",
    pattern: str = "literal",
) -> Acl:
    return Acl(topic, pattern, f"User:{who}", "*", operation, permission)  # type: ignore[arg-type]
