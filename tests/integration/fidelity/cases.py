"""The corpus: whatever a partition can hold, as bytes for the wire, and what a reader must see of it.

What is expected follows from the records that went in, never by the decoder under test.
"""

from __future__ import annotations

import random
import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypedDict

import google_crc32c

from causeway.core.records.compression import Codec, compress
from causeway.core.records.records import Headers, Record, encode_batch, write_body
from causeway.core.records.varint import write_varint

BASE_MS = 1_700_000_000_000


class Nobody(TypedDict):
    producer_id: int
    producer_epoch: int
    base_sequence: int
    transactional: bool


NOBODY = Nobody(producer_id=-1, producer_epoch=-1, base_sequence=-1, transactional=False)
OLD_CODECS = (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4)
_LOG_APPEND_TIME = 0x08
_DELETE_HORIZON = 0x40
_random = random.Random(5)

Seen = tuple[int, bytes | None, bytes | None, Headers]
"""Timestamp, key, value, headers: what has to be equal."""


@dataclass(frozen=True, slots=True)
class Case:
    """Some bytes at the end of a partition, and the records that a reader finds in them."""

    name: str
    data: bytes
    seen: tuple[Seen, ...]
    offsets: int
    """How many offsets it takes, holes included."""


def noise(size: int) -> bytes:
    return _random.randbytes(size)


def _plain(count: int, size: int = 20) -> list[Seen]:
    return [(BASE_MS + n, b"k%d" % (n % 7), b"%d " % n + noise(size), ()) for n in range(count)]


def _with_headers(*headers: tuple[bytes, bytes | None]) -> list[Seen]:
    return [(BASE_MS, b"k", b"v", headers), (BASE_MS, b"k", b"w", headers)]


SHAPES: dict[str, list[Seen]] = {
    "one": _plain(1),
    "few": _plain(3),
    "as many as join": _plain(8),
    "one more than joins": _plain(9),
    "a thousand": _plain(1_000),
    "null key": [(BASE_MS, None, b"v", ())],
    "null value": [(BASE_MS, b"k", None, ())],
    "null both": [(BASE_MS, None, None, ()), (BASE_MS, None, None, ())],
    "empty key": [(BASE_MS, b"", b"v", ())],
    "empty value": [(BASE_MS, b"k", b"", ())],
    "empty both": [(BASE_MS, b"", b"", ()), (BASE_MS, None, b"", ())],
    "binary": [(BASE_MS, bytes(range(256)), bytes(range(255, -1, -1)), ())],
    "a header": _with_headers((b"h", b"1")),
    "header of null": _with_headers((b"h", None), (b"i", b"")),
    "header without a name": _with_headers((b"", b"x"), (b"", None)),
    "headers of one name, in order": _with_headers((b"h", b"2"), (b"h", b"1"), (b"a", b"0"), (b"h", b"2")),
    "header that isn't UTF-8": _with_headers((b"\xff\xfe", b"x")),
    "300 headers": _with_headers(*((b"h%d" % n, noise(n % 9)) for n in range(300))),
    "a header of 100 kB": _with_headers((b"h", noise(100_000))),
    "no time": [(-1, b"k", b"v", ())],
    "time zero": [(0, b"k", b"v", ()), (1, b"k", b"v", ())],
    "before 1970": [(-86_400_000, b"k", b"v", ())],
    "times that fall": [(BASE_MS - n * 60_000, b"k", b"v", ()) for n in range(12)],
    "times far apart": [(0, b"k", b"v", ()), (BASE_MS * 2, b"k", b"v", ()), (5, b"k", b"v", ())],
    "the last time there is": [(2**63 - 1, b"k", b"v", ())],
    "64 kB": _plain(1, 64 << 10),
    "900 kB": _plain(1, 900_000),
    "900 kB in 90": _plain(90, 10_000),
    "what compresses to nothing": [(BASE_MS, b"k" * 5_000, b"v" * 500_000, ())],
}


def records_of(seen: Iterable[Seen]) -> list[Record]:
    return [Record(n, *each) for n, each in enumerate(seen)]


def of_today() -> Iterator[tuple[Codec, Case]]:
    """Whole v2 batches, to be produced."""
    for name, seen in SHAPES.items():
        for codec in Codec:
            data = encode_batch(records_of(seen), codec=codec, **NOBODY)
            yield codec, Case(f"{name}, {codec.name}", data, tuple(seen), len(seen))


# what a cleaner leaves: batches that can't be produced, only lie there

_HOLES: dict[str, tuple[list[int], int]] = {
    "first gone": ([1, 2, 3], 3),
    "last gone": ([0, 1], 4),
    "middle gone": ([0, 1, 5, 6], 6),
    "one left": ([7], 30),
    "every second": (list(range(0, 40, 2)), 39),
    "nothing left": ([], 5),
}


def with_holes(codec: Codec) -> Iterator[Case]:
    """In a row, as they lie in one segment."""
    base = 0
    for shape in ("a thousand", "300 headers", "times that fall", "null both", "empty both", "64 kB"):
        for name, (deltas, last) in _HOLES.items():
            seen = [SHAPES[shape][delta % len(SHAPES[shape])] for delta in deltas]
            data = thinned_batch(base, deltas, last, seen, codec)
            yield Case(f"{shape}, {name}, {codec.name}", data, tuple(seen), last + 1)
            base += last + 1


def thinned_batch(
    base: int,
    deltas: list[int],
    last: int,
    seen: list[Seen],
    codec: Codec,
    *,
    horizon_ms: int | None = None,
) -> bytes:
    """`horizon_ms`: when the cleaner will take its tombstones away, in the base timestamp's place."""
    first_ms = horizon_ms if horizon_ms is not None else seen[0][0] if seen else BASE_MS
    codec = codec if seen else Codec.NONE  # as a cleaner leaves the batch that it has emptied
    payload = bytearray()
    for delta, (timestamp, key, value, headers) in zip(deltas, seen, strict=True):
        start = bytearray(1)
        write_varint(start, timestamp - first_ms)
        write_varint(start, delta)
        body = write_body(key, value, headers)
        write_varint(payload, len(start) + len(body))
        payload += start + body
    latest = max((each[0] for each in seen), default=first_ms)
    attributes = codec | (_DELETE_HORIZON if horizon_ms is not None else 0)
    checked = struct.pack(">hiqqqhii", attributes, last, first_ms, latest, -1, -1, -1, len(seen))
    checked += compress(codec, bytes(payload)) if seen else b""
    head = struct.pack(">qiibI", base, len(checked) + 9, 0, 2, google_crc32c.value(checked))
    return head + checked


# v0 and v1, which segments written before 0.11 still hold

_OLD_SHAPES: dict[str, list[Seen]] = {
    name: [(t, k, v, ()) for t, k, v, _ in seen[:200]]
    for name, seen in SHAPES.items()
    if "header" not in name and "1970" not in name and "last time" not in name and "900" not in name
}


def of_old(magic: int, codec: Codec) -> Iterator[Case]:
    """In a row; compressed ones are wrapped, every other one of those with a hole in it."""
    base = 0
    for number, (name, seen) in enumerate(_OLD_SHAPES.items()):
        hole = 3 if codec is not Codec.NONE and number % 2 else 0
        appended_at = 1_600_000_000_000 + number if magic and number % 3 == 2 and codec else None
        data = _old_messages(base, seen, magic, codec, hole, appended_at)
        visible = [
            (-1 if not magic else t if appended_at is None else appended_at, k, v, h) for t, k, v, h in seen
        ]
        yield Case(f"{name}, v{magic}, {codec.name}", data, tuple(visible), len(seen) + hole)
        base += len(seen) + hole


def _old_messages(
    base: int, seen: list[Seen], magic: int, codec: Codec, hole: int, appended_at: int | None
) -> bytes:
    """`hole`: so many offsets are missing before the last record."""
    places = [*range(len(seen) - 1), len(seen) - 1 + hole]
    if codec is Codec.NONE:
        return b"".join(
            _message(base + n, magic, 0, t, k, v) for n, (t, k, v, _) in zip(places, seen, strict=True)
        )
    first = 0 if magic else base
    inner = b"".join(
        _message(first + n, magic, 0, t, k, v) for n, (t, k, v, _) in zip(places, seen, strict=True)
    )
    attributes = codec | (_LOG_APPEND_TIME if appended_at is not None else 0)
    stamp = max(t for t, *_ in seen) if appended_at is None else appended_at
    return _message(base + places[-1], magic, attributes, stamp, None, compress(codec, inner))


def _message(
    offset: int, magic: int, attributes: int, timestamp: int, key: bytes | None, value: bytes | None
) -> bytes:
    checked = struct.pack(">bb", magic, attributes) + (struct.pack(">q", timestamp) if magic else b"")
    for field in (key, value):
        checked += struct.pack(">i", -1) if field is None else struct.pack(">i", len(field)) + field
    return struct.pack(">qiI", offset, len(checked) + 4, zlib.crc32(checked)) + checked
