from dataclasses import replace
from uuid import UUID

import pytest

from causeway.core.flow_state import KnownPair
from causeway.core.identity import TopicPartition
from causeway.core.inherited import Inherited, LowerBound
from causeway.core.offset_map import Run
from causeway.core.position import ForeignPosition, Position
from causeway.core.translation import (
    AheadOfMirror,
    FlowMap,
    NeverMirrored,
    NotInFlow,
    OlderThanMap,
    OtherGeneration,
    PartitionMap,
    Reach,
    reach_of,
)

TP = TopicPartition("sf.orders", 0)
SOURCE, TARGET, OTHER = UUID(int=1), UUID(int=2), UUID(int=3)
PAIR = KnownPair(source_topic="orders", source_topic_id=SOURCE, target_topic_id=TARGET, partitions=2)
POSITION = Position(
    source_next=110,
    target_next=46,
    source_topic_id=SOURCE,
    target_topic_id=TARGET,
    source_epoch=0,
    target_epoch=0,
    generation=7,
    producer_id=9,
    time_ms=1,
)


def run(source_first, target_first, *segments, **changed):
    made = Run(
        target=TP,
        source_first=source_first,
        target_first=target_first,
        segments=segments,
        first_timestamp_ms=1,
        last_timestamp_ms=2,
        generation=7,
        source_topic_id=SOURCE,
        target_topic_id=TARGET,
    )
    return replace(made, **changed)


def index(runs, reach=None):
    return PartitionMap(runs, reach, source_topic_id=SOURCE, target_topic_id=TARGET)


# The picture of the module: a hole of two on the source, a marker at 43 on the target, a marker at the end.
PICTURE = [run(100, 40, (3, 0)), run(105, 44, (2, 0))]
REACH = Reach(source_next=110, target_next=46)
OLD, AHEAD = OlderThanMap(100, 40), AheadOfMirror(110, 46)


@pytest.mark.parametrize(
    ("offset", "answer"),
    [
        *[(0, OLD), (99, OLD), (100, 40), (102, 42), (103, 44), (104, 44), (105, 44), (106, 45)],
        *[(107, 46), (110, 46), (111, AHEAD), (1 << 62, AHEAD)],
    ],
)
def test_to_the_target(offset, answer):
    assert index(PICTURE, REACH).to_target(offset) == answer
    assert index(PICTURE, REACH).to_targets([offset, offset]) == [answer, answer]


@pytest.mark.parametrize(
    ("offset", "answer"),
    [
        (0, OLD),
        (39, OLD),
        (40, 100),
        (42, 102),
        (43, 105),
        (44, 105),
        (45, 106),
        (46, 107),
        (47, 107),
        (48, AHEAD),
    ],
)
def test_and_back(offset, answer):
    assert index(PICTURE, REACH).to_source(offset) == answer
    assert index(PICTURE, REACH).to_sources([offset]) == [answer]


def test_how_far_a_target_offset_can_be_is_the_end_of_its_log_if_that_was_asked():
    known = index(PICTURE, replace(REACH, target_end=60))
    assert (known.to_source(60), known.to_source(61)) == (107, AHEAD)


def test_holes_inside_a_run():
    holed = index([run(100, 40, (3, 2), (2, 0))])
    assert holed.to_targets(range(100, 108)) == [40, 41, 42, 43, 43, 43, 44, 45]
    assert holed.to_sources(range(40, 46)) == [100, 101, 102, 105, 106, 107]


def test_in_front_of_the_first_record_the_map_knows_from_where_the_mirror_began():
    begun = index([run(100, 40, (3, 0), holes_before=(4, 2))])
    assert begun.to_targets([95, 96, 99, 100]) == [OlderThanMap(96, 38), 40, 40, 40]
    assert begun.to_sources([37, 38, 39, 40]) == [OlderThanMap(96, 38), 100, 100, 100]


def test_an_empty_partition_with_a_position_is_at_its_place():
    empty = index([], Reach(source_next=5, target_next=9))
    assert empty.to_targets([4, 5, 6]) == [OlderThanMap(5, 9), 9, AheadOfMirror(5, 9)]
    assert empty.to_sources([8, 9]) == [OlderThanMap(5, 9), 5]


def test_without_runs_and_position_nothing_was_mirrored():
    assert index([]).to_targets([0, 5]) == [NeverMirrored(), NeverMirrored()]
    assert index([]).to_source(0) == NeverMirrored()
    assert index([]).reach is None


def test_runs_of_topics_made_anew_are_never_mixed_in():
    older = [run(100, 40, (900, 0), source_topic_id=OTHER)]
    assert index(older).to_target(100) == OtherGeneration(OTHER, TARGET)
    assert index([*older, run(0, 941, (5, 0))]).to_targets([0, 4, 5, 6]) == [
        941,
        945,
        946,
        AheadOfMirror(5, 946),
    ]
    assert index([*older, run(0, 941, (5, 0))]).to_source(100) == OlderThanMap(0, 941)


def test_a_lost_tail_is_not_promised_until_it_is_copied_again():
    cut = index(PICTURE, Reach(source_next=102, target_next=42))
    assert cut.to_targets([101, 102, 103, 105]) == [41, 42, AheadOfMirror(102, 42), AheadOfMirror(102, 42)]
    again = index([*PICTURE, run(102, 50, (9, 0))], Reach(source_next=111, target_next=59))
    assert again.to_targets([101, 102, 105, 111]) == [41, 50, 53, 59]


def test_a_position_that_is_newer_than_the_map_tells_nothing_of_what_the_map_lacks():
    trailing = index(PICTURE, Reach(source_next=500, target_next=400))
    assert trailing.to_targets([106, 107, 108]) == [45, 46, AheadOfMirror(107, 46)]


def test_an_adopted_position_needs_no_run_in_front_of_it():
    adopted = index(PICTURE, Reach(source_next=500, target_next=400, is_adopted=True))
    assert adopted.to_targets([106, 499, 500, 501]) == [45, 400, 400, AheadOfMirror(500, 400)]
    assert adopted.to_source(400) == 500


def test_where_a_person_went_back_on_the_source_the_offsets_behind_are_new_ones():
    """As after a source that lost its tail: other records have these offsets now, and aren't copied yet."""
    back = index(PICTURE, Reach(source_next=102, target_next=60, is_adopted=True))
    assert back.to_targets([101, 102, 103, 105]) == [41, 60, AheadOfMirror(102, 60), AheadOfMirror(102, 60)]
    copied = index([*PICTURE, run(102, 61, (9, 0))], Reach(source_next=111, target_next=70))
    assert copied.to_targets([101, 102, 105]) == [41, 61, 64]
    assert copied.to_sources([41, 42, 44, 61]) == [101, 102, 102, 102]


def test_the_reach_is_the_position_of_these_two_topics():
    assert reach_of(POSITION, PAIR) == REACH
    assert reach_of(POSITION, PAIR, target_end=50) == replace(REACH, target_end=50)
    assert reach_of(POSITION, replace(PAIR, adopted_at=7)) == replace(REACH, is_adopted=True)
    assert reach_of(POSITION, replace(PAIR, adopted_at=6)) == REACH
    assert reach_of(replace(POSITION, target_topic_id=OTHER), PAIR) is None
    assert reach_of(None, PAIR) is None
    assert reach_of(ForeignPosition(5, "it isn't ours"), PAIR) is None


def test_a_flow_is_asked_by_names():
    flow = FlowMap({"sf.orders": PAIR}, {TP: index(PICTURE, REACH)})
    orders = TopicPartition("orders", 0)
    assert flow.target_of(orders) == TP
    assert flow.source_of(TP) == orders
    assert (flow.to_target(orders, 106), flow.to_source(TP, 45)) == (45, 106)
    assert flow.to_target(TopicPartition("orders", 1), 0) == NeverMirrored()
    assert flow.to_source(TopicPartition("sf.orders", 1), 0) == NeverMirrored()
    assert flow.to_target(TopicPartition("sf.orders", 0), 0) == NotInFlow("sf.orders")
    assert flow.to_source(orders, 0) == NotInFlow("orders")
    assert flow.source_of(orders) == NotInFlow("orders")


@pytest.mark.parametrize(
    ("why", "text"),
    [
        (NeverMirrored(), "never mirrored"),
        (OLD, "older than the map, which begins with 100 -> 40"),
        (AHEAD, "ahead of the mirror, which ends with 110 -> 46"),
        (OtherGeneration(SOURCE, TARGET), f"other generation: the map knows topic ids {SOURCE} -> {TARGET}"),
        (NotInFlow("x"), "topic not in the flow"),
    ],
)
def test_each_reason_says_itself(why, text):
    assert str(why) == text
    assert text.startswith(why.reason)


def inherited(**changed):
    made = Inherited(
        source_topic_id=SOURCE,
        target_topic_id=TARGET,
        source_next=100,
        target_next=40,
        points=((10, 5), (60, 30)),
    )
    return replace(made, **changed)


def taken_over(told, runs=(), reach=None):
    return PartitionMap(runs, reach, source_topic_id=SOURCE, target_topic_id=TARGET, inherited=told)


ADOPTED = Reach(source_next=100, target_next=40, is_adopted=True)


@pytest.mark.parametrize(("runs", "reach"), [((), ADOPTED), (PICTURE, REACH)])
def test_in_front_of_a_takeover_there_are_lower_bounds_both_ways(runs, reach):
    found = taken_over(inherited(), runs, reach)
    begins = OlderThanMap(100, 40)
    assert found.to_targets([9, 10, 59, 60, 99, 100]) == [begins, *map(LowerBound, (5, 6, 30, 31)), 40]
    assert found.to_sources([4, 5, 29, 39, 40]) == [begins, *map(LowerBound, (10, 11, 61)), 100]


def test_what_was_inherited_says_nothing_of_other_topics_nor_of_what_was_copied_since():
    assert taken_over(inherited(target_topic_id=OTHER), PICTURE, REACH).to_target(50) == OLD
    trimmed = [run(105, 44, (2, 0))]
    assert taken_over(inherited(), trimmed, REACH).to_target(102) == OlderThanMap(105, 44)
