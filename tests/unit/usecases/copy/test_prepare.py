"""What a stream gives to a wave: whole, in parts, or without what is held out; the position moves with it."""

import struct
from dataclasses import replace

import google_crc32c
import pytest

from causeway.core.copy.lane_task import LaneTask, Quarantine
from causeway.core.copy.ports import Refused
from causeway.core.copy.producer import ProducerState
from causeway.core.copy.repack import repack
from causeway.core.copy.target_limits import TargetLimits
from causeway.core.model.flow import RefusedPolicy
from causeway.core.records.batches import check_crc, split_batches
from causeway.core.records.compression import Codec
from causeway.core.records.records import Record, decode_records, encode_batch
from causeway.core.state.parked import ParkReason
from causeway.usecases.copy.lane.partition_stream import PartitionStream, Sent
from causeway.usecases.copy.lane.prepare import prepare
from causeway.usecases.copy.lane.refusals import take_refusal
from tests.integration.fidelity.cases import Seen, thinned_batch
from tests.unit.usecases.copy.stage import TASK, fetched, raw, stream


def source_batch(base: int, count: int, *, epoch: int = 7, size: int = 20) -> bytes:
    records = [Record(n, 1_000 + n, b"k%d" % (base + n), b"v" * size) for n in range(count)]
    data = bytearray(
        encode_batch(records, codec=Codec.NONE, producer_id=1, producer_epoch=1, base_sequence=0)
    )
    data[:8], data[12:16] = base.to_bytes(8, "big"), epoch.to_bytes(4, "big")
    data[22] &= 0x07  # a plain producer's
    struct.pack_into(">I", data, 17, google_crc32c.value(bytes(data[21:])))
    return bytes(data)


def with_demands(demands: TargetLimits, *batches: bytes) -> PartitionStream:
    it = stream()
    it.demands, it.may_join = demands, demands.may_join
    it.take(fetched(*batches))
    return it


def task(policy: RefusedPolicy = RefusedPolicy.PARK) -> LaneTask:
    quarantine = Quarantine(topic="q", source="sf") if policy is RefusedPolicy.QUARANTINE else None
    return replace(TASK, on_refused=policy, quarantine=quarantine)


def prepared(lane: LaneTask, it: PartitionStream) -> tuple[Sent, bytearray]:
    """What comes next, and something does."""
    made = prepare(lane, it, ProducerState(9, 2))
    assert made is not None
    return made


def keys(batch: bytearray) -> tuple[int, list[bytes | None]]:
    ((head, view),) = split_batches(bytes(batch))
    check_crc(view, head)
    return head.base_sequence, [r.key for r in decode_records(view, head)]


def test_a_split_batch_goes_part_by_part_and_the_position_with_it() -> None:
    it, producer = with_demands(TargetLimits(largest_bytes=500), source_batch(100, 40)), ProducerState(9, 2)
    seen: list[bytes | None] = []
    at = 100
    while (made := prepare(task(), it, producer)) is not None:
        sent, batch = made
        sequence, found = keys(batch)
        assert (sent.source_before, sent.segments[0][0], sequence) == (at, at, at - 100)
        assert sent.repacked_because == "split"
        assert len(batch) <= 500
        seen, at = seen + found, at + sent.records
        assert it.consumed == at
    assert seen == [b"k%d" % n for n in range(100, 140)]
    assert it.consumed_epoch == 7


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_a_delete_horizon_is_no_records_time(codec: Codec) -> None:
    # Too many to be joined: it crosses verbatim.
    seen: list[Seen] = [(1_000 + n, b"k%d" % n, None, ()) for n in range(9)]
    it = with_demands(
        TargetLimits(), thinned_batch(100, list(range(9)), 8, seen, codec, horizon_ms=9_000_000)
    )
    sent, batch = prepared(task(), it)
    assert (sent.repacked_because, sent.first_timestamp_ms, sent.last_timestamp_ms) == ("", 1_000, 1_008)
    # On a mirror of that mirror the flag is gone, and the base is what it was.
    again = bytearray(batch)
    again[:8] = (100).to_bytes(8, "big")
    again[22] &= 0x07
    struct.pack_into(">I", again, 17, google_crc32c.value(bytes(again[21:])))
    sent, _ = prepared(task(), with_demands(TargetLimits(), bytes(again)))
    assert (sent.repacked_because, sent.first_timestamp_ms) == ("", 1_000)


def test_parts_that_wait_keep_the_position_before_the_holes_after_them() -> None:
    it = with_demands(TargetLimits(largest_bytes=500), source_batch(100, 40))
    it.queue.append((next(iter(split_batches(raw(140, 5))))[0], None))
    sent, _ = prepared(task(), it)
    it.skip_holes()
    assert it.consumed == 100 + sent.records
    while prepare(task(), it, ProducerState(9, 2)) is not None:
        pass
    assert it.consumed == 145


def test_a_refused_part_takes_the_position_back_before_it() -> None:
    it = with_demands(TargetLimits(largest_bytes=500), source_batch(100, 40))
    prepare(task(), it, ProducerState(9, 2))
    second, _ = prepared(task(), it)
    take_refusal(task(), it, second, Refused(10), now_ms=0)
    assert it.consumed == second.source_before > 100
    assert it.row.demands is not None
    assert it.row.demands.largest_bytes is not None
    assert it.row.demands.largest_bytes < 500
    assert prepare(task(), it, ProducerState(9, 2)) is None


def test_held_out_records_wait_until_the_position_has_passed_them() -> None:
    held = {103: "too large", 139: "too large"}
    it = with_demands(TargetLimits(largest_bytes=500, held_out=held), source_batch(100, 40))
    quarantining, producer = task(RefusedPolicy.QUARANTINE), ProducerState(9, 2)
    first, batch = prepared(quarantining, it)
    assert b"k103" not in keys(batch)[1]
    assert [each.offset for each in it.take_held_out()] == [103]
    assert it.take_held_out() == []
    while prepare(quarantining, it, producer) is not None:
        pass
    assert (it.consumed, [each.offset for each in it.take_held_out()]) == (140, [139])
    assert it.txn.quarantined == held
    assert first.segments[0] == (100, 3)


def test_what_is_held_out_after_a_refused_batch_is_not_put_aside() -> None:
    it = with_demands(TargetLimits(held_out={145: "too large"}), source_batch(100, 40), source_batch(140, 40))
    quarantining, producer = task(RefusedPolicy.QUARANTINE), ProducerState(9, 2)
    first, _ = prepared(quarantining, it)
    prepare(quarantining, it, producer)
    take_refusal(quarantining, it, first, Refused(87, at_fault=(2,)), now_ms=0)
    assert it.take_held_out() == []
    assert it.row.demands is not None
    assert it.row.demands.held_out.keys() == {102, 145}


def test_a_batch_of_nothing_but_held_out_records_is_a_hole() -> None:
    it = with_demands(TargetLimits(held_out={100: "x", 101: "x"}), source_batch(100, 2))
    assert prepare(task(RefusedPolicy.QUARANTINE), it, ProducerState(9, 2)) is None
    assert (it.consumed, [each.offset for each in it.take_held_out()]) == (102, [100, 101])


@pytest.mark.parametrize("count", [3, 40])
def test_what_stumbles_a_broker_is_read_before_it_is_sent_again(count: int) -> None:
    bad = bytearray(source_batch(100 + count, count))
    bad[61:66] = b"\xff" * 5
    struct.pack_into(">I", bad, 17, google_crc32c.value(bytes(bad[21:])))
    it = with_demands(TargetLimits(examines=True), source_batch(100, count), bytes(bad))
    sent, _ = prepared(task(), it)
    assert sent.records == count
    assert prepare(task(), it, ProducerState(9, 2)) is None
    assert it.row.parked is not None
    assert it.row.parked.reason is ParkReason.SOURCE_CORRUPT
    assert f"offset = {100 + count}" in it.row.parked.facts
    assert it.consumed == 100 + count


def holding(base: int, size: int, *, codec: Codec = Codec.ZSTD, attributes: int = 0) -> bytes:
    """A small batch of one record that holds `size` zeros."""
    record = Record(0, 1_000, b"k%d" % base, bytes(size))
    data = bytearray(encode_batch([record], codec=codec, producer_id=1, producer_epoch=1, base_sequence=0))
    data[:8], data[22] = base.to_bytes(8, "big"), attributes | codec
    struct.pack_into(">I", data, 17, google_crc32c.value(bytes(data[21:])))
    return bytes(data)


def all_prepared(it: PartitionStream) -> list[tuple[Sent, bytearray, int]]:
    made = []
    while (one := prepare(task(), it, ProducerState(9, 2))) is not None:
        made.append((*one, it.consumed))
    return made


def test_what_does_not_fit_into_a_joined_batch_goes_back_and_keeps_its_place() -> None:
    sizes = [300_000] * 8
    it = with_demands(TargetLimits(), *(holding(100 + n, size) for n, size in enumerate(sizes)))
    made = all_prepared(it)
    assert [sent.segments for sent, _, _ in made] == [((100, 3),), ((103, 3),), ((106, 2),)]
    assert [consumed for _, _, consumed in made] == [103, 106, 108]
    assert [key for _, batch, _ in made for key in keys(batch)[1]] == [b"k%d" % n for n in range(100, 108)]


def test_large_contents_cross_as_they_are_and_small_ones_after_them_are_joined() -> None:
    large = [holding(100 + n, 1_000_000) for n in range(3)]
    it = with_demands(TargetLimits(), *large, holding(103, 10), holding(104, 10))
    made = all_prepared(it)
    assert [(sent.repacked_because, sent.segments) for sent, _, _ in made] == [
        ("", ((100, 1),)),
        ("", ((101, 1),)),
        ("joined", ((102, 3),)),
    ]
    assert [bytes(batch[61:]) for _, batch, _ in made[:2]] == [bytes(batch[61:]) for batch in large[:2]]


def test_holes_between_what_is_joined_and_what_went_back_are_passed() -> None:
    aborted = raw(101, 2, attributes=0x10), raw(104, attributes=0x10)
    it = stream()
    it.take(
        fetched(
            holding(100, 600_000),
            aborted[0],
            holding(103, 10),
            aborted[1],
            holding(105, 600_000),
            aborted=((101, 1), (104, 1)),
        )
    )
    made = all_prepared(it)
    assert [(sent.segments, sent.repacked_because, consumed) for sent, _, consumed in made] == [
        (((100, 1), (103, 1)), "joined", 104),
        (((105, 1),), "", 106),
    ]


APPEND_TIME = 8


@pytest.mark.parametrize(
    ("demands", "attributes", "remedy"),
    [
        (TargetLimits(codec=Codec.LZ4), 0, "set compression.type of sf.orders on the target to producer"),
        (TargetLimits(), APPEND_TIME, "`causeway adopt f orders 3 102 --because"),
    ],
)
def test_what_is_too_large_to_be_taken_apart_is_parked_for_that_and_not_as_corrupt(
    demands: TargetLimits, attributes: int, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repack, "__kwdefaults__", {**(repack.__kwdefaults__ or {}), "limit_bytes": 1 << 20})
    large = holding(101, 1 << 20, attributes=attributes)
    it = with_demands(demands, holding(100, 10, attributes=attributes), large)
    (first, _, consumed), *others = all_prepared(it)
    assert (first.records, consumed, others) == (1, 101, [])
    assert it.row.parked is not None
    assert it.row.parked.reason is ParkReason.SOURCE_OVERSIZED
    assert f"its {len(large)} bytes are more than 1,048,576 bytes decompressed" in it.row.parked.facts
    assert "orders-3 offset 101" in it.row.parked.facts
    assert remedy in it.row.parked.remedy


def test_what_is_too_large_to_be_taken_apart_crosses_where_nothing_asks_for_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(repack, "__kwdefaults__", {**(repack.__kwdefaults__ or {}), "limit_bytes": 1 << 20})
    it = with_demands(TargetLimits(), holding(100, 1 << 20))
    assert [sent.repacked_because for sent, _, _ in all_prepared(it)] == [""]
    assert it.row.parked is None
