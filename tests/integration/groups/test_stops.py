"""A real group, stopped on the source and started on the target, reads each remaining record once."""

from __future__ import annotations

import random

import pytest

from tests.integration.groups.conftest import MakeStage
from tests.integration.groups.jvm import GroupProbe
from tests.integration.groups.stops import assert_each_is_read_once, prepared

pytestmark = pytest.mark.integration
STOPS = 4
_SEED = 20_261_119


@pytest.mark.parametrize("kind", ["plain", "transactional"])
def test_each_remaining_record_is_read_once(stage: MakeStage, java: GroupProbe, kind: str) -> None:
    dice = random.Random(f"{_SEED} {kind}")
    scene = prepared(stage(partitions=3), kind, 600, dice)
    for number in range(STOPS):
        client = "java" if number % 2 else "librdkafka"
        assert_each_is_read_once(scene, f"{client} {number}", client, java, dice)
