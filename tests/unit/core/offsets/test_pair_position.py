"""Where a pair stands: the newest of what doesn't expire, and unknown is unknown."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypedDict
from uuid import UUID

import pytest

from causeway.core.kernel.identity import Generation, SourceOffset
from causeway.core.offsets.map_entries import MapEntries
from causeway.core.offsets.map_format import decode_place, encode_place, encode_range, target_of
from causeway.core.offsets.offset_map import MappedRange
from causeway.core.offsets.pair_position import Kept, position_of, where_it_ended, where_it_stands
from causeway.core.state.position import Position
from causeway.core.state.start_ledger import StartAt
from tests.support import builders
from tests.support.builders import TARGET_ID

PAIR = builders.pair()
PLACE = builders.position(
    50, 7, source_epoch=3, target_epoch=4, generation=Generation(20), producer_id=6, time_ms=7, is_placed=True
)
START = StartAt(offset=SourceOffset(40), epoch=2, generation=10)


def run(
    generation: int, *, source_first: int = 60, target_first: int = 7, target_id: UUID = TARGET_ID
) -> MappedRange:
    return builders.mapped_range(
        source_first,
        target_first,
        (5, 0),
        target=PAIR.target,
        generation=Generation(generation),
        target_topic_id=target_id,
    )


def stands(
    target_end: int | None = 0,
    *,
    runs: Sequence[MappedRange] = (),
    place: Position | None = None,
    set_by_hand: Position | None = None,
    start: StartAt | None = None,
    adopted_at: int = -1,
) -> tuple[int, int] | None:
    kept = Kept(runs=runs, place=place, set_by_hand=set_by_hand, start=start, adopted_at=adopted_at)
    found = where_it_stands(PAIR, kept, target_end)
    return None if found is None else (found.source_next, found.target_next)


def test_nothing_known_is_unknown_and_never_zero() -> None:
    assert stands() is None
    assert stands(place=replace(PLACE, target_topic_id=UUID(int=9))) is None
    assert stands(runs=[run(30, target_id=UUID(int=9))]) is None


def test_a_start_counts_where_there_is_nothing_else() -> None:
    assert stands(start=START) == (40, 0)
    assert stands(start=replace(START, generation=99), place=PLACE) == (50, 7)
    assert stands(start=START, adopted_at=15) is None, "a person set it since, and where is lost"


@pytest.mark.parametrize("target_end", [1, None], ids=["written to since", "nobody could say"])
def test_a_start_says_nothing_of_a_log_that_isnt_as_it_was(target_end: int | None) -> None:
    assert stands(target_end, start=START) is None
    assert stands(target_end, start=START, place=PLACE) == (50, 7)


def test_what_others_wrote_after_the_start_isnt_the_flows_own() -> None:
    """For the flow in the other direction, which begins where this one's records end."""
    ended = where_it_ended(PAIR, Kept(start=START))
    assert ended is not None
    assert (ended.source_next, ended.target_next) == (40, 0)
    assert where_it_ended(PAIR, Kept(start=START, adopted_at=15)) is None
    assert where_it_ended(PAIR, Kept(start=START, place=PLACE)) == PLACE


@pytest.mark.parametrize(("generation", "expected"), [(19, (50, 7)), (20, (65, 12)), (21, (65, 12))])
def test_the_newest_counts_and_in_one_generation_a_run_comes_after_the_place(
    generation: int, expected: tuple[int, int]
) -> None:
    assert stands(runs=[run(generation)], place=PLACE) == expected
    assert (
        stands(runs=[run(generation)], place=PLACE, set_by_hand=replace(PLACE, generation=Generation(3)))
        == expected
    )


def test_what_is_older_than_an_adoption_says_nothing() -> None:
    assert stands(runs=[run(20)], place=PLACE, adopted_at=20) == (50, 7)
    assert stands(runs=[run(20)], place=PLACE, adopted_at=21) is None
    assert stands(runs=[run(22)], place=PLACE, adopted_at=21) == (65, 12)


def test_what_a_person_set_is_found_in_the_flows_state_where_the_map_has_no_place() -> None:
    """As versions before wrote it."""
    by_hand = replace(PLACE, source_next=SourceOffset(90), generation=Generation(25), is_placed=False)
    assert stands(runs=[run(24)], place=PLACE, set_by_hand=by_hand) == (90, 7)


def test_a_run_counts_its_own_records() -> None:
    assert position_of(run(3)).records == 5


# The place in the map.


def test_a_place_is_the_position_that_was_committed_with_it() -> None:
    key, value = encode_place(PAIR.target, PLACE)
    assert decode_place(key, value) == PLACE
    assert target_of(key) == PAIR.target


def test_of_each_partition_the_newest_place_is_kept_beside_its_runs() -> None:
    entries = MapEntries()
    entries.take(*encode_place(PAIR.target, PLACE))
    entries.take(*encode_range(run(21)))
    entries.take(*encode_place(PAIR.target, replace(PLACE, source_next=SourceOffset(90))))
    found = entries.by_target()[PAIR.target]
    assert (found.runs, found.place) == ([run(21)], replace(PLACE, source_next=SourceOffset(90)))
    entries.take(encode_place(PAIR.target, PLACE)[0], None)
    assert entries.by_target()[PAIR.target].place is None


# What has to be committed again.


class Changes(TypedDict, total=False):
    is_placed: bool
    records: int


def test_a_position_from_a_clock_that_was_ahead_is_renewed() -> None:
    day = 24 * 3_600_000
    assert not PLACE.is_old(PLACE.time_ms + day)
    assert PLACE.is_old(PLACE.time_ms + day + 1)
    assert replace(PLACE, time_ms=10 * day).is_old(0)


@pytest.mark.parametrize(
    ("changes", "adopted_at", "needs"),
    [
        ({"is_placed": False}, -1, True),
        ({"is_placed": False, "records": 5}, -1, False),
        ({"is_placed": False, "records": 5}, 3, True),
        ({}, 3, False),
        ({}, 20, False),
        ({}, 21, True),
        ({"records": 5}, 21, True),
    ],
    ids=[
        "nothing mirrored",
        "a run knows it",
        "adopted before places were kept",
        "kept",
        "kept by that adoption",
        "an adoption was broken off since",
        "and it has records",
    ],
)
def test_a_position_that_only_a_committed_offset_knows_gets_a_place(
    changes: Changes, adopted_at: int, needs: bool
) -> None:
    assert replace(PLACE, **changes).needs_a_place(adopted_at) is needs


def test_what_was_handed_over_with_a_place_lies_before_it() -> None:
    """Also once nobody knows the adoption's generation any more, which says so else."""
    handed_over = run(20, source_first=30, target_first=0)
    assert stands(runs=[handed_over], place=PLACE) == (50, 7)
    assert stands(runs=[handed_over, run(20)], place=PLACE) == (65, 12), "copied since"
    assert stands(runs=[run(21, source_first=30, target_first=0)], place=PLACE) == (35, 5), "a later turn"
