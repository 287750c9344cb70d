"""Kafka's variable-length integers: what records and newer requests are framed with.

Zigzag, seven bits a byte, low bits first; an int32 takes at most 5 bytes, an int64 at most 10.
Reading past the end raises IndexError by nature; whoever decodes a batch turns that and `Malformed`
into `CorruptBatch`, because only there the offset is known.
"""

from __future__ import annotations

from functools import lru_cache

_INT32_BITS, _INT32_MAX_BYTES = 32, 5
_INT64_BITS, _INT64_MAX_BYTES = 64, 10
_INT64_MASK = (1 << 64) - 1


class Malformed(ValueError):
    """Bytes that break the format; the message is the reason, without the place."""


def read_varint(buffer: bytes | memoryview, position: int) -> tuple[int, int]:
    """An int32 and the position after it."""
    first = buffer[position]
    if first < 0x80:  # nearly every length and delta has one byte or two: worth the shortcuts
        return (first >> 1) ^ -(first & 1), position + 1
    second = buffer[position + 1]
    if second < 0x80:
        raw = first & 0x7F | second << 7
        return (raw >> 1) ^ -(raw & 1), position + 2
    return _read_long_form(buffer, position, _INT32_MAX_BYTES, _INT32_BITS)


def read_varlong(buffer: bytes | memoryview, position: int) -> tuple[int, int]:
    """An int64 and the position after it."""
    first = buffer[position]
    if first < 0x80:
        return (first >> 1) ^ -(first & 1), position + 1
    second = buffer[position + 1]
    if second < 0x80:
        raw = first & 0x7F | second << 7
        return (raw >> 1) ^ -(raw & 1), position + 2
    return _read_long_form(buffer, position, _INT64_MAX_BYTES, _INT64_BITS)


def _read_long_form(buffer: bytes | memoryview, position: int, max_bytes: int, bits: int) -> tuple[int, int]:
    raw, position = _read_raw(buffer, position, max_bytes, bits)
    return (raw >> 1) ^ -(raw & 1), position


def _read_raw(buffer: bytes | memoryview, position: int, max_bytes: int, bits: int) -> tuple[int, int]:
    raw = 0
    for index in range(max_bytes):
        byte = buffer[position + index]
        raw |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            if raw >> bits:
                raise Malformed(f"a varint holds more than {bits} bits")
            return raw, position + index + 1
    raise Malformed(f"a varint is longer than {max_bytes} bytes")


def write_varint(out: bytearray, value: int) -> None:
    """Appends an int32 or an int64: one encoding serves both."""
    raw = (value << 1) ^ (value >> 63)
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)


@lru_cache(maxsize=1 << 14)
def varint(value: int) -> bytes:
    """The same as bytes: lengths and deltas are mostly those that were written just now."""
    out = bytearray()
    write_varint(out, value)
    return bytes(out)


def read_unsigned(buffer: bytes | memoryview, position: int) -> tuple[int, int]:
    """An unsigned int32, not zigzag, as lengths in requests are, and the position after it."""
    first = buffer[position]
    if first < 0x80:
        return first, position + 1
    return _read_raw(buffer, position, _INT32_MAX_BYTES, _INT32_BITS)


def skip_tags(buffer: bytes | memoryview, position: int) -> int:
    """The position after the tagged fields that newer requests and answers end each part with."""
    tags, position = read_unsigned(buffer, position)
    for _ in range(tags):
        _, position = read_unsigned(buffer, position)
        size_bytes, position = read_unsigned(buffer, position)
        position += size_bytes
    return position


def unsigned(value: int) -> bytes:
    """An unsigned int32 as `read_unsigned` reads it."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def wrap_int64(value: int) -> int:
    """Two's complement, as the brokers' own arithmetic: timestamps far apart have deltas that wrap."""
    value &= _INT64_MASK
    return value - (1 << 64) if value >> 63 else value
