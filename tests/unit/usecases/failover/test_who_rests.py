"""A way back that stands by has no groups to move: whoever fails it over means the other flow."""

from __future__ import annotations

from dataclasses import replace

import pytest

from causeway.core.failover.request import FailoverRequest, Mode
from causeway.core.kernel.errors import BadInput
from causeway.core.kernel.identity import Generation
from causeway.core.state.fences import Fence
from causeway.core.state.flow_state import FlowState
from causeway.usecases.failover.build_plan import refuse_resting
from tests.support.mirroring import make_flow

BACK = replace(make_flow("nyc_to_sf", "orders"), source="nyc", target="sf", failback_of="sf_to_nyc")
LATEST = FailoverRequest(flow="nyc_to_sf", at_ms=None)

STANDS_BY = "stands by since failback b1: sf_to_nyc goes on"


def fenced(owner: str) -> FlowState:
    fence = Fence(generation=Generation(3), by="amy", because=owner, since_ms=1, token="t", owner=owner)
    return FlowState(generation=Generation(3), fences={"t": fence})


def test_the_flow_that_mirrors_is_named() -> None:
    with pytest.raises(BadInput) as refused:
        refuse_resting(BACK, LATEST, fenced(STANDS_BY))
    assert str(refused.value) == (
        "flow nyc_to_sf: rests: sf_to_nyc mirrors from sf to nyc, and groups read on sf; "
        "nothing to move; `causeway next sf_to_nyc` says where it is"
    )


def test_a_failback_and_any_other_fence_go_on() -> None:
    refuse_resting(BACK, replace(LATEST, mode=Mode.HOME), fenced(STANDS_BY))
    refuse_resting(BACK, LATEST, fenced("failover f1"))
