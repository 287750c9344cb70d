from collections.abc import Iterable
from dataclasses import replace
from uuid import UUID

import pytest

from causeway.core.kernel.identity import Generation, SourceOffset, TargetOffset, TopicPartition
from causeway.core.offsets.mm2_offset_syncs import Inherited, LowerBound
from causeway.core.offsets.offset_map import MappedRange
from causeway.core.offsets.translation import FlowMap, PartitionMap, Reach, reach_of
from causeway.core.offsets.why_not import (
    AheadOfMirror,
    NeverMirrored,
    NotInFlow,
    OlderThanMap,
    OtherGeneration,
    WhyNot,
)
from causeway.core.state.position import ForeignPosition, Position
from tests.support import builders
from tests.support.builders import SOURCE_ID as SOURCE
from tests.support.builders import TARGET_ID as TARGET

TP = TopicPartition("sf.orders", 0)
OTHER = UUID(int=3)
PAIR = builders.known_pair(2)
POSITION = builders.position(110, 46, generation=Generation(7))


def run(
    source_first: int,
    target_first: int,
    *segments: tuple[int, int],
    generation: int = 7,
    source_topic_id: UUID = SOURCE,
    holes_before: tuple[int, int] = (0, 0),
) -> MappedRange:
    return builders.mapped_range(
        source_first,
        target_first,
        *segments,
        generation=Generation(generation),
        source_topic_id=source_topic_id,
        holes_before=holes_before,
    )


def reach_to(source_next: int, target_next: int, *, adopted_at: int = -1) -> Reach:
    return Reach(
        source_next=SourceOffset(source_next), target_next=TargetOffset(target_next), adopted_at=adopted_at
    )


def older(source_begins: int, target_begins: int) -> OlderThanMap:
    return OlderThanMap(SourceOffset(source_begins), TargetOffset(target_begins))


def ahead(source_next: int, target_next: int) -> AheadOfMirror:
    return AheadOfMirror(SourceOffset(source_next), TargetOffset(target_next))


def at_source(*offsets: int) -> list[SourceOffset]:
    return [SourceOffset(offset) for offset in offsets]


def at_target(*offsets: int) -> list[TargetOffset]:
    return [TargetOffset(offset) for offset in offsets]


def index(runs: Iterable[MappedRange], reach: Reach | None = None) -> PartitionMap:
    return PartitionMap(runs, reach, source_topic_id=SOURCE, target_topic_id=TARGET)


# The picture of the module: a hole of two on the source, a marker at 43 on the target, a marker at the end.
PICTURE = [run(100, 40, (3, 0)), run(105, 44, (2, 0))]
REACH = reach_to(110, 46)
OLD, AHEAD = older(100, 40), ahead(110, 46)


@pytest.mark.parametrize(
    ("offset", "answer"),
    [
        *[(0, OLD), (99, OLD), (100, 40), (102, 42), (103, 44), (104, 44), (105, 44), (106, 45)],
        *[(107, 46), (110, 46), (111, AHEAD), (1 << 62, AHEAD)],
    ],
)
def test_to_the_target(offset: int, answer: int | WhyNot) -> None:
    assert index(PICTURE, REACH).to_target(SourceOffset(offset)) == answer
    assert index(PICTURE, REACH).to_targets(at_source(offset, offset)) == [answer, answer]


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
def test_and_back(offset: int, answer: int | WhyNot) -> None:
    assert index(PICTURE, REACH).to_source(TargetOffset(offset)) == answer
    assert index(PICTURE, REACH).to_sources(at_target(offset)) == [answer]


def test_how_far_a_target_offset_can_be_is_the_end_of_its_log_if_that_was_asked() -> None:
    known = index(PICTURE, replace(REACH, target_end=TargetOffset(60)))
    assert (known.to_source(TargetOffset(60)), known.to_source(TargetOffset(61))) == (107, AHEAD)


def test_holes_inside_a_run() -> None:
    holed = index([run(100, 40, (3, 2), (2, 0))])
    assert holed.to_targets(at_source(*range(100, 108))) == [40, 41, 42, 43, 43, 43, 44, 45]
    assert holed.to_sources(at_target(*range(40, 46))) == [100, 101, 102, 105, 106, 107]


def test_before_the_first_record_the_map_knows_from_where_the_mirror_began() -> None:
    begun = index([run(100, 40, (3, 0), holes_before=(4, 2))])
    assert begun.to_targets(at_source(95, 96, 99, 100)) == [older(96, 38), 40, 40, 40]
    assert begun.to_sources(at_target(37, 38, 39, 40)) == [older(96, 38), 100, 100, 100]


def test_an_empty_partition_with_a_position_is_at_its_place() -> None:
    empty = index([], reach_to(5, 9))
    assert empty.to_targets(at_source(4, 5, 6)) == [older(5, 9), 9, ahead(5, 9)]
    assert empty.to_sources(at_target(8, 9)) == [older(5, 9), 5]


def test_without_runs_and_position_nothing_was_mirrored() -> None:
    assert index([]).to_targets(at_source(0, 5)) == [NeverMirrored(), NeverMirrored()]
    assert index([]).to_source(TargetOffset(0)) == NeverMirrored()
    assert index([]).reach is None


def test_runs_of_topics_recreated_are_never_mixed_in() -> None:
    elder = [run(100, 40, (900, 0), source_topic_id=OTHER)]
    assert index(elder).to_target(SourceOffset(100)) == OtherGeneration(OTHER, TARGET)
    assert index([*elder, run(0, 941, (5, 0))]).to_targets(at_source(0, 4, 5, 6)) == [
        941,
        945,
        946,
        ahead(5, 946),
    ]
    assert index([*elder, run(0, 941, (5, 0))]).to_source(TargetOffset(100)) == older(0, 941)


def test_a_lost_tail_is_not_promised_until_it_is_copied_again() -> None:
    cut = index(PICTURE, reach_to(102, 42))
    assert cut.to_targets(at_source(101, 102, 103, 105)) == [41, 42, ahead(102, 42), ahead(102, 42)]
    again = index([*PICTURE, run(102, 50, (9, 0))], reach_to(111, 59))
    assert again.to_targets(at_source(101, 102, 105, 111)) == [41, 50, 53, 59]


def test_a_position_that_is_newer_than_the_map_tells_nothing_of_what_the_map_lacks() -> None:
    trailing = index(PICTURE, reach_to(500, 400))
    assert trailing.to_targets(at_source(106, 107, 108)) == [45, 46, ahead(107, 46)]


def test_an_adopted_position_needs_no_run_before_it() -> None:
    adopted = index(PICTURE, reach_to(500, 400, adopted_at=8))
    assert adopted.to_targets(at_source(106, 499, 500, 501)) == [45, 400, 400, ahead(500, 400)]
    assert adopted.to_source(TargetOffset(400)) == 500


def test_what_was_copied_since_an_adoption_says_more_than_the_adoption() -> None:
    since = [*PICTURE, run(500, 400, (9, 0), generation=9)]
    copied = index(since, reach_to(512, 500, adopted_at=8))
    assert copied.to_targets(at_source(106, 499, 500, 510)) == [45, 400, 400, ahead(509, 409)]


def test_where_a_person_went_back_on_the_source_the_offsets_after_are_new_ones() -> None:
    """As after a source that lost its tail: other records have these offsets now, and aren't copied yet."""
    back = index(PICTURE, reach_to(102, 60, adopted_at=8))
    assert back.to_targets(at_source(101, 102, 103, 105)) == [41, 60, ahead(102, 60), ahead(102, 60)]
    copied = index([*PICTURE, run(102, 61, (9, 0))], reach_to(111, 70))
    assert copied.to_targets(at_source(101, 102, 105)) == [41, 61, 64]
    assert copied.to_sources(at_target(41, 42, 44, 61)) == [101, 102, 102, 102]


def test_the_reach_is_the_position_of_these_two_topics() -> None:
    assert reach_of(POSITION, PAIR, 0) == REACH
    assert reach_of(POSITION, PAIR, 0, target_end=TargetOffset(50)) == replace(
        REACH, target_end=TargetOffset(50)
    )
    assert reach_of(POSITION, replace(PAIR, adopted={0: 7}), 0) == replace(REACH, adopted_at=7)
    assert reach_of(POSITION, replace(PAIR, adopted={0: 7}), 1) == REACH
    again = reach_of(POSITION, replace(PAIR, all_adopted_at=6), 0)
    assert again == replace(REACH, adopted_at=6), "a run has committed it again"
    assert reach_of(POSITION, replace(PAIR, adopted={0: 8}), 0) == REACH, "it is from before the adoption"
    assert reach_of(replace(POSITION, target_topic_id=OTHER), PAIR, 0) is None
    assert reach_of(None, PAIR, 0) is None
    assert reach_of(ForeignPosition(5, "it isn't ours"), PAIR, 0) is None


def placed(source_next: int, generation: int) -> Position:
    return replace(
        POSITION,
        source_next=SourceOffset(source_next),
        target_next=TargetOffset(0),
        generation=Generation(generation),
    )


def test_where_it_began_is_known_before_the_first_record_crosses() -> None:
    """Ten offsets of a transaction that was aborted: nothing of them is on the target."""
    began = replace(
        POSITION, source_next=SourceOffset(0), target_next=TargetOffset(0), generation=Generation(1)
    )
    now = replace(began, source_next=SourceOffset(10), generation=Generation(5))
    known = index([], reach_of(now, PAIR, 0, place=began))
    assert known.to_targets(map(SourceOffset, (0, 4, 10))) == [0, 0, 0]
    assert isinstance(known.to_target(SourceOffset(11)), AheadOfMirror)
    assert known.to_source(TargetOffset(0)) == 10
    without = index([], reach_of(now, PAIR, 0))
    assert isinstance(without.to_target(SourceOffset(4)), OlderThanMap)


@pytest.mark.parametrize(
    "differs",
    [
        {"target_next": TargetOffset(1)},
        {"source_next": SourceOffset(11)},
        {"target_topic_id": OTHER},
        {"generation": Generation(6)},
    ],
)
def test_a_place_that_the_position_did_not_begin_at_says_nothing(differs: dict[str, object]) -> None:
    """The runs that led from there to here may be lost."""
    began = replace(
        POSITION, source_next=SourceOffset(2), target_next=TargetOffset(0), generation=Generation(1)
    )
    now = replace(began, source_next=SourceOffset(10), generation=Generation(5))
    place = replace(began, **differs)  # type: ignore[arg-type]
    assert reach_of(now, PAIR, 0, place=place) == reach_of(now, PAIR, 0)


def test_an_adoption_has_begun_again() -> None:
    adopted = replace(PAIR, adopted={0: 3})
    old = replace(
        POSITION, source_next=SourceOffset(0), target_next=TargetOffset(0), generation=Generation(1)
    )
    now = replace(old, source_next=SourceOffset(10), generation=Generation(5))
    assert reach_of(now, adopted, 0, place=old) == reach_of(now, adopted, 0)
    place = replace(old, source_next=SourceOffset(4), generation=Generation(3))
    found = reach_of(now, adopted, 0, place=place)
    assert found is not None
    assert index([], found).to_target(SourceOffset(7)) == 0


def test_a_flow_is_asked_by_names() -> None:
    flow = FlowMap({"sf.orders": PAIR}, {TP: index(PICTURE, REACH)})
    orders = TopicPartition("orders", 0)
    assert flow.target_of(orders) == TP
    assert flow.source_of(TP) == orders
    assert (flow.to_target(orders, SourceOffset(106)), flow.to_source(TP, TargetOffset(45))) == (45, 106)
    assert flow.to_target(TopicPartition("orders", 1), SourceOffset(0)) == NeverMirrored()
    assert flow.to_source(TopicPartition("sf.orders", 1), TargetOffset(0)) == NeverMirrored()
    assert flow.to_target(TopicPartition("sf.orders", 0), SourceOffset(0)) == NotInFlow("sf.orders")
    assert flow.to_source(orders, TargetOffset(0)) == NotInFlow("orders")
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
def test_each_reason_says_itself(why: WhyNot, text: str) -> None:
    assert str(why) == text
    assert text.startswith(why.reason)


def inherited(*, target_topic_id: UUID = TARGET) -> Inherited:
    return Inherited(
        source_topic_id=SOURCE,
        target_topic_id=target_topic_id,
        source_next=SourceOffset(100),
        target_next=TargetOffset(40),
        points=((10, 5), (60, 30)),
    )


def taken_over(told: Inherited, runs: Iterable[MappedRange] = (), reach: Reach | None = None) -> PartitionMap:
    return PartitionMap(runs, reach, source_topic_id=SOURCE, target_topic_id=TARGET, inherited=told)


ADOPTED = reach_to(100, 40, adopted_at=8)


@pytest.mark.parametrize(("runs", "reach"), [((), ADOPTED), (PICTURE, REACH)])
def test_before_a_takeover_there_are_lower_bounds_both_ways(
    runs: Iterable[MappedRange], reach: Reach
) -> None:
    found = taken_over(inherited(), runs, reach)
    begins = older(100, 40)
    assert found.to_targets(at_source(9, 10, 59, 60, 99, 100)) == [
        begins,
        *map(LowerBound, (5, 6, 30, 31)),
        40,
    ]
    assert found.to_sources(at_target(4, 5, 29, 39, 40)) == [begins, *map(LowerBound, (10, 11, 61)), 100]


def test_what_was_inherited_says_nothing_of_other_topics_nor_of_what_was_copied_since() -> None:
    assert taken_over(inherited(target_topic_id=OTHER), PICTURE, REACH).to_target(SourceOffset(50)) == OLD
    trimmed = [run(105, 44, (2, 0))]
    assert taken_over(inherited(), trimmed, REACH).to_target(SourceOffset(102)) == older(105, 44)
