"""Stages and a JVM for the tests of groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from causeway.lab.cluster import LabCluster
from tests.integration.groups.jvm import GroupProbe
from tests.integration.groups.stage import GroupStage

MakeStage = Callable[..., GroupStage]


@pytest.fixture
def stage(sf: LabCluster, nyc: LabCluster, topic_name: Callable[..., str]) -> Iterator[MakeStage]:
    """`stage()`, `stage(partitions=4)`: a flow of the test's own."""
    made: list[GroupStage] = []

    def make(**wishes: Any) -> GroupStage:
        made.append(GroupStage(**{"source": sf, "target": nyc, "stem": topic_name("groups"), **wishes}))
        return made[-1]

    yield make
    for each in made:
        each.close()


@pytest.fixture(scope="package")
def java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GroupProbe]:
    with GroupProbe(tmp_path_factory.mktemp("java") / "probe.log") as probe:
        yield probe
