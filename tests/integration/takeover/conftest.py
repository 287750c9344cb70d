"""A source, a target and topics of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from causeway.lab.cluster import LabCluster
from tests.integration.takeover.stage import TakeoverStage

MakeStage = Callable[..., TakeoverStage]


@pytest.fixture
def stage(
    sf: LabCluster, nyc: LabCluster, topic_name: Callable[..., str], tmp_path: Path
) -> Iterator[MakeStage]:
    made: list[TakeoverStage] = []

    def make(*stems: str, **wishes: Any) -> TakeoverStage:
        topics = tuple(topic_name(stem) for stem in stems or ("orders",))
        made.append(TakeoverStage(sf, nyc, tmp_path, topics, **wishes))
        return made[-1]

    yield make
    for each in made:
        each.close()
