"""Which fences nobody lifts by hand, by what the journal tells of the run that raised them."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from causeway.core.failover.request import Mode
from causeway.core.journal.journal import FailoverRun, Journal, RollbackClaim, Status
from causeway.core.kernel.errors import BadInput
from causeway.core.model.flow import Flow
from causeway.core.state.fences import Fence
from causeway.usecases.failback import lift as failback_lift
from tests.support.episodes import failover_run
from tests.support.mirroring import make_flow

CLAIM = RollbackClaim("t1", "bob", 9)


def failover(status: Status, mode: Mode) -> FailoverRun:
    claims = (CLAIM,) if status is Status.ROLLING_BACK else ()
    return failover_run("f", mode, status=status, claims=claims)


@pytest.fixture
def lifted(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Whether a fence of this run is lifted, of a flow that isn't any flow's failback."""
    flow: Flow = make_flow("f", "orders")
    fence = Fence(generation=8, by="amy", because="x", since_ms=1, token="t", owner="failover r1")

    def lift(run: FailoverRun) -> bool:
        taken: list[int | None] = []
        sides: Any = SimpleNamespace(target=None)

        async def chosen(*_: object) -> tuple[Fence, Journal]:
            return fence, Journal(runs={"r1": run})

        async def nothing(*_: object) -> None:
            """`test_last_fence.py` has it."""

        async def taking(*_: object, number: int | None, **__: object) -> None:
            taken.append(number)

        steps = {"_chosen": chosen, "_refuse_last": nothing, "lift_fence_at": taking}
        for name, step in steps.items():
            monkeypatch.setattr(failback_lift, name, step)
        monkeypatch.setattr(failback_lift, "run_in_target_session", lambda _, work: asyncio.run(work(sides)))
        nowhere: Any = None
        failback_lift.lift_by_hand(flow, nowhere, nowhere, by="ops", because="a mistake", number=8)
        return taken == [8]

    return lift


@pytest.mark.parametrize("mode", list(Mode))
def test_a_fence_stays_as_long_as_its_failover_is_rolled_back(lifted: Any, mode: Mode) -> None:
    """Lifted, the flow's group sync would commit beside the rollback."""
    with pytest.raises(
        BadInput, match=r"bob has begun to roll that back at .*--rollback r1` goes on with it"
    ):
        lifted(failover(Status.ROLLING_BACK, mode))


@pytest.mark.parametrize("status", [Status.ROLLED_BACK, Status.GIVEN_UP])
@pytest.mark.parametrize("mode", list(Mode))
def test_a_fence_whose_run_is_over_is_lifted(lifted: Any, status: Status, mode: Mode) -> None:
    assert lifted(failover(status, mode))
