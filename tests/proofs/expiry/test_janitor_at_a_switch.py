"""A failover, its rollback, a drill, a failback and the way home, with a janitor after each step.

`make prove` tells all of them, and random ones with transactions.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from causeway.lab.cluster import LabCluster
from tests.proofs.expiry.life import told_twice
from tests.proofs.expiry.switching import SWITCHES

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("nobody_is_held_up")]


@pytest.mark.parametrize(
    "story", ["latest_with_prefixes", "planned", "drilled", "resumed_with_names_that_stay"]
)
def test_a_switch_is_the_same_with_and_without_a_janitor(
    sf: LabCluster, nyc: LabCluster, topic_name: Callable[..., str], story: str
) -> None:
    told_twice(sf, nyc, lambda: topic_name("x"), SWITCHES[story])
