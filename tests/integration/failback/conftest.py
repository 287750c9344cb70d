"""A flow that was failed over and has parted, on the clusters that all tests share."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import pytest

from causeway.lab.cluster import LabCluster
from causeway.usecases.run_lock import write_proof
from tests.integration.failback.stage import FailbackStage


@pytest.fixture(autouse=True)
def nobody_is_held_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """No group sync runs beside these failovers, so nothing is waited for."""
    monkeypatch.setattr(write_proof, "OUTLIVED_SECONDS", 0.05)


@pytest.fixture
def parted(sf: LabCluster, nyc: LabCluster, topic_name: Callable[..., str]) -> Iterator[FailbackStage]:
    """Mirrored, failed over, with a tail that never crossed and records that were written since."""
    stage, dice = FailbackStage(sf, nyc, topic_name("failback"), keeps_names=True), random.Random(5)
    stage.write(sf, 60, dice)
    stage.forward.run()
    stage.write(sf, 20, dice)
    for name in ("a", "b"):
        stage.commit(sf, name, stage.stem, {0: 3, 1: 5})
    stage.fail_over()
    stage.write(nyc, 40, dice)
    yield stage
    stage.close()
