"""Stages for failovers, on the clusters that all tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from causeway.lab.cluster import LabCluster
from tests.failover.stage import FailoverStage

MakeStage = Callable[..., FailoverStage]


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
