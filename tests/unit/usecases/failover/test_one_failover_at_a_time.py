"""Who goes on of two failovers of one flow that began at once, and which of them is rolled back first."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from causeway.core.failover.request import FailoverRequest
from causeway.core.journal.journal import FailoverRun, Journal, RollbackClaim, Status
from causeway.core.kernel.errors import BadInput
from causeway.core.kernel.identity import Generation
from causeway.core.model.flow import Flow
from causeway.core.model.group_filter import FlowGroups
from causeway.core.state.flow_state import FlowState, Run
from causeway.usecases.failover import failover as conductor
from causeway.usecases.failover import rollback_refusals
from causeway.usecases.failover.failover import Failover
from tests.support.mirroring import make_flow

FLOW: Flow = make_flow("f", "orders")
CLAIMED: dict[str, Any] = {"status": Status.ROLLING_BACK, "claims": (RollbackClaim("t1", "bob", 9),)}

RAN = Run(generation=Generation(21), holder="", run_id="", lanes=1, since_ms=0)
GONE_ON = FlowState(generation=Generation(21), run=RAN)


def failover(run: str, **changes: Any) -> FailoverRun:
    known: dict[str, Any] = {
        "run": run,
        "flow": "f",
        "wish": FailoverRequest(flow="f", at_ms=int(run[1:])),
        "plan_hash": "p",
        "by": "amy",
        "begun_ms": 5,
        "status": Status.BEGUN,
    }
    return FailoverRun(**{**known, **changes})


def journal(*runs: FailoverRun) -> Journal:
    return Journal(runs={each.run: each for each in runs})


@dataclass
class Target:
    """Where the journal lies; `ends` are the last words that were written."""

    journal: Journal
    state: FlowState = field(default_factory=lambda: FlowState(generation=Generation(3)))
    ends: list[tuple[str, Status]] = field(default_factory=list)

    def earlier_run(self, wish: FailoverRequest) -> FailoverRun | None:
        sides: Any = self
        return asyncio.run(Failover(FLOW, sides, FlowGroups(), "me").find_earlier(wish))

    @property
    def target(self) -> Any:
        return self

    async def flow_state(self, _flow: object) -> FlowState:
        return self.state


@pytest.fixture
def of(monkeypatch: pytest.MonkeyPatch) -> Any:
    async def read(target: Target, _flow: str) -> Journal:
        return target.journal

    async def write_end(of: Any, run: str, status: Status, _by: str) -> None:
        of.sides.ends.append((run, status))

    async def state_on(target: Target, _flow: str) -> FlowState:
        return target.state

    for module in (conductor, rollback_refusals):
        monkeypatch.setattr(module, "state_on", state_on)
    monkeypatch.setattr(conductor, "read_journal", read)
    monkeypatch.setattr(Failover, "_write_end", write_end)
    return lambda *runs: Target(journal(*runs))


@pytest.mark.parametrize(
    ("first", "way_out"),
    [({}, "`causeway failover f --at"), (CLAIMED, "`causeway failover f --rollback r1`")],
)
def test_one_that_died_before_it_gave_way_to_an_earlier_one_gives_way_now(
    of: Any, first: dict[str, Any], way_out: str
) -> None:
    second = failover("r2")
    target = of(failover("r1", **first), second)
    with pytest.raises(BadInput, match=way_out) as refused:
        target.earlier_run(second.wish)
    assert "failover r1 of f" in str(refused.value)
    assert target.ends == [("r2", Status.GIVEN_UP)]


def test_one_that_has_nobody_to_give_way_to_goes_on(of: Any) -> None:
    second = failover("r2")
    for first in (Status.DONE, Status.GIVEN_UP, Status.ROLLED_BACK):
        target = of(failover("r1", status=first), second)
        assert (target.earlier_run(second.wish), target.ends) == (second, [])
    agreed = failover("r2", is_agreed=True)
    target = of(failover("r1", **CLAIMED), agreed)
    assert (target.earlier_run(second.wish), target.ends) == (agreed, []), "it has begun to move groups"


def test_a_rollback_that_is_history_stops_no_later_failover(of: Any) -> None:
    """Its message was that the rollback goes on first; and that put groups back to where they stood months
    ago."""
    first = failover("r1", **CLAIMED, generation=20)
    target = of(first)
    for wish in (first.wish, FailoverRequest(flow="f", at_ms=99)):
        target.state = FlowState(generation=Generation(20))
        with pytest.raises(BadInput, match="--rollback r1` goes on with it"):
            target.earlier_run(wish)
        target.state = GONE_ON
        assert target.earlier_run(wish) is None
    second = failover("r2")
    target = of(first, second)
    target.state = GONE_ON
    assert (target.earlier_run(second.wish), target.ends) == (second, [])


def refuse(run: FailoverRun, *later: FailoverRun, state: FlowState | None = None) -> None:
    sides: Any = Target(journal(run, *later), state or FlowState())
    asyncio.run(rollback_refusals.refuse_out_of_turn(FLOW, sides, sides.journal, run))


def test_a_rollback_goes_on_under_a_failover_that_gives_way_to_it(of: Any) -> None:
    refuse(failover("r1", **CLAIMED), failover("r2"))
    with pytest.raises(BadInput, match="--rollback r2` first"):
        refuse(failover("r1"), failover("r2"))


def test_nor_does_it_go_on_once_that_failover_has_begun(of: Any) -> None:
    first = failover("r1", **CLAIMED, generation=20)
    refuse(first, state=GONE_ON)
    with pytest.raises(BadInput, match="--rollback r2` first"):
        refuse(first, failover("r2"), state=GONE_ON)


@pytest.mark.parametrize("later", [{"is_agreed": True}, {"status": Status.DONE}, CLAIMED])
def test_a_rollback_doesnt_go_on_under_a_failover_that_has_moved_groups_or_is_rolled_back_itself(
    of: Any, later: dict[str, Any]
) -> None:
    with pytest.raises(BadInput, match="--rollback r2` first"):
        refuse(failover("r1", **CLAIMED), failover("r2", **later))
