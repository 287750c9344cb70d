"""What the permission tests share: each module has `clusters` of its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from causeway.lab.cluster import LabCluster
from tests.integration.permissions.guarded import Guarded


@pytest.fixture
def guarded(clusters: tuple[LabCluster, LabCluster], topic_name: Callable[..., str]) -> Guarded:
    """With the rights that its flow needs, and no other."""
    return Guarded(*clusters, topic_name("x").split("-")[1])
