"""What is reported of each group and partition: where it goes on, or why that isn't known; and meanwhile."""

from __future__ import annotations

import json

import pytest

from causeway.core.groups.sync_rules import Outcome
from tests.integration.groups.conftest import MakeStage
from tests.integration.groups.stage import commit, outcomes, row_of, write
from tests.support.inline_flow import create_topic, delete_records, delete_topic, grow_topic

pytestmark = pytest.mark.integration


def test_the_why_report_says_of_each_group_why(stage: MakeStage) -> None:
    scene = stage()
    write(scene.source, scene.topic, range(100), 2)
    scene.mirror.run()
    write(scene.source, scene.topic, range(100, 120), 2)
    commit(scene.target, scene.group("own"), {(scene.mirrored, 0): 10})
    scene.commit(scene.group("own"), {0: 20})
    scene.commit(scene.group("ahead"), {0: 55})
    scene.commit(scene.group("well"), {0: 30, 1: 40})
    commit(scene.source, scene.group("elsewhere"), {("__consumer_offsets", 0): 3})
    report = scene.sync()
    assert outcomes(report, scene.group("well")) == {Outcome.SYNCED: 2}
    assert outcomes(report, scene.group("ahead")) == {Outcome.AHEAD: 1}
    assert outcomes(report, scene.group("elsewhere")) == {Outcome.NOT_IN_FLOW: 1}
    assert outcomes(report, scene.group("own")) == {Outcome.MOVED_ON: 1}
    assert scene.there(scene.group("ahead")) == {0: 50}
    scene.mirror.run()
    scene.sync()
    assert scene.there(scene.group("ahead")) == {0: 56}, "a marker lies between"


def test_reasons_of_partitions_that_are_unknown(stage: MakeStage) -> None:
    """Older than the map, not on the target yet, a topic recreated; each with its facts, in JSON, too."""
    scene = stage(partitions=2)
    write(scene.source, scene.topic, range(60), 2)
    delete_records(scene.source, scene.topic, 20)
    scene.mirror.run()
    grow_topic(scene.source, scene.topic, 3)
    group = scene.group()
    scene.commit(group, {0: 5, 1: 7, 2: 0})
    report = scene.sync(include=(group, scene.group("silent").replace(".", "-")))
    told = {row["source"]: row for row in json.loads(json.dumps(report.as_dict()))["partitions"]}
    assert {name: (row["outcome"], row["why"]) for name, row in told.items()} == {
        f"{scene.topic}-0": ("older than the map", "older than the map, which begins with 20 -> 0"),
        f"{scene.topic}-1": ("synced", ""),
        f"{scene.topic}-2": ("partition missing", f"{scene.mirrored}-2 isn't on the target"),
    }
    assert report.of_group(scene.group("silent").replace(".", "-")) == {Outcome.NO_COMMITS: 1}
    assert scene.there(group) == {1: 7}
    delete_topic(scene.source, scene.topic)
    create_topic(scene.source, scene.topic, 2)
    scene.commit(group, {0: 3})
    row = row_of(scene.sync(), group)
    assert (row.outcome, row.target_next) == (Outcome.OTHER_GENERATION, None)
    assert row.why == f"{scene.topic} was recreated on the source"
    assert scene.there(group) == {1: 7}


def test_a_run_over_many_groups_shows_progress(stage: MakeStage, monkeypatch: pytest.MonkeyPatch) -> None:
    from causeway.usecases.groups import sync

    monkeypatch.setattr(sync, "_SAY_SECONDS", 0.0)
    scene = stage(partitions=1)
    write(scene.source, scene.topic, range(10), 1)
    scene.mirror.run()
    for number in range(3):
        scene.commit(scene.group(str(number)), {0: number})
    scene.sync()
    assert scene.said[-1] == f"{scene.mirror.flow.name}: 3 of 3 groups"


def test_our_own_groups_are_excluded(stage: MakeStage) -> None:
    scene = stage(partitions=1)
    commit(scene.source, f"causeway.{scene.stem}", {(scene.topic, 0): 0})
    report = scene.sync(include=(".*",))
    assert f"causeway.{scene.stem}" in report.excluded
    assert f"causeway.{scene.stem}" not in report.groups


def test_what_the_lists_leave_out_is_named_with_the_reason(stage: MakeStage) -> None:
    scene = stage(partitions=1)
    scene.commit(scene.group("console"), {0: 0})
    report = scene.sync(exclude=(r".*\.console",))
    assert report.excluded[scene.group("console")] == r"groups.exclude has .*\.console"
    assert outcomes(report, scene.group("console")) == {Outcome.EXCLUDED: 1}
