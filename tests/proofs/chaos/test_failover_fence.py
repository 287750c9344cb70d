"""A worker that was frozen before its commit, and wakes after a failover, adds nothing."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from causeway.core.failover.request import FailoverRequest
from causeway.core.model.group_filter import FlowGroups
from causeway.usecases.failover.execute import Operator, fail_over
from causeway.usecases.run_lock.ownership import write_fence
from causeway.usecases.session.source_may_be_gone import open_target_session
from tests.integration.groups.stage import commit, committed
from tests.proofs.chaos.stage import PARTITIONS, Stage, wake

pytestmark = [pytest.mark.integration, pytest.mark.chaos, pytest.mark.usefixtures("nobody_is_held_up")]


@pytest.mark.parametrize("half_fenced", [False, True], ids=["open", "fenced-by-somebody-who-died"])
def test_a_frozen_worker_adds_nothing_after_a_failover(
    stage: Callable[[int], Stage], *, half_fenced: bool
) -> None:
    """Also where a fence stood already, whose claims were never made."""
    at = stage(2)
    group, mirrored = f"{at.topic}.reader", f"sf.{at.topic}"
    commit(at.source, group, {(at.topic, p): 5 for p in range(PARTITIONS)})
    frozen = at.start_and_freeze("end", 3)
    if half_fenced:
        with open_target_session(at.target.endpoint()) as sides:
            sides.network.run(
                lambda: write_fence(sides.target, sides.network, at.flow, by="ops", because="sf is dead")
            )
    rules = FlowGroups(include=(group,), sync_offsets=True)
    operator = Operator(by="the test", consent=lambda _: None, say=lambda _: None)
    wish = FailoverRequest(flow=at.flow.name, at_ms=None)
    done = fail_over(at.flow, at.source.endpoint(), at.target.endpoint(), wish, rules, operator)
    assert done.verified.as_planned == done.verified.offsets > 0
    before, held = at.look(), committed(at.target, group)
    assert {topic for topic, _ in held} == {mirrored}

    wake(frozen)

    assert frozen.exit_code == 4, frozen.output()
    assert f"failover {done.run}" in frozen.output()
    before.assert_same(at.look())
    assert committed(at.target, group) == held
