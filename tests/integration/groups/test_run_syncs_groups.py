"""`causeway run` syncs groups at its end, by the flow's rules; `causeway groups` tells a look from a sync."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from causeway.cli.commands.run_groups import GroupsAfterRun, sync_groups_after_run
from causeway.config.flows_file.deployment import Deployment
from causeway.config.flows_file.load import load_flows
from causeway.config.values.environment import environment_variable
from causeway.core.groups.report import report_lines
from causeway.usecases.run_lock.fence import fence_flow, lift_fence
from tests.integration.groups.conftest import MakeStage
from tests.integration.groups.stage import GroupStage, row_of, write

pytestmark = pytest.mark.integration
FLOWS = """\
clusters:
  sf: {{connection: kafka_sf}}
  nyc: {{connection: kafka_nyc}}
flows:
  {name}:
    {{source: sf, target: nyc, topics: [{topic}], groups: ["{topic}[.].*"], lanes: 1,
    sync.group.offsets.enabled: {syncs}}}
"""


_ONE_AFTER_ANOTHER = """\
import contextlib, io, json, sys
from causeway.cli.main import main
told = []
for arguments in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        code = main(arguments)
    assert code == 0, (arguments, code)
    told.append(out.getvalue())
print(json.dumps(told))
"""


@dataclass(frozen=True, slots=True)
class ByHand:
    """The flow of a stage, as a flows.yaml and its command line know it."""

    scene: GroupStage
    file: Path
    deployment: Deployment

    @property
    def flow(self) -> str:
        return self.scene.mirror.flow.name

    def typed(self, *commands: list[str]) -> list[str]:
        """What each printed, all in one process: Spark's JVM starts once."""
        arguments = json.dumps([[*command, "--file", str(self.file)] for command in commands])
        clusters = {"sf": self.scene.source, "nyc": self.scene.target}
        connections = {
            environment_variable(f"kafka_{name}"): cluster.connection_json()
            for name, cluster in clusters.items()
        }
        done = subprocess.run(
            [sys.executable, "-c", _ONE_AFTER_ANOTHER, arguments],
            capture_output=True,
            text=True,
            cwd=self.file.parent,
            env={**os.environ, **connections},
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3_000:]
        printed: list[str] = json.loads(done.stdout.splitlines()[-1])
        return printed

    def after_run(self) -> GroupsAfterRun:
        flow = self.deployment.flow(self.flow)
        endpoints = self.scene.source.endpoint(), self.scene.target.endpoint()
        return sync_groups_after_run(self.deployment, flow, endpoints, self.scene.said.append)


def by_hand(scene: GroupStage, folder: Path, *, syncs: bool) -> ByHand:
    file = folder / "flows.yaml"
    name, topic = scene.mirror.flow.name, scene.topic
    file.write_text(FLOWS.format(name=name, topic=topic, syncs=str(syncs).lower()))
    return ByHand(scene, file, load_flows(file))


def test_a_run_by_hand_syncs_groups_at_its_end_unless_it_is_asked_not_to(
    stage: MakeStage, tmp_path: Path
) -> None:
    hand = by_hand(stage(partitions=1), tmp_path, syncs=True)
    scene, group = hand.scene, hand.scene.group("billing")
    write(scene.source, scene.topic, range(20), 1)
    scene.commit(group, {0: 12})

    run = ["run", hand.flow, "--until-caught-up"]
    without, looked, done, again = hand.typed(
        [*run, "--no-groups", "--json"], ["groups", hand.flow], run, ["groups", hand.flow]
    )
    told = json.loads(without)
    assert (told["records"], told["groups"]) == (20, None)
    assert "looked only: nothing was written, 1 offset would be committed" in looked
    assert "1 would be synced" in looked
    assert "1 synced" not in looked
    (row,) = (line.split() for line in looked.splitlines() if line.startswith(f"{group} "))
    assert row[1:] == ["1", "1", "-", "1", "would", "be", "synced"]

    said = (
        f"{hand.flow}: group offsets: 1 synced; 1 offset committed; `causeway groups {hand.flow}` shows each"
    )
    assert done.splitlines()[-1] == said
    assert scene.there(group) == {0: 12}
    (synced,) = (line for line in again.splitlines() if line.startswith(f"{group} "))
    assert synced.endswith(" ago)  1 synced"), synced


def test_a_look_says_what_would_be_and_since_when_what_is(stage: MakeStage) -> None:
    scene = stage(partitions=1)
    group = scene.group()
    write(scene.source, scene.topic, range(20), 1)
    scene.mirror.run()
    scene.commit(group, {0: 12})

    looked = scene.sync(writes=False)
    assert row_of(looked, group).synced_ms is None
    assert (looked.in_words(group), looked.would_commit) == ({"would be synced": 1}, 1)
    shown: dict[str, Any] = looked.as_dict()
    (place,) = shown["partitions"]
    assert (place["committed"], place["would_commit"], place["last_synced"]) == (False, True, None)

    synced = scene.sync()
    assert (synced.in_words(group), synced.would_commit) == ({"synced": 1}, 0)
    assert synced.last_synced(group) is not None
    again = scene.sync(writes=False)
    assert (again.in_words(group), again.would_commit) == ({"synced": 1}, 0)
    assert again.last_synced(group) == synced.last_synced(group), "from the stamp on the target"

    scene.commit(group, {0: 15})
    moved = scene.sync(writes=False)
    assert moved.in_words(group) == {"would be synced": 1}
    assert moved.last_synced(group) == synced.last_synced(group)
    assert "1 would be synced" in list(report_lines(moved))


def test_a_sync_that_fails_is_reported_with_its_exit_code(stage: MakeStage, tmp_path: Path) -> None:
    hand = by_hand(stage(partitions=1), tmp_path, syncs=True)
    write(hand.scene.source, hand.scene.topic, range(5), 1)
    hand.scene.mirror.run()
    target = hand.scene.target.endpoint()
    fence_flow(hand.scene.mirror.flow, target, by="a test", because="moving")
    found = hand.after_run()
    assert found.exit_code == 4
    assert found.lines[0].startswith(f"GROUPS NOT SYNCED: flow = {hand.flow}: fenced ")
    again = f"`causeway groups {hand.flow} --sync`"
    assert found.lines[1] == f"The records are copied. Sync the groups with {again}"
    assert found.payload is not None
    assert found.payload["error"] == "FlowFenced"
    lift_fence(hand.scene.mirror.flow, target, by="a test", because="back")
    assert (hand.after_run().exit_code, hand.after_run().payload is None) == (0, False)


def test_groups_of_a_flow_that_does_not_sync_them_are_left_alone(stage: MakeStage, tmp_path: Path) -> None:
    hand = by_hand(stage(partitions=1), tmp_path, syncs=False)
    assert hand.after_run() == GroupsAfterRun()
