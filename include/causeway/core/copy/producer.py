"""A producer's identity in one epoch, and the sequence numbers it has given away.

Sequences start at 0 in each epoch, per partition, and go on by record count.
"""

from __future__ import annotations

from dataclasses import dataclass

from causeway.core.kernel.identity import TopicPartition

_SEQUENCES = 1 << 31


@dataclass(frozen=True, slots=True)
class ProducerEpoch:
    """A producer as it stood at one moment."""

    producer_id: int
    epoch: int

    def is_followed_by(self, claimed: ProducerState) -> bool:
        """Each claim takes an epoch: if the next one was given, nobody else has claimed in between."""
        return (claimed.producer_id, claimed.epoch) == (self.producer_id, self.epoch + 1)


class ProducerState:
    __slots__ = ("_next", "epoch", "producer_id")

    def __init__(self, producer_id: int, epoch: int) -> None:
        self.producer_id, self.epoch = producer_id, epoch
        self._next: dict[TopicPartition, int] = {}

    def next_sequence(self, partition: TopicPartition) -> int:
        return self._next.get(partition, 0)

    def take_sequence(self, partition: TopicPartition, records: int) -> int:
        """The base sequence for a batch of so many records; the next one continues after it."""
        base = self._next.get(partition, 0)
        self._next[partition] = (base + records) % _SEQUENCES
        return base

    def __str__(self) -> str:
        return f"producer {self.producer_id} epoch {self.epoch}"
