"""Messages of magic 0 and 1, which segments written before Kafka 0.11 still hold.

    offset int64 | size int32 | crc int32 | magic int8 | attributes int8 | [timestamp int64] | key | value

Compressed messages are wrapped: one outer message whose value is a compressed run of inner ones.
- Inner offsets are absolute in magic 0. In magic 1 they are relative, and the wrapper's own offset is
  that of its last inner message.
- Magic 0 has no timestamp. A magic 1 wrapper with LogAppendTime lends its timestamp to all inside.
"""

from __future__ import annotations

import zlib
from struct import Struct
from typing import NamedTuple

from causeway.core.records.batches import (
    CODEC_MASK,
    NO_TIMESTAMP,
    PREFIX_BYTES,
    BatchHead,
    unreadable,
)
from causeway.core.records.compression import Codec, decompress
from causeway.core.records.varint import Malformed

_PREFIX = Struct(">qi")
_START = Struct(">IbB")
_TIMESTAMP = Struct(">q")
_SIZE = Struct(">i")
_CRC_FROM = 16


class Message(NamedTuple):
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


def read_messages(batch: memoryview, head: BatchHead, *, limit_bytes: int) -> list[Message]:
    """The records of one outer message, with absolute offsets and the timestamps that a consumer sees.

    :raises CorruptBatch: lengths, checksums or offsets inside contradict each other.
    :raises OversizedBatch: what it wraps is over `limit_bytes` decompressed.
    """
    try:
        return _read_outer(batch, head, limit_bytes)
    except Malformed as fault:
        raise unreadable(head, fault) from fault


def _read_outer(batch: memoryview, head: BatchHead, limit_bytes: int) -> list[Message]:
    outer = _read_message(batch, magic=head.magic)
    if head.codec is Codec.NONE:
        return [outer]
    if outer.value is None:
        raise Malformed("a compressed message has no value")
    payload = decompress(
        head.codec, outer.value, limit_bytes=limit_bytes, ignores_lz4_header_checksum=head.magic == 0
    )
    return _with_offsets(_read_inner(memoryview(payload), magic=head.magic), head)


def _with_offsets(inner: list[Message], wrapper: BatchHead) -> list[Message]:
    if not inner:
        raise Malformed("a compressed message has nothing inside")
    shift = wrapper.base_offset - inner[-1].offset if wrapper.magic == 1 else 0
    placed = [
        Message(
            message.offset + shift,
            wrapper.max_timestamp if wrapper.is_log_append_time else message.timestamp_ms,
            message.key,
            message.value,
        )
        for message in inner
    ]
    offsets = [message.offset for message in placed]
    if offsets[0] < 0 or sorted(set(offsets)) != offsets:
        raise Malformed("offsets inside a compressed message don't rise")
    if offsets[-1] > wrapper.base_offset:
        raise Malformed(f"offset {offsets[-1]} is inside a message that ends at {wrapper.base_offset}")
    return placed


def _read_inner(payload: memoryview, *, magic: int) -> list[Message]:
    messages: list[Message] = []
    position = 0
    while position < len(payload):
        if position + PREFIX_BYTES > len(payload):
            raise Malformed("a message inside is cut off")
        _, size_bytes = _PREFIX.unpack_from(payload, position)
        end = position + PREFIX_BYTES + size_bytes
        if not position + PREFIX_BYTES < end <= len(payload):
            raise Malformed(f"a message of {size_bytes} bytes doesn't fit in")
        message = payload[position:end]
        _check_inner(message, magic)
        messages.append(_read_message(message, magic=magic))
        position = end
    return messages


def _check_inner(message: memoryview, magic: int) -> None:
    """The outer checksum covers compressed bytes only; and wrappers don't nest."""
    if len(message) < PREFIX_BYTES + _START.size:
        raise Malformed("a message inside is cut off")
    crc, inner_magic, attributes = _START.unpack_from(message, PREFIX_BYTES)
    if inner_magic != magic:
        raise Malformed(f"a message inside has magic {inner_magic}, its wrapper {magic}")
    if attributes & CODEC_MASK:
        raise Malformed("a compressed message is inside another")
    if zlib.crc32(message[_CRC_FROM:]) != crc:
        raise Malformed("a message inside has a wrong checksum")


def _read_message(message: memoryview, *, magic: int) -> Message:
    (offset, _), position = _PREFIX.unpack_from(message), PREFIX_BYTES + _START.size
    timestamp_ms = NO_TIMESTAMP
    if magic == 1:
        if position + _TIMESTAMP.size > len(message):
            raise Malformed("a message is cut off")
        (timestamp_ms,) = _TIMESTAMP.unpack_from(message, position)
        position += _TIMESTAMP.size
    key, position = _read_nullable(message, position)
    value, position = _read_nullable(message, position)
    if position != len(message):
        raise Malformed(f"{len(message) - position} bytes are left after a message's value")
    return Message(offset, timestamp_ms, key, value)


def _read_nullable(message: memoryview, position: int) -> tuple[bytes | None, int]:
    if position + _SIZE.size > len(message):
        raise Malformed("a message is cut off")
    (size_bytes,) = _SIZE.unpack_from(message, position)
    position += _SIZE.size
    if size_bytes == -1:
        return None, position
    if not 0 <= size_bytes <= len(message) - position:
        raise Malformed(f"a field of {size_bytes} bytes doesn't fit into its message")
    return bytes(message[position : position + size_bytes]), position + size_bytes
