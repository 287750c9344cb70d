"""Stages for failovers, on the clusters that all tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from causeway.brokers.wire.consumer_groups import ConsumerGroups
from causeway.lab.cluster import LabCluster
from causeway.usecases.failover import rollback, rollback_claim
from causeway.usecases.run_lock import write_proof
from tests.integration.failover.stage import BASE_MS, FailoverStage
from tests.support.killing import Killed, killed_after, killed_inside

MakeStage = Callable[..., FailoverStage]
RECORDS = 300
STEP_MS = 1_000
NOWHERE: dict[str, dict[int, int]] = {"ahead": {}, "middle": {}, "behind": {}}


def held(stage: FailoverStage) -> dict[str, dict[int, int]]:
    """On the target, by the groups of `mirrored`."""
    return {name: stage.there(name) for name in NOWHERE}


@contextmanager
def killed_once_one_group_is_moved() -> Iterator[None]:
    """In the middle of moving: the first one stands where it should, and no other."""
    real = ConsumerGroups.commit

    async def only_one(self: ConsumerGroups, wanted: dict[str, Any], proof: Any) -> Any:
        name = min(wanted)
        await real(self, {name: wanted[name]}, proof)
        raise Killed

    with killed_inside(ConsumerGroups, "commit", only_one):
        yield


@contextmanager
def killed_once_it_was_claimed() -> Iterator[None]:
    """A rollback, as by SIGKILL: it can't take its word back, either."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rollback_claim, "_withdraw", lambda *_: False)
        with killed_after(rollback, "_claim"):
            yield


@pytest.fixture(autouse=True)
def nobody_is_held_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """No group sync runs beside these failovers, so nothing is waited for; `test_held_up.py` waits."""
    monkeypatch.setattr(write_proof, "OUTLIVED_SECONDS", 0.05)


@pytest.fixture
def stage(sf: LabCluster, nyc: LabCluster, topic_name: Callable[..., str]) -> Iterator[MakeStage]:
    """`stage()`, `stage(partitions=4)`: a flow of the test's own."""
    made: list[FailoverStage] = []

    def make(**wishes: Any) -> FailoverStage:
        made.append(FailoverStage(**{"source": sf, "target": nyc, "stem": topic_name("failover"), **wishes}))
        return made[-1]

    yield make
    for each in made:
        each.mirror.close()


@pytest.fixture
def mirrored(stage: MakeStage) -> FailoverStage:
    """Two partitions of 300 records, a second apart, mirrored in three runs; 20 more that aren't."""
    made = stage()
    for first in range(0, RECORDS, 100):
        for partition in (0, 1):
            made.write([BASE_MS + n * STEP_MS for n in range(first, first + 100)], partition)
        made.run()
    made.write([BASE_MS + n * STEP_MS for n in range(RECORDS, RECORDS + 20)])
    made.commit("ahead", {0: 310, 1: 300})
    made.commit("middle", {0: 200, 1: 150})
    made.commit("behind", {0: 5})
    return made
