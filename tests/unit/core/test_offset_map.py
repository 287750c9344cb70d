from dataclasses import replace
from uuid import UUID

import pytest

from causeway.core.errors import ProtocolFault
from causeway.core.identity import TopicPartition
from causeway.core.offset_map import (
    MAP_PARTITIONS,
    Run,
    RunBuilder,
    map_partition,
    runs_that_hold,
)

TP = TopicPartition("sf.orders", 3)
# The picture of the module: 100 101 102 . . 105 106 lie at 40 to 44.
RUN = Run(
    target=TP,
    source_first=100,
    target_first=40,
    segments=((3, 2), (2, 0)),
    first_timestamp_ms=11,
    last_timestamp_ms=22,
    generation=7,
    source_topic_id=UUID(int=1),
    target_topic_id=UUID(int=2),
)


def builder():
    return RunBuilder(TP, 7, UUID(int=1), UUID(int=2))


def stretch(source_first, target_first, count):
    return replace(RUN, source_first=source_first, target_first=target_first, segments=((count, 0),))


def test_the_picture_of_the_module_is_what_the_code_does():
    building = builder()
    building.add(((100, 3),), 40, 11, 15)
    building.add(((105, 2),), 43, 16, 22)
    assert building.build() == (RUN,)
    assert (RUN.count, RUN.target_next, RUN.source_next) == (5, 45, 107)
    assert [RUN.source_of(t) for t in range(40, 45)] == [100, 101, 102, 105, 106]


def test_a_run_knows_the_leader_epoch_of_its_last_record():
    building = builder()
    building.add(((100, 3),), 40, 11, 15, 4)
    building.add(((103, 1),), 43, 16, 16, 6)
    assert [run.source_epoch for run in building.build()] == [6]


def test_the_first_run_tells_of_the_holes_in_front_of_it():
    building = RunBuilder(TP, 7, UUID(int=1), UUID(int=2), (97, 38))
    building.add(((100, 3),), 40, 11, 15)
    building.add(((103, 1),), 44, 16, 16)
    first, second = building.build()
    assert (first.holes_before, first.source_begins, first.target_begins) == ((3, 2), 97, 38)
    assert (second.holes_before, second.source_begins, second.target_begins) == ((0, 0), 103, 44)


def test_a_run_ends_with_the_latest_of_its_times_whatever_their_order():
    building = builder()
    building.add(((100, 3),), 40, 11, 30)
    building.add(((105, 2),), 43, 16, 22)
    assert building.build() == (replace(RUN, last_timestamp_ms=30),)


def test_holes_inside_a_batch_are_like_holes_between_batches():
    building = builder()
    building.add(((100, 3), (105, 2)), 40, 11, 22)
    assert building.build() == (RUN,)


def test_batches_without_a_hole_become_one_segment():
    building = builder()
    building.add(((100, 3),), 40, 11, 15)
    building.add(((103, 4),), 43, 16, 22)
    (run,) = building.build()
    assert run.segments == ((7, 0),)


def test_a_hole_on_the_target_begins_a_new_run():
    building = builder()
    building.add(((100, 3),), 40, 1, 2)
    building.add(((103, 2),), 44, 3, 4)  # a marker lies at 43
    first, second = building.build()
    assert (first.source_first, first.target_first, first.segments) == (100, 40, ((3, 0),))
    assert (second.source_first, second.target_first, second.segments) == (103, 44, ((2, 0),))
    assert (first.first_timestamp_ms, first.last_timestamp_ms) == (1, 2)
    assert (second.first_timestamp_ms, second.last_timestamp_ms) == (3, 4)


def test_trailing_holes_belong_to_nobody():
    assert replace(RUN, segments=((3, 2), (2, 90))).source_next == 107


def test_a_builder_begins_anew_after_each_transaction():
    building = builder()
    assert building.build() == ()
    building.add(((100, 3),), 40, 1, 2)
    assert len(building.build()) == 1
    assert building.build() == ()
    building.add(((103, 1),), 43, 1, 2)
    (run,) = building.build()
    assert (run.source_first, run.target_first, run.count) == (103, 43, 1)


@pytest.mark.parametrize("first", [99, 100, 102])
def test_source_offsets_must_rise(first):
    building = builder()
    building.add(((100, 3),), 40, 1, 2)
    with pytest.raises(ProtocolFault, match=f"= {first}: must rise"):
        building.add(((first, 1),), 43, 1, 2)


@pytest.mark.parametrize("target", [-1, 0, 39, 45, 1_000])
def test_an_offset_outside_of_a_run_is_never_answered(target):
    with pytest.raises(ValueError, match="lies outside"):
        RUN.source_of(target)


def test_the_map_partition_is_the_same_in_every_version():
    assert MAP_PARTITIONS == 8
    pinned = {("sf.orders", 0): 3, ("sf.orders", 1): 5, ("sf.orders", 3): 1, ("münchen", 0): 1}
    assert {(t, p): map_partition(TopicPartition(t, p)) for t, p in pinned} == pinned


def test_a_map_that_somebody_has_grown_is_read_where_it_was_written():
    for partition in range(100):
        tp = TopicPartition("sf.orders", partition)
        assert map_partition(tp, 13) == map_partition(tp)
    assert {map_partition(TopicPartition("sf.orders", p), 3) for p in range(100)} == {0, 1, 2}


def test_a_run_written_again_takes_away_what_the_lost_tail_held():
    older, lost = stretch(100, 40, 40), stretch(141, 81, 20)
    again = stretch(116, 57, 10)  # the log had ended at 56, a marker came first
    head, tail = runs_that_hold([older, lost, again])
    assert (head.target_first, head.target_next, head.source_next) == (40, 56, 116)
    assert tail == again


def test_a_lost_run_says_nothing_even_if_aborted_records_lie_in_its_place():
    first, lost = stretch(100, 40, 5), stretch(105, 46, 3)
    again = stretch(105, 49, 3)  # behind an aborted attempt at 46 to 47 and its marker
    assert runs_that_hold([first, lost, again]) == [first, again]


def test_runs_that_follow_each_other_all_hold():
    runs = [stretch(100, 40, 5), stretch(105, 46, 5), stretch(110, 51, 1)]
    assert runs_that_hold(runs) == runs
    assert runs_that_hold([]) == []


def test_a_run_in_the_same_place_replaces_the_older():
    assert runs_that_hold([stretch(100, 40, 5), stretch(100, 40, 2)]) == [stretch(100, 40, 2)]


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
def test_a_run_is_cut_between_records(source, target, segments):
    assert RUN.in_front_of(source, target).segments == segments
