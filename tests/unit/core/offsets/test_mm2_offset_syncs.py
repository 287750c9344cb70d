"""Offsets from before a takeover: lower bounds that skip nothing, kept and read again."""

from __future__ import annotations

import random
from uuid import UUID

import pytest

from causeway.core.kernel.errors import ProtocolFault
from causeway.core.kernel.identity import SourceOffset, TargetOffset, TopicPartition
from causeway.core.offsets.mm2_offset_syncs import (
    MOST_POINTS,
    Inherited,
    LowerBound,
    inherited_record,
    parse_inherited,
    points_of,
)
from causeway.core.records.mm2_formats import OffsetSync

TP = TopicPartition("A.t", 3)


def sync(source: int, target: int) -> OffsetSync:
    return OffsetSync(
        source=TopicPartition("t", 3), source_offset=SourceOffset(source), target_offset=TargetOffset(target)
    )


def kept(*points: tuple[int, int], source_next: int = 100, target_next: int = 200) -> Inherited:
    return Inherited(
        source_topic_id=UUID(int=1),
        target_topic_id=UUID(int=2),
        source_next=SourceOffset(source_next),
        target_next=TargetOffset(target_next),
        points=points,
    )


def test_translation_is_mirror_makers_own() -> None:
    """Equal: the sync's own; greater: one after it; older than all: nothing."""
    inherited = kept((10, 20), (50, 70))
    at = [
        None if (found := inherited.to_target(u)) is None else found.at
        for u in (9, 10, 11, 49, 50, 51, 99, 100)
    ]
    assert at == [None, 20, 21, 21, 70, 71, 71, None]
    back = [
        None if (found := inherited.to_source(t)) is None else found.at for t in (19, 20, 21, 70, 199, 200)
    ]
    assert back == [None, 10, 11, 50, 51, None]
    assert str(inherited.to_target(11)) == "21 (a lower bound, by MirrorMaker 2's offset syncs)"
    assert not isinstance(LowerBound(1), int)


def test_of_a_place_that_was_copied_twice_the_later_copy_counts() -> None:
    syncs = [sync(10, 10), sync(50, 50), sync(90, 90), sync(40, 95), sync(60, 120)]
    assert points_of(syncs, sync(99, 160)) == ((10, 10), (40, 95), (60, 120), (99, 160))


def test_repeats_that_did_not_come_as_far_again_tell_nothing() -> None:
    syncs = [sync(10, 10), sync(50, 50), sync(40, 95), sync(60, 120)]
    assert points_of(syncs, sync(94, 94)) == ((10, 10), (50, 50), (94, 94))


def test_no_more_is_kept_than_is_good_and_the_newest_always() -> None:
    syncs = [sync(n * 10, n * 11) for n in range(10_000)]
    points = points_of(syncs, syncs[-1])
    assert len(points) <= MOST_POINTS
    assert points[-1] == (99_990, 109_989)
    assert points == tuple(sorted(points))


def test_nothing_is_skipped_whatever_lives_it_had() -> None:
    """From the translated place on, all records from the offset on are there."""
    dice = random.Random(7)
    for _ in range(200):
        target: list[int] = []
        syncs: list[OffsetSync] = []
        committed = reached = 0
        for _life in range(dice.randrange(1, 5)):
            end = committed + dice.randrange(0, 40)
            for n in range(committed, end):
                if n == committed or dice.random() < 0.2:
                    syncs.append(sync(n, len(target)))
                target.append(n)
            reached, committed = max(reached, end), dice.randrange(committed, end + 1)
        if not target:
            continue
        points = points_of(syncs, sync(reached - 1, target.index(reached - 1)))
        inherited = kept(*points, source_next=reached, target_next=len(target))
        for u in range(reached):
            found = inherited.to_target(u)
            assert found is not None
            assert set(range(u, reached)) <= set(target[found.at :]), (u, found.at, target)
        for t in range(len(target)):
            found = inherited.to_source(t)
            assert found is None or found.at <= max(target[:t], default=-1) + 1, "nothing unread is skipped"


def test_it_is_kept_and_read_again() -> None:
    inherited = kept((10, 20), (50, 70))
    key, value = inherited_record(TP, inherited)
    assert parse_inherited(key, value) == (TP, inherited)
    assert parse_inherited(key, None) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b'[2,"A.t",3]', b'{"v":2}'),
        (b'[1,"A.t",3]', b'{"v":2,"points":[]}'),
        (b'[1,"A.t",3]', b'{"v":1}'),
        (b"x", b"{}"),
        (None, b"{}"),
    ],
)
def test_what_is_not_known_is_refused(key: bytes | None, value: bytes) -> None:
    with pytest.raises(ProtocolFault):
        parse_inherited(key, value)
