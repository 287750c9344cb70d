"""A rebuild, decided: which records would be lost permanently, what is refused, what is kept of it."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from causeway.core.failback.divergence import FailbackMode, FailbackPlan, Step
from causeway.core.failback.rebuild_impact import (
    RebuildImpact,
    copies_there,
    is_apart,
    is_inside,
    mirrored_stretches,
    offsets_inside,
    offsets_outside,
    refuse_rebuild,
    thinned_there_only,
)
from causeway.core.journal.journal import Journal
from causeway.core.journal.journal import fold as fold_journal
from causeway.core.journal.written_records import failback_record
from causeway.core.kernel.errors import BadInput
from causeway.core.kernel.estimate import at_least, at_most, exact, unknown
from causeway.core.kernel.identity import TopicPartition
from causeway.core.state.flow_log import LogRecord
from causeway.core.state.flow_records import adopted_record, pair_record
from causeway.core.state.flow_state import FlowState, fold
from tests.support import builders
from tests.support.episodes import failback_run
from tests.support.failback_plans import READER, cut, price, run_of


def test_what_the_new_primary_still_has_of_each_offset_of_the_old_one() -> None:
    dice = random.Random(4)
    runs, source, target, there = [], 0, 0, dict[int, int]()
    for _ in range(30):
        segments = [(dice.randrange(1, 6), dice.randrange(1, 3)) for _ in range(dice.randrange(1, 4))]
        segments[-1] = (segments[-1][0], 0)
        runs.append(run_of(source, target, *segments))
        for copied, skipped in segments:
            there |= {source + n: target + n for n in range(copied)}
            source, target = source + copied + skipped, target + copied
        source, target = source + dice.randrange(3), target + 1
    for new_start in (0, 7, target // 2, target + 5):
        stretches = mirrored_stretches(runs, new_start)
        assert stretches == sorted(stretches)
        held = {offset for offset, at in there.items() if at >= new_start}
        assert {n for n in range(source) if is_inside(stretches, n, n + 1)} == held
        first, behind = source // 4, source * 3 // 4
        assert offsets_outside(stretches, first, behind) == len(set(range(first, behind)) - held)
        assert offsets_inside(stretches, first, behind) == len(set(range(first, behind)) & held)
        for old_start in (0, 9, source // 2, source + 1):
            copies = copies_there(runs, old_start, new_start)
            wanted = {at for offset, at in there.items() if at >= new_start and offset >= old_start}
            assert copies == sorted(copies)
            assert {n for n in range(target) if is_inside(copies, n, n + 1)} == wanted
            for n in range(target):
                apart = wanted.isdisjoint(range(n, n + 3))
                assert is_apart(copies, n, n + 3) == apart


DELETES, COMPACTS = {"cleanup.policy": "delete"}, {"cleanup.policy": "compact,delete"}


@pytest.mark.parametrize(
    ("here", "there", "why"),
    [
        (DELETES, DELETES, ""),
        (COMPACTS, COMPACTS, ""),
        (COMPACTS, DELETES, ""),
        (COMPACTS, None, ""),
        (DELETES, COMPACTS, "compaction on the new primary"),
        (None, COMPACTS, "compaction on the new primary"),
        (DELETES, None, "without DescribeConfigs"),
        (None, None, "without DescribeConfigs"),
    ],
)
def test_settings_that_nobody_may_see_dont_prove_that_nothing_is_missing(
    here: dict[str, str] | None, there: dict[str, str] | None, why: str
) -> None:
    found = thinned_there_only(here, there)
    assert found.startswith(why)
    assert bool(found) == bool(why)


def test_only_one_stretch_holds_a_range() -> None:
    stretches = [(0, 5), (6, 9)]
    assert is_inside(stretches, 1, 5)
    assert not is_inside(stretches, 4, 7)
    assert not is_inside([], 0, 1)


def losing(gone: object) -> RebuildImpact:
    made = price()
    return replace(made, partitions=(replace(made.partitions[0], gone=gone),))  # type: ignore[arg-type]


def beside_nothing(gone: object) -> RebuildImpact:
    """Of one topic that, and of another exactly nothing."""
    made = losing(gone)
    other = replace(price().partitions[0], old=TopicPartition("plain", 0))
    return replace(made, partitions=(other, *made.partitions))


@pytest.mark.parametrize(
    ("found", "accepts", "refused"),
    [
        (price(), False, ""),
        (price(readers=(READER,)), False, ""),
        (price(readers=(replace(READER, is_active=True),)), True, "members on sf = billing"),
        (price(written_to=("orders",)), True, "still written to"),
        (losing(exact(3)), False, "lost permanently"),
        (losing(at_most(3, "not all was read")), False, "not all was read"),
        (losing(unknown("compaction")), False, "compaction"),
        (losing(exact(3)), True, ""),
        (beside_nothing(unknown("compaction")), False, "unknown, of orders: .*compaction"),
        (beside_nothing(at_least(0, "compaction")), False, "unknown, of orders: .*compaction"),
        (beside_nothing(at_most(3, "not all was read")), False, "at most 3, of orders: "),
        (beside_nothing(unknown("compaction")), True, ""),
    ],
)
def test_what_a_rebuild_refuses(found: RebuildImpact, *, accepts: bool, refused: str) -> None:
    if not refused:
        refuse_rebuild(found, accepts_loss=accepts)
        return
    with pytest.raises(BadInput, match=refused):
        refuse_rebuild(found, accepts_loss=accepts)


def test_the_hash_is_the_same_once_the_old_primary_is_empty() -> None:
    """Else a try that was killed in the middle couldn't tell that it goes on with what was agreed to."""
    before = FailbackPlan(flow="f", reverse="b", way=FailbackMode.REBUILD, cuts=(cut(),), late=())
    emptied = replace(before, cuts=(cut(old_start=15, tail=exact(0)),))
    assert before.hash == emptied.hash
    assert before.hash != replace(before, way=FailbackMode.RESUME).hash
    assert (cut().tail_from, cut(old_start=15).tail_from) == (10, 15)


def test_json_tells_the_price() -> None:
    plan = FailbackPlan(
        flow="f", reverse="b", way=FailbackMode.REBUILD, cuts=(cut(),), late=(), rebuild=price()
    )
    told = plan.as_dict()["rebuild"]
    assert isinstance(told, dict)
    assert told["gone_for_good"] == exact(0).as_dict()
    assert told["partitions"][0]["last_written"] == "1970-01-01T00:00:05Z"


def test_the_journal_keeps_what_a_rebuild_has_to_know_again() -> None:
    facts = {"plan": "abc", "exports": {"orders.diverged.T": 5}, "policies": {"orders": None}}
    run = failback_run(Step.EXPORTED, way=FailbackMode.REBUILD, facts=facts)
    assert fold_journal(Journal(), 0, *failback_record(run)).newest_failback("f") == run


PAIR = builders.known_pair()


def folded(*records: tuple[bytes, bytes]) -> FlowState:
    states: dict[str, FlowState] = {}
    for offset, (key, value) in enumerate(records):
        states = fold(states, LogRecord(offset, 0, key, value))
    return states["f"]


def test_an_emptied_source_is_remembered_until_the_next_adoption() -> None:
    emptied = adopted_record("f", "orders", replace(PAIR, adopted_at=4, source_emptied=True), [])
    late, grown = pair_record("f", "orders", PAIR), pair_record("f", "orders", replace(PAIR, partitions=3))
    home = adopted_record("f", "orders", replace(PAIR, adopted_at=9), [0])
    assert not folded(late).pairs["orders"].source_emptied
    assert folded(late, emptied).pairs["orders"].source_emptied
    assert folded(emptied, late, grown).pairs["orders"].source_emptied, "a run's word comes late"
    assert not folded(emptied, home).pairs["orders"].source_emptied
    assert not folded(home, emptied).pairs["orders"].source_emptied, "and so may the mark"
