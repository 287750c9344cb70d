"""The DAG's steps one by one, without Airflow: between two of them may lie hours, and anything."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.core.errors import BadInput, StalePlan, UnknownName
from causeway.core.failover.wish import Wish
from causeway.flows.failover import stepwise
from causeway.flows.fence import fence_flow, lift_fence
from tests.failover.conftest import NOWHERE, STEP_MS, held
from tests.failover.stage import BASE_MS, FailoverStage

pytestmark = pytest.mark.integration
MOMENT_MS = BASE_MS + 150 * STEP_MS


class Steps:
    """What each task does; only the run's name goes from one to the next."""

    def __init__(self, stage: FailoverStage) -> None:
        self.stage, self.flow, self.target = stage, stage.flow, stage.target.endpoint()
        self.sides = stage.source.endpoint(), self.target

    def snapshot(self, wish: Wish, plan: str) -> str:
        rules, said = self.stage.rules, self.stage.mirror.said.append
        kept = stepwise.take_snapshot(self.flow, *self.sides, wish, rules, plan=plan, by="a test", say=said)
        return kept.run

    def fence(self, run: str) -> None:
        stepwise.raise_fence(self.flow, self.target, run, by="a test")

    def apply(self, run: str) -> int:
        return stepwise.move_groups(self.flow, *self.sides, run, self.stage.rules, by="a test").offsets

    def verify(self, run: str) -> int:
        return stepwise.verify(self.flow, self.target, run).as_planned

    def record(self, run: str) -> Any:
        return stepwise.record(self.flow, self.target, run, {}, by="a test")


@pytest.fixture
def steps(mirrored: FailoverStage) -> Steps:
    return Steps(mirrored)


def test_another_plan_than_the_one_agreed_to_takes_no_snapshot(steps: Steps, mirrored: FailoverStage) -> None:
    wish = mirrored.wish(None)
    agreed = mirrored.sheet(wish).plan.agreement
    mirrored.commit("middle", {0: 220})
    with pytest.raises(StalePlan, match=f"{agreed} was agreed to"):
        steps.snapshot(wish, agreed)
    assert stepwise.find_earlier(mirrored.flow, mirrored.target.endpoint(), wish) is None
    run = steps.snapshot(wish, mirrored.sheet(wish).plan.agreement)
    with pytest.raises(StalePlan, match=f"{agreed} was agreed to"):
        steps.snapshot(wish, agreed)  # begun by another approval
    found = stepwise.find_earlier(mirrored.flow, mirrored.target.endpoint(), wish)
    assert found is not None
    assert found.run == run


def test_what_moves_between_two_tasks_gives_the_run_up_and_every_later_task_says_so(
    steps: Steps, mirrored: FailoverStage
) -> None:
    wish = mirrored.wish(None)
    run = steps.snapshot(wish, mirrored.sheet(wish).plan.agreement)
    steps.fence(run)
    mirrored.commit("middle", {0: 220})
    with pytest.raises(StalePlan, match="behind the fence"):
        steps.apply(run)
    assert (held(mirrored), mirrored.fence()) == (NOWHERE, None)
    for task in (steps.fence, steps.apply, steps.verify, steps.record):
        with pytest.raises(BadInput, match="was given up"):
            task(run)
    assert (held(mirrored), mirrored.fence()) == (NOWHERE, None)


def test_a_run_that_is_given_up_leaves_a_fence_that_isnt_its_own(
    steps: Steps, mirrored: FailoverStage
) -> None:
    fence_flow(mirrored.flow, mirrored.target.endpoint(), by="ops", because="nyc takes over")
    wish = mirrored.wish(None)
    run = steps.snapshot(wish, mirrored.sheet(wish).plan.agreement)
    steps.fence(run)
    mirrored.commit("middle", {0: 220})
    with pytest.raises(StalePlan):
        steps.apply(run)
    assert mirrored.fence() == "nyc takes over"


def test_nothing_is_moved_while_the_flow_isnt_fenced(steps: Steps, mirrored: FailoverStage) -> None:
    """Also not by a task that is cleared long after somebody has lifted the fence."""
    wish = mirrored.wish(MOMENT_MS)
    run = steps.snapshot(wish, mirrored.sheet(wish).plan.agreement)
    with pytest.raises(BadInput, match="isn't fenced"):
        steps.apply(run)
    steps.fence(run)
    lift_fence(mirrored.flow, mirrored.target.endpoint(), by="ops", because="it was a mistake")
    with pytest.raises(BadInput, match="isn't fenced"):
        steps.apply(run)
    assert held(mirrored) == NOWHERE
    steps.fence(run)
    assert steps.apply(run) == 6


def test_every_task_may_come_again_and_none_may_behind_a_rollback(
    steps: Steps, mirrored: FailoverStage
) -> None:
    wish = mirrored.wish(MOMENT_MS)
    agreed = mirrored.sheet(wish).plan.agreement
    run = steps.snapshot(wish, agreed)
    steps.fence(run)
    assert (steps.apply(run), steps.verify(run)) == (6, 6)
    ended = steps.record(run).ended_ms
    moved = held(mirrored)

    assert steps.snapshot(wish, agreed) == run
    steps.fence(run)
    assert (steps.apply(run), steps.verify(run)) == (0, 6)
    assert steps.record(run).ended_ms == ended
    assert (held(mirrored), mirrored.fence()) == (moved, f"failover {run}")

    mirrored.roll_back(run)
    for task in (steps.fence, steps.apply, steps.verify, steps.record):
        with pytest.raises(BadInput, match="was rolled back"):
            task(run)
        with pytest.raises(UnknownName, match="nosuchrun"):
            task("nosuchrun")
    assert (held(mirrored), mirrored.fence()) == (NOWHERE, None)


def test_what_was_done_is_history_for_a_task_that_is_cleared(steps: Steps, mirrored: FailoverStage) -> None:
    """Months later, with another fence, and groups that somebody has put back by hand."""
    wish = mirrored.wish(MOMENT_MS)
    mirrored.commit("middle", {0: 7, 1: 7}, on_target=True)
    run = steps.snapshot(wish, mirrored.sheet(wish).plan.agreement)
    steps.fence(run)
    assert steps.apply(run) == 6
    first = steps.record(run)
    lift_fence(mirrored.flow, mirrored.target.endpoint(), by="ops", because="sf came back")
    fence_flow(mirrored.flow, mirrored.target.endpoint(), by="ops", because="and went again")
    mirrored.commit("middle", {0: 7, 1: 7}, on_target=True)
    assert steps.apply(run) == 0
    assert mirrored.there("middle") == {0: 7, 1: 7}
    assert steps.record(run) == first
