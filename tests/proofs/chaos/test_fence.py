"""After the fence nothing is added: not by a worker that was frozen anywhere in the protocol and wakes up
late, not by one with an old number of lanes, not by the next run; and a lift lets the copy end exactly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from causeway.core.kernel.errors import FlowFenced
from causeway.usecases.run_lock.fence import fence_flow, lift_fence
from tests.proofs.chaos.parts.frozen_copy import run_inline
from tests.proofs.chaos.stage import Stage, wake

pytestmark = [pytest.mark.integration, pytest.mark.chaos]


@pytest.mark.parametrize(
    ("step", "nth"),
    [
        pytest.param("append", 4, id="in the middle of appending"),
        pytest.param("claim", 1, id="between look and claim"),
        pytest.param("positions", 3, id="between data and positions"),
        pytest.param("end", 3, id="in front of the commit"),
    ],
)
def test_a_frozen_worker_adds_nothing_after_the_fence(
    stage: Callable[[int], Stage], step: str, nth: int
) -> None:
    at = stage(2)
    frozen = at.start_and_freeze(step, nth)
    outcome = fence_flow(at.flow, at.target.endpoint(), by="the test", because="nyc takes over")
    assert (outcome.fenced, outcome.changed, outcome.lanes_claimed) == (True, True, 2)
    before = at.look()
    wake(frozen)
    assert frozen.exit_code == 4, frozen.output()
    assert "fenced by the test" in frozen.output()
    assert "nyc takes over" in frozen.output()
    before.assert_same(at.look())
    the_next_run_is_refused(at)
    before.assert_same(at.look())
    lift_fence(at.flow, at.target.endpoint(), by="the test", because="it was a drill")
    report = run_inline(at.flow, at.source.endpoint(), at.target.endpoint(), "after the lift")
    assert (report.outcome, report.lag) == ("caught up", 0)
    at.assert_complete()


def test_the_fence_reaches_lanes_that_the_flow_no_longer_has(stage: Callable[[int], Stage]) -> None:
    at = stage(16)
    frozen = at.start_and_freeze("append", 4)
    fewer = replace(at.flow, lanes=2)
    outcome = fence_flow(fewer, at.target.endpoint(), by="the test", because="two lanes are enough")
    assert outcome.lanes_claimed == 16
    before = at.look()
    # Lifted at once: nothing but the claims holds the frozen worker's old lane now.
    lift_fence(fewer, at.target.endpoint(), by="the test", because="lanes are changed")
    wake(frozen)
    assert frozen.exit_code == 4, frozen.output()
    before.assert_same(at.look())
    run_inline(fewer, at.source.endpoint(), at.target.endpoint(), "with two lanes")
    at.assert_complete()


def the_next_run_is_refused(at: Stage) -> None:
    with pytest.raises(FlowFenced) as refusal:
        run_inline(at.flow, at.source.endpoint(), at.target.endpoint(), "the next run")
    assert refusal.value.exit_code == 4
    assert "fenced by the test since " in str(refusal.value)
    assert "nyc takes over" in str(refusal.value)
