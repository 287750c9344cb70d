"""The DAG's steps one by one, without Airflow: between two of them may lie hours, and anything."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import pytest

from causeway.core.failover.impact_sheet import Loss
from causeway.core.failover.request import FailoverRequest, Mode
from causeway.core.journal.journal import FailoverRun
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import BadInput, StalePlan, UnknownName
from causeway.usecases.failover import build_plan, planned
from causeway.usecases.failover.execute import take_agreed_snapshot
from causeway.usecases.failover.failover import Failover
from causeway.usecases.run_lock.fence import fence_flow, lift_fence
from causeway.usecases.session.source_may_be_gone import FlowSession, in_session, open_session, trouble_of
from tests.integration.failover.conftest import NOWHERE, STEP_MS, held
from tests.integration.failover.stage import BASE_MS, FailoverStage

pytestmark = pytest.mark.integration
MOMENT_MS = BASE_MS + 150 * STEP_MS
T = TypeVar("T")


class Steps:
    """What each task does; only the run's name goes from one to the next."""

    def __init__(self, stage: FailoverStage) -> None:
        self.stage, self.flow = stage, stage.flow
        self.source, self.target = stage.source.endpoint(), stage.target.endpoint()

    def find_earlier(self, wish: FailoverRequest) -> FailoverRun | None:
        return self._step(lambda failover: failover.find_earlier(wish))

    def snapshot(self, wish: FailoverRequest, plan: str) -> str:
        with open_session(self.source, self.target) as sides, trouble_of(self.flow):
            said = self.stage.mirror.said.append
            return take_agreed_snapshot(self._failover(sides), wish, plan, said).run

    def fence(self, run: str) -> None:
        self._step(lambda failover: failover.raise_fence(run))

    def apply(self, run: str) -> int:
        return self._step(lambda failover: failover.move_groups(run), self.source).offsets

    def verify(self, run: str) -> int:
        return self._step(lambda failover: failover.verify(run)).as_planned

    def record(self, run: str) -> FailoverRun:
        return self._step(lambda failover: failover.record(run, {}))

    def _step(self, step: Callable[[Failover], Awaitable[T]], source: ClusterEndpoint | None = None) -> T:
        return in_session(self.flow, source, self.target, lambda sides: step(self._failover(sides)))

    def _failover(self, sides: FlowSession) -> Failover:
        return Failover(self.flow, sides, self.stage.rules, "a test")


def tasks(steps: Steps) -> tuple[Callable[[str], object], ...]:
    """Those that come after the snapshot."""
    return steps.fence, steps.apply, steps.verify, steps.record


@pytest.fixture
def steps(mirrored: FailoverStage) -> Steps:
    return Steps(mirrored)


def test_another_plan_than_the_one_agreed_to_takes_no_snapshot(steps: Steps, mirrored: FailoverStage) -> None:
    wish = mirrored.wish(None)
    agreed = mirrored.sheet(wish).plan.agreement
    mirrored.commit("middle", {0: 220})
    with pytest.raises(StalePlan, match=f"{agreed} was agreed to"):
        steps.snapshot(wish, agreed)
    assert steps.find_earlier(wish) is None
    run = steps.snapshot(wish, mirrored.sheet(wish).plan.agreement)
    with pytest.raises(StalePlan, match=f"{agreed} was agreed to"):
        steps.snapshot(wish, agreed)  # begun by another approval
    found = steps.find_earlier(wish)
    assert found is not None
    assert found.run == run


@pytest.mark.parametrize("mode", [Mode.UNPLANNED, Mode.PLANNED])
def test_a_snapshot_prices_nothing_again(
    steps: Steps, mirrored: FailoverStage, monkeypatch: pytest.MonkeyPatch, mode: Mode
) -> None:
    """Whoever agreed has seen the price, and the hash of a plan doesn't depend on it."""
    wish = mirrored.wish(None, mode=mode)
    agreed, priced = mirrored.sheet(wish).plan.agreement, list[str]()

    async def counted(*_: object) -> tuple[Loss, ...]:
        priced.append("once more")
        return ()

    monkeypatch.setattr(build_plan, "find_losses", counted)
    monkeypatch.setattr(planned, "drain", lambda *_, **__: None)
    steps.snapshot(wish, agreed)
    assert priced == []
    mirrored.sheet(wish)
    assert priced == ["once more"]


def test_what_moves_between_two_tasks_gives_the_run_up_and_every_later_task_says_so(
    steps: Steps, mirrored: FailoverStage
) -> None:
    wish = mirrored.wish(None)
    run = steps.snapshot(wish, mirrored.sheet(wish).plan.agreement)
    steps.fence(run)
    mirrored.commit("middle", {0: 220})
    with pytest.raises(StalePlan, match="after the fence"):
        steps.apply(run)
    assert (held(mirrored), mirrored.fence()) == (NOWHERE, None)
    for task in tasks(steps):
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


def test_every_task_may_come_again_and_none_may_after_a_rollback(
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
    for task in tasks(steps):
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
