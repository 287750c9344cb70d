"""Where a mirror of MirrorMaker 2 stands: by its own topics, and by its records beside the source's."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from causeway.core.kernel.identity import SourceOffset, TargetOffset, TopicPartition
from causeway.core.records.mm2_formats import OffsetSync, Unreadable
from causeway.core.takeover.mm2_mirror import (
    Anchor,
    CommittedOffsets,
    Extent,
    Unproved,
    Walk,
    choose_anchor,
    take_connect_offset,
)
from causeway.core.verify.comparison import Content

TP = TopicPartition("t", 3)


def connect_offset(found: CommittedOffsets, key: bytes, value: bytes | None) -> CommittedOffsets:
    take_connect_offset(found, key, value, connector="MirrorSourceConnector", cluster="A")
    return found


KEY = b'["MirrorSourceConnector",{"cluster":"A","partition":3,"topic":"t"}]'


def test_the_last_offset_of_a_partition_counts_and_a_tombstone_takes_it_away() -> None:
    found = connect_offset({}, KEY, b'{"offset":123}')
    assert found == {TP: 123}
    assert connect_offset(found, KEY, b'{"offset":7}') == {TP: 7}
    assert connect_offset(found, KEY, None) == {}
    assert connect_offset({}, KEY, b"null") == {}
    assert connect_offset({TP: 7}, KEY, b'{"offset":-1}') == {}


@pytest.mark.parametrize(
    "key",
    [
        b'["MirrorHeartbeatConnector",{"sourceClusterAlias":"A","targetClusterAlias":"B"}]',
        b'["MirrorSourceConnector",{"cluster":"C","partition":3,"topic":"t"}]',
        b'["other",{"cluster":"A","partition":3,"topic":"t"}]',
        b'"word"',
    ],
)
def test_what_others_keep_there_is_none_of_its_business(key: bytes) -> None:
    assert connect_offset({}, key, b'{"offset":1}') == {}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (KEY, b"{}"),
        (KEY, b'{"offset":"x"}'),
        (KEY, b"\xff"),
        (b'["MirrorSourceConnector",{"cluster":"A"}]', b'{"offset":1}'),
        (b"not json", b"{}"),
    ],
)
def test_a_position_that_is_not_understood_is_never_passed_over(key: bytes, value: bytes) -> None:
    with pytest.raises(Unreadable):
        connect_offset({}, key, value)


def sync(source: int, target: int) -> OffsetSync:
    return OffsetSync(source=TP, source_offset=SourceOffset(source), target_offset=TargetOffset(target))


EXTENT = Extent(source_start=10, source_end=100, target_start=5, target_end=80)


@pytest.mark.parametrize(
    ("syncs", "committed", "expected"),
    [
        ([sync(20, 20), sync(40, 40), sync(60, 60)], 50, (40, 40)),
        ([sync(20, 20), sync(40, 40), sync(60, 60)], None, (60, 60)),
        ([sync(60, 60)], 50, (60, 60)),
        ([sync(9, 9), sync(20, 4)], 50, None),
        ([sync(20, 80), sync(100, 20)], 50, None),
        ([], 50, None),
    ],
)
def test_the_newest_sync_that_both_logs_reach_and_the_commit_covers(
    syncs: list[OffsetSync], committed: int | None, expected: tuple[int, int] | None
) -> None:
    anchor = choose_anchor(syncs, committed, EXTENT)
    assert (None if anchor is None else (anchor.source, anchor.target)) == expected


def shown(letter: str) -> Content:
    return (1, 1_000), None, letter.encode(), None


def walk(
    source: Sequence[tuple[int, str]],
    target: Sequence[tuple[int, str]],
    anchor: tuple[int, int],
    syncs: Sequence[tuple[int, int]] = (),
) -> tuple[int, int, int, int]:
    """Both as (offset, letter)."""
    walking = Walk(
        Anchor(*anchor, "a test"),
        [sync(*each) for each in syncs],
        lambda start: iter([(at, shown(letter)) for at, letter in source if at >= start]),
        source[0][0],
    )
    done = walking.over([(at, shown(letter)) for at, letter in target if at >= anchor[1]])
    return done.last_source, done.last_target, done.compared, done.repeated


def letters(text: str, first: int = 0) -> list[tuple[int, str]]:
    return [(first + n, letter) for n, letter in enumerate(text)]


def test_a_tail_that_goes_on_as_the_source_does() -> None:
    assert walk(letters("abcdefg", 100), letters("abcd", 7), (101, 8)) == (103, 10, 3, 0)


def test_holes_on_both_sides_are_nothing() -> None:
    source = [(100, "a"), (103, "b"), (104, "c"), (109, "d")]
    assert walk(source, [(7, "a"), (9, "b"), (12, "c")], (100, 7)) == (104, 12, 3, 0)


def test_a_second_life_that_began_again_is_followed_and_its_repeats_are_counted() -> None:
    source = letters("abcdefgh", 100)
    assert walk(source, letters("abcdefcdefg"), (100, 0)) == (106, 10, 11, 4)
    assert walk(source, letters("abcdefcd"), (100, 0)) == (105, 5, 8, 2), (
        "it was killed again before it came as far"
    )
    assert walk(source, letters("abcdefcdcdefgh"), (102, 2)) == (107, 13, 12, 6)


def test_a_sync_tells_where_it_began_again_among_records_that_are_equal() -> None:
    source = letters("aaaaaaaab")
    assert walk(source, letters("aaaaaaaa"), (0, 0)) == (7, 7, 8, 0)
    assert walk(source, letters("aaaaaaaa"), (0, 0), [(0, 0), (3, 5)]) == (5, 7, 8, 2)


def test_a_gap_that_mirror_maker_left_is_not_passed_over() -> None:
    with pytest.raises(Unproved, match="source offset 2 isn't there"):
        walk(letters("abcdef"), letters("abef"), (0, 0), [(0, 0), (4, 2)])


@pytest.mark.parametrize(
    ("target", "what"),
    [
        ("abx", "isn't source offset 2, and is nowhere before it"),
        ("abd", "isn't source offset 2, and is nowhere"),
        ("abcdefghi", "isn't the source's end"),
        ("xbc", "isn't source offset 0"),
    ],
)
def test_what_is_not_the_sources_is_not_proved(target: str, what: str) -> None:
    with pytest.raises(Unproved, match=what):
        walk(letters("abcdefgh"), letters(target), (0, 0))


def test_a_beginning_that_might_be_two_is_not_guessed() -> None:
    with pytest.raises(Unproved, match="is 2 times before it"):
        walk(letters("abacde"), letters("abacad"), (0, 0))


def test_an_anchor_that_is_not_there_proves_nothing() -> None:
    with pytest.raises(Unproved, match="no record is at target offset 1"):
        walk(letters("abc"), [(2, "b")], (1, 1))
    with pytest.raises(Unproved, match="shows no record"):
        walk(letters("abc"), [], (1, 1))


def test_lives_of_all_kinds_are_followed_to_the_record() -> None:
    """Whatever is written, committed late and begun again, the furthest record is found."""
    dice = random.Random(20261119)
    for _ in range(300):
        source = [(100 + 2 * n, f"record {n}") for n in range(dice.randrange(1, 60))]
        target: list[tuple[int, str]] = []
        syncs: list[tuple[int, int]] = []
        committed = reached = 0
        for _life in range(dice.randrange(1, 5)):
            at = committed
            if dice.random() < 0.7 and at < len(source):
                syncs.append((source[at][0], len(target)))
            end = dice.randrange(at, len(source) + 1)
            target += [(len(target) + n, source[at + n][1]) for n in range(end - at)]
            reached, committed = max(reached, end), dice.randrange(at, end + 1)
        if not target:
            continue
        known = [
            each
            for each in syncs
            if each[1] < len(target) and target[each[1]][1] == source[(each[0] - 100) // 2][1]
        ]
        assert walk(source, target, (100, 0), known)[0] == source[reached - 1][0]
