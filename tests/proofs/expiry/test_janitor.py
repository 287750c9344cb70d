"""Whatever a flow does, a janitor who deletes its positions in between changes nothing that anybody sees."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from causeway.lab.cluster import LabCluster
from tests.proofs.expiry.life import told_twice
from tests.proofs.expiry.stories import STORIES

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("nobody_writes_there")]


@pytest.mark.parametrize("story", STORIES)
def test_a_mirror_sees_the_same_with_and_without_a_janitor(
    sf: LabCluster, nyc: LabCluster, topic_name: Callable[..., str], story: str
) -> None:
    told_twice(sf, nyc, lambda: topic_name("x"), STORIES[story])
