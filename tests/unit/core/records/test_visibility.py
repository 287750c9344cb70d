import struct
from collections.abc import Sequence

import google_crc32c
import pytest

from causeway.core.records.batches import HEADER, CorruptBatch
from causeway.core.records.visibility import Undecided, Visibility, read_committed

TRANSACTIONAL, CONTROL = 0x10, 0x20
DATA, ABORTED, MARKER = Visibility.DATA, Visibility.ABORTED, Visibility.MARKER


def raw(base: int, count: int, attributes: int, producer: int, records: bytes = b"payload") -> bytes:
    checked = HEADER.pack(0, 0, 0, 2, 0, attributes, count - 1, 0, 0, producer, 0, 0, count)[21:] + records
    return struct.pack(">qiibI", base, len(checked) + 9, 5, 2, google_crc32c.value(checked)) + checked


def plain(base: int, count: int = 1, producer: int = -1) -> bytes:
    return raw(base, count, 0, producer)


def transactional(base: int, producer: int, count: int = 1) -> bytes:
    return raw(base, count, TRANSACTIONAL, producer)


def marker(base: int, producer: int, kind: int) -> bytes:
    key = struct.pack(">hh", 0, kind)
    record = bytes([0, 0, 0, 8]) + key + bytes([0, 0])
    return raw(base, 1, TRANSACTIONAL | CONTROL, producer, bytes([2 * len(record)]) + record)


def abort(base: int, producer: int) -> bytes:
    return marker(base, producer, 0)


def commit(base: int, producer: int) -> bytes:
    return marker(base, producer, 1)


def seen(
    *batches: bytes, aborted: Sequence[tuple[int, int]] = (), from_offset: int = 0
) -> list[tuple[int, Visibility]]:
    log = memoryview(b"".join(batches))
    return [(head.base_offset, what) for head, _, what in read_committed(log, aborted, from_offset)]


def test_without_transactions_everything_is_data() -> None:
    assert seen(plain(0, 3), plain(3), plain(4, producer=9)) == [(0, DATA), (3, DATA), (4, DATA)]


def test_an_aborted_transaction_is_left_out_and_a_committed_one_is_not() -> None:
    log = transactional(0, 1), abort(1, 1), transactional(2, 1), commit(3, 1)
    assert seen(*log, aborted=[(0, 1)]) == [(0, ABORTED), (1, MARKER), (2, DATA), (3, MARKER)]


def test_interleaved_producers_are_distinguished() -> None:
    log = (
        transactional(0, 1),
        transactional(1, 2),
        plain(2),
        transactional(3, 1),
        commit(4, 2),
        transactional(5, 2),
        abort(6, 1),
        transactional(7, 1),
        abort(8, 2),
        commit(9, 1),
    )
    assert seen(*log, aborted=[(0, 1), (5, 2)]) == [
        (0, ABORTED),
        (1, DATA),
        (2, DATA),
        (3, ABORTED),
        (4, MARKER),
        (5, ABORTED),
        (6, MARKER),
        (7, DATA),
        (8, MARKER),
        (9, MARKER),
    ]


def test_the_commit_of_one_producer_does_not_close_the_abort_of_another() -> None:
    log = transactional(0, 1), commit(1, 2), transactional(2, 1), abort(3, 1)
    assert [what for _, what in seen(*log, aborted=[(0, 1)])] == [ABORTED, MARKER, ABORTED, MARKER]


def test_the_end_of_one_abort_does_not_end_another() -> None:
    log = transactional(0, 1), transactional(1, 2), abort(2, 1), transactional(3, 2), abort(4, 2)
    aborted = [(0, 1), (1, 2)]
    assert [what for _, what in seen(*log, aborted=aborted)] == [ABORTED, ABORTED, MARKER, ABORTED, MARKER]


def test_only_an_abort_marker_ends_an_abort() -> None:
    """As Kafka's own consumer reads; no broker should write such a log."""
    log = transactional(0, 1), commit(1, 1), transactional(2, 1)
    assert [what for _, what in seen(*log, aborted=[(0, 1)])] == [ABORTED, MARKER, ABORTED]


def test_an_abort_that_began_before_the_fetch_holds_inside_it() -> None:
    log = transactional(10, 1), plain(11), abort(12, 1), transactional(13, 1)
    assert seen(*log, aborted=[(2, 1)], from_offset=10) == [
        (10, ABORTED),
        (11, DATA),
        (12, MARKER),
        (13, DATA),
    ]


def test_an_abort_whose_marker_comes_in_a_later_fetch_holds_to_the_end() -> None:
    assert seen(transactional(0, 1), transactional(1, 1), aborted=[(0, 1)]) == [(0, ABORTED), (1, ABORTED)]


def test_two_aborts_of_one_producer_are_two() -> None:
    log = (
        transactional(0, 1),
        abort(1, 1),
        transactional(2, 1),
        commit(3, 1),
        transactional(4, 1),
        abort(5, 1),
    )
    assert [what for _, what in seen(*log, aborted=[(0, 1), (4, 1)])] == [
        ABORTED,
        MARKER,
        DATA,
        MARKER,
        ABORTED,
        MARKER,
    ]


def test_what_a_producer_wrote_without_a_transaction_is_data() -> None:
    assert seen(transactional(0, 1), plain(1, producer=1), abort(2, 1), aborted=[(0, 1)])[1] == (1, DATA)


def test_markers_only_and_empty_aborts_are_markers() -> None:
    assert seen(abort(0, 1), commit(1, 2), abort(2, 1)) == [(0, MARKER), (1, MARKER), (2, MARKER)]


def test_an_empty_abort_leaves_the_next_transaction_alone() -> None:
    assert seen(abort(0, 1), transactional(1, 1), commit(2, 1))[1] == (1, DATA)


def test_nothing_fetched_is_nothing_seen() -> None:
    assert seen(aborted=[(0, 1)]) == []


def test_only_what_reaches_after_the_offset_is_given_out_but_all_of_it_is_counted() -> None:
    log = transactional(0, 1, count=5), abort(5, 1), transactional(6, 1, count=4), commit(10, 1)
    assert seen(*log, aborted=[(0, 1)], from_offset=6) == [(6, DATA), (10, MARKER)]
    assert seen(*log, aborted=[(0, 1)], from_offset=4)[0] == (0, ABORTED)
    assert seen(*log, aborted=[(0, 1)], from_offset=5)[0] == (5, MARKER)
    assert seen(*log, aborted=[(0, 1)], from_offset=9)[0] == (6, DATA)


def test_a_batch_that_ends_where_an_abort_begins_is_aborted_and_the_one_before_is_not() -> None:
    log = transactional(0, 1, count=5), commit(5, 1), transactional(6, 1, count=5), abort(11, 1)
    assert [what for _, what in seen(*log, aborted=[(6, 1)])] == [DATA, MARKER, ABORTED, MARKER]
    assert seen(transactional(0, 1, count=5), aborted=[(4, 1)]) == [(0, ABORTED)]
    assert seen(transactional(0, 1, count=5), aborted=[(5, 1)]) == [(0, DATA)]


def test_a_corrupt_batch_stops_the_reading_after_the_good_ones() -> None:
    good, bad = plain(0, 3), bytearray(transactional(3, 1))
    bad[-1] ^= 1
    reading = read_committed(memoryview(good + bytes(bad) + plain(4)), [], 0)
    assert next(reading)[0].base_offset == 0
    with pytest.raises(CorruptBatch, match="= 3: its checksum"):
        next(reading)


@pytest.mark.parametrize("bit", [TRANSACTIONAL, CONTROL])
def test_a_flipped_bit_never_turns_data_into_something_to_leave_out(bit: int) -> None:
    flipped = bytearray(plain(0, producer=1))
    flipped[22] ^= bit
    with pytest.raises(CorruptBatch, match="checksum"):
        seen(bytes(flipped), aborted=[(0, 1)])


def test_corruption_is_noticed_even_in_what_is_not_given_out() -> None:
    bad = bytearray(abort(0, 1))
    bad[-1] ^= 1
    with pytest.raises(CorruptBatch):
        seen(bytes(bad), plain(1), from_offset=1)


def test_a_control_batch_that_ends_no_transaction_is_refused() -> None:
    with pytest.raises(CorruptBatch, match="control type 7"):
        seen(marker(0, 1, 7))


def test_an_emptied_marker_says_nothing_any_more() -> None:
    """The cleaner keeps the batch of a marker without its record, for its producer's sake."""
    checked = HEADER.pack(0, 0, 0, 2, 0, TRANSACTIONAL | CONTROL, 0, 0, 0, 9, 0, -1, 0)[21:]
    emptied = struct.pack(">qiibI", 7, len(checked) + 9, 5, 2, google_crc32c.value(checked)) + checked

    seen = [(head.base_offset, what) for head, _, what in read_committed(memoryview(emptied), [(3, 9)], 0)]

    assert seen == [(7, MARKER)]


def committed(*batches: bytes) -> list[int]:
    undecided, log = Undecided(), memoryview(b"".join(batches))
    return [
        head.base_offset for read in read_committed(log, (), 0) for head, _ in undecided.committed_by(*read)
    ]


def test_after_the_last_stable_offset_the_markers_tell_what_is_committed() -> None:
    log = (
        transactional(0, 1),
        transactional(1, 2),
        plain(2),
        transactional(3, 3),
        transactional(4, 2),
        abort(5, 3),
        commit(6, 2),
        transactional(7, 2),
        transactional(8, 3),
        commit(9, 3),
    )
    assert committed(*log) == [2, 1, 4, 8], "1 holds all of it back, and what 2 began anew is undecided"
