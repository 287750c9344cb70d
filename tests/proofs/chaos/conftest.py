"""Stages for the tests of this folder, on both kinds of target."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from causeway.lab.cluster import LabCluster
from tests.proofs.chaos.stage import Stage


@pytest.fixture(params=["nyc", "nyc_v1"])
def target(request: pytest.FixtureRequest) -> LabCluster:
    found: LabCluster = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def stage(
    sf: LabCluster, target: LabCluster, topic_name: Callable[..., str], tmp_path: Path
) -> Iterator[Callable[[int], Stage]]:
    made: list[Stage] = []

    def make(lanes: int) -> Stage:
        made.append(Stage(sf, target, topic_name("fenced"), tmp_path, lanes))
        made[-1].fill()
        return made[-1]

    yield make
    for each in made:
        for process in each.processes:
            process.kill_all()
