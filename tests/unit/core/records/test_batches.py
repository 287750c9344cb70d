import pickle
import struct

import google_crc32c
import pytest
from kafka.record.memory_records import MemoryRecords

from causeway.core.kernel.errors import ProtocolFault
from causeway.core.records.batches import (
    BatchHead,
    CorruptBatch,
    check_crc,
    is_control_marker,
    parse_head,
    rebase,
    split_batches,
)
from causeway.core.records.compression import Codec

# Written by hand after the protocol's table: one record, key "k", value "v", header "h" -> null.
RECORD = bytes.fromhex("16 00 00 00 02 6b 02 76 02 02 68 01".replace(" ", ""))


def v2(
    records: bytes = RECORD,
    *,
    base: int = 500,
    epoch: int = 7,
    attributes: int = 0,
    last_delta: int = 0,
    base_timestamp: int = 1_000,
    max_timestamp: int = 1_000,
    producer: tuple[int, int, int] = (-1, -1, -1),
    count: int = 1,
) -> bytes:
    checked = struct.pack(
        ">hiqqqhii", attributes, last_delta, base_timestamp, max_timestamp, *producer, count
    )
    checked += records
    return struct.pack(">qiibI", base, len(checked) + 9, epoch, 2, google_crc32c.value(checked)) + checked


def marker(kind: int, *, key: bytes | None = None, attributes: int = 0x30) -> memoryview:
    key = struct.pack(">hh", 0, kind) if key is None else key
    body = bytes([0, 0, 0, 2 * len(key)]) + key + bytes.fromhex("0c 0000 00000003 00".replace(" ", ""))
    return memoryview(v2(bytes([2 * len(body)]) + body, attributes=attributes))


def only(buffer: bytes) -> tuple[BatchHead, memoryview]:
    ((head, batch),) = split_batches(buffer)
    return head, batch


def test_every_field_of_a_head_is_read_from_its_place() -> None:
    data = v2(
        attributes=0x1B, last_delta=4, base_timestamp=11, max_timestamp=22, producer=(33, 44, 55), count=3
    )
    head, batch = only(data)
    assert head == BatchHead(500, len(data) - 12, 7, 2, head.crc, 0x1B, 4, 11, 22, 33, 44, 55, 3)
    assert head.size_bytes == len(data)
    assert (head.last_offset, head.next_offset, head.codec) == (504, 505, Codec.LZ4)
    assert head.is_transactional
    assert head.is_log_append_time
    assert head.has_holes
    assert not head.is_control
    assert batch == data


def test_the_hand_made_batch_is_one_that_kafka_python_reads() -> None:
    theirs = MemoryRecords(v2()).next_batch()
    assert theirs.validate_crc()
    (record,) = theirs
    assert (record.offset, record.timestamp, record.key, record.value) == (500, 1_000, b"k", b"v")
    assert record.headers == [("h", None)]


def test_a_fetch_buffer_is_cut_into_whole_batches_and_the_rest_is_left_out() -> None:
    first, second = v2(), v2(base=501, attributes=0x10)
    for cut in range(len(second)):
        heads = [head.base_offset for head, _ in split_batches(first + second[:cut])]
        assert heads == [500]
    assert [head.base_offset for head, _ in split_batches(memoryview(first + second))] == [500, 501]
    assert list(split_batches(b"")) == []


def test_batches_before_a_corrupt_one_are_given_out_first() -> None:
    batches = split_batches(v2() + struct.pack(">qi", 501, -5) + bytes([0, 0, 0, 0, 2]) * 20)
    assert next(batches)[0].base_offset == 500
    with pytest.raises(CorruptBatch, match="501: a size of 7 bytes can't be"):
        next(batches)


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (struct.pack(">qiib", 9, 48, 0, 2) + bytes(99), "a size of 60 bytes"),
        (struct.pack(">qiib", 9, 13, 0, 0) + bytes(99), "a size of 25 bytes"),
        (struct.pack(">qiib", 9, 21, 0, 1) + bytes(99), "a size of 33 bytes"),
        (struct.pack(">qiib", 9, 2**31 - 1, 0, 2) + bytes(99), "a size of 2147483659 bytes"),
        (struct.pack(">qiib", 9, 90, 0, 3) + bytes(99), "magic 3"),
        (v2(base=-1), "an offset is out of range"),
        (v2(base=2**63 - 1), "an offset is out of range"),
        (v2(last_delta=-1), "1 records can't be in 0 offsets"),
        (v2(count=-1), "-1 records can't be in 1 offsets"),
        (v2(count=2), "2 records can't be in 1 offsets"),
        (v2(attributes=5), "magic 2 has no codec number 5"),
    ],
)
def test_what_cannot_be_a_batch_is_named(broken: bytes, reason: str) -> None:
    with pytest.raises(CorruptBatch, match=reason):
        list(split_batches(broken))


def test_old_messages_have_heads_too() -> None:
    plain = struct.pack(">qiIbbqii", 3, 24, 0, 1, 0x08, 1234, -1, 2) + b"ab"
    oldest = struct.pack(">qiIbbii", 4, 15, 0, 0, 0x09, -1, 1) + b"a"
    (one, _), (zero, _) = split_batches(plain + oldest)
    assert one == BatchHead(3, 24, -1, 1, 0, 0x08, 0, 1234, 1234, -1, -1, -1, 1)
    assert zero == BatchHead(4, 15, -1, 0, 0, Codec.GZIP, 0, -1, -1, -1, -1, -1, 1)
    assert not zero.is_log_append_time  # magic 0 had no such bit
    with pytest.raises(CorruptBatch, match="magic 1 has no codec number 4"):
        list(split_batches(plain[:17] + b"\x04" + plain[18:]))


def told_in(data: bytes | bytearray) -> int:
    (crc,) = struct.unpack_from(">I", data, 17)
    return int(crc)


def test_a_changed_byte_after_the_checksum_is_noticed() -> None:
    data = v2()
    check_crc(memoryview(data), parse_head(memoryview(data)))
    for position in range(17, len(data)):
        changed = bytearray(data)
        changed[position] ^= 1
        with pytest.raises(CorruptBatch, match="at offset = 500: its checksum is 0x"):
            check_crc(memoryview(changed), parse_head(memoryview(data))._replace(crc=told_in(changed)))


def test_rebasing_changes_the_address_and_nothing_else() -> None:
    data = v2(attributes=0x0C | 0x40, last_delta=9, base_timestamp=5, max_timestamp=99, producer=(9, 9, 9))
    ours = rebase(memoryview(data), producer_id=2**40, producer_epoch=3, base_sequence=1234)
    assert isinstance(ours, bytearray)
    head, batch = only(bytes(ours))
    check_crc(batch, head)
    assert head[:4] == (0, len(data) - 12, -1, 2)
    assert head[5:] == (0x10 | Codec.ZSTD, 9, 5, 99, 2**40, 3, 1234, 1)
    assert ours[61:] == data[61:]
    assert MemoryRecords(bytes(ours)).next_batch().validate_crc()
    assert data == v2(attributes=0x4C, last_delta=9, base_timestamp=5, max_timestamp=99, producer=(9, 9, 9))


def test_a_control_batch_is_never_turned_into_data() -> None:
    with pytest.raises(ProtocolFault, match="control batch = 500"):
        rebase(marker(1), producer_id=1, producer_epoch=1, base_sequence=0)


def test_a_marker_says_how_its_transaction_ended() -> None:
    assert is_control_marker(marker(1)) == "commit"
    assert is_control_marker(marker(0)) == "abort"


@pytest.mark.parametrize(
    ("batch", "reason"),
    [
        (marker(2), "control type 2 ends no transaction"),
        (marker(1, attributes=0x10), "control type None"),
        (marker(1, key=b"\x00\x00\x00"), "a key of 3 bytes"),
        (memoryview(v2(b"", attributes=0x30)), "can't be read"),
        (memoryview(v2(b"\x80" * 30, attributes=0x30)), "longer than 5 bytes"),
    ],
)
def test_a_control_batch_that_is_no_marker_is_corrupt(batch: memoryview, reason: str) -> None:
    with pytest.raises(CorruptBatch, match=reason):
        is_control_marker(batch)


def test_corruption_travels_between_processes_with_its_facts() -> None:
    fault = pickle.loads(pickle.dumps(CorruptBatch(77, "a reason")))
    assert (fault.base_offset, fault.reason) == (77, "a reason")
    assert str(fault).startswith("record batch at offset = 77: a reason; ")
