"""The answer to Fetch 13, decoded by hand where it lies: the one answer that holds every batch that crosses.

kafka-python's own decoder copies the records out of the frame: a copy of all that is mirrored, and as much
memory again. What comes out has the names of the library's fields (tests/unit/brokers holds it to them).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from causeway.brokers.transport.pending_response import HandDecoded
from causeway.core.records.varint import Malformed, read_unsigned, skip_tags

FETCH, VERSION = 1, 13
_HEAD = struct.Struct(">ihi")
_PARTITION = struct.Struct(">ihqqq")
_ABORTED = struct.Struct(">qq")
_PREFERRED_REPLICA_BYTES = 4
_EPOCH_END = struct.Struct(">iq")
_DIVERGING_TAG = 0


@dataclass(frozen=True, slots=True)
class DivergingEpoch:
    epoch: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    producer_id: int
    first_offset: int


@dataclass(frozen=True, slots=True)
class PartitionAnswer:
    partition_index: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    aborted_transactions: tuple[AbortedTransaction, ...]
    records: memoryview
    """A part of the frame; empty if the broker sent none."""
    diverging_epoch: DivergingEpoch | None


@dataclass(frozen=True, slots=True)
class TopicAnswer:
    topic_id: UUID
    partitions: tuple[PartitionAnswer, ...]


@dataclass(frozen=True, slots=True)
class FetchAnswers(HandDecoded):
    throttle_time_ms: int
    error_code: int
    session_id: int
    responses: tuple[TopicAnswer, ...]

    @classmethod
    def decode(cls, frame: Any) -> FetchAnswers:
        """:raises ValueError: these aren't the bytes of such an answer."""
        data = memoryview(frame.read())
        try:
            at = skip_tags(data, 0)  # of the answer's header
            throttle_time_ms, error_code, session_id = _HEAD.unpack_from(data, at)
            topics, at = _topics(data, at + _HEAD.size)
            skip_tags(data, at)
            return cls(throttle_time_ms, error_code, session_id, topics)
        except (IndexError, struct.error) as cause:
            raise Malformed("an answer to Fetch ends too early") from cause


def _topics(data: memoryview, at: int) -> tuple[tuple[TopicAnswer, ...], int]:
    found: list[TopicAnswer] = []
    topics, at = read_unsigned(data, at)
    for _ in range(topics - 1):
        topic_id = UUID(bytes=bytes(data[at : at + 16]))
        count, at = read_unsigned(data, at + 16)
        partitions: list[PartitionAnswer] = []
        for _ in range(count - 1):
            partition, at = _partition(data, at)
            partitions.append(partition)
        at = skip_tags(data, at)
        found.append(TopicAnswer(topic_id, tuple(partitions)))
    return tuple(found), at


def _partition(data: memoryview, at: int) -> tuple[PartitionAnswer, int]:
    index, error_code, high_watermark, last_stable, log_start = _PARTITION.unpack_from(data, at)
    aborted, at = _aborted(data, at + _PARTITION.size)
    size_bytes, at = read_unsigned(data, at + _PREFERRED_REPLICA_BYTES)
    end = at + max(size_bytes - 1, 0)
    if end > len(data):
        raise IndexError(end)
    diverging, behind = _diverging(data, end)
    answer = PartitionAnswer(
        partition_index=index,
        error_code=error_code,
        high_watermark=high_watermark,
        last_stable_offset=last_stable,
        log_start_offset=log_start,
        aborted_transactions=aborted,
        records=data[at:end],
        diverging_epoch=diverging,
    )
    return answer, behind


def _aborted(data: memoryview, at: int) -> tuple[tuple[AbortedTransaction, ...], int]:
    """Null is read as none."""
    count, at = read_unsigned(data, at)
    found: list[AbortedTransaction] = []
    for _ in range(count - 1):
        found.append(AbortedTransaction(*_ABORTED.unpack_from(data, at)))
        at = skip_tags(data, at + _ABORTED.size)
    return tuple(found), at


def _diverging(data: memoryview, at: int) -> tuple[DivergingEpoch | None, int]:
    """Of the tagged fields after a partition; the others are passed over."""
    found = None
    tags, at = read_unsigned(data, at)
    for _ in range(tags):
        tag, at = read_unsigned(data, at)
        size_bytes, at = read_unsigned(data, at)
        if tag == _DIVERGING_TAG:
            found = DivergingEpoch(*_EPOCH_END.unpack_from(data, at))
        at += size_bytes
    return found, at
