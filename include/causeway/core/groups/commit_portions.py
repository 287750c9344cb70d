"""Committed offsets in portions: what one request to a group's coordinator may carry.

A coordinator writes what one request commits, or forgets, as one batch of its own topic; above that topic's
`max.message.bytes` (1 MiB, where nobody has changed it) it refuses all of it, however often it is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from causeway.core.kernel.identity import TopicPartition

MOST_PARTITIONS, MOST_BYTES = 500, 256 << 10
_RECORD_BYTES = 100
"""What a record of an offset has besides names and metadata."""


def in_portions(group: str, metadata: Mapping[TopicPartition, str]) -> Iterator[list[TopicPartition]]:
    """`metadata` is what is committed beside each offset. None is empty; what is too large goes alone."""
    portion: list[TopicPartition] = []
    size_bytes = 0
    for tp, words in metadata.items():
        record_bytes = _RECORD_BYTES + sum(len(text.encode()) for text in (group, tp.topic, words))
        if portion and (len(portion) == MOST_PARTITIONS or size_bytes + record_bytes > MOST_BYTES):
            yield portion
            portion, size_bytes = [], 0
        portion.append(tp)
        size_bytes += record_bytes
    if portion:
        yield portion


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    """As requests name them."""
    grouped: dict[str, list[TopicPartition]] = {}
    for tp in partitions:
        grouped.setdefault(tp.topic, []).append(tp)
    return grouped
