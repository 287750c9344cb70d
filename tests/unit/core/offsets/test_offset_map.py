import random
from dataclasses import replace
from uuid import UUID

import pytest

from causeway.core.kernel.errors import ProtocolFault
from causeway.core.kernel.identity import Generation, SourceOffset, TargetOffset, TopicPartition
from causeway.core.offsets.map_format import encode_range
from causeway.core.offsets.offset_map import (
    MAP_PARTITIONS,
    MOST_SEGMENTS,
    MappedRange,
    RangeBuilder,
    first_of_transaction,
    map_partition,
    valid_ranges,
)
from tests.support import builders

TP = TopicPartition("sf.orders", 3)
# The picture of the module: 100 101 102 . . 105 106 lie at 40 to 44.
RUN = builders.mapped_range(100, 40, (3, 2), (2, 0), target=TP, first_timestamp_ms=11, last_timestamp_ms=22)


def builder(begins: tuple[int, int] | None = None) -> RangeBuilder:
    place = None if begins is None else (SourceOffset(begins[0]), TargetOffset(begins[1]))
    return RangeBuilder(TP, Generation(7), UUID(int=1), UUID(int=2), place)


def stretch(source_first: int, target_first: int, count: int) -> MappedRange:
    return replace(
        RUN,
        source_first=SourceOffset(source_first),
        target_first=TargetOffset(target_first),
        segments=((count, 0),),
    )


def test_the_picture_of_the_module_is_what_the_code_does() -> None:
    building = builder()
    building.add(((100, 3),), TargetOffset(40), 11, 15)
    building.add(((105, 2),), TargetOffset(43), 16, 22)
    assert building.build() == (RUN,)
    assert (RUN.count, RUN.target_next, RUN.source_next) == (5, 45, 107)
    assert [RUN.source_of(TargetOffset(t)) for t in range(40, 45)] == [100, 101, 102, 105, 106]


def test_a_run_knows_the_leader_epoch_of_its_last_record() -> None:
    building = builder()
    building.add(((100, 3),), TargetOffset(40), 11, 15, 4)
    building.add(((103, 1),), TargetOffset(43), 16, 16, 6)
    assert [run.source_epoch for run in building.build()] == [6]


def test_the_first_run_tells_of_the_holes_before_it() -> None:
    building = builder((97, 38))
    building.add(((100, 3),), TargetOffset(40), 11, 15)
    building.add(((103, 1),), TargetOffset(44), 16, 16)
    first, second = building.build()
    assert (first.holes_before, first.source_begins, first.target_begins) == ((3, 2), 97, 38)
    assert (second.holes_before, second.source_begins, second.target_begins) == ((0, 0), 103, 44)


def test_a_run_ends_with_the_latest_of_its_times_whatever_their_order() -> None:
    building = builder()
    building.add(((100, 3),), TargetOffset(40), 11, 30)
    building.add(((105, 2),), TargetOffset(43), 16, 22)
    assert building.build() == (replace(RUN, last_timestamp_ms=30),)


def test_holes_inside_a_batch_are_like_holes_between_batches() -> None:
    building = builder()
    building.add(((100, 3), (105, 2)), TargetOffset(40), 11, 22)
    assert building.build() == (RUN,)


def test_batches_without_a_hole_become_one_segment() -> None:
    building = builder()
    building.add(((100, 3),), TargetOffset(40), 11, 15)
    building.add(((103, 4),), TargetOffset(43), 16, 22)
    (run,) = building.build()
    assert run.segments == ((7, 0),)


def test_a_hole_on_the_target_begins_a_new_run() -> None:
    building = builder()
    building.add(((100, 3),), TargetOffset(40), 1, 2)
    building.add(((103, 2),), TargetOffset(44), 3, 4)  # a marker lies at 43
    first, second = building.build()
    assert (first.source_first, first.target_first, first.segments) == (100, 40, ((3, 0),))
    assert (second.source_first, second.target_first, second.segments) == (103, 44, ((2, 0),))
    assert (first.first_timestamp_ms, first.last_timestamp_ms) == (1, 2)
    assert (second.first_timestamp_ms, second.last_timestamp_ms) == (3, 4)


def test_trailing_holes_belong_to_nobody() -> None:
    assert replace(RUN, segments=((3, 2), (2, 90))).source_next == 107


def test_a_builder_begins_again_after_each_transaction() -> None:
    building = builder()
    assert building.build() == ()
    building.add(((100, 3),), TargetOffset(40), 1, 2)
    assert len(building.build()) == 1
    assert building.build() == ()
    building.add(((103, 1),), TargetOffset(43), 1, 2)
    (run,) = building.build()
    assert (run.source_first, run.target_first, run.count) == (103, 43, 1)


@pytest.mark.parametrize("first", [99, 100, 102])
def test_source_offsets_must_rise(first: int) -> None:
    building = builder()
    building.add(((100, 3),), TargetOffset(40), 1, 2)
    with pytest.raises(ProtocolFault, match=f"= {first}: must rise"):
        building.add(((first, 1),), TargetOffset(43), 1, 2)


@pytest.mark.parametrize("target", [-1, 0, 39, 45, 1_000])
def test_an_offset_outside_of_a_run_is_never_answered(target: int) -> None:
    with pytest.raises(ValueError, match="lies outside"):
        RUN.source_of(TargetOffset(target))


def test_the_map_partition_is_the_same_in_every_version() -> None:
    assert MAP_PARTITIONS == 8
    pinned = {("sf.orders", 0): 3, ("sf.orders", 1): 5, ("sf.orders", 3): 1, ("münchen", 0): 1}
    assert {(t, p): map_partition(TopicPartition(t, p)) for t, p in pinned} == pinned


def test_a_map_that_somebody_has_grown_is_read_where_it_was_written() -> None:
    for partition in range(100):
        tp = TopicPartition("sf.orders", partition)
        assert map_partition(tp, 13) == map_partition(tp)
    assert {map_partition(TopicPartition("sf.orders", p), 3) for p in range(100)} == {0, 1, 2}


def test_a_run_written_again_takes_away_what_the_lost_tail_held() -> None:
    older, lost = stretch(100, 40, 40), stretch(141, 81, 20)
    again = stretch(116, 57, 10)  # the log had ended at 56, a marker came first
    head, tail = valid_ranges([older, lost, again])
    assert (head.target_first, head.target_next, head.source_next) == (40, 56, 116)
    assert tail == again


def test_a_lost_run_says_nothing_even_if_aborted_records_lie_in_its_place() -> None:
    first, lost = stretch(100, 40, 5), stretch(105, 46, 3)
    again = stretch(105, 49, 3)  # after an aborted attempt at 46 to 47 and its marker
    assert valid_ranges([first, lost, again]) == [first, again]


def test_runs_that_follow_each_other_all_hold() -> None:
    runs = [stretch(100, 40, 5), stretch(105, 46, 5), stretch(110, 51, 1)]
    assert valid_ranges(runs) == runs
    assert valid_ranges([]) == []


def test_a_run_in_the_same_place_replaces_the_older() -> None:
    assert valid_ranges([stretch(100, 40, 5), stretch(100, 40, 2)]) == [stretch(100, 40, 2)]


@pytest.mark.parametrize(
    ("source", "target", "segments"),
    [
        (900, 41, ((1, 0),)),
        (900, 43, ((3, 0),)),
        (900, 44, ((3, 2), (1, 0))),
        (900, 45, ((3, 2), (2, 0))),
        (101, 900, ((1, 0),)),
        (104, 900, ((3, 0),)),
        (106, 900, ((3, 2), (1, 0))),
        (106, 42, ((2, 0),)),
    ],
)
def test_a_run_is_cut_between_records(
    source: int, target: int, segments: tuple[tuple[int, int], ...]
) -> None:
    assert RUN.in_front_of(SourceOffset(source), TargetOffset(target)).segments == segments


def test_a_stretch_with_very_many_holes_is_several_runs_that_touch_and_say_the_same() -> None:
    building = builder((97, 38))
    count = 2 * MOST_SEGMENTS + 7
    offsets = [100 + 3 * n for n in range(count)]
    half = MOST_SEGMENTS - 5
    building.add(tuple((at, 1) for at in offsets[:half]), TargetOffset(40), 11, 15, 1)
    building.add(tuple((at, 1) for at in offsets[half:]), TargetOffset(40 + half), 16, 22, 2)
    runs = building.build()
    assert [len(run.segments) for run in runs] == [MOST_SEGMENTS, MOST_SEGMENTS, 7]
    assert [run.target_next for run in runs[:-1]] == [run.target_first for run in runs[1:]]
    assert [
        run.source_of(TargetOffset(at)) for run in runs for at in range(run.target_first, run.target_next)
    ] == offsets
    assert [run.holes_before for run in runs] == [(3, 2), (0, 0), (0, 0)]
    assert [run.source_next for run in runs] == [
        offsets[MOST_SEGMENTS - 1] + 1,
        offsets[-8] + 1,
        offsets[-1] + 1,
    ]
    assert {(run.first_timestamp_ms, run.last_timestamp_ms) for run in runs} == {(11, 22)}, "of the whole"
    assert valid_ranges(runs) == list(runs)
    assert building.build() == ()


def test_no_record_of_a_run_outgrows_a_topic() -> None:
    """Offsets as far apart as they get, nothing that could be deflated."""
    building, chance, at = builder(), random.Random(3), 1 << 50
    segments = []
    for _ in range(4 * MOST_SEGMENTS):
        segments.append((at, chance.randrange(1, 1 << 14)))
        at += segments[-1][1] + chance.randrange(1, 1 << 31)
    building.add(tuple(segments), TargetOffset(40), 11, 22)
    assert max(len(key) + len(value) for key, value in map(encode_range, building.build())) < 40_000


def test_runs_that_touch_on_the_target_are_of_one_transaction() -> None:
    other = replace(stretch(300, 49, 4), generation=Generation(8))
    runs = [
        stretch(100, 20, 5),
        stretch(200, 40, 5),
        stretch(210, 45, 4),
        other,
        replace(other, target_first=TargetOffset(53)),
    ]
    assert first_of_transaction(runs, runs[2]) == runs[1], "a marker lies at 25"
    assert first_of_transaction(runs, runs[4]) == runs[3], "another run of the flow is another transaction"
    assert first_of_transaction(runs, runs[0]) == runs[0]
