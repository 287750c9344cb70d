"""The lab keeps its promises on real brokers."""

from __future__ import annotations

import pytest
from causeway.lab.cluster import LabCluster

pytestmark = pytest.mark.integration


def test_two_clusters_are_two_clusters(sf: LabCluster, nyc: LabCluster, nyc_v1) -> None:
    assert sf.is_running()
    assert nyc.is_running()
    assert sf.cluster_id != nyc.cluster_id
