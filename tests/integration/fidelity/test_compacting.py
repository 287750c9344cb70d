"""Compacted while it is mirrored, in a small size; `make prove` plays 1,000,000 updates."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from causeway.lab.cluster import LabCluster
from tests.integration.fidelity.compacting import mirror_while_compacting

pytestmark = pytest.mark.integration


def test_a_topic_that_is_compacted_meanwhile_ends_with_the_same_last_values(
    sf: LabCluster, nyc: LabCluster, topic_name: Callable[..., str]
) -> None:
    found = mirror_while_compacting(sf, nyc, topic_name("cleaned"), updates=60_000, keys=1_000)
    assert found.keys_equal == 1_000
    assert found.repacked_for_holes > 0
    assert found.checked_on_the_map >= 1_000
