"""Any records survive; any damage is CorruptBatch or nothing: no other error, no endless loop."""

import contextlib
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causeway.core.copy.repack import Repacked, choose_way, repack
from causeway.core.records.batches import CorruptBatch, check_crc, is_control_marker, rebase, split_batches
from causeway.core.records.compression import Codec, compress, decompress
from causeway.core.records.record_frames import read_frames, write_batch
from causeway.core.records.records import Record, decode_records
from causeway.core.records.varint import Malformed
from tests.unit.property.record_strategies import (
    OLD_CODECS,
    codecs,
    encoded,
    maybe_bytes,
    record_lists,
    timestamps,
)

OURS: dict[str, Any] = {"producer_id": 2**40, "producer_epoch": 3, "base_sequence": 17}
LIMIT_BYTES = 1 << 20
Places = Sequence[tuple[int, int]]
"""Where a byte is damaged, and by which mask."""
OldRow = tuple[int, int, bytes | None, bytes | None]


def read(buffer: bytes, *, checked: bool = True) -> list[Record]:
    records: list[Record] = []
    for head, batch in split_batches(buffer):
        if checked:
            check_crc(batch, head)
        records += decode_records(batch, head, limit_bytes=LIMIT_BYTES)
    return records


@given(record_lists(), codecs)
def test_records_survive_a_round_trip(records: list[Record], codec: Codec) -> None:
    data = encoded(records, codec)
    assert read(data) == records
    ((head, _),) = split_batches(data)
    assert head.base_timestamp == records[0].timestamp_ms
    assert head.max_timestamp == max(r.timestamp_ms for r in records)
    assert head.record_count == len(records)


@given(record_lists(), codecs)
def test_rebasing_keeps_the_records(records: list[Record], codec: Codec) -> None:
    ((_, batch),) = split_batches(encoded(records, codec))
    assert read(bytes(rebase(batch, **OURS))) == records


@given(st.lists(st.tuples(record_lists(), codecs), max_size=4), st.data())
def test_a_buffer_cut_anywhere_gives_its_whole_batches(
    batches: list[tuple[list[Record], Codec]], data: st.DataObject
) -> None:
    pieces = [encoded(records, codec) for records, codec in batches]
    cut = data.draw(st.integers(0, sum(map(len, pieces))))
    given_out = [bytes(batch) for _, batch in split_batches(b"".join(pieces)[:cut])]
    whole: list[bytes] = []
    size = 0
    for piece in pieces:
        size += len(piece)
        whole += [piece] if size <= cut else []
    assert given_out == whole


def thinned(records: Sequence[Record], codec: Codec, base: int) -> bytes:
    """A batch at `base` of a source's log whose holes are the gaps between the records' offsets."""
    dense = encoded(records, Codec.NONE)
    ((head, batch),) = split_batches(dense)
    bodies = [frame.body for frame in read_frames(batch, head)]
    payload = b""
    for record, body in zip(records, bodies, strict=True):
        delta = record.timestamp_ms - records[0].timestamp_ms
        record_bytes = b"\0" + varint(wrapped(delta)) + varint(record.offset) + body
        payload += varint(len(record_bytes)) + record_bytes
    checked = bytearray(dense[21:61]) + compress(codec, payload)
    struct.pack_into(">hi", checked, 0, codec, records[-1].offset)
    return struct.pack(">qiibI", base, len(checked) + 9, 3, 2, google_crc32c.value(bytes(checked))) + checked


def wrapped(delta: int) -> int:
    return (delta + 2**63) % 2**64 - 2**63


def varint(value: int) -> bytes:
    raw, out = (value << 1) ^ (value >> 63), b""
    while raw > 127:
        out, raw = out + bytes([raw & 127 | 128]), raw >> 7
    return out + bytes([raw])


@given(record_lists(holes=True), codecs, st.integers(0, 2**62), st.integers(-3, 75))
def test_a_repack_keeps_what_is_wanted_and_says_where_it_came_from(
    records: list[Record], codec: Codec, base: int, skipped: int
) -> None:
    ((head, batch),) = split_batches(thinned(records, codec, base))
    wanted = [r for r in records if r.offset >= skipped]
    made = repack([(head, batch)], first_wanted=base + skipped).made
    if not wanted:
        assert made == ()
        return
    (result,) = made
    told = [first + n for first, count in result.segments for n in range(count)]
    assert told == [base + r.offset for r in wanted]
    assert all(a + n < b for (a, n), (b, _) in zip(result.segments, result.segments[1:], strict=False))
    assert result.record_count == len(wanted)
    assert result.first_timestamp == wanted[0].timestamp_ms
    assert result.max_timestamp == max(r.timestamp_ms for r in wanted)
    got = read(result.batch)
    assert [(r.timestamp_ms, r.key, r.value, r.headers) for r in got] == [
        (r.timestamp_ms, r.key, r.value, r.headers) for r in wanted
    ]
    assert [r.offset for r in got] == list(range(len(wanted)))


flips = st.lists(st.tuples(st.integers(0, 2**20), st.integers(1, 255)), min_size=1, max_size=4)


def flip(data: bytes, places: Places, *, start: int = 0) -> bytes:
    damaged = bytearray(data)
    for place, mask in places:
        damaged[start + place % (len(data) - start)] ^= mask
    return bytes(damaged)


@given(record_lists(), codecs, flips)
def test_flipped_bytes_are_noticed_or_touch_no_record(
    records: list[Record], codec: Codec, places: Places
) -> None:
    """Offset, length and leader epoch lie before the checksum: those may lie, records may not."""
    try:
        got = read(flip(encoded(records, codec), places))
    except CorruptBatch:
        return
    assert [(r.timestamp_ms, r.key, r.value, r.headers) for r in got] in (
        [],
        [(r.timestamp_ms, r.key, r.value, r.headers) for r in records],
    )


def sealed(data: bytes | bytearray) -> bytes:
    batch = bytearray(data)
    struct.pack_into(">I", batch, 17, google_crc32c.value(bytes(batch[21:])))
    return bytes(batch)


@given(record_lists(), codecs, flips)
def test_damage_under_a_right_checksum_is_corrupt_or_records(
    records: list[Record], codec: Codec, places: Places
) -> None:
    hostile = sealed(flip(encoded(records, codec), places, start=21))
    try:
        ((head, batch),) = split_batches(hostile)
        check_crc(batch, head)
        told = decode_records(batch, head, limit_bytes=LIMIT_BYTES)
        choose_way(head, first_wanted=0)
        made = repack([(head, batch)], first_wanted=0, limit_bytes=LIMIT_BYTES).made
    except CorruptBatch:
        return
    assert_same(made, told)


def assert_same(made: Sequence[Repacked], told: Sequence[Record]) -> None:
    """Whatever the bytes mean: who decodes them and who repacks them take them for the same records."""
    crossed = [r for each in made for r in read(each.batch)]
    assert [(r.timestamp_ms, r.key, r.value, r.headers) for r in crossed] == [
        (r.timestamp_ms, r.key, r.value, r.headers) for r in told if r.offset >= 0
    ]


@given(record_lists(), codecs, flips)
def test_damaged_records_in_sound_compression_are_corrupt_or_records(
    records: list[Record], codec: Codec, places: Places
) -> None:
    plain = encoded(records, Codec.NONE)
    payload = compress(codec, flip(plain, places, start=61)[61:])
    data = bytearray(plain[:61] + payload)
    struct.pack_into(">i", data, 8, len(data) - 12)
    data[22] |= codec
    ((head, batch),) = split_batches(sealed(data))
    told = made = None
    with contextlib.suppress(CorruptBatch):
        told = decode_records(batch, head, limit_bytes=LIMIT_BYTES)
    with contextlib.suppress(CorruptBatch):
        made = repack([(head, batch)], first_wanted=0, limit_bytes=LIMIT_BYTES).made
    if told is not None and made is not None:
        assert_same(made, told)
    with contextlib.suppress(CorruptBatch):
        assert not is_control_marker(batch)


@given(st.binary(max_size=300))
def test_noise_is_no_batch(noise: bytes) -> None:
    try:
        read(noise)
    except CorruptBatch:
        return


@given(codecs, st.binary(max_size=200), flips, st.booleans())
def test_damaged_compression_is_malformed_or_bytes(
    codec: Codec, data: bytes, places: Places, old: bool
) -> None:
    for packed in (data, compress(codec, data)):
        if not packed:
            continue
        try:
            content = decompress(
                codec, flip(packed, places), limit_bytes=LIMIT_BYTES, ignores_lz4_header_checksum=old
            )
        except Malformed:
            continue
        assert len(content) <= LIMIT_BYTES


def old_message(
    offset: int, magic: int, attributes: int, timestamp: int, key: bytes | None, value: bytes | None
) -> bytes:
    checked = struct.pack(">bb", magic, attributes) + (struct.pack(">q", timestamp) if magic else b"")
    for field in (key, value):
        checked += struct.pack(">i", -1) if field is None else struct.pack(">i", len(field)) + field
    return struct.pack(">qiI", offset, len(checked) + 4, zlib.crc32(checked)) + checked


@st.composite
def old_batches(draw: st.DrawFn) -> tuple[bytes, list[OldRow]]:
    magic, codec = draw(st.integers(0, 1)), draw(st.sampled_from(OLD_CODECS))
    rows = draw(st.lists(st.tuples(timestamps, maybe_bytes, maybe_bytes), min_size=1, max_size=6))
    base = draw(st.integers(0, 2**40))
    first_inside = base if magic == 0 or codec is Codec.NONE else 0
    inner = [old_message(first_inside + n, magic, 0, *row) for n, row in enumerate(rows)]
    expected = [
        (base + n, timestamp if magic else -1, key, value) for n, (timestamp, key, value) in enumerate(rows)
    ]
    if codec is Codec.NONE:
        return b"".join(inner), expected
    last = base + len(rows) - 1
    return old_message(last, magic, codec, 0, None, compress(codec, b"".join(inner))), expected


@given(old_batches())
def test_old_records_are_read(case: tuple[bytes, list[OldRow]]) -> None:
    data, expected = case
    assert [(r.offset, r.timestamp_ms, r.key, r.value) for r in read(data)] == expected


@given(old_batches(), flips, st.booleans())
def test_damaged_old_records_are_corrupt_or_records(
    case: tuple[bytes, list[OldRow]], places: Places, reseal: bool
) -> None:
    data, expected = case
    damaged = bytearray(flip(data, places, start=16 if reseal else 0))
    if reseal:
        size = 12 + struct.unpack_from(">i", damaged, 8)[0]
        struct.pack_into(">I", damaged, 12, zlib.crc32(damaged[16:size]))
    try:
        got = read(bytes(damaged))
    except CorruptBatch:
        return
    if not reseal:
        assert {(r.timestamp_ms, r.key, r.value) for r in got} <= {row[1:] for row in expected}


@given(record_lists(), codecs, st.integers(0, 2**31 - 1), st.integers(-(2**31), 2**31 - 1))
def test_a_head_that_lies_about_counts_ends_at_once(
    records: list[Record], codec: Codec, last_delta: int, count: int
) -> None:
    data = bytearray(encoded(records, codec))
    struct.pack_into(">i", data, 23, last_delta)
    struct.pack_into(">i", data, 57, count)
    if count == len(records) <= last_delta + 1:
        assert read(sealed(data)) == records
    else:
        with pytest.raises(CorruptBatch):
            read(sealed(data))


@given(record_lists(), codecs)
def test_a_batch_written_from_its_own_frames_is_the_same(records: list[Record], codec: Codec) -> None:
    data = encoded(records, codec)
    ((head, batch),) = split_batches(data)
    again = write_batch(
        read_frames(batch, head), codec=codec, producer_id=9, producer_epoch=1, base_sequence=4
    )
    assert again == data
