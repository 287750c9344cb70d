"""Records as values: decoded from batches of every magic, encoded into batches of magic 2.

Keys, values and headers are bytes, header keys included: Kafka calls those strings, and clients write
what they like. None and empty are different things everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from causeway.core.records.batches import BatchHead, CorruptBatch
from causeway.core.records.compression import DEFAULT_DECOMPRESSED_LIMIT_BYTES, Codec
from causeway.core.records.legacy_records import read_messages
from causeway.core.records.record_frames import Frame, read_frames, write_batch
from causeway.core.records.varint import Malformed, read_varint, write_varint

Headers = tuple[tuple[bytes, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Record:
    """A record as a consumer sees it; a timestamp of -1 says that it has none."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


def decode_records(
    batch: memoryview, head: BatchHead, *, limit_bytes: int = DEFAULT_DECOMPRESSED_LIMIT_BYTES
) -> list[Record]:
    """The records of one batch of any magic. `check_crc` comes first: it alone sees a changed byte.

    :raises CorruptBatch: the payload isn't what the head says.
    :raises OversizedBatch: it is over `limit_bytes` decompressed.
    """
    if head.magic < 2:
        return [Record(*message) for message in read_messages(batch, head, limit_bytes=limit_bytes)]
    return [
        Record(frame.offset, frame.timestamp_ms, *_parse_body_at(frame.offset, frame.body))
        for frame in read_frames(batch, head, limit_bytes=limit_bytes)
    ]


def frames_of(
    batch: memoryview, head: BatchHead, *, limit_bytes: int = DEFAULT_DECOMPRESSED_LIMIT_BYTES
) -> list[Frame]:
    """Frames of a batch of any magic; those of magic 2 with their bodies unread."""
    if head.magic == 2:
        return read_frames(batch, head, limit_bytes=limit_bytes)
    return [
        Frame(message.offset, message.timestamp_ms, write_body(message.key, message.value))
        for message in read_messages(batch, head, limit_bytes=limit_bytes)
    ]


def first_timestamp_of(batch: memoryview, head: BatchHead) -> int:
    """Of its first record. The batch is read only if its head doesn't say it.

    :raises CorruptBatch: it can't be read.
    """
    return head.base_timestamp if head.begins_with_its_time else frames_of(batch, head)[0].timestamp_ms


def encode_batch(
    records: Iterable[Record],
    *,
    codec: Codec,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    transactional: bool = True,
) -> bytes:
    """One magic 2 batch, ready to append: base offset 0, CreateTime, offsets renumbered without holes."""
    return write_batch(
        [Frame(r.offset, r.timestamp_ms, write_body(r.key, r.value, r.headers)) for r in records],
        codec=codec,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        transactional=transactional,
    )


def in_batches(
    records: Iterable[tuple[bytes, bytes | None]], most_bytes: int
) -> Iterator[list[tuple[bytes, bytes | None]]]:
    """Never an empty one; one that is too large by itself goes alone."""
    batch: list[tuple[bytes, bytes | None]] = []
    size_bytes = 0
    for key, value in records:
        record_bytes = len(key) + len(value or b"")
        if batch and size_bytes + record_bytes > most_bytes:
            yield batch
            batch, size_bytes = [], 0
        batch.append((key, value))
        size_bytes += record_bytes
    if batch:
        yield batch


def write_body(key: bytes | None, value: bytes | None, headers: Headers = ()) -> bytes:
    """The part of a record after its offset delta."""
    out = bytearray()
    _write_nullable(out, key)
    _write_nullable(out, value)
    write_varint(out, len(headers))
    for header_key, header_value in headers:
        _write_nullable(out, header_key)
        _write_nullable(out, header_value)
    return bytes(out)


def _write_nullable(out: bytearray, data: bytes | None) -> None:
    if data is None:
        write_varint(out, -1)
    else:
        write_varint(out, len(data))
        out += data


def _parse_body_at(offset: int, body: bytes) -> tuple[bytes | None, bytes | None, Headers]:
    try:
        return parse_body(body)
    except Malformed as fault:
        raise CorruptBatch(offset, str(fault)) from fault
    except IndexError as fault:
        raise CorruptBatch(offset, "the record is cut off") from fault


def parse_body(body: bytes) -> tuple[bytes | None, bytes | None, Headers]:
    """Key, value and headers; raises `Malformed` or IndexError."""
    key, position = _read_nullable(body, 0)
    value, position = _read_nullable(body, position)
    header_count, position = read_varint(body, position)
    if header_count < 0:
        raise Malformed(f"a record says it has {header_count} headers")
    headers: list[tuple[bytes, bytes | None]] = []
    for _ in range(header_count):
        header_key, position = _read_nullable(body, position)
        header_value, position = _read_nullable(body, position)
        if header_key is None:
            raise Malformed("a header has no key")
        headers.append((header_key, header_value))
    if position != len(body):
        raise Malformed(f"{len(body) - position} bytes are left after a record's headers")
    return key, value, tuple(headers)


def _read_nullable(body: bytes, position: int) -> tuple[bytes | None, int]:
    size_bytes, position = read_varint(body, position)
    if size_bytes == -1:
        return None, position
    end = position + size_bytes
    if not position <= end <= len(body):
        raise Malformed(f"a field of {size_bytes} bytes doesn't fit into its record")
    return body[position:end], end
