"""A target's tail beside its source: equal record by record, or not proved."""

import pytest

from causeway.core.copy.tail_comparison import Differs, SettledBatch, SettledTail, TailComparison
from causeway.core.records.batches import LOG_APPEND_TIME_BIT, BatchHead, parse_head, rebase
from causeway.core.records.compression import Codec
from causeway.core.records.records import Record, encode_batch
from tests.integration.fidelity.cases import Seen, thinned_batch
from tests.simulation.cluster.partition_log import sealed


def batch(
    base: int, records: list[Record], *, codec: Codec = Codec.NONE, epoch: int = 3
) -> tuple[BatchHead, memoryview]:
    """As it lies in a log: offsets from `base` on, by a leader of `epoch`."""
    data = bytearray(encode_batch(records, codec=codec, producer_id=7, producer_epoch=1, base_sequence=0))
    data[:8], data[12:16] = base.to_bytes(8, "big"), epoch.to_bytes(4, "big")
    view = memoryview(bytes(data))
    return parse_head(view), view


def records(*numbers: int, late: int = 0) -> list[Record]:
    return [Record(i, 1_000 + n + late, b"k", b"v%d" % n, ((b"h", None),)) for i, n in enumerate(numbers)]


def comparison(
    *source: tuple[BatchHead, memoryview], source_next: int = 100, target_next: int = 40
) -> TailComparison:
    made = TailComparison(source_next=source_next, target_next=target_next)
    for each in source:
        made.offer(*each)
    return made


def test_a_batch_that_crossed_verbatim_is_equal() -> None:
    made = comparison(batch(100, records(1, 2, 3), codec=Codec.GZIP))
    there = batch(40, records(1, 2, 3), codec=Codec.GZIP, epoch=9)
    assert made.advance(*there)
    assert made.tail.batches == [
        SettledBatch(((100, 3),), 40, 1_001, 1_003, source_epoch=3, size_bytes=there[0].size_bytes)
    ]
    assert (made.tail.source_next, made.tail.target_next, made.tail.target_epoch) == (103, 43, 9)


def test_what_a_cleaner_put_in_the_base_timestamps_place_is_no_records_time() -> None:
    """The mirror of such a batch has lost the flag (`batches.rebase`) and kept the bytes."""
    seen: list[Seen] = [(1_001, b"k", None, ()), (1_002, b"k", b"v", ())]
    theirs = memoryview(thinned_batch(100, [0, 1], 1, seen, Codec.NONE, horizon_ms=9_000_000))
    ours = bytearray(rebase(theirs, producer_id=7, producer_epoch=1, base_sequence=0))
    ours[7] = 40
    here, there = ((parse_head(memoryview(b)), memoryview(b)) for b in (theirs, bytes(ours)))
    assert here[0].base_timestamp == there[0].base_timestamp == 9_000_000
    made = comparison(here)
    assert made.advance(*there)
    (told,) = made.tail.batches
    assert (told.first_timestamp_ms, told.last_timestamp_ms) == (1_001, 1_002)


def test_a_joined_batch_remembers_the_holes_between_its_sources() -> None:
    made = comparison(batch(100, records(1)), batch(103, records(2, 3)))
    assert made.advance(*batch(40, records(1, 2, 3)))
    assert made.tail.batches[0].segments == ((100, 1), (103, 2))


def test_another_codec_is_no_difference() -> None:
    made = comparison(batch(100, records(1, 2), codec=Codec.GZIP))
    assert made.advance(*batch(40, records(1, 2)))


def test_the_edge_of_both_positions_may_lie_inside_a_batch() -> None:
    made = comparison(batch(98, records(8, 9, 1, 2)), source_next=100, target_next=40)
    assert made.advance(*batch(39, records(9, 1, 2)))
    assert made.tail.batches[0].segments == ((100, 2),)
    assert (made.tail.batches[0].target_first, made.tail.target_next) == (40, 42)


def test_a_source_batch_that_goes_on_after_the_tail_waits() -> None:
    made = comparison(batch(100, records(1, 2, 3)))
    assert made.advance(*batch(40, records(1, 2)))
    assert made.advance(*batch(42, records(3)))
    assert (made.tail.source_next, made.tail.records) == (103, 3)


def test_more_of_the_source_is_asked_for_until_the_batch_is_complete() -> None:
    made, there = comparison(batch(100, records(1))), batch(40, records(1, 2))
    assert not made.advance(*there)
    assert made.tail.batches == []
    made.offer(*batch(101, records(2)))
    assert made.advance(*there)
    assert made.tail.records == 2


@pytest.mark.parametrize(
    ("theirs", "said"),
    [
        ([records(1)[0], Record(1, 1_002, b"k", b"v4", ((b"h", None),))], "content"),
        (records(1, 2, late=5), "timestamp"),
        ([Record(0, 1_001, b"k", b"v1"), *records(2)], "content"),
        ([Record(0, 1_001, b"k", None, ((b"h", None),)), *records(2)], "content"),
        (records(2, 1), "timestamp"),
    ],
    ids=["value", "timestamp", "headers", "null", "order"],
)
def test_as_many_records_that_differ_prove_nothing(theirs: list[Record], said: str) -> None:
    made = comparison(batch(100, records(1, 2)))
    with pytest.raises(Differs, match=said):
        made.advance(*batch(40, theirs))
    assert made.tail.batches == []


def test_equal_bytes_with_other_timestamps_differ() -> None:
    """A batch's records are deltas from its head."""
    made = comparison(batch(100, records(1, 2)))
    with pytest.raises(Differs, match="target offset 40 isn't the one at source offset 100: its timestamp"):
        made.advance(*batch(40, [Record(r.offset, r.timestamp_ms + 5, r.key, r.value, r.headers)
                                 for r in records(1, 2)]))  # fmt: skip


def test_append_times_of_the_source_are_the_records_own_on_the_target() -> None:
    head, view = batch(100, records(1, 2))
    payload = bytes(view[61:])
    stamped = memoryview(
        sealed(100, 3, payload, LOG_APPEND_TIME_BIT, (1, 1_001, 5_000), (-1, -1, -1), head.record_count)
    )
    made = comparison((parse_head(stamped), stamped))
    own = [Record(r.offset, 5_000, r.key, r.value, r.headers) for r in records(1, 2)]
    assert made.advance(*batch(40, own))


def test_of_several_batches_the_last_one_says_where_to_go_on() -> None:
    tail = SettledTail(
        [SettledBatch(((5, 2),), 9, 1, 2, 0, 10), SettledBatch(((8, 1), (12, 3)), 20, 1, 2, 0, 10)]
    )
    assert (tail.records, tail.source_next, tail.target_next) == (6, 15, 24)
