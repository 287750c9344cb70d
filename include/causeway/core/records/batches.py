"""Record batches as bytes: cut a fetch buffer into them, check them, re-address them for appending.

    offset 0        8       12           16     17    21          23               27
           baseOff  length  leaderEpoch  magic  crc   attributes  lastOffsetDelta  baseTimestamp
    offset 35            43          51             53            57     61
           maxTimestamp  producerId  producerEpoch  baseSequence  count  records

The CRC-32C covers everything from `attributes` on. Magic 0 and 1, which old segments still hold, are
single messages, each with a CRC-32 from its magic byte on.

Invariants: a `BatchHead` exists only for lengths and counts that can be; a payload is never looked into
here, but for the type of a control batch; anything that can't be is a `CorruptBatch` with its offset.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from struct import Struct
from typing import Literal, NamedTuple

import google_crc32c

from causeway.core.kernel.errors import ProtocolFault
from causeway.core.records.compression import Codec, TooLarge
from causeway.core.records.varint import Malformed, read_varint, read_varlong

HEADER_BYTES = 61
PREFIX_BYTES = 12  # base offset and length come before what the length counts
MAX_BATCH_BYTES = 1 << 30
NO_PRODUCER_ID = -1
NO_TIMESTAMP = -1

CODEC_MASK = 0x07
LOG_APPEND_TIME_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

HEADER = Struct(">qiibIhiqqqhii")
_PREFIX = Struct(">qi")
_V1_HEADER = Struct(">qiIbbq")
_PLACE = Struct(">qii")
_ATTRIBUTES = Struct(">h")
_PRODUCER = Struct(">qhi")
_CRC = Struct(">I")
_CONTROL_KEY = Struct(">hh")

_MAGIC_AT = 16
_CRC_AT, _CRC_FROM, _PRODUCER_AT = 17, 21, 43
_OLD_CRC_AT, _OLD_CRC_FROM, _OLD_ATTRIBUTES_AT = 12, 16, 17
_LEAST_SIZE_BYTES = {0: 26, 1: 34, 2: HEADER_BYTES}
_INT64_MAX = (1 << 63) - 1
_CODECS = tuple(Codec)


class CorruptBatch(ProtocolFault):
    """Bytes in a partition that can't be a record batch, or not the one that was written."""

    def __init__(self, base_offset: int, reason: str) -> None:
        self.base_offset, self.reason = base_offset, reason
        super().__init__(
            "record batch at offset",
            value=base_offset,
            rule=reason,
            remedy="look at that partition with kafka-dump-log.sh; nothing was guessed",
        )

    def __reduce__(self) -> tuple[type[CorruptBatch], tuple[int, str]]:
        return type(self), (self.base_offset, self.reason)  # errors travel from Spark's workers


class OversizedBatch(ProtocolFault):
    """A batch that holds more than is decompressed here. Nothing says that it is corrupt."""

    def __init__(self, base_offset: int, size_bytes: int, limit_bytes: int) -> None:
        self.base_offset, self.size_bytes, self.limit_bytes = base_offset, size_bytes, limit_bytes
        super().__init__(
            "record batch at offset",
            value=base_offset,
            rule=f"its {size_bytes:,} bytes are more than {limit_bytes:,} bytes decompressed, and no more "
            "than those are taken apart",
            remedy="it can only be carried as it is",
        )

    def __reduce__(self) -> tuple[type[OversizedBatch], tuple[int, int, int]]:
        return type(self), (self.base_offset, self.size_bytes, self.limit_bytes)


class BatchHead(NamedTuple):
    """What a batch says of itself. Of magic 0 and 1: one outer message, whatever it wraps.

    A compressed old message has the offset of its *last* record, and says nothing of the others: there
    `base_offset` is that offset and `record_count` is 1. `next_offset` is right for every magic. A tuple,
    because one is made for every batch that crosses, with the fields in the header's own order.
    """

    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        return self.length + PREFIX_BYTES

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> Codec:
        return _CODECS[self.attributes & CODEC_MASK]

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & LOG_APPEND_TIME_BIT)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_BIT)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_BIT)

    @property
    def begins_with_its_time(self) -> bool:
        """Whether `base_timestamp` is the first record's. A cleaner puts there when it will take tombstones
        away; a mirror of such a batch has lost the flag and kept that moment, later than all its records."""
        return not self.attributes & DELETE_HORIZON_BIT and self.base_timestamp <= self.max_timestamp

    @property
    def has_holes(self) -> bool:
        """Compaction took records out; a broker refuses such a batch."""
        return self.last_offset_delta + 1 != self.record_count


def split_batches(buffer: memoryview | bytes) -> Iterator[tuple[BatchHead, memoryview]]:
    """The whole batches of a fetch answer, in order; what is cut off at its end is left out.

    Nothing from a buffer that isn't empty means that even the first batch is cut: ask for more bytes.

    :raises CorruptBatch: after the good batches before the bad one have been given out.
    """
    view = memoryview(buffer)
    size, position = len(view), 0
    while size - position > _MAGIC_AT:
        base_offset, length = _PREFIX.unpack_from(view, position)
        magic, size_bytes = view[position + _MAGIC_AT], length + PREFIX_BYTES
        if magic not in _LEAST_SIZE_BYTES:
            raise CorruptBatch(base_offset, f"magic {magic} is none that Kafka has")
        if not _LEAST_SIZE_BYTES[magic] <= size_bytes <= MAX_BATCH_BYTES:
            raise CorruptBatch(base_offset, f"a size of {size_bytes} bytes can't be")
        if size_bytes > size - position:
            return
        batch = view[position : position + size_bytes]
        yield parse_head(batch), batch
        position += size_bytes


def parse_head(batch: memoryview) -> BatchHead:
    """The head of exactly one batch, as `split_batches` cuts them.

    :raises CorruptBatch: a field holds what it can't.
    """
    head = _parse_v2_head(batch) if batch[_MAGIC_AT] == 2 else _parse_old_head(batch)
    if not 0 <= head.base_offset <= _INT64_MAX - head.last_offset_delta - 1:
        raise CorruptBatch(head.base_offset, "an offset is out of range")
    if head.attributes & CODEC_MASK > (Codec.ZSTD if head.magic == 2 else Codec.LZ4):
        raise CorruptBatch(
            head.base_offset, f"magic {head.magic} has no codec number {head.attributes & CODEC_MASK}"
        )
    return head


def _parse_v2_head(batch: memoryview) -> BatchHead:
    head = BatchHead._make(HEADER.unpack_from(batch))
    if head.last_offset_delta < 0 or not 0 <= head.record_count <= head.last_offset_delta + 1:
        raise CorruptBatch(
            head.base_offset, f"{head.record_count} records can't be in {head.last_offset_delta + 1} offsets"
        )
    return head


def _parse_old_head(batch: memoryview) -> BatchHead:
    magic = batch[_MAGIC_AT]
    base_offset, length = _PREFIX.unpack_from(batch)
    (crc,) = _CRC.unpack_from(batch, _OLD_CRC_AT)
    # Magic 0 has no timestamp type; the other bits mean nothing before magic 2.
    attributes = batch[_OLD_ATTRIBUTES_AT] & (CODEC_MASK | LOG_APPEND_TIME_BIT if magic else CODEC_MASK)
    timestamp = _V1_HEADER.unpack_from(batch)[-1] if magic else NO_TIMESTAMP
    return BatchHead(
        base_offset=base_offset,
        length=length,
        leader_epoch=-1,
        magic=magic,
        crc=crc,
        attributes=attributes,
        last_offset_delta=0,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=-1,
        base_sequence=-1,
        record_count=1,
    )


def unreadable(head: BatchHead, fault: Malformed) -> CorruptBatch | OversizedBatch:
    """What a fault in the payload says of its batch."""
    if isinstance(fault, TooLarge):
        return OversizedBatch(head.base_offset, head.size_bytes, fault.limit_bytes)
    return CorruptBatch(head.base_offset, str(fault))


def check_crc(batch: memoryview, head: BatchHead) -> None:
    """:raises CorruptBatch: the bytes aren't those that were written."""
    if head.magic == 2:
        found = google_crc32c.value(bytes(batch[_CRC_FROM:]))
    else:
        found = zlib.crc32(batch[_OLD_CRC_FROM:])
    if found != head.crc:
        raise CorruptBatch(head.base_offset, f"its checksum is {found:#010x}, written was {head.crc:#010x}")


def rebase(batch: memoryview, *, producer_id: int, producer_epoch: int, base_sequence: int) -> bytearray:
    """The batch, payload untouched, as our producer's transactional one at offset 0, with a new checksum.

    Of the attributes only the codec stays. The delete horizon goes too: that flag would make the target
    drop tombstones by the source's clock; base timestamp plus delta is the timestamp with and without it.

    :raises ProtocolFault: a control batch, which without its bit would become a record of data.
    """
    out = bytearray(batch)
    if out[_CRC_FROM + 1] & CONTROL_BIT:
        raise ProtocolFault(
            "control batch", value=_PLACE.unpack_from(out)[0], rule="markers of the source are never appended"
        )
    _PLACE.pack_into(out, 0, 0, len(out) - PREFIX_BYTES, -1)
    _ATTRIBUTES.pack_into(out, _CRC_FROM, out[_CRC_FROM + 1] & CODEC_MASK | TRANSACTIONAL_BIT)
    _PRODUCER.pack_into(out, _PRODUCER_AT, producer_id, producer_epoch, base_sequence)
    # The C function takes nothing but bytes: this copy costs less than any other way to a checksum.
    _CRC.pack_into(out, _CRC_AT, google_crc32c.value(bytes(memoryview(out)[_CRC_FROM:])))
    return out


def is_control_marker(batch: memoryview) -> Literal["commit", "abort"]:
    """How the transaction ended that this control batch closes.

    :raises CorruptBatch: it is no control batch of a transaction.
    """
    head = parse_head(batch)
    try:
        kind = _control_kind(batch) if head.is_control else None
    except (Malformed, IndexError, ValueError) as fault:
        raise CorruptBatch(head.base_offset, f"a control record that can't be read ({fault})") from fault
    match kind:
        case 0:
            return "abort"
        case 1:
            return "commit"
        case _:
            raise CorruptBatch(head.base_offset, f"control type {kind} ends no transaction")


def _control_kind(batch: memoryview) -> int:
    """Control batches hold one record and are never compressed; its key is a version and the type."""
    _, position = read_varint(batch, HEADER_BYTES)
    _, position = read_varlong(batch, position + 1)
    _, position = read_varint(batch, position)
    key_bytes, position = read_varint(batch, position)
    key = batch[position : position + key_bytes]
    if len(key) < _CONTROL_KEY.size or key_bytes < 0:
        raise Malformed(f"a key of {key_bytes} bytes")
    kind: int = _CONTROL_KEY.unpack_from(key)[1]
    return kind
