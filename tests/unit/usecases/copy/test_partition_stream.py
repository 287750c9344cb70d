"""One partition's way through a lane: what counts, and when."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from uuid import UUID

import pytest

from causeway.core.copy.ports import FetchFrom
from causeway.core.copy.tail_comparison import SettledBatch, SettledTail
from causeway.core.kernel.identity import Generation, SourceOffset, TargetOffset
from causeway.core.records.batches import BatchHead
from causeway.core.state.parked import Parked, ParkReason
from causeway.usecases.copy.lane.inspect import PartitionState
from causeway.usecases.copy.lane.partition_stream import PartitionStream, Sent
from tests.support import builders
from tests.unit.usecases.copy.stage import PAIR, TASK, fetched, raw, stream

POSITION = builders.position(100, 40, source_epoch=5, target_epoch=2, generation=Generation(9), producer_id=3)


def sent(
    first: int = 100,
    count: int = 5,
    *,
    repacked_because: str = "",
    source_before: int | None = None,
    epoch_before: int = 5,
) -> Sent:
    return Sent(
        segments=((first, count),),
        records=count,
        size_bytes=50,
        first_timestamp_ms=1,
        last_timestamp_ms=2,
        repacked_because=repacked_because,
        source_before=first if source_before is None else source_before,
        epoch_before=epoch_before,
    )


def next_batch(it: PartitionStream) -> tuple[BatchHead, memoryview]:
    """One that is there."""
    found = it.next_batch()
    assert found is not None
    return found


def test_it_fetches_after_what_it_has_with_that_batches_epoch() -> None:
    it = stream()
    assert it.fetch_from() == FetchFrom(UUID(int=1), 100, 5)
    it.take(fetched(raw(100, 5), raw(105, 2, epoch=8)))
    assert it.fetch_from() == FetchFrom(UUID(int=1), 107, 8)
    assert it.consumed == 100


def test_it_wants_more_until_the_planned_end() -> None:
    it = stream(end=105)
    assert it.wants_more
    it.take(fetched(raw(100, 5)))
    assert not it.wants_more


def test_the_position_moves_over_trailing_holes_and_not_over_waiting_data() -> None:
    it = stream()
    it.take(
        fetched(raw(100, 5, attributes=0x10), raw(105), raw(106, 2, attributes=0x10), aborted=((100, 1),))
    )
    it.skip_holes()
    assert it.consumed == 105
    head, _ = next_batch(it)
    it.pass_over(head)
    assert it.consumed == 106
    assert it.next_batch() is None
    assert (it.consumed, it.consumed_epoch) == (108, 7)


def test_a_corrupt_batch_parks_after_the_good_ones_which_still_cross() -> None:
    it, bad = stream(), bytearray(raw(105))
    bad[-1] ^= 1
    it.take(fetched(raw(100, 5), bytes(bad), raw(106)))
    assert it.row.parked is not None
    assert it.row.parked.reason is ParkReason.SOURCE_CORRUPT
    assert '`causeway adopt f orders 3 OFFSET --because "..."`' in it.row.parked.remedy
    assert next_batch(it)[0].base_offset == 100
    assert it.next_batch() is None
    assert not it.wants_more
    it.take(fetched(raw(105)))
    assert it.next_batch() is None


def test_a_refused_batch_takes_the_position_back_before_it_and_drops_what_waits() -> None:
    it, parked = stream(), Parked(ParkReason.REFUSED, "f", "r")
    it.take(fetched(raw(100, 5), raw(105), raw(106)))
    for _ in range(2):
        it.pass_over(next_batch(it)[0])
    it.refused(sent(100, source_before=100, epoch_before=5), parked)
    assert (it.consumed, it.consumed_epoch, it.row.parked) == (100, 5, parked)
    assert it.next_batch() is None
    assert it.was_refused


def test_only_what_is_committed_counts() -> None:
    it = stream()
    it.txn.touched = True
    it.acknowledged(sent(), 40)
    it.consumed = 105
    assert (it.row.records, it.row.source_next, it.target_next, it.target_end) == (0, 100, 45, 45)
    it.committed(it.next_position(TASK, producer_id=6, time_ms=7))
    assert (it.row.records, it.row.size_bytes, it.row.source_next) == (5, 50, 105)
    assert (it.target_next, it.target_end) == (45, 46)  # a marker lies between
    assert it.txn.records == 0


def test_a_position_says_where_both_logs_stand_and_who_wrote_it() -> None:
    it = stream()
    it.acknowledged(sent(), 40)
    it.consumed, it.consumed_epoch, it.aborted_seen = 105, 8, 3
    first = it.next_position(TASK, producer_id=6, time_ms=7)
    assert (first.source_next, first.target_next, first.source_epoch, first.target_epoch) == (105, 45, 8, 2)
    assert (first.generation, first.producer_id, first.time_ms) == (9, 6, 7)
    assert (first.records, first.aborted_records) == (5, 3)
    it.committed(first)
    it.acknowledged(sent(105, 2), 46)
    again = it.next_position(TASK, producer_id=6, time_ms=8)
    assert (again.records, again.aborted_records) == (7, 3)


def test_batches_are_counted_by_how_they_crossed() -> None:
    it = stream()
    it.acknowledged(sent(), 40)
    it.acknowledged(sent(105, repacked_because="holes"), 45)
    it.committed(it.next_position(TASK, producer_id=6, time_ms=7))
    assert (it.row.verbatim_batches, it.row.repacked_batches) == (1, {"holes": 1})


def test_what_is_acknowledged_is_in_the_map() -> None:
    it = stream()
    it.acknowledged(sent(100, 5), 40)
    it.acknowledged(sent(107, 2), 45)
    (run,) = it.runs.build()
    assert (run.target, run.generation, run.target_first, run.segments) == (
        PAIR.target,
        9,
        40,
        ((5, 2), (2, 0)),
    )


def test_there_is_news_only_while_something_is_not_committed() -> None:
    it = stream()
    assert it.has_news
    it.committed(it.next_position(TASK, producer_id=6, time_ms=7))
    assert not it.has_news
    it.consumed += 1
    assert it.has_news
    it.committed(it.next_position(TASK, producer_id=6, time_ms=7))
    it.aborted_seen = 1
    assert not it.has_news  # it counts with the first record that is appended after it


def test_aborted_records_count_only_once_their_tail_is_passed() -> None:
    it = stream()
    it.aborted_seen = 3
    it.consumed += 1  # a marker on the source: a position is due, but nothing was appended
    moved = it.next_position(TASK, producer_id=6, time_ms=7)
    assert moved.aborted_records == 0
    it.committed(moved)
    it.acknowledged(sent(), 40)
    assert it.next_position(TASK, producer_id=6, time_ms=8).aborted_records == 3


@pytest.mark.parametrize(
    "close",
    [lambda it: it.park(Parked(ParkReason.REFUSED, "f", "r")), lambda it: it.wait_for_next_round("why")],
)
def test_a_closed_partition_takes_no_more(close: Callable[[PartitionStream], None]) -> None:
    it = stream()
    close(it)
    it.take(fetched(raw(100)))
    assert it.next_batch() is None
    assert not it.wants_more


def heads(batches: Iterable[tuple[BatchHead, memoryview | None]]) -> list[int]:
    return [head.base_offset for head, _ in batches]


def test_small_batches_of_one_codec_travel_together_with_the_holes_between_them() -> None:
    it = stream()
    it.take(
        fetched(
            raw(100),
            raw(101),
            raw(102, 2, attributes=0x10),
            raw(104),
            raw(105, attributes=3),
            aborted=((102, 1),),
        )
    )
    head, _ = next_batch(it)
    assert heads(it.small_neighbours(head)) == [101, 102, 104]
    assert next_batch(it)[0].base_offset == 105


def test_a_batch_of_many_records_ends_what_travels_together() -> None:
    it = stream()
    it.take(fetched(raw(100), raw(101, 900), raw(1001)))
    head, _ = next_batch(it)
    assert it.small_neighbours(head) == []


def test_holes_at_the_end_are_left_for_the_position_to_move_over() -> None:
    it = stream()
    it.take(fetched(raw(100), raw(101), raw(102, attributes=0x10), aborted=((102, 1),)))
    head, _ = next_batch(it)
    assert heads(it.small_neighbours(head)) == [101]
    assert heads(it.queue) == [102]


def test_what_can_not_be_joined_goes_one_by_one_in_its_old_order() -> None:
    it = stream()
    it.take(fetched(raw(100), raw(101), raw(102)))
    head, batch = next_batch(it)
    it.do_not_join([(head, batch), *it.small_neighbours(head)])
    for base in (100, 101, 102):
        head, _ = next_batch(it)
        assert (head.base_offset, it.small_neighbours(head)) == (base, [])


SETTLED = SettledTail([SettledBatch(((100, 2), (104, 3)), 40, 11, 15, 6, 300)], 8, 4, 1)


def settled_stream() -> PartitionStream:
    made = stream(at=109)
    ground = PartitionState(
        assignment=made.assignment,
        position=replace(POSITION, records=10, aborted_records=2),
        source_next=SourceOffset(100),
        source_epoch=5,
        target_next=TargetOffset(40),
        target_end=46,
        target_epoch=2,
        leader_epoch=8,
        log_start=0,
        aborted_seen=5,
    )
    ground.take(SETTLED)
    return PartitionStream(ground, made.row, TASK, now_ms=0)


def test_what_was_settled_moves_the_position_and_gets_its_run_before_anything_is_appended() -> None:
    at = settled_stream()
    assert at.has_news
    (run,) = at.runs.build(at.target_epoch)
    assert (run.source_first, run.target_first, run.segments) == (100, 40, ((2, 2), (3, 0)))
    assert (run.target_epoch, run.source_epoch) == (8, 6)
    position = at.next_position(TASK, producer_id=4, time_ms=6)
    assert (position.source_next, position.target_next) == (107, 45)
    assert (position.source_epoch, position.target_epoch) == (6, 8)
    assert (position.records, position.aborted_records) == (15, 6)  # those before it were passed


def test_settled_records_count_once_and_aborted_ones_after_them_wait_for_an_append() -> None:
    at = settled_stream()
    at.committed(at.next_position(TASK, producer_id=4, time_ms=6))
    row = at.row
    assert (row.records, row.settled_records, row.aborted_records) == (5, 5, 4)
    assert (row.source_from, row.source_next) == (100, 107)
    at.txn.touched, at.txn.records = True, 3
    at.committed(at.next_position(TASK, producer_id=4, time_ms=6))
    assert (row.records, row.settled_records, row.aborted_records) == (8, 5, 5)
