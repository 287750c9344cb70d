"""A real MirrorMaker 2 is killed in the middle, and Causeway goes on: each record once, in order."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from tests.integration.groups.stage import commit, committed
from tests.integration.takeover.conftest import MakeStage
from tests.integration.takeover.stage import TakeoverStage, write
from tests.support.mirroring import end_offsets

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("nobody_writes_there")]
PARKED, HELD, BAD_INPUT = 5, 4, 2
SEED = 20261119
FIRST, ALL = 300, 5_000


def contents(records: Iterable[tuple[int, object]]) -> list[object]:
    return [content for _, content in records]


def test_each_record_is_there_once_after_mirror_maker_was_killed(stage: MakeStage) -> None:
    """Written, and not committed: what lies between is neither copied again nor left out."""
    scene = stage("orders", "payments", settings={"sync.group.offsets.enabled": "true"})
    scene.write_flows()
    dice = random.Random(SEED)
    for here, _ in scene.pairs:
        write(scene.source, here.topic, here.partition, range(FIRST), dice)
    scene.start_mirror_maker()
    scene.wait_until_copied(FIRST)
    for here, _ in scene.pairs:
        write(scene.source, here.topic, here.partition, range(FIRST, ALL), dice)
    scene.wait_until_copied(2 * ALL)
    code, _, said = scene.adopt(patient=False)
    assert code == HELD, "it lives"
    assert "has a worker that is at work" in said
    scene.kill()
    ends = end_offsets(scene.target)

    code, told, said = scene.adopt("--dry-run")
    assert code == 0, said
    assert end_offsets(scene.target) == ends, "a dry run writes nothing"
    rows = told["flows"][0]["partitions"]
    assert {row["outcome"] for row in rows} <= {"adopted", "begins"}
    assert sum(row["source_offset"] - (row["committed"] or 0) for row in rows) > 0, (
        "written behind the commit"
    )
    code, again, said = scene.adopt()
    assert code == 0, said
    assert again["flows"][0]["partitions"] == rows
    assert {row["outcome"] for row in scene.adopt()[1]["flows"][0]["partitions"]} == {"stands"}
    with scene.mirror() as mirror:
        report = mirror.run()
    assert (report.lag, [each.parked for each in report.parked]) == (0, [])
    assert report.records == sum(ALL - row["source_offset"] for row in rows)
    for here, there in scene.pairs:
        assert contents(scene.sources(here)) == contents(scene.targets(there)), here
    older_offsets_are_lower_bounds(scene, rows[0]["source_offset"])
    what_makes_no_sense_is_refused(scene)


def older_offsets_are_lower_bounds(scene: TakeoverStage, taken_at: int) -> None:
    """MirrorMaker copied that partition once: there, its offsets are the source's."""
    (here, there), name = scene.pairs[0], scene.flow.name
    older = [0, 1, 57, taken_at // 2, taken_at - 1]
    code, told, said = scene.command(
        "translate", name, *(f"{here.topic}:0:{u}" for u in [*older, taken_at, ALL])
    )
    assert code == 0, said
    *bounds, first, last = told["translations"]
    assert all(row["is_lower_bound"] for row in bounds)
    assert all(int(row["to"].split(":")[2]) <= u for row, u in zip(bounds, older, strict=True))
    assert (first["is_lower_bound"], last["is_lower_bound"]) == (False, False)
    assert (first["to"], dict(scene.targets(there)).get(taken_at)) == (
        f"{there.topic}:0:{taken_at}",
        dict(scene.sources(here)).get(taken_at),
    )
    code, told, _ = scene.command("translate", name, f"{there.topic}:0:{taken_at - 1}", "--reverse")
    assert (code, told["translations"][0]["is_lower_bound"]) == (0, True)
    group = f"g.{here.topic}"
    commit(scene.source, group, {(here.topic, 0): taken_at // 2})
    code, report, said = scene.command("groups", name, "--sync")
    assert code == 0, said
    (row,) = [row for row in report["partitions"] if row["group"] == group]
    assert (row["outcome"], row["target_offset"] <= taken_at // 2) == ("lower bound", True)
    assert committed(scene.target, group) == {(there.topic, 0): row["target_offset"]}


def what_makes_no_sense_is_refused(scene: TakeoverStage) -> None:
    """What can't be proved, reported of the same ground in other words."""
    text = scene.properties.read_text()
    scene.properties.write_text(text + "transforms = x\n")
    assert scene.adopt()[0] == BAD_INPUT
    scene.properties.write_text(text + "offset.storage.topic = nowhere\n")
    code, _, said = scene.adopt()
    assert (code, "nowhere" in said) == (BAD_INPUT, True)
    scene.properties.write_text(text)
