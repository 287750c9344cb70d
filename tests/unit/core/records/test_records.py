"""Our records against kafka-python's: each reads what the other wrote."""

import struct
from types import ModuleType
from typing import TypedDict

import google_crc32c
import kafka.codec
import kafka.record.default_records
import pytest
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.memory_records import MemoryRecords

from causeway.core.records.batches import (
    BatchHead,
    CorruptBatch,
    OversizedBatch,
    check_crc,
    parse_head,
    split_batches,
)
from causeway.core.records.compression import Codec, compress, decompress
from causeway.core.records.records import Record, decode_records, encode_batch

RECORDS = [
    Record(0, 1_700_000_000_000, b"key", b"value" * 40),
    Record(1, 1_700_000_000_005, None, b""),
    Record(2, 1_699_999_999_000, b"", None),
    Record(3, 1_700_000_000_001, b"k", b"v" * 300, ((b"h", b"1"), (b"h", None), (b"", b""))),
    Record(4, -1, b"\x00\xff", b"x" * 70_000),
]


class Producer(TypedDict):
    producer_id: int
    producer_epoch: int
    base_sequence: int


OURS: Producer = {"producer_id": 77, "producer_epoch": 5, "base_sequence": 11}


@pytest.fixture(autouse=True)
def every_codec_in_kafka_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """It needs two more libraries for snappy and lz4: lend it block functions, its framing stays its own."""

    class Snappy:
        compress = staticmethod(lambda data: kafka_snappy().compress_raw(data))
        decompress = staticmethod(lambda data: bytes(kafka_snappy().decompress_raw(data)))

    def kafka_snappy() -> ModuleType:
        import cramjam

        snappy: ModuleType = cramjam.snappy
        return snappy

    monkeypatch.setattr(kafka.codec, "snappy", Snappy)
    monkeypatch.setattr(kafka.codec, "lz4", True)
    for module in (kafka.codec, kafka.record.default_records):
        monkeypatch.setattr(module, "lz4_encode", lambda data: compress(Codec.LZ4, data))
        monkeypatch.setattr(module, "lz4_decode", lambda data: decompress(Codec.LZ4, data))


def only(buffer: bytes | bytearray) -> tuple[memoryview, BatchHead]:
    ((head, batch),) = split_batches(bytes(buffer))
    check_crc(batch, head)
    return batch, head


@pytest.mark.parametrize("codec", Codec)
def test_kafka_python_reads_what_we_write(codec: Codec) -> None:
    data = encode_batch(RECORDS, codec=codec, **OURS)
    theirs = MemoryRecords(data).next_batch()
    assert theirs.validate_crc()
    assert (theirs.producer_id, theirs.producer_epoch, theirs.base_sequence) == (77, 5, 11)
    assert (theirs.base_offset, theirs.last_offset_delta, theirs.max_timestamp) == (0, 4, 1_700_000_000_005)
    assert theirs.is_transactional
    assert theirs.compression_type == codec
    read = [
        Record(r.offset, r.timestamp, r.key, r.value, tuple((k.encode(), v) for k, v in r.headers))
        for r in theirs
    ]
    assert read == RECORDS


@pytest.mark.parametrize("codec", Codec)
def test_we_read_what_kafka_python_writes(codec: Codec) -> None:
    builder = DefaultRecordBatchBuilder(2, codec, 0, -1, -1, -1, 1 << 20)
    for r in RECORDS:
        builder.append(r.offset, r.timestamp_ms, r.key, r.value, [(k.decode(), v) for k, v in r.headers])
    batch, head = only(builder.build())
    assert head.codec is codec
    assert decode_records(batch, head) == RECORDS


def test_without_transaction_the_bit_is_off_and_without_producer_it_is_minus_one() -> None:
    data = encode_batch(
        RECORDS, codec=Codec.NONE, producer_id=-1, producer_epoch=-1, base_sequence=-1, transactional=False
    )
    _, head = only(data)
    assert (head.attributes, head.producer_id, head.producer_epoch, head.base_sequence) == (0, -1, -1, -1)


def test_offsets_are_renumbered_without_holes() -> None:
    holes = [Record(offset, offset, None, b"%d" % offset) for offset in (100, 107, 1 << 40)]
    batch, head = only(encode_batch(holes, codec=Codec.NONE, **OURS))
    assert not head.has_holes
    assert [(r.offset, r.value) for r in decode_records(batch, head)] == [
        (0, b"100"),
        (1, b"107"),
        (2, b"1099511627776"),
    ]


def test_an_empty_batch_is_not_written() -> None:
    with pytest.raises(ValueError, match="at least one record"):
        encode_batch([], codec=Codec.NONE, **OURS)


def test_timestamps_as_far_apart_as_can_be_survive() -> None:
    extremes = [Record(n, t, None, None) for n, t in enumerate((2**63 - 1, -(2**63), 0, -1))]
    batch, head = only(encode_batch(extremes, codec=Codec.NONE, **OURS))
    assert decode_records(batch, head) == extremes
    assert head.max_timestamp == 2**63 - 1


def sealed(
    data: bytes,
    *,
    attributes: int | None = None,
    payload: bytes | None = None,
    count: int | None = None,
    last_delta: int | None = None,
    max_timestamp: int | None = None,
) -> bytes:
    """A copy of a batch with parts replaced and its checksum made right: only the content is wrong."""
    batch = bytearray(data if payload is None else data[:61] + payload)
    struct.pack_into(">i", batch, 8, len(batch) - 12)
    for form, place, value in (
        (">h", 21, attributes),
        (">i", 23, last_delta),
        (">q", 35, max_timestamp),
        (">i", 57, count),
    ):
        if value is not None:
            struct.pack_into(form, batch, place, value)
    struct.pack_into(">I", batch, 17, google_crc32c.value(bytes(batch[21:])))
    return bytes(batch)


def test_with_log_append_time_every_record_has_the_batches_max_timestamp() -> None:
    data = sealed(encode_batch(RECORDS, codec=Codec.ZSTD, **OURS), attributes=0x1C, max_timestamp=99)
    assert {r.timestamp_ms for r in decode_records(*only(data))} == {99}


def test_a_delete_horizon_in_the_base_timestamp_changes_no_timestamp() -> None:
    """KIP-534: the horizon takes the base's place, and the deltas are recreated against it."""
    horizon = Record(0, 5_000_000, None, None)
    data = encode_batch([horizon, *RECORDS], codec=Codec.NONE, **OURS)
    first_record_bytes = 1 + data[61] // 2
    thinned = sealed(data, payload=data[61 + first_record_bytes :], attributes=0x40, count=5, last_delta=5)
    batch, head = only(thinned)
    assert head.base_timestamp == 5_000_000
    assert [r.timestamp_ms for r in decode_records(batch, head)] == [r.timestamp_ms for r in RECORDS]
    assert [r.offset for r in decode_records(batch, head)] == [1, 2, 3, 4, 5]


PLAIN = encode_batch(
    [Record(0, 0, b"k", b"v", ((b"h", b"w"),)), Record(1, 0, None, None)], codec=Codec.NONE, **OURS
)


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "cut off"),
        (PLAIN[61:-1], "doesn't fit in"),
        (PLAIN[61:] + b"\x00", "1 bytes are left after the last record"),
        (b"\x01" + PLAIN[62:], "a record of -1 bytes"),
        (b"\xff" * 20, "longer than 5 bytes"),
        (bytes.fromhex("0e00000000000000" * 2), "offset 0 follows 0"),
        (bytes.fromhex("0e00000100000000" * 2), "offset -1 follows -1"),
        (bytes.fromhex("0e00000600000000" * 2), "offset 3 follows -1"),
        (bytes.fromhex("1000000003000000 00".replace(" ", "") + "0e00000200000000"), "a field of -2 bytes"),
        (bytes.fromhex("0e00000002000000" + "0e00000200000000"), "left after a record's headers"),
        (bytes.fromhex("0c000000010103" + "0e00000201010000"), "says it has -2 headers"),
        (bytes.fromhex("10000000010102 0101".replace(" ", "") + "0c000002010100"), "a header has no key"),
        (bytes.fromhex("0c000000010102" + "0c000002010100"), "the record is cut off"),
    ],
)
def test_a_payload_that_is_not_its_records_is_corrupt(payload: bytes, reason: str) -> None:
    data = sealed(PLAIN, payload=payload)
    with pytest.raises(CorruptBatch, match=reason):
        decode_records(*only(data))


def test_a_batch_that_inflates_over_the_limit_is_no_damage() -> None:
    data = encode_batch([Record(0, 0, None, bytes(10_000))], codec=Codec.ZSTD, **OURS)
    batch, head = only(data)
    assert len(decode_records(batch, head)) == 1
    with pytest.raises(OversizedBatch, match=r"at offset = 0: .* more than 9,999 bytes decompressed"):
        decode_records(batch, head, limit_bytes=9_999)


def test_a_count_of_two_billion_costs_nothing() -> None:
    data = sealed(PLAIN, count=2**31 - 1, last_delta=2**31 - 2)
    with pytest.raises(CorruptBatch, match="cut off"):
        decode_records(memoryview(data), parse_head(memoryview(data)))
