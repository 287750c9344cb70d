"""What a stream gives to a wave: whole, in parts, or without what is held out; the position moves with it."""

import struct
from dataclasses import replace

import google_crc32c
import pytest
from test_stream import TASK, fetched, raw, stream

from causeway.core.batches import check_crc, split_batches
from causeway.core.codecs import Codec
from causeway.core.demands import Demands
from causeway.core.flow import RefusedPolicy
from causeway.core.lane_task import ParkReason, Quarantine
from causeway.core.ports import Refused
from causeway.core.producer import ProducerState
from causeway.core.records import Record, decode_records, encode_batch
from causeway.flows.lane.preparing import prepare
from causeway.flows.lane.refusals import take_refusal


def source_batch(base, count, *, epoch=7, size=20):
    records = [Record(n, 1_000 + n, b"k%d" % (base + n), b"v" * size) for n in range(count)]
    data = bytearray(
        encode_batch(records, codec=Codec.NONE, producer_id=1, producer_epoch=1, base_sequence=0)
    )
    data[:8], data[12:16] = base.to_bytes(8, "big"), epoch.to_bytes(4, "big")
    data[22] &= 0x07  # a plain producer's
    struct.pack_into(">I", data, 17, google_crc32c.value(bytes(data[21:])))
    return bytes(data)


def with_demands(demands, *batches):
    it = stream()
    it.demands, it.may_join = demands, demands.may_join
    it.take(fetched(*batches))
    return it


def task(policy=RefusedPolicy.PARK):
    quarantine = Quarantine(topic="q", source="sf") if policy is RefusedPolicy.QUARANTINE else None
    return replace(TASK, on_refused=policy, quarantine=quarantine)


def keys(batch):
    ((head, view),) = split_batches(bytes(batch))
    check_crc(view, head)
    return head.base_sequence, [r.key for r in decode_records(view, head)]


def test_a_split_batch_goes_part_by_part_and_the_position_with_it():
    it, producer = with_demands(Demands(largest_bytes=500), source_batch(100, 40)), ProducerState(9, 2)
    seen, at = [], 100
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


def test_parts_that_wait_keep_the_position_in_front_of_the_holes_behind_them():
    it = with_demands(Demands(largest_bytes=500), source_batch(100, 40))
    it.queue.append((next(iter(split_batches(raw(140, 5))))[0], None))
    sent, _ = prepare(task(), it, ProducerState(9, 2))
    it.skip_holes()
    assert it.consumed == 100 + sent.records
    while prepare(task(), it, ProducerState(9, 2)) is not None:
        pass
    assert it.consumed == 145


def test_a_refused_part_takes_the_position_back_in_front_of_it():
    it = with_demands(Demands(largest_bytes=500), source_batch(100, 40))
    prepare(task(), it, ProducerState(9, 2))
    second, _ = prepare(task(), it, ProducerState(9, 2))
    take_refusal(task(), it, second, Refused(10), now_ms=0)
    assert it.consumed == second.source_before > 100
    assert it.row.demands.largest_bytes < 500
    assert prepare(task(), it, ProducerState(9, 2)) is None


def test_held_out_records_wait_until_the_position_has_passed_them():
    held = {103: "too large", 139: "too large"}
    it = with_demands(Demands(largest_bytes=500, held_out=held), source_batch(100, 40))
    quarantining, producer = task(RefusedPolicy.QUARANTINE), ProducerState(9, 2)
    first, batch = prepare(quarantining, it, producer)
    assert b"k103" not in keys(batch)[1]
    assert [each.offset for each in it.take_held_out()] == [103]
    assert it.take_held_out() == []
    while prepare(quarantining, it, producer) is not None:
        pass
    assert (it.consumed, [each.offset for each in it.take_held_out()]) == (140, [139])
    assert it.txn.quarantined == held
    assert first.segments[0] == (100, 3)


def test_what_is_held_out_behind_a_refused_batch_is_not_put_aside():
    it = with_demands(Demands(held_out={145: "too large"}), source_batch(100, 40), source_batch(140, 40))
    quarantining, producer = task(RefusedPolicy.QUARANTINE), ProducerState(9, 2)
    first, _ = prepare(quarantining, it, producer)
    prepare(quarantining, it, producer)
    take_refusal(quarantining, it, first, Refused(87, at_fault=(2,)), now_ms=0)
    assert it.take_held_out() == []
    assert it.row.demands.held_out.keys() == {102, 145}


def test_a_batch_of_nothing_but_held_out_records_is_a_hole():
    it = with_demands(Demands(held_out={100: "x", 101: "x"}), source_batch(100, 2))
    assert prepare(task(RefusedPolicy.QUARANTINE), it, ProducerState(9, 2)) is None
    assert (it.consumed, [each.offset for each in it.take_held_out()]) == (102, [100, 101])


@pytest.mark.parametrize("count", [3, 40])
def test_what_stumbles_a_broker_is_read_before_it_is_sent_again(count):
    bad = bytearray(source_batch(100 + count, count))
    bad[61:66] = b"\xff" * 5
    struct.pack_into(">I", bad, 17, google_crc32c.value(bytes(bad[21:])))
    it = with_demands(Demands(examines=True), source_batch(100, count), bytes(bad))
    sent, _ = prepare(task(), it, ProducerState(9, 2))
    assert sent.records == count
    assert prepare(task(), it, ProducerState(9, 2)) is None
    assert it.row.parked.reason is ParkReason.SOURCE_CORRUPT
    assert f"offset = {100 + count}" in it.row.parked.facts
    assert it.consumed == 100 + count
