"""A random failback with names that stay, and one with prefixes; `make prove` plays ten of each."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from causeway.lab.cluster import LabCluster
from tests.integration.failback.stage import FailbackStage, next_value
from tests.integration.failback.trials import play

pytestmark = pytest.mark.integration
SEED = int(os.environ.get("FAILBACK_SEED", "1"))


@pytest.mark.parametrize("keeps_names", [True, False], ids=["identity", "prefix"])
def test_each_record_is_on_both_sides_once_and_groups_go_on_exactly(
    sf: LabCluster, nyc: LabCluster, topic_name: Callable[..., str], *, keeps_names: bool
) -> None:
    stage = FailbackStage(sf, nyc, topic_name("failback"), keeps_names)
    try:
        assert play(stage, SEED).wrong == ()
    finally:
        stage.close()


def test_a_group_that_is_still_before_where_they_parted_returns_to_its_record(
    parted: FailbackStage,
) -> None:
    """The reverse flow has copied nothing there: it knows from the forward flow's map."""
    parted.resume()
    parted.reverse.run()
    offset, value = parted.log(parted.new, parted.stem)[0][6]
    parted.commit(parted.new, "a", parted.stem, {0: offset})
    parted.come_home()
    home = parted.stands(parted.old, "a", parted.stem)[0]
    assert next_value(parted.log(parted.old, parted.stem)[0], home) == value
