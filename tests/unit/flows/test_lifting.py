"""Which fences nobody lifts by hand, by what the journal tells of the run that raised them."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.core.errors import BadInput
from causeway.core.failover.journal import FailoverRun, Journal, RollbackClaim, Status
from causeway.core.failover.wish import Mode, Wish
from causeway.core.fences import Fence
from causeway.core.flow import Flow
from causeway.flows.failback import lifting
from tests.mirroring import make_flow

CLAIM = RollbackClaim("t1", "bob", 9)


def failover(status: Status, mode: Mode) -> FailoverRun:
    return FailoverRun(
        run="r1",
        flow="f",
        wish=Wish(flow="f", at_ms=None, mode=mode),
        plan_hash="p",
        by="amy",
        begun_ms=5,
        status=status,
        claims=(CLAIM,) if status is Status.ROLLING_BACK else (),
    )


@pytest.fixture
def lifted(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Whether a fence of this run is lifted, of a flow that isn't any flow's failback."""
    flow: Flow = make_flow("f", "orders")
    fence = Fence(generation=8, by="amy", because="x", since_ms=1, token="t", owner="failover r1")

    def lift(run: FailoverRun) -> bool:
        taken: list[int | None] = []
        monkeypatch.setattr(lifting, "_chosen", lambda *_: (fence, Journal(runs={"r1": run})))
        monkeypatch.setattr(lifting, "_refuse_last", lambda *_: None)  # test_last_fence.py
        monkeypatch.setattr(lifting, "lift_fence", lambda *_, number, **__: taken.append(number))
        nowhere: Any = None
        lifting.lift_by_hand(flow, nowhere, nowhere, by="ops", because="a mistake", number=8)
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
