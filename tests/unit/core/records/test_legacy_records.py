"""Messages of magic 0 and 1, built by hand and by kafka-python's builder."""

import gzip
import struct
import zlib

import cramjam
import pytest
from kafka.record.legacy_records import LegacyRecordBatchBuilder

from causeway.core.records.batches import CorruptBatch, OversizedBatch, check_crc, split_batches
from causeway.core.records.compression import Codec, compress
from causeway.core.records.records import Record, decode_records
from tests.support.legacy_messages import Pack, message, wrapped

KEYS_AND_VALUES = [(b"k", b"v"), (None, b"value" * 50), (b"", None), (None, b"")]


def read(buffer: bytes | bytearray) -> list[Record]:
    records: list[Record] = []
    for head, batch in split_batches(bytes(buffer)):
        check_crc(batch, head)
        records += decode_records(batch, head)
    return records


@pytest.mark.parametrize("magic", [0, 1])
def test_plain_messages_are_one_record_each(magic: int) -> None:
    builder = LegacyRecordBatchBuilder(magic, 0, 1 << 20)
    for offset, (key, value) in enumerate(KEYS_AND_VALUES):
        builder.append(offset, 5_000 + offset, key, value, [])
    stamps = [-1] * 4 if magic == 0 else [5_000, 5_001, 5_002, 5_003]
    assert read(builder.build()) == [
        Record(offset, stamp, *pair)
        for offset, (stamp, pair) in enumerate(zip(stamps, KEYS_AND_VALUES, strict=True))
    ]


@pytest.mark.parametrize("magic", [0, 1])
def test_what_kafka_python_wraps_is_unwrapped(magic: int) -> None:
    builder = LegacyRecordBatchBuilder(magic, Codec.GZIP, 1 << 20)
    for offset, (key, value) in enumerate(KEYS_AND_VALUES):
        builder.append(offset, 5_000 + offset, key, value, [])
    data = bytearray(builder.build())
    struct.pack_into(">q", data, 0, 3)  # as the broker does: a wrapper has its last record's offset
    assert [(r.offset, r.key, r.value) for r in read(data)] == [
        (offset, *pair) for offset, pair in enumerate(KEYS_AND_VALUES)
    ]


def old_pack(codec: Codec, data: bytes) -> bytes:
    """What clients of 0.8 and 0.9 wrote: raw snappy, and lz4 with the checksum over the magic number too."""
    match codec:
        case Codec.GZIP:
            return gzip.compress(data)
        case Codec.SNAPPY:
            return bytes(cramjam.snappy.compress_raw(data))
        case Codec.LZ4:
            frame = bytearray(compress(codec, data))
            frame[6] ^= 0xFF
            return bytes(frame)
        case _:
            raise ValueError(codec)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
@pytest.mark.parametrize("pack", [compress, old_pack])
def test_in_magic_0_offsets_inside_are_absolute_and_there_is_no_timestamp(codec: Codec, pack: Pack) -> None:
    inner = [message(offset, b"k", b"v", magic=0) for offset in (40, 42, 43)]
    data = wrapped(43, inner, codec, magic=0, pack=pack)
    assert read(data) == [Record(offset, -1, b"k", b"v") for offset in (40, 42, 43)]


def test_in_magic_0_the_wrappers_offset_moves_nothing_and_is_the_bound() -> None:
    inner = [message(offset, None, b"v", magic=0) for offset in (40, 42)]
    assert [r.offset for r in read(wrapped(43, inner, Codec.GZIP, magic=0))] == [40, 42]
    with pytest.raises(CorruptBatch, match="offset 42 is inside a message that ends at 41"):
        read(wrapped(41, inner, Codec.GZIP, magic=0))


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_in_magic_1_offsets_inside_count_back_from_the_wrappers(codec: Codec) -> None:
    inner = [message(relative, b"k", b"v", timestamp=70 + relative) for relative in (0, 2, 3)]
    data = wrapped(43, inner, codec, timestamp=73)
    assert read(data) == [Record(40, 70, b"k", b"v"), Record(42, 72, b"k", b"v"), Record(43, 73, b"k", b"v")]


def test_a_wrapper_with_log_append_time_lends_its_timestamp() -> None:
    inner = [message(relative, None, b"v", timestamp=70) for relative in (0, 1)]
    assert [r.timestamp_ms for r in read(wrapped(9, inner, Codec.GZIP, attributes=8, timestamp=99))] == [
        99,
        99,
    ]
    assert [r.timestamp_ms for r in read(message(9, None, b"v", attributes=8, timestamp=99))] == [99]


GOOD = message(0, b"k", b"v")


@pytest.mark.parametrize(
    ("inner", "reason"),
    [
        ([], "nothing inside"),
        ([GOOD[:-1]], "doesn't fit in"),
        ([GOOD, b"abc"], "cut off"),
        ([GOOD, bytes(40)], "a message of 0 bytes"),
        ([GOOD, struct.pack(">qi", 1, -13) + bytes(40)], "a message of -13 bytes"),
        ([GOOD, struct.pack(">qi", 1, 3) + bytes(3)], "cut off"),
        ([message(0, b"k", b"v", magic=0)], "a message inside has magic 0, its wrapper 1"),
        ([wrapped(0, [GOOD], Codec.GZIP)], "a compressed message is inside another"),
        ([GOOD[:-1] + b"w"], "wrong checksum"),
        ([GOOD, GOOD], "don't rise"),
        ([message(0, b"k", b"v"), message(12, b"k", b"v")], "don't rise"),
    ],
)
def test_a_wrapper_whose_content_cannot_be_is_corrupt(inner: list[bytes], reason: str) -> None:
    with pytest.raises(CorruptBatch, match=f"at offset = 10: .*{reason}"):
        read(wrapped(10, inner, Codec.GZIP))


def resealed(data: bytes, *tail: bytes) -> bytes:
    checked = data[16:] + b"".join(tail)
    return data[:8] + struct.pack(">iI", len(checked) + 4, zlib.crc32(checked)) + checked


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (resealed(GOOD, b"x"), "1 bytes are left after a message's value"),
        (resealed(GOOD[:-1]), "a field of 1 bytes doesn't fit"),
        (resealed(GOOD[:26], struct.pack(">ii", -2, -1)), "a field of -2 bytes"),
        (resealed(GOOD[:26], struct.pack(">i", 4), b"keykey"), "a message is cut off"),
        (message(1, b"k", None, attributes=Codec.GZIP), "a compressed message has no value"),
        (message(1, b"k", b"garbage", attributes=Codec.GZIP), "don't decompress"),
    ],
)
def test_a_message_whose_lengths_cannot_be_is_corrupt(data: bytes, reason: str) -> None:
    with pytest.raises(CorruptBatch, match=reason):
        read(data)


def test_a_wrapper_that_inflates_over_the_limit_is_no_damage() -> None:
    data = wrapped(0, [message(0, None, bytes(10_000))], Codec.GZIP)
    ((head, batch),) = split_batches(data)
    with pytest.raises(OversizedBatch, match="more than 9,999 bytes decompressed"):
        decode_records(batch, head, limit_bytes=9_999)
