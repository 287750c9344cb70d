"""One circle of failover and failback, and the next failover; `make prove` plays two circles, ten times."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from causeway.lab.cluster import LabCluster
from tests.integration.failback.circles import play_circles
from tests.integration.failback.stage import FailbackStage

pytestmark = pytest.mark.integration
SEED = int(os.environ.get("FAILBACK_SEED", "1"))


@pytest.mark.parametrize("keeps_names", [True, False], ids=["identity", "prefix"])
def test_the_second_failover_is_as_exact_as_the_first(
    sf: LabCluster, nyc: LabCluster, topic_name: Callable[..., str], *, keeps_names: bool
) -> None:
    stage = FailbackStage(sf, nyc, topic_name("circles"), keeps_names)
    try:
        assert play_circles(stage, SEED, circles=1).wrong == ()
    finally:
        stage.close()
