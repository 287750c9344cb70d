"""Many groups in one run, here and through Spark: the same places, by the same functions."""

from __future__ import annotations

import random

import pytest

from tests.integration.groups.conftest import MakeStage
from tests.integration.groups.many_groups import many_groups, measured
from tests.integration.groups.stage import all_values, committed

pytestmark = pytest.mark.integration
GROUPS, PARTITIONS, RECORDS = 40, 12, 1_200


@pytest.mark.spark
@pytest.mark.parametrize("through_spark", [False, True], ids=["here", "spark"])
def test_every_group_gets_its_place(stage: MakeStage, through_spark: bool) -> None:
    scene = stage(partitions=PARTITIONS)
    places = many_groups(scene, GROUPS, RECORDS, random.Random(3))
    found = measured(scene, through_spark=through_spark)
    assert found.outcomes == {"synced": GROUPS * PARTITIONS}
    assert (found.checkpoints, found.commits) == (GROUPS * PARTITIONS, GROUPS * PARTITIONS)
    if through_spark:
        assert f" of 8 shares of {GROUPS} groups" in found.said[0]
    there = {(p, v): o for p, o, v in all_values(scene.target, scene.mirrored)}
    here = {(p, o): v for p, o, v in all_values(scene.source, scene.topic)}
    for group in list(places)[::7]:
        expected = {
            (scene.mirrored, p): there[p, here[p, offset]] if (p, offset) in here else RECORDS // PARTITIONS
            for p, offset in places[group].items()
        }
        assert committed(scene.target, group) == expected
