"""Two logs that their cleaners have thinned, each by itself: equal, or the difference is named."""

from __future__ import annotations

import random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causeway.core.kernel.identity import Generation, SourceOffset, TargetOffset, TopicPartition
from causeway.core.offsets.offset_map import MappedRange
from causeway.core.state.position_ledger import ManualPosition, PlaceSet
from causeway.core.verify.comparison import CREATE_TIME, Content
from causeway.core.verify.map_comparison import MapComparison, Stretch, never_crossed, stretches_of
from causeway.core.verify.report import PartitionVerdict
from tests.support import builders

TP, IDS = TopicPartition("orders", 0), (UUID(int=1), UUID(int=2))
Log = list[tuple[int, Content]]
Sides = tuple[bool, bool]
"""Whether the cleaner of the source runs, and that of the target."""
BOTH, NEITHER, SOURCE_ONLY, TARGET_ONLY = (True, True), (False, False), (True, False), (False, True)
ALL_SIDES = (BOTH, NEITHER, SOURCE_ONLY, TARGET_ONLY)


def record(key: str | None, value: str | None) -> Content:
    return (
        (CREATE_TIME, 5),
        None if key is None else key.encode(),
        None if value is None else value.encode(),
        None,
    )


def compare(
    source: Log,
    target: Log,
    stretches: list[Stretch],
    *,
    end: int | None = None,
    starts: tuple[int, int] = (0, 0),
    compacted: Sides = BOTH,
    target_end: int = 1_000_000,
    tails: tuple[tuple[int, int], ...] = (),
    quarantined: tuple[int, ...] = (),
) -> PartitionVerdict:
    comparison = MapComparison(
        stretches=stretches,
        source_start=starts[0],
        target_start=starts[1],
        source_log_end=source[-1][0] + 1 if source else 0,
        source_end=end,
        target_end=target_end,
        source_is_compacted=compacted[0],
        target_is_compacted=compacted[1],
        quarantined=quarantined,
        never_crossed=tails,
    )
    comparison.compare(iter(source), iter(target), lambda _: None)
    return comparison.verdict(TP, TP)


def story(dice: random.Random, count: int) -> Log:
    """Source offsets with holes; keys that come again, tombstones."""
    at, found = 0, Log()
    for n in range(count):
        at += dice.choice((1, 1, 1, 4))
        found.append((at, record(f"k{dice.randrange(6)}", None if dice.random() < 0.2 else f"v{n}")))
    return found


def mirrored(log: Log, dice: random.Random) -> tuple[Log, list[Stretch]]:
    """With markers between them, and the map of it."""
    at, found, stretches = 0, Log(), list[Stretch]()
    for offset, content in log:
        at += dice.choice((0, 0, 1))
        found.append((at, content))
        stretches.append((offset, at, 1))
        at += 1
    return found, stretches


def cleaned(log: Log, dice: random.Random, *, takes_tombstones: bool = True) -> Log:
    """As a cleaner does it: up to some record, of each key the last one stays, and perhaps its tombstone."""
    reach = dice.randrange(len(log) + 1)
    last = {content[1]: offset for offset, content in log[:reach]}
    keeps_tombstones = dice.random() < 0.5 or not takes_tombstones
    kept = [
        (offset, content)
        for offset, content in log[:reach]
        if last[content[1]] == offset and (keeps_tombstones or content[2] is not None)
    ]
    return kept + log[reach:]


@given(seed=st.integers(0, 2**32), count=st.integers(1, 40), compacted=st.sampled_from(ALL_SIDES))
def test_whatever_the_cleaners_take_both_sides_are_equal(seed: int, count: int, compacted: Sides) -> None:
    dice = random.Random(seed)
    log = story(dice, count)
    mirror, stretches = mirrored(log, dice)
    source = cleaned(cleaned(log, dice), dice) if compacted[0] else log
    target = cleaned(mirror, dice) if compacted[1] else mirror
    on_both = {offset for offset, _ in source} & {s for s, t, _ in stretches for at, _ in target if at == t}

    verdict = compare(source, target, stretches, end=log[-1][0] + 1, compacted=compacted)

    assert verdict.is_equal, verdict.differences
    assert verdict.equal == len(on_both), "all that is there on both sides"
    assert verdict.equal + verdict.cleaned_on_target == len(source)
    assert verdict.equal + verdict.cleaned_on_source == len(target)


@given(seed=st.integers(0, 2**32), count=st.integers(2, 40))
def test_a_fault_of_any_record_that_is_there_is_found(seed: int, count: int) -> None:
    """Also of one that a later record of its key follows: it is there on both sides, so it is compared."""
    dice = random.Random(seed)
    log = story(dice, count)
    mirror, stretches = mirrored(log, dice)
    source, target = cleaned(log, dice), cleaned(mirror, dice)
    there = {offset for offset, _ in source}
    came_from = {t: s for s, t, _ in stretches}
    both = [n for n, (offset, _) in enumerate(target) if came_from[offset] in there]
    last = {content[1]: n for n, (_, content) in enumerate(target)}
    if both:
        n = dice.choice(both)
        changed = [*target[:n], (target[n][0], record("k0", "changed")), *target[n + 1 :]]
        assert compare(source, changed, stretches, end=log[-1][0] + 1).different == 1
    alive = [n for n in last.values() if target[n][1][2] is not None]
    if alive:
        n = dice.choice(alive)
        assert compare(source, [*target[:n], *target[n + 1 :]], stretches, end=log[-1][0] + 1).missing == 1


@given(seed=st.integers(0, 2**32), count=st.integers(1, 40))
def test_a_side_without_a_cleaner_may_lack_no_record(seed: int, count: int) -> None:
    """Not even one that a later record of its key follows: nobody there takes it. A lost tombstone that the
    other side's cleaner has taken is left out: nothing says any more why what it deleted is missing there."""
    dice = random.Random(seed)
    log = story(dice, count)
    mirror, stretches = mirrored(log, dice)
    n = dice.randrange(count)
    source, target = cleaned(log, dice), cleaned(mirror, dice)
    is_tombstone = log[n][1][2] is None

    if log[n] in source or not is_tombstone:
        lost = compare(source, without(n, mirror), stretches, end=log[-1][0] + 1, compacted=SOURCE_ONLY)
        expected = [log[n][0]] if log[n] in source else []
        assert [each.source_offset for each in lost.differences] == expected

    if mirror[n] in target or not is_tombstone:
        lost = compare(without(n, log), target, stretches, end=log[-1][0] + 1, compacted=TARGET_ONLY)
        expected = [mirror[n][0]] if mirror[n] in target else []
        assert [each.target_offset for each in lost.differences] == expected


def without(n: int, log: Log) -> Log:
    return log[:n] + log[n + 1 :]


@given(seed=st.integers(0, 2**32), count=st.integers(1, 40))
def test_a_run_and_the_cleaners_may_be_at_work_meanwhile(seed: int, count: int) -> None:
    """Positions and map are older than the logs as they are read: what came later isn't judged, but may be
    why a cleaner took what is. Tombstones outlive a comparison: `delete.retention.ms` is a day."""
    dice = random.Random(seed)
    log = story(dice, count)
    mirror, stretches = mirrored(log, dice)
    known = dice.randrange(count)
    source = cleaned(log, dice, takes_tombstones=False)
    target = cleaned(mirror, dice, takes_tombstones=False)

    verdict = compare(source, target, stretches[:known], end=log[known][0], target_end=mirror[known][0])

    assert verdict.is_equal, verdict.differences
    source_behind = [offset for offset, _ in source if offset >= log[known][0]]
    assert verdict.behind == (log[-1][0] + 1 - source_behind[0] if source_behind else 0)


PLAIN: list[Stretch] = [(0, 0, 3)]
THREE = [(0, record("a", "1")), (1, record("b", "2")), (2, record("a", "3"))]


def test_a_compacted_partition_that_nothing_was_cleaned_of_is_compared_whole() -> None:
    verdict = compare(THREE, THREE, PLAIN, end=3)
    assert (verdict.equal, verdict.is_by_map, verdict.is_equal) == (3, True, True)


@pytest.mark.parametrize("without", [1, 2])
def test_the_last_record_of_a_key_is_missed_on_either_side(without: int) -> None:
    short = [each for each in THREE if each[0] != without]
    assert compare(THREE, short, PLAIN, end=3).missing == 1
    assert compare(short, THREE, PLAIN, end=3).extra == 1
    assert compare(THREE, [*short[:1], *short], PLAIN, end=3, compacted=NEITHER).missing == 1


def test_a_record_that_a_later_one_follows_is_missed_where_no_cleaner_runs() -> None:
    assert compare(THREE, THREE[1:], PLAIN, end=3, compacted=TARGET_ONLY).cleaned_on_target == 1
    assert compare(THREE, THREE[1:], PLAIN, end=3, compacted=SOURCE_ONLY).missing == 1
    assert compare(THREE[1:], THREE, PLAIN, end=3, compacted=SOURCE_ONLY).cleaned_on_source == 1
    assert compare(THREE[1:], THREE, PLAIN, end=3, compacted=TARGET_ONLY).extra == 1


def test_a_tombstone_may_be_gone_but_not_while_the_record_that_it_deletes_is_there() -> None:
    source = [(0, record("a", "1")), (1, record("a", None))]
    assert compare(source, [], [(0, 0, 2)], end=2).cleaned_on_target == 2
    assert compare(source, source[:1], [(0, 0, 2)], end=2).missing == 1
    assert compare(source[:1], source, [(0, 0, 2)], end=2).extra == 1


def test_what_is_lag_quarantined_or_gone_by_retention_is_counted_apart() -> None:
    assert compare(THREE, THREE[:1], [(0, 0, 1)], end=1).behind == 2
    aside = compare(THREE, [THREE[0], (1, THREE[2][1])], [(0, 0, 1), (2, 1, 1)], end=3, quarantined=(1,))
    assert (aside.equal, aside.quarantined, aside.is_equal) == (2, 1, True)
    gone = compare(THREE, THREE[2:], PLAIN, end=3, starts=(0, 2))
    assert (gone.equal, gone.gone_on_target, gone.is_equal) == (1, 2, True)
    gone = compare(THREE[2:], THREE, PLAIN, end=3, starts=(2, 0))
    assert (gone.equal, gone.gone_on_source, gone.is_equal) == (1, 2, True)


def test_what_no_run_of_the_map_knows_is_a_difference() -> None:
    foreign = [*THREE, (3, record(None, "foreign"))]
    assert compare(THREE, foreign, PLAIN, end=3).extra == 1
    assert compare(foreign, THREE, PLAIN, end=4).missing == 1


def run(source: int, target: int, count: int, generation: int) -> MappedRange:
    return builders.mapped_range(
        source,
        target,
        (count, 0),
        target=TP,
        generation=Generation(generation),
        source_topic_id=IDS[0],
        target_topic_id=IDS[1],
    )


def entry(generation: int) -> ManualPosition:
    return ManualPosition(
        how="adopt",
        source_topic="orders",
        target_topic="orders",
        source_topic_id=IDS[0],
        target_topic_id=IDS[1],
        places=(PlaceSet(partition=0, source_next=SourceOffset(7), target_next=TargetOffset(5)),),
        generation=generation,
        by="me",
        because="failback 0123456789ab",
        at_ms=0,
    )


def test_a_homecoming_is_compared_across_and_its_tail_is_named() -> None:
    """source 0 1 2 mirrored, 3 4 never crossed, 5 6 brought back, 7 mirrored again."""
    runs = [run(0, 0, 3, 1), run(5, 3, 2, 9), run(7, 5, 1, 9)]
    tails = tuple(never_crossed(runs, [(entry(9), 7)]))
    assert tails == ((3, 5),)
    assert never_crossed(runs[:1], [(entry(9), 5)]) == [(3, 5)], "nothing was written while it was away"
    source = [(n, record(None, str(n))) for n in range(8)]
    target = [(at, source[n][1]) for at, n in enumerate((0, 1, 2, 5, 6, 7))]

    verdict = compare(source, target, stretches_of(runs), end=8, compacted=NEITHER, tails=tails)

    assert (verdict.equal, verdict.never_crossed, verdict.is_equal) == (6, 2, True)
    lost = compare(source, target[:3] + target[4:], stretches_of(runs), end=8, compacted=NEITHER, tails=tails)
    assert [each.source_offset for each in lost.differences] == [5]


def test_of_very_many_differences_the_rest_isnt_compared() -> None:
    source = [(n, record(f"k{n}", "1")) for n in range(30_000)]
    verdict = compare(source, [], [(0, 0, 30_000)], end=30_000, compacted=NEITHER)
    assert (verdict.missing, len(verdict.differences)) == (10_001, 10)
    assert "not compared further: 10,001 differences" in verdict.trouble
    verdict = compare(source, [], [(0, 0, 30_000)], end=30_000)
    assert (verdict.missing, len(verdict.differences)) == (30_000, 10)
