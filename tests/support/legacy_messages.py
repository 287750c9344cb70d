"""Messages of the formats before batches, written by hand: plain ones, and wrapped in a compressed one."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

from causeway.core.records.compression import Codec, compress

Pack = Callable[[Codec, bytes], bytes]


def field(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def message(
    offset: int,
    key: bytes | None,
    value: bytes | None,
    *,
    magic: int = 1,
    attributes: int = 0,
    timestamp: int = 1_000,
) -> bytes:
    checked = struct.pack(">bb", magic, attributes) + (struct.pack(">q", timestamp) if magic else b"")
    checked += field(key) + field(value)
    return struct.pack(">qiI", offset, len(checked) + 4, zlib.crc32(checked)) + checked


def wrapped(
    offset: int,
    inner: list[bytes],
    codec: Codec,
    *,
    magic: int = 1,
    attributes: int = 0,
    timestamp: int = 1_000,
    pack: Pack = compress,
) -> bytes:
    return message(
        offset,
        None,
        pack(codec, b"".join(inner)),
        magic=magic,
        attributes=attributes | codec,
        timestamp=timestamp,
    )
