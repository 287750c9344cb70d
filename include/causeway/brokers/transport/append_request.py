"""Produce, encoded and decoded by hand: the one request that is sent for every batch that crosses.

Looks to kafka-python's connections like one of their own requests. With their general encoder a request
costs as much as all the rest of a batch's way; the contract is the same bytes (tests/unit/brokers).

Versions 9 to 12, which differ only in tagged fields and in what a broker does (12: transactions v2).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from causeway.brokers.transport.pending_response import Awaited, HandDecoded
from causeway.core.copy.ports import AppendAnswer, Appended, Refused
from causeway.core.kernel.identity import TopicPartition
from causeway.core.records.varint import Malformed, read_unsigned, skip_tags, unsigned

_API_KEY, _OLDEST, _BEFORE_V2, _NEWEST = 0, 9, 11, 12
_ALL_REPLICAS = -1
_TIMEOUT_MS = 30_000
_HEADER = struct.Struct(">hhih")
_SETTINGS = struct.Struct(">hi")
_INT32 = struct.Struct(">i")
_RESULT = struct.Struct(">ihqqq")
_NO_TAGS = b"\0"

Batch = bytes | bytearray


class AppendRequest:
    """One batch for each of these partitions."""

    API_KEY = _API_KEY
    name = "Produce"
    min_version, max_version = _OLDEST, _NEWEST
    _min_version = _OLDEST

    def __init__(
        self,
        batches: Mapping[TopicPartition, Batch],
        *,
        transactional_id: str | None,
        is_v2: bool,
        timeout_ms: int = _TIMEOUT_MS,
    ) -> None:
        self.batches, self.transactional_id, self.timeout_ms = batches, transactional_id, timeout_ms
        self._max_version = _NEWEST if is_v2 else _BEFORE_V2
        self.API_VERSION: int | None = None
        self.header: Awaited | None = None
        self._head = b""

    def with_header(self, correlation_id: int, client_id: str) -> None:
        name = client_id.encode()
        self._head = _HEADER.pack(_API_KEY, self.API_VERSION, correlation_id, len(name)) + name + _NO_TAGS
        self.header = Awaited(correlation_id, AppendAnswers)

    def expect_response(self) -> bool:
        return True

    def encode(self, *, framed: bool, header: bool) -> bytes:
        """With header and length, as connections ask for it."""
        assert framed
        assert header
        pieces = [b"", self._head, *self._body()]
        pieces[0] = _INT32.pack(sum(map(len, pieces)))
        return b"".join(pieces)

    def _body(self) -> Iterator[Batch]:
        by_topic: dict[str, list[tuple[int, Batch]]] = {}
        for tp, batch in self.batches.items():
            by_topic.setdefault(tp.topic, []).append((tp.partition, batch))
        yield _compact_text(self.transactional_id)
        yield _SETTINGS.pack(_ALL_REPLICAS, self.timeout_ms) + unsigned(len(by_topic) + 1)
        for topic, batches in by_topic.items():
            yield _compact_text(topic) + unsigned(len(batches) + 1)
            for partition, batch in batches:
                yield _INT32.pack(partition) + unsigned(len(batch) + 1)
                yield batch
                yield _NO_TAGS
            yield _NO_TAGS
        yield _NO_TAGS


@dataclass(frozen=True, slots=True)
class AppendAnswers(HandDecoded):
    by_partition: dict[TopicPartition, AppendAnswer]
    throttle_time_ms: int = 0

    @classmethod
    def decode(cls, frame: Any) -> AppendAnswers:
        """:raises ValueError: these aren't the bytes of such an answer."""
        try:
            return cls(*_answers(memoryview(frame.read())))
        except IndexError as cause:
            raise Malformed("an answer to Produce ends too early") from cause


def _answers(data: memoryview) -> tuple[dict[TopicPartition, AppendAnswer], int]:
    found: dict[TopicPartition, AppendAnswer] = {}
    topics, at = read_unsigned(data, skip_tags(data, 0))
    for _ in range(topics - 1):
        topic, at = _read_text(data, at)
        partitions, at = read_unsigned(data, at)
        for _ in range(partitions - 1):
            partition, code, base_offset, _, log_start = _RESULT.unpack_from(data, at)
            at_fault, at = _read_record_errors(data, at + _RESULT.size)
            message, at = _read_text(data, at)
            at = skip_tags(data, at)
            found[TopicPartition(topic, partition)] = (
                Refused(code, message, at_fault=at_fault) if code else Appended(base_offset, log_start)
            )
        at = skip_tags(data, at)
    (throttle_time_ms,) = _INT32.unpack_from(data, at)
    return found, throttle_time_ms


def _read_record_errors(data: memoryview, at: int) -> tuple[tuple[int, ...], int]:
    """The places of records in their batch that the broker names; what it says of each is in the message."""
    errors, at = read_unsigned(data, at)
    named: list[int] = []
    for _ in range(errors - 1):
        if at + _INT32.size > len(data):
            raise IndexError(at)
        named.append(_INT32.unpack_from(data, at)[0])
        _, at = _read_text(data, at + _INT32.size)
        at = skip_tags(data, at)
    return tuple(named), at


def _compact_text(value: str | None) -> bytes:
    if value is None:
        return unsigned(0)
    encoded = value.encode()
    return unsigned(len(encoded) + 1) + encoded


def _read_text(data: memoryview, at: int) -> tuple[str, int]:
    """Null is read as empty."""
    size_bytes, at = read_unsigned(data, at)
    end = at + max(size_bytes - 1, 0)
    return str(data[at:end], "utf-8"), end
