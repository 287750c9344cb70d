import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import TypedDict

import google_crc32c
import pytest

from causeway.core.copy.repack import (
    JOINED_DECOMPRESSED_BYTES,
    Repack,
    Repacked,
    Verbatim,
    choose_way,
    is_small,
    reasons_of,
    repack,
)
from causeway.core.copy.target_limits import TargetLimits
from causeway.core.records.batches import BatchHead, OversizedBatch, check_crc, rebase, split_batches
from causeway.core.records.compression import Codec, compress, decompress
from causeway.core.records.record_frames import Frame, write_batch
from causeway.core.records.records import Record, decode_records, encode_batch
from causeway.core.records.varint import read_varint
from tests.support.legacy_messages import message, wrapped

Batch = tuple[BatchHead, memoryview]


class Producer(TypedDict):
    producer_id: int
    producer_epoch: int
    base_sequence: int


OURS: Producer = {"producer_id": 77, "producer_epoch": 5, "base_sequence": 11}
HEADERS = ((b"h", None), (b"\xff", b"x"), (b"h", b""))


def source_batch(
    offsets: list[int],
    *,
    base: int = 500,
    codec: Codec = Codec.NONE,
    attributes: int = 0,
    max_timestamp: int | None = None,
    last: int | None = None,
) -> tuple[memoryview, BatchHead]:
    """A batch as a source's log holds it: at `base`, with the holes that compaction leaves."""
    deltas = [offset - base for offset in offsets]
    last_delta = (last if last is not None else offsets[-1]) - base
    dense = [
        Record(delta, 1_000 + delta, b"k%d" % delta, b"v", HEADERS)
        if delta in deltas
        else Record(delta, 0, b"", b"")
        for delta in range(last_delta + 1)
    ]
    data = encode_batch(dense, codec=Codec.NONE, producer_id=1, producer_epoch=1, base_sequence=1)
    payload, position = b"", 61
    for delta in range(last_delta + 1):
        size, start = read_varint(data, position)
        if delta in deltas:
            payload += data[position : start + size]
        position = start + size
    checked = bytearray(data[21:61]) + compress(codec, payload)
    struct.pack_into(">h", checked, 0, attributes | codec)
    struct.pack_into(">i", checked, 36, len(deltas))
    if max_timestamp is not None:
        struct.pack_into(">q", checked, 14, max_timestamp)
    whole = struct.pack(">qiibI", base, len(checked) + 9, 3, 2, google_crc32c.value(bytes(checked))) + checked
    ((head, batch),) = split_batches(whole)
    return batch, head


def made_of(
    batches: Sequence[Batch], *, first_wanted: int, demands: TargetLimits | None = None
) -> Repacked | None:
    """All in one, as we append it; None: no record."""
    made = repack(batches, first_wanted=first_wanted, demands=demands or TargetLimits()).made
    return ours(made[0]) if made else None


def one_of(batches: Sequence[Batch], *, first_wanted: int, demands: TargetLimits | None = None) -> Repacked:
    made = made_of(batches, first_wanted=first_wanted, demands=demands)
    assert made is not None
    return made


def ours(made: Repacked) -> Repacked:
    return replace(made, batch=bytes(rebase(memoryview(made.batch), **OURS)))


def appended(data: bytes | bytearray) -> tuple[BatchHead, list[Record]]:
    ((head, batch),) = split_batches(bytes(data))
    check_crc(batch, head)
    assert not head.has_holes
    assert (head.base_offset, head.producer_id, head.producer_epoch, head.base_sequence) == (0, 77, 5, 11)
    assert head.is_transactional
    assert not head.is_log_append_time
    return head, decode_records(batch, head)


def test_a_whole_batch_without_holes_crosses_verbatim() -> None:
    _, head = source_batch([500, 501, 502])
    assert choose_way(head, first_wanted=500) == Verbatim()
    assert choose_way(head, first_wanted=0) == Verbatim()


def test_each_reason_to_repack_is_named() -> None:
    _, thinned = source_batch([500, 502])
    _, empty = source_batch([], last=502)
    _, append_time = source_batch([500], attributes=8)
    ((old, _),) = split_batches(message(500, b"k", b"v"))
    assert choose_way(thinned, first_wanted=0) == Repack(("holes",))
    assert choose_way(empty, first_wanted=0) == Repack(("holes",))
    assert choose_way(thinned, first_wanted=501) == Repack(("holes", "starts_inside"))
    assert choose_way(append_time, first_wanted=0) == Repack(("log_append_time",))
    assert choose_way(old, first_wanted=0) == Repack(("old_format",))


@pytest.mark.parametrize("codec", Codec)
def test_holes_close_and_records_stay(codec: Codec) -> None:
    batch, head = source_batch([500, 501, 504, 507, 508], codec=codec, last=510)
    result = one_of([(head, batch)], first_wanted=0)
    assert result.segments == ((500, 2), (504, 1), (507, 2))
    assert (result.record_count, result.first_timestamp, result.max_timestamp) == (5, 1_000, 1_008)
    ours, records = appended(result.batch)
    assert ours.codec is codec
    assert records == [
        Record(n, 1_000 + delta, b"k%d" % delta, b"v", HEADERS) for n, delta in enumerate((0, 1, 4, 7, 8))
    ]


def test_records_below_the_wanted_offset_are_left_out() -> None:
    batch, head = source_batch([500, 501, 504, 507, 508])
    result = one_of([(head, batch)], first_wanted=502)
    assert result.segments == ((504, 1), (507, 2))
    assert [r.key for r in appended(result.batch)[1]] == [b"k4", b"k7", b"k8"]
    assert (result.first_timestamp, result.max_timestamp) == (1_004, 1_008)


def test_nothing_left_is_none() -> None:
    batch, head = source_batch([500, 501], last=510)
    assert made_of([(head, batch)], first_wanted=502) is None
    assert made_of([source_batch([], last=510)[::-1]], first_wanted=0) is None


def test_append_times_become_the_records_own() -> None:
    batch, head = source_batch([500, 501], attributes=8, max_timestamp=9_999)
    result = one_of([(head, batch)], first_wanted=0)
    ours, records = appended(result.batch)
    assert [r.timestamp_ms for r in records] == [9_999, 9_999]
    assert (ours.base_timestamp, ours.max_timestamp) == (9_999, 9_999)
    assert (result.first_timestamp, result.max_timestamp) == (9_999, 9_999)


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
@pytest.mark.parametrize("magic", [0, 1])
def test_old_formats_become_new_ones_with_their_codec(codec: Codec, magic: int) -> None:
    inner = [message(offset, None, b"v%d" % offset, magic=magic, timestamp=offset) for offset in (6, 8, 9)]
    ((head, batch),) = split_batches(wrapped(9, inner, codec, magic=magic, timestamp=9))
    result = one_of([(head, batch)], first_wanted=7)
    ours, records = appended(result.batch)
    assert result.segments == ((8, 2),)
    assert ours.codec is codec
    stamps = (8, 9) if magic else (-1, -1)
    assert records == [Record(n, stamps[n], None, b"v%d" % (n + 8)) for n in (0, 1)]


def test_bodies_go_through_unread() -> None:
    """A body that no decoder accepts is still the writer's own: it isn't ours to refuse."""
    data = write_batch([Frame(0, 5, b"\x07 not a body"), Frame(1, 5, b"")], codec=Codec.LZ4, **OURS)
    ((head, batch),) = split_batches(data)
    assert one_of([(head, batch)], first_wanted=0).batch == data


def test_repacking_what_could_cross_verbatim_gives_the_same_records() -> None:
    batch, head = source_batch([500, 501, 502], codec=Codec.ZSTD)
    assert appended(one_of([(head, batch)], first_wanted=0).batch) == appended(rebase(batch, **OURS))


@pytest.mark.parametrize("codec", Codec)
def test_small_batches_become_one_in_their_order(codec: Codec) -> None:
    batches = [
        source_batch(offsets, base=offsets[0], codec=codec)[::-1]
        for offsets in ([500], [501, 502], [507, 509])
    ]
    result = one_of(batches, first_wanted=0)
    assert result.segments == ((500, 3), (507, 1), (509, 1))
    ours, records = appended(result.batch)
    assert ours.codec is codec
    assert [r.offset for r in records] == [0, 1, 2, 3, 4]
    single = [r for one in batches for r in appended(one_of([one], first_wanted=0).batch)[1]]
    assert [(r.timestamp_ms, r.key, r.value, r.headers) for r in records] == [
        (r.timestamp_ms, r.key, r.value, r.headers) for r in single
    ]


def zeros(base: int, size_bytes: int, codec: Codec) -> Batch:
    """A small batch of one record that holds much."""
    record = Record(0, 1_000, b"k%d" % base, bytes(size_bytes), HEADERS)
    data = bytearray(encode_batch([record], codec=codec, producer_id=1, producer_epoch=1, base_sequence=1))
    data[:8] = base.to_bytes(8, "big")
    ((head, batch),) = split_batches(bytes(data))
    assert is_small(head)
    return head, batch


def held_bytes(made: Repacked) -> int:
    ((head, batch),) = split_batches(made.batch)
    return len(decompress(head.codec, batch[61:]))


PACKING = [Codec.GZIP, Codec.LZ4, Codec.ZSTD]


@pytest.mark.parametrize("codec", [*PACKING, Codec.SNAPPY])
def test_what_is_joined_is_bounded_by_what_it_holds(codec: Codec) -> None:
    size = 150_000  # the most of zeros that snappy puts into a small batch
    batches = [zeros(500 + n, size, codec) for n in range(40)]
    left = batches
    found: list[bytes | None] = []
    while left:
        done = repack(left, first_wanted=0)
        (made,) = done.made
        assert held_bytes(made) <= JOINED_DECOMPRESSED_BYTES < held_bytes(made) + size + 100 or not left[6:]
        assert made.segments == ((left[0][0].base_offset, done.taken),)
        found += [r.key for r in appended(ours(made).batch)[1]]
        left = left[done.taken :]
    assert found == [b"k%d" % n for n in range(500, 540)]


@pytest.mark.parametrize("codec", PACKING)
@pytest.mark.parametrize("sizes", [(3 << 19, 10, 10), (10, 3 << 19, 10), (1_000_000, 1_000_000)])
def test_a_batch_that_holds_more_than_the_bound_stays_alone(codec: Codec, sizes: tuple[int, ...]) -> None:
    """Of several only the first fits, then: it isn't touched, and nothing larger than it is made."""
    done = repack([zeros(500 + n, size, codec) for n, size in enumerate(sizes)], first_wanted=0)
    assert (done.taken, done.made) == (1, ())


def test_what_fits_exactly_is_joined() -> None:
    one, many = zeros(500, 10, Codec.ZSTD), zeros(501, JOINED_DECOMPRESSED_BYTES - 200, Codec.ZSTD)
    assert repack([one, many, one], first_wanted=0).taken == 3
    more = zeros(501, JOINED_DECOMPRESSED_BYTES, Codec.ZSTD)
    assert repack([one, many, more], first_wanted=0).taken == 2


def test_a_batch_by_itself_is_bounded_too_and_that_is_no_damage() -> None:
    batch = zeros(500, 1 << 20, Codec.ZSTD)
    assert repack([batch], first_wanted=0, limit_bytes=(1 << 20) + 100).made
    with pytest.raises(OversizedBatch, match="more than 1,048,576 bytes decompressed"):
        repack([batch], first_wanted=0, limit_bytes=1 << 20)


def test_joined_is_one_reason_beside_the_others() -> None:
    one, thinned = (source_batch(offsets)[1] for offsets in ([500], [500, 502]))
    assert reasons_of([one], first_wanted=0) == []
    assert reasons_of([one, one], first_wanted=0) == ["joined"]
    assert reasons_of([one, thinned], first_wanted=0) == ["holes", "joined"]


def test_small_is_few_records_in_few_bytes() -> None:
    assert is_small(source_batch(list(range(500, 508)))[1])
    assert not is_small(source_batch(list(range(500, 509)))[1])
    ((old, _),) = split_batches(message(500, b"k", b"v"))
    assert is_small(old)


def test_what_the_target_asks_beyond_the_protocol_is_a_reason_too() -> None:
    batch, head = source_batch(list(range(500, 520)), codec=Codec.LZ4)
    assert choose_way(head, first_wanted=0, demands=TargetLimits(codec=Codec.LZ4)) == Verbatim()
    assert choose_way(head, first_wanted=0, demands=TargetLimits(codec=Codec.ZSTD)) == Repack(("codec",))
    assert choose_way(head, first_wanted=0, demands=TargetLimits(largest_bytes=len(batch))) == Verbatim()
    assert choose_way(head, first_wanted=0, demands=TargetLimits(largest_bytes=len(batch) - 1)) == Repack(
        ("split",)
    )
    assert choose_way(head, first_wanted=0, demands=TargetLimits(held_out={520: "x"})) == Verbatim()
    assert choose_way(head, first_wanted=0, demands=TargetLimits(held_out={519: "x"})) == Repack(
        ("held_out",)
    )


@pytest.mark.parametrize("codec", Codec)
@pytest.mark.parametrize("wanted", Codec)
def test_the_codec_that_is_asked_for_holds_the_same_records(codec: Codec, wanted: Codec) -> None:
    batch, head = source_batch([500, 501, 503], codec=codec)
    made = one_of([(head, batch)], first_wanted=0, demands=TargetLimits(codec=wanted))
    there, records = appended(made.batch)
    assert there.codec is wanted
    assert records == appended(one_of([(head, batch)], first_wanted=0).batch)[1]


@pytest.mark.parametrize("codec", Codec)
def test_a_batch_that_is_too_big_is_split_in_order_and_no_part_is(codec: Codec) -> None:
    batch, head = source_batch(list(range(500, 564)), codec=codec)
    least = len(source_batch([500], codec=codec)[0])
    for largest in (len(batch) - 1, len(batch) // 3, least + 40, 1):
        done = repack([(head, batch)], first_wanted=501, demands=TargetLimits(largest_bytes=largest))
        parts = [appended(ours(part).batch) for part in done.made]
        assert [r.key for _, records in parts for r in records] == [b"k%d" % n for n in range(1, 64)]
        assert [first for part in done.made for first, _ in part.segments] == [
            501 + sum(part.record_count for part in done.made[:n]) for n in range(len(done.made))
        ]
        assert all(len(part.batch) <= largest or part.record_count == 1 for part in done.made)


def test_records_that_are_held_out_are_given_back_and_leave_a_hole() -> None:
    batch, head = source_batch(list(range(500, 506)))
    done = repack(
        [(head, batch)], first_wanted=501, demands=TargetLimits(held_out={500: "", 503: "", 505: ""})
    )
    (made,) = done.made
    assert made.segments == ((501, 2), (504, 1))
    assert [frame.offset for frame in done.held_out] == [503, 505]
    all_of_it = repack([(head, batch)], first_wanted=505, demands=TargetLimits(held_out={505: ""}))
    assert (all_of_it.made, len(all_of_it.held_out)) == ((), 1)
