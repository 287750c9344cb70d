"""A topic as its cluster describes it in an answer to a Metadata request."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from causeway.core.kernel.acl_vocabulary import Operation
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """One topic as its cluster describes it now; `error` is a code, 0 for none."""

    name: str
    topic_id: UUID
    is_internal: bool
    leaders: dict[int, int]
    error: int
    operations: frozenset[int] | None = None
    """What this user may do with it; None: not known. Known also of a topic that isn't there yet."""
    short_of_replicas: Mapping[int, tuple[int, int]] = field(default_factory=dict)
    """By partition, of those of which not all replicas are in sync: how many are, and of how many."""

    @classmethod
    def of_answer(cls, topic: Any, operations: frozenset[int] | None) -> TopicMetadata:
        return cls(
            topic.name,
            topic.topic_id,
            topic.is_internal,
            {p.partition_index: p.leader_id for p in topic.partitions},
            topic.error_code,
            operations,
            {
                p.partition_index: (len(p.isr_nodes), len(p.replica_nodes))
                for p in topic.partitions
                if len(p.isr_nodes) < len(p.replica_nodes)
            },
        )

    def lacks(self, *needed: Operation) -> Operation | None:
        """The first of these that the broker says isn't granted."""
        if self.error == Code.TOPIC_AUTHORIZATION_FAILED:
            return needed[0]
        if self.operations is None:
            return None
        return next((each for each in needed if each not in self.operations), None)
