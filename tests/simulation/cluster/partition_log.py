"""One partition as its leader keeps it: batches, epochs, producers, what is open and what was aborted.

Semantics of Kafka 4.3 (v2) and 3.9 (v1), as far as a client can tell. A log can be cut at any batch, as
an election does it; everything that is derived from the batches is then derived again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from copy import copy, deepcopy
from dataclasses import dataclass, field
from struct import Struct
from uuid import UUID

import google_crc32c

from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.records.batches import CONTROL_BIT, HEADER, TRANSACTIONAL_BIT, BatchHead, parse_head
from causeway.core.records.varint import write_varint

_PLACE = Struct(">q")
_EPOCH = Struct(">i")
_KEPT_BATCHES = 5
USUAL_MAX_BYTES = 1 << 20
_SEQUENCES = 1 << 31


@dataclass(slots=True)
class Stored:
    base: int
    next: int
    data: bytes
    head: BatchHead
    commits: bool | None = None
    """Of a marker: how the transaction ended."""


@dataclass(slots=True)
class Producer:
    epoch: int
    last_sequence: int = -1
    recent: deque[tuple[int, int, int]] = field(default_factory=lambda: deque(maxlen=_KEPT_BATCHES))
    """(first sequence, last sequence, base offset)"""
    open_from: int | None = None


class PartitionLog:
    def __init__(self, tp: TopicPartition, topic_id: UUID, *, is_v2: bool) -> None:
        self.tp, self.topic_id, self.is_v2 = tp, topic_id, is_v2
        self.batches: list[Stored] = []
        self.start = self.end = self.high_watermark = 0
        self.replicated = 0
        """The highest that the high watermark ever was: no clean election takes anything below it."""
        self.leader_epoch = 0
        self.epochs: list[tuple[int, int]] = [(0, 0)]
        self.producers: dict[int, Producer] = {}
        self.aborted: list[tuple[int, int, int]] = []
        """(first, marker's offset, producer id)"""
        self.closing: list[tuple[int, int]] = []
        """(first, marker's offset) of decided transactions whose marker isn't replicated yet"""
        self.guards: dict[int, object] = {}
        self.max_bytes = USUAL_MAX_BYTES
        self.version = 0
        """Grows with each cut: whoever looked before has to look again."""

    # reading

    @property
    def last_stable(self) -> int:
        at = self.high_watermark
        for producer in self.producers.values():
            if producer.open_from is not None and producer.open_from < at:
                at = producer.open_from
        for first, marker in self.closing:
            if marker >= self.high_watermark and first < at:
                at = first
        return at

    @property
    def is_settled(self) -> bool:
        """Whether the leader knows that everything which was acknowledged before it led is readable."""
        return self.epochs[-1][1] <= self.high_watermark

    def read(self, offset: int, limit: int, most_batches: int) -> list[Stored]:
        found: list[Stored] = []
        low, high = 0, len(self.batches)
        while low < high:
            middle = (low + high) // 2
            if self.batches[middle].next <= offset:
                low = middle + 1
            else:
                high = middle
        for batch in self.batches[low:]:
            if batch.base >= limit or len(found) >= most_batches:
                break
            found.append(batch)
        return found

    def aborted_between(self, offset: int, limit: int) -> list[tuple[int, int]]:
        return [(first, pid) for first, last, pid in self.aborted if last >= offset and first < limit]

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """OffsetForLeaderEpoch, as LeaderEpochFileCache answers it."""
        last_epoch, _ = self.epochs[-1]
        if epoch == last_epoch:
            return epoch, self.end
        higher = [(e, s) for e, s in self.epochs if e > epoch]
        if not higher:
            return -1, -1
        floor = [e for e, _ in self.epochs if e <= epoch]
        return (floor[-1] if floor else epoch), higher[0][1]

    def visible(self) -> Iterator[Stored]:
        """What a `read_committed` reader sees."""
        return (b for b in self.batches if b.base < self.last_stable and not self.hides(b))

    def hides(self, batch: Stored) -> bool:
        if batch.commits is not None:
            return True
        if not batch.head.is_transactional:
            return False
        pid = batch.head.producer_id
        return any(first <= batch.base < last and pid == p for first, last, p in self.aborted)

    # appending

    def check(self, head: BatchHead, size_bytes: int) -> Code | int:
        """An error, or (negative) -1 - base offset of a duplicate, or NONE."""
        if head.is_control or head.has_holes or head.magic != 2:
            return Code.INVALID_RECORD
        if head.is_log_append_time:
            return Code.INVALID_TIMESTAMP
        if size_bytes > self.max_bytes:
            return Code.MESSAGE_TOO_LARGE
        if head.producer_id < 0:
            return Code.NONE
        known = self.producers.get(head.producer_id)
        if known is None:
            return (
                Code.NONE if head.base_sequence == 0 or not self.is_v2 else Code.OUT_OF_ORDER_SEQUENCE_NUMBER
            )
        if head.producer_epoch < known.epoch:
            return Code.INVALID_PRODUCER_EPOCH
        last = head.base_sequence + head.record_count - 1
        if head.producer_epoch > known.epoch:
            return Code.NONE if head.base_sequence == 0 else Code.OUT_OF_ORDER_SEQUENCE_NUMBER
        for first, end, base in known.recent:
            if (first, end) == (head.base_sequence, last):
                return -1 - base
        expected = (known.last_sequence + 1) % _SEQUENCES
        return Code.NONE if head.base_sequence == expected else Code.OUT_OF_ORDER_SEQUENCE_NUMBER

    def append(self, data: bytes, head: BatchHead) -> int:
        base = self.end
        stored = _PLACE.pack(base) + data[8:12] + _EPOCH.pack(self.leader_epoch) + data[16:]
        head = parse_head(memoryview(stored))
        self._add(Stored(base, head.next_offset, stored, head))
        return base

    def append_marker(self, producer_id: int, epoch: int, *, commit: bool) -> int | None:
        """None: refused, its epoch is older than what the partition has seen."""
        known = self.producers.get(producer_id)
        if known is not None and epoch < known.epoch:
            return None
        data = marker(self.end, self.leader_epoch, producer_id, epoch, commit=commit)
        head = parse_head(memoryview(data))
        self._add(Stored(self.end, self.end + 1, data, head, commit))
        self.guards.pop(producer_id, None)
        return self.end - 1

    def _add(self, batch: Stored) -> None:
        self.batches.append(batch)
        self._account(batch)
        self.end = batch.next

    def _account(self, batch: Stored) -> None:
        head = batch.head
        if head.producer_id < 0:
            return
        known = self.producers.get(head.producer_id)
        if known is None:
            known = self.producers[head.producer_id] = Producer(head.producer_epoch)
        if head.producer_epoch > known.epoch:
            known.epoch, known.last_sequence = head.producer_epoch, -1
            known.recent.clear()
        if batch.commits is None:
            known.last_sequence = (head.base_sequence + head.record_count - 1) % _SEQUENCES
            known.recent.append((head.base_sequence, known.last_sequence, batch.base))
            if head.is_transactional and known.open_from is None:
                known.open_from = batch.base
        elif known.open_from is not None:
            if not batch.commits:
                self.aborted.append((known.open_from, batch.base, head.producer_id))
            self.closing.append((known.open_from, batch.base))
            known.open_from = None

    # what happens to it

    def as_it_is(self) -> PartitionLog:
        """For a leader that nobody tells any more what becomes of it."""
        copied = copy(self)
        copied.batches, copied.epochs = list(self.batches), list(self.epochs)
        copied.aborted, copied.closing = list(self.aborted), list(self.closing)
        copied.producers, copied.guards = deepcopy(self.producers), {}
        return copied

    def replicate(self, up_to: int) -> None:
        if up_to > self.high_watermark:
            self.high_watermark = up_to
            self.replicated = max(self.replicated, up_to)
            if self.closing:
                self.closing = [c for c in self.closing if c[1] >= up_to]

    def lead_anew(self, cut_at: int) -> None:
        """An election: the new leader's log ends at `cut_at` or at the batch before it."""
        while self.batches and self.batches[-1].next > cut_at and self.batches[-1].base >= self.start:
            self.batches.pop()
        end = max(self.batches[-1].next, self.start) if self.batches else self.start
        if end < self.end:
            self.end = end
            self.version += 1
            self.high_watermark = min(self.high_watermark, end)
            self.replicated = min(self.replicated, end)
            self.epochs = [(e, s) for e, s in self.epochs if s < end] or self.epochs[:1]
            self._derive()
        self.leader_epoch += 1
        self.epochs = [(e, s) for e, s in self.epochs if s < end]
        self.epochs.append((self.leader_epoch, end))
        self.guards.clear()

    def forget_how_far_replicated(self, share: float) -> None:
        """A new leader learns its high watermark late: it begins with one that is too low."""
        ends = [self.start, *(b.next for b in self.batches)]
        self.high_watermark = min(self.high_watermark, ends[int(share * len(ends))])
        self._derive()

    def _derive(self) -> None:
        self.producers, self.aborted, self.closing = {}, [], []
        for batch in self.batches:
            self._account(batch)
        self.closing = [c for c in self.closing if c[1] >= self.high_watermark]

    def retain_from(self, offset: int) -> None:
        """Retention, or DeleteRecords. The batches stay, for whoever checks; readers are refused."""
        self.start = max(self.start, offset)
        behind = [(e, s) for e, s in self.epochs if s <= self.start]
        if behind:
            self.epochs = [(behind[-1][0], self.start), *[(e, s) for e, s in self.epochs if s > self.start]]

    def forget_idle_producers(self) -> None:
        self.producers = {pid: p for pid, p in self.producers.items() if p.open_from is not None}


def marker(offset: int, leader_epoch: int, producer_id: int, epoch: int, *, commit: bool) -> bytes:
    record = bytearray(b"\0")
    write_varint(record, 0)
    write_varint(record, 0)
    write_varint(record, 4)
    record += (0).to_bytes(2, "big") + (1 if commit else 0).to_bytes(2, "big")
    write_varint(record, 6)
    record += bytes(6)
    write_varint(record, 0)
    body = bytearray()
    write_varint(body, len(record))
    body += record
    return sealed(
        offset,
        leader_epoch,
        bytes(body),
        TRANSACTIONAL_BIT | CONTROL_BIT,
        (0, 0, 0),
        (producer_id, epoch, -1),
        1,
    )


def sealed(
    offset: int,
    leader_epoch: int,
    payload: bytes,
    attributes: int,
    spans: tuple[int, int, int],
    producer: tuple[int, int, int],
    count: int,
) -> bytes:
    """A batch with exactly these fields; `spans` are last offset delta, base and greatest timestamp."""
    fields = (attributes, *spans, *producer, count)
    length = HEADER.size - 12 + len(payload)
    checked = HEADER.pack(offset, length, leader_epoch, 2, 0, *fields)[21:]
    crc = google_crc32c.value(checked + payload)
    return HEADER.pack(offset, length, leader_epoch, 2, crc, *fields) + payload
