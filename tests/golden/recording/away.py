"""What is recorded of failovers and failbacks, of a drill, and of what is taken over from MirrorMaker 2."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from causeway.core.failover.request import Mode
from causeway.core.kernel.errors import StalePlan
from causeway.usecases.failover.drill import drill
from tests.golden.recording.scenes import Ground, caught_up, write
from tests.integration.failback.stage import FailbackStage
from tests.integration.failover.conftest import killed_once_one_group_is_moved
from tests.integration.failover.stage import BASE_MS, FailoverStage
from tests.integration.takeover.stage import TakeoverStage
from tests.integration.takeover.stage import write as write_any

STEP_MS = 1_000
MOMENT_MS = BASE_MS + 30 * STEP_MS


def _mirrored(ground: Ground, stem: str) -> FailoverStage:
    """Two partitions of 60 records, a second apart, in two runs; four more that aren't mirrored."""
    made = FailoverStage(ground.sf, ground.nyc, stem)
    ground.define(made.flow)
    for first in (0, 30):
        for partition in (0, 1):
            made.write([BASE_MS + n * STEP_MS for n in range(first, first + 30)], partition)
        made.run()
    made.write([BASE_MS + n * STEP_MS for n in range(60, 64)])
    made.commit("ahead", {0: 62, 1: 60})
    made.commit("middle", {0: 40, 1: 20})
    made.commit("middle", {0: 7}, on_target=True)
    return made


def failed_over(ground: Ground) -> None:
    """One that stands, with its fence."""
    stage = _mirrored(ground, "failed-over")
    stage.fail_over(stage.wish(MOMENT_MS))
    stage.mirror.close()


def rolled_back(ground: Ground) -> None:
    """One that was given up, because groups went on after its plan, and one that was taken back."""
    stage = _mirrored(ground, "rolled-back")
    with pytest.raises(StalePlan):
        stage.fail_over(stage.wish(None), consent=lambda _: stage.commit("ahead", {1: 50}))
    stage.roll_back(stage.fail_over(stage.wish(MOMENT_MS)).run)
    caught_up(stage.run())
    stage.mirror.close()


def broken_off(ground: Ground) -> None:
    """Killed while it moved groups: one stands where it should, the other doesn't."""
    stage = _mirrored(ground, "broken-off")
    with killed_once_one_group_is_moved():
        stage.fail_over(stage.wish(MOMENT_MS))
    stage.mirror.close()


def drilled(ground: Ground) -> None:
    stage = _mirrored(ground, "drilled")
    endpoints = stage.source.endpoint(), stage.target.endpoint()
    drill(stage.flow, *endpoints, stage.rules, by="amy", say=lambda _: None)
    stage.mirror.close()


def _pair(ground: Ground, stem: str) -> FailbackStage:
    stage = FailbackStage(ground.sf, ground.nyc, stem, keeps_names=True)
    for mirror in (stage.forward, stage.reverse):
        ground.define(mirror.flow)
    return stage


def _numbers(stage: FailbackStage, first: int, count: int, *, on_new: bool = False) -> None:
    for partition in range(stage.partitions):
        write(stage.new if on_new else stage.old, stage.stem, range(first, first + count), partition)


def away(ground: Ground) -> None:
    """A failover under equal names; the reverse flow has resumed, and it isn't completed."""
    stage = _pair(ground, "away")
    _numbers(stage, 0, 20)
    caught_up(stage.forward.run())
    stage.commit(stage.old, "reader", stage.stem, {0: 5, 1: 20})
    stage.fail_over()
    _numbers(stage, 100, 10, on_new=True)
    stage.resume()
    caught_up(stage.reverse.run())
    stage.close()


def home(ground: Ground) -> None:
    """There and back again: the reverse flow stands by with its fence."""
    stage = _pair(ground, "home")
    _numbers(stage, 0, 20)
    caught_up(stage.forward.run())
    stage.commit(stage.old, "reader", stage.stem, {0: 5, 1: 20})
    stage.fail_over(Mode.PLANNED)
    _numbers(stage, 100, 10, on_new=True)
    stage.resume()
    caught_up(stage.reverse.run())
    stage.commit(stage.new, "reader", stage.stem, {0: 25, 1: 20})
    stage.come_home()
    _numbers(stage, 200, 5)
    caught_up(stage.forward.run())
    stage.close()


def rebuilt(ground: Ground) -> None:
    """The old primary had records that never crossed: exported, emptied, mirrored back."""
    stage = _pair(ground, "rebuilt")
    _numbers(stage, 0, 20)
    caught_up(stage.forward.run())
    _numbers(stage, 50, 5)
    stage.commit(stage.old, "reader", stage.stem, {0: 5, 1: 20})
    stage.fail_over()
    _numbers(stage, 100, 10, on_new=True)
    stage.rebuild(accepts_loss=True)
    caught_up(stage.reverse.run())
    stage.close()


def taken_over(ground: Ground) -> None:
    """From a real MirrorMaker 2 with its offset syncs."""
    stage = TakeoverStage(ground.sf, ground.nyc, ground.home / "mm2", ("taken",), partitions=1)
    try:
        stage.write_flows()
        ground.define(stage.flow)
        write_any(stage.source, "taken", 0, range(300), random.Random(7))
        stage.start_mirror_maker()
        stage.wait_until_copied(300)
        stage.end()
        code, _, said = stage.adopt()
        assert code == 0, said
        write_any(stage.source, "taken", 0, range(300, 320), random.Random(8))
        with stage.mirror() as mirror:
            caught_up(mirror.run())
    finally:
        stage.close()


SCENES: tuple[Callable[[Ground], None], ...] = (
    failed_over,
    rolled_back,
    broken_off,
    drilled,
    away,
    home,
    rebuilt,
    taken_over,
)
