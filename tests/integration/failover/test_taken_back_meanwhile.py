"""A rollback while the failover still lives: it sleeps wherever it may, and wakes up late.

What it has on its way is put back, what it says afterwards doesn't count, and its fence goes last.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from causeway.brokers.wire.consumer_groups import ConsumerGroups
from causeway.core.journal.journal import Status
from causeway.core.journal.remaining_work import failover_mark
from causeway.core.kernel.errors import BadInput, FlowFenced
from causeway.usecases.failover import failover as steps
from causeway.usecases.failover import rollback
from causeway.usecases.failover.failover import Failover
from causeway.usecases.failover.rollback import RolledBack
from causeway.usecases.run_lock.fence import lift_fence
from tests.integration.failover.conftest import NOWHERE, STEP_MS, held, killed_once_it_was_claimed
from tests.integration.failover.stage import BASE_MS, FailoverStage, statuses
from tests.integration.groups.stage import commit
from tests.support.meanwhile import meanwhile

pytestmark = pytest.mark.integration
MOMENT_MS = BASE_MS + 150 * STEP_MS


def first_in_front_of(
    monkeypatch: pytest.MonkeyPatch, owner: Any, step: str, work: Callable[[], Any]
) -> None:
    real = getattr(owner, step)

    async def slept(*arguments: Any, **named: Any) -> Any:
        monkeypatch.setattr(owner, step, real)
        work()
        return await real(*arguments, **named)

    monkeypatch.setattr(owner, step, slept)


def take_back(stage: FailoverStage) -> RolledBack:
    return meanwhile(lambda: stage.roll_back(stage.journal()[-1].run))


def is_as_before(stage: FailoverStage) -> bool:
    run, status = statuses(stage)[-1]
    assert (held(stage), stage.fence(), status) == (NOWHERE, None, Status.ROLLED_BACK), run
    return True


@pytest.mark.parametrize("step", ["record", "_write_end"])
def test_a_failover_that_slept_before_its_last_word_isnt_done(
    mirrored: FailoverStage, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    first_in_front_of(monkeypatch, Failover, step, lambda: take_back(mirrored))
    with pytest.raises(BadInput, match="was rolled back"):
        mirrored.fail_over(mirrored.wish(MOMENT_MS))
    assert is_as_before(mirrored)
    assert mirrored.fail_over(mirrored.wish(MOMENT_MS)).moved == 6


def test_what_it_has_on_its_way_is_put_back_again_before_the_fence_is_lifted(
    mirrored: FailoverStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sent on a proof of before, it comes when the rollback has put all groups back."""
    run = mirrored.fail_over(mirrored.wish(MOMENT_MS)).run
    moved, real, fences = held(mirrored), rollback._restore, list[str | None]()

    def late() -> None:
        for name, offsets in moved.items():
            places = {(mirrored.mirrored, p): offset for p, offset in offsets.items()}
            commit(mirrored.target, mirrored.group(name), places, failover_mark(run))
        fences.append(mirrored.fence())

    async def then_it_comes(*arguments: Any) -> int:
        count = await real(*arguments)
        monkeypatch.setattr(rollback, "_restore", real)
        meanwhile(late)
        return count

    monkeypatch.setattr(rollback, "_restore", then_it_comes)
    back = mirrored.roll_back(run)
    assert (back.restored, back.read_on, back.fence) == (12, (), "lifted")
    assert fences == [f"failover {run}"]
    assert is_as_before(mirrored)


def test_it_goes_no_further_once_somebody_has_begun_to_take_it_back(
    mirrored: FailoverStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    wish = mirrored.wish(MOMENT_MS)

    def begun() -> None:
        with killed_once_it_was_claimed():
            mirrored.roll_back(mirrored.journal()[-1].run)

    first_in_front_of(monkeypatch, ConsumerGroups, "commit", lambda: meanwhile(begun))
    for _ in range(2):
        with pytest.raises(BadInput, match="is being rolled back: a test has begun that") as told:
            mirrored.fail_over(wish)
        run = mirrored.journal()[-1].run
        assert f"--rollback {run}" in str(told.value)
    with pytest.raises(BadInput, match="is being rolled back"):
        mirrored.fail_over(mirrored.wish(None))
    assert (held(mirrored), mirrored.fence()) == (NOWHERE, f"failover {run}")
    with pytest.raises(FlowFenced):
        mirrored.run()
    assert mirrored.roll_back(run).fence == "lifted"
    assert is_as_before(mirrored)


def test_one_that_slept_before_its_fence_leaves_none(
    mirrored: FailoverStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_in_front_of(monkeypatch, steps, "close_for", lambda: take_back(mirrored))
    with pytest.raises(BadInput, match="was rolled back"):
        mirrored.fail_over(mirrored.wish(MOMENT_MS))
    assert is_as_before(mirrored)


def test_of_two_rollbacks_the_later_one_goes_on(
    mirrored: FailoverStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = mirrored.fail_over(mirrored.wish(MOMENT_MS)).run

    def another() -> None:
        with killed_once_it_was_claimed():
            mirrored.roll_back(run)

    first_in_front_of(monkeypatch, rollback, "_restore", lambda: meanwhile(another))
    with pytest.raises(BadInput, match="was begun again by somebody else meanwhile: a test, at "):
        mirrored.roll_back(run)
    assert mirrored.roll_back(run).restored == 6
    assert is_as_before(mirrored)


def test_a_rollback_that_broke_off_before_the_mirror_went_on_stops_no_later_failover(
    mirrored: FailoverStage,
) -> None:
    first = mirrored.fail_over(mirrored.wish(MOMENT_MS)).run
    with killed_once_it_was_claimed():
        mirrored.roll_back(first)
    lift_fence(mirrored.flow, mirrored.target.endpoint(), by="ops", because="an earlier version lets it go")
    with pytest.raises(BadInput, match="is being rolled back"):
        mirrored.fail_over(mirrored.wish(None))
    mirrored.run()
    second = mirrored.fail_over(mirrored.wish(None)).run
    assert statuses(mirrored) == [(first, Status.ROLLING_BACK), (second, Status.DONE)]
    stood = held(mirrored)
    with pytest.raises(BadInput, match=f"failover {second} came after it"):
        mirrored.roll_back(first)
    assert (held(mirrored), mirrored.fence()) == (stood, f"failover {second}")
    assert mirrored.roll_back(second).fence == "lifted"
