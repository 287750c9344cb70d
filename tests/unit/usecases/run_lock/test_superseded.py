"""A run that isn't the owner any more says by what: a newer run, or a fence that was raised or lifted."""

from __future__ import annotations

from causeway.core.kernel.identity import Generation
from causeway.core.state.flow_state import FlowState, Run
from causeway.usecases.run_lock.ownership import _superseded

OURS = Generation(7)


def run(generation: int) -> Run:
    return Run(generation=Generation(generation), holder="amy pid 3", run_id="r", lanes=2, since_ms=0)


def test_a_newer_run_goes_on() -> None:
    said = str(_superseded("f", FlowState(generation=Generation(9), run=run(9)), OURS))
    assert "amy pid 3 took over since 1970-01-01T00:00:00" in said
    assert said.endswith("the newer run goes on from what this one committed")


def test_a_fence_or_a_lift_starts_no_other_run() -> None:
    said = str(_superseded("f", FlowState(generation=Generation(9), run=run(7)), OURS))
    assert "took over" not in said
    assert "a fence was raised or lifted while this run was at work, and that ends it" in said
    assert "the next run goes on" in said
