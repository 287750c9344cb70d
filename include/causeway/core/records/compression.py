"""Compression as Kafka's brokers and clients read and write it. Pure computation on bytes.

What Kafka wants, beyond "gzip, snappy, lz4, zstd":
- snappy is written in snappy-java's ("xerial") framing and read in that or raw;
- lz4 is the frame format with independent blocks: brokers refuse linked ones;
- lz4 in magic 0 messages carries a wrong header checksum (KAFKA-3160), so there it isn't looked at.

Invariant: `decompress` never gives, nor allocates for its result, more than `limit_bytes`.
"""

from __future__ import annotations

import zlib
from enum import IntEnum
from struct import Struct
from typing import Any

import cramjam

from causeway.core.records.varint import Malformed

DEFAULT_DECOMPRESSED_LIMIT_BYTES = 128 << 20
"""More than librdkafka takes by default (100 MB), so what consumers read crosses; some three times as much
is the memory that it takes."""

_GZIP_WBITS = 31
_GZIP_LEVEL = 4
"""Not zlib's own 6, which takes half as long again for three bytes in a hundred less."""
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_SLICE_BYTES = 16 << 10
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"  # version 1, readable since 1
_XERIAL_BLOCK_BYTES = 32 << 10
_BLOCK_LENGTH = Struct(">i")
_SNAPPY_BEST_RATIO = 22  # a 3-byte copy element yields at most 64 bytes
_FIRST_GUESS_BYTES = 64 << 10


class TooLarge(Malformed):
    """The content is over the limit. Nothing is known of what lies beyond."""

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        super().__init__(f"decompressed size over {limit_bytes} bytes")


class Codec(IntEnum):
    """The low three bits of a batch's attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(codec: Codec, data: bytes, *, level: int | None = None) -> bytes:
    """`level` in the codec's own scale; None is the default, here of gzip a lower one; snappy has none."""
    match codec:
        case Codec.NONE:
            return data
        case Codec.GZIP:
            packer = zlib.compressobj(_GZIP_LEVEL if level is None else level, zlib.DEFLATED, _GZIP_WBITS)
            return packer.compress(data) + packer.flush()
        case Codec.SNAPPY:
            return _compress_xerial(data)
        case Codec.LZ4:
            frame = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
            frame.compress(data)
            return bytes(frame.finish())
        case Codec.ZSTD:
            return bytes(cramjam.zstd.compress(data, level=level))


def decompress(
    codec: Codec,
    data: bytes | memoryview,
    *,
    limit_bytes: int = DEFAULT_DECOMPRESSED_LIMIT_BYTES,
    ignores_lz4_header_checksum: bool = False,
) -> bytes:
    """:raises TooLarge: their content is over the limit.
    :raises Malformed: the bytes aren't what the codec writes.
    """
    match codec:
        case Codec.NONE:
            return bytes(data)
        case Codec.GZIP:
            return _decompress_gzip(data, limit_bytes)
        case Codec.SNAPPY:
            return _decompress_snappy(bytes(data), limit_bytes)
        case Codec.LZ4:
            frame = _with_right_header_checksum(data) if ignores_lz4_header_checksum else bytes(data)
            return _decompress_bounded(cramjam.lz4, frame, limit_bytes)
        case Codec.ZSTD:
            return _decompress_bounded(cramjam.zstd, bytes(data), limit_bytes)


def _decompress_bounded(library: Any, data: bytes, limit_bytes: int) -> bytes:
    """Into room of fixed size, eightfold more of it while it doesn't suffice, never over the limit."""
    room_bytes = min(limit_bytes, max(_FIRST_GUESS_BYTES, 4 * len(data)))
    while True:
        room = bytearray(room_bytes)
        try:
            return bytes(memoryview(room)[: library.decompress_into(data, room)])
        except cramjam.DecompressionError as fault:
            if "failed to write whole buffer" not in str(fault):
                raise Malformed(f"compressed bytes don't decompress ({fault})") from fault
        if room_bytes == limit_bytes:
            raise TooLarge(limit_bytes)
        room_bytes = min(limit_bytes, 8 * room_bytes)


def _decompress_gzip(data: bytes | memoryview, limit_bytes: int) -> bytes:
    """All members; bytes after the last one are ignored, as Java's GZIPInputStream does."""
    view, position, whole = memoryview(data), 0, bytearray()
    while True:
        position = _decompress_gzip_member(view, position, whole, limit_bytes)
        if view[position : position + len(_GZIP_MAGIC)] != _GZIP_MAGIC:
            return bytes(whole)


def _decompress_gzip_member(view: memoryview, position: int, whole: bytearray, limit_bytes: int) -> int:
    """Appends one member to `whole`; gives the position after it.

    Fed in slices: zlib copies what follows a member, which for many tiny ones would be quadratic.
    """
    member = zlib.decompressobj(_GZIP_WBITS)
    while not member.eof:
        piece = view[position : position + _GZIP_SLICE_BYTES]
        if not piece:
            raise Malformed("compressed bytes don't decompress (gzip: cut off)")
        try:
            whole += member.decompress(piece, limit_bytes - len(whole) + 1)
        except zlib.error as fault:
            raise Malformed(f"compressed bytes don't decompress (gzip: {fault})") from fault
        if len(whole) > limit_bytes:
            raise TooLarge(limit_bytes)
        position += len(piece) - len(member.unused_data)
    return position


def _compress_xerial(data: bytes) -> bytes:
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        parts += (_BLOCK_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def _decompress_snappy(data: bytes, limit_bytes: int) -> bytes:
    if not data.startswith(_XERIAL_MAGIC):
        return _decompress_snappy_block(data, 0, limit_bytes)
    # Version fields stay unread: there is one version, and some producers write it little-endian.
    whole, position = bytearray(), len(_XERIAL_HEADER)
    while position < len(data):
        if position + _BLOCK_LENGTH.size > len(data):
            raise Malformed("a snappy block's length is cut off")
        (length,) = _BLOCK_LENGTH.unpack_from(data, position)
        position += _BLOCK_LENGTH.size
        if not 0 < length <= len(data) - position:
            raise Malformed(f"a snappy block says {length} bytes, {len(data) - position} are left")
        whole += _decompress_snappy_block(data[position : position + length], len(whole), limit_bytes)
        position += length
    return bytes(whole)


def _decompress_snappy_block(block: bytes, bytes_so_far: int, limit_bytes: int) -> bytes:
    try:
        size_bytes = cramjam.snappy.decompress_raw_len(block)
        # What the block says of itself is checked before room is made for it.
        if size_bytes > _SNAPPY_BEST_RATIO * len(block):
            raise Malformed(f"a snappy block of {len(block)} bytes claims to hold {size_bytes}")
        if bytes_so_far + size_bytes > limit_bytes:
            raise TooLarge(limit_bytes)
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as fault:
        raise Malformed(f"compressed bytes don't decompress ({fault})") from fault


def _with_right_header_checksum(frame: bytes | memoryview) -> bytes:
    """Old clients summed the magic number too; nothing else of their frames is wrong."""
    fixed = bytearray(frame)
    if len(fixed) < 7:
        raise Malformed("an lz4 frame is cut off in its header")
    flags = fixed[4]
    checksum_at = 6 + (8 if flags & 0x08 else 0) + (4 if flags & 0x01 else 0)
    if checksum_at >= len(fixed):
        raise Malformed("an lz4 frame is cut off in its header")
    fixed[checksum_at] = _xxh32_of_short(bytes(fixed[4:checksum_at])) >> 8 & 0xFF
    return bytes(fixed)


def _xxh32_of_short(data: bytes) -> int:
    """xxHash32 of fewer than 16 bytes, seed 0; an lz4 frame header has at most 14."""
    prime1, prime2, prime3, prime4, prime5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
    mask, words_end = 0xFFFFFFFF, len(data) & ~3
    state = (prime5 + len(data)) & mask
    for start in range(0, words_end, 4):
        state = state + int.from_bytes(data[start : start + 4], "little") * prime3 & mask
        state = (state << 17 | state >> 15) * prime4 & mask
    for byte in data[words_end:]:
        state = state + byte * prime5 & mask
        state = (state << 11 | state >> 21) * prime1 & mask
    state = (state ^ state >> 15) * prime2 & mask
    state = (state ^ state >> 13) * prime3 & mask
    return state ^ state >> 16
