"""Names of things in two clusters, as types that can't be mixed up.

Offsets are plain integers at run time; the two NewTypes make mypy refuse a source offset where a
target offset belongs. Ranges are half-open everywhere: a position is the next offset to read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType
from uuid import UUID

SourceOffset = NewType("SourceOffset", int)
TargetOffset = NewType("TargetOffset", int)
Generation = NewType("Generation", int)


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One source partition and the target partition that mirrors it, down to the topics' ids."""

    source: TopicPartition
    target: TopicPartition
    source_topic_id: UUID
    target_topic_id: UUID

    @property
    def ids(self) -> tuple[UUID, UUID]:
        return self.source_topic_id, self.target_topic_id
