"""Failback, decided: what one map tells the other, what a plan's hash holds, what the journal keeps."""

from __future__ import annotations

import random
from dataclasses import replace
from uuid import UUID

import pytest

from causeway.core.failback.divergence import Divergence, FailbackMode, FailbackPlan, Step, export_topic
from causeway.core.failback.map_handover import reverse_range, to_hand_over
from causeway.core.journal.journal import Journal, fold
from causeway.core.journal.written_records import failback_record
from causeway.core.kernel.estimate import exact
from causeway.core.kernel.identity import Generation, SourceOffset, TargetOffset
from causeway.core.model.naming import is_export
from causeway.core.offsets.translation import PartitionMap
from tests.support.episodes import failback_run
from tests.support.failback_plans import NEW_ID, OLD, OLD_ID, cut, run_of

ADOPTED = Generation(7)


def test_a_run_turned_round_holds_the_same_records_and_the_same_holes() -> None:
    run = run_of(100, 40, (3, 2), (2, 0))
    turned = list(reverse_range(run, OLD, ADOPTED))
    assert [(r.source_first, r.target_first, r.count) for r in turned] == [(40, 100, 3), (43, 105, 2)]
    assert {(r.source_topic_id, r.target_topic_id, r.generation) for r in turned} == {
        (NEW_ID, OLD_ID, ADOPTED)
    }


def test_a_map_that_was_handed_over_translates_as_the_other_one_does_backwards() -> None:
    dice = random.Random(3)
    runs, source, target = [], 0, 0
    for _ in range(40):
        segments = tuple((dice.randrange(1, 9), dice.randrange(3)) for _ in range(dice.randrange(1, 4)))
        runs.append(run_of(source, target, *segments))
        source = sum(copied + skipped for copied, skipped in segments) + source + dice.randrange(2)
        target = runs[-1].target_next + 1  # the marker
    told = to_hand_over(runs, [], OLD, (NEW_ID, OLD_ID), ADOPTED)
    there = PartitionMap(runs, None, source_topic_id=OLD_ID, target_topic_id=NEW_ID)
    back = PartitionMap(told, None, source_topic_id=NEW_ID, target_topic_id=OLD_ID)
    for offset in range(runs[-1].target_next):
        assert int(back.to_target(SourceOffset(offset))) == int(there.to_source(TargetOffset(offset)))  # type: ignore[arg-type]


def test_a_handover_goes_on_after_what_is_known_and_the_second_one_adds_nothing() -> None:
    runs = [run_of(0, 0, (5, 0)), run_of(5, 6, (5, 1)), run_of(11, 12, (4, 0))]
    whole = to_hand_over(runs, [], OLD, (NEW_ID, OLD_ID), ADOPTED)
    assert to_hand_over(runs, whole[:1], OLD, (NEW_ID, OLD_ID), ADOPTED) == whole[1:]
    assert to_hand_over(runs, whole, OLD, (NEW_ID, OLD_ID), ADOPTED) == []
    assert to_hand_over(runs, [], OLD, (UUID(int=8), OLD_ID), ADOPTED) == [], "of topics made anew"


def plan_of(*cuts: Divergence) -> FailbackPlan:
    return FailbackPlan(flow="f", reverse="b", way=FailbackMode.RESUME, cuts=cuts, late=())


def test_the_hash_changes_with_the_old_primary_and_not_with_what_is_written_on_the_new() -> None:
    plan = plan_of(cut())
    assert plan.hash == plan_of(cut(written=exact(99))).hash
    assert plan.hash != plan_of(cut(old_end=16)).hash
    assert plan.hash != plan_of(cut(old_topic_id=UUID(int=5))).hash
    assert plan.hash != replace(plan, reverse="other").hash


@pytest.mark.parametrize("topic", ["orders", "o" * 249])
def test_exports_have_legal_names(topic: str) -> None:
    name = export_topic(topic, 1_763_438_580_000)
    assert name.endswith(".diverged.20251118T040300Z")
    assert len(name) <= 249
    assert is_export(name)


def test_the_journal_keeps_a_failbacks_newest_step() -> None:
    begun = failback_run(Step.BEGUN, begun_ms=1, at_ms=1, facts={"plan": "abc"})
    journal = Journal()
    for offset, each in enumerate((begun, replace(begun, step=Step.RETURNING, at_ms=2))):
        journal = fold(journal, offset, *failback_record(each))
    assert journal.newest_failback("f") == replace(begun, step=Step.RETURNING, at_ms=2)
    assert journal.newest_failback("other") is None
