"""Many groups on many partitions, synced in one run: how long it takes, and how much memory it needs.

python -m tests.integration.groups.many_groups SOURCE TARGET FLOW TOPIC STEM [--spark]      one run, in a
process of its own
"""

from __future__ import annotations

import json
import random
import resource
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from causeway.brokers.transport.connection import Network, Wire
from causeway.brokers.wire.consumer_groups import ConsumerGroups
from causeway.core.groups.sync_rules import Committed
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.identity import TopicPartition
from causeway.core.model.group_filter import FlowGroups
from causeway.lab.cluster import LabCluster
from causeway.usecases.groups.sync import sync_groups
from tests.integration.groups.stage import GroupStage, write
from tests.support.mirroring import make_flow


@dataclass(frozen=True, slots=True)
class Measured:
    """One run over all groups."""

    seconds: float
    """Of the run, without starting Python."""
    cpu_seconds: float
    peak_bytes: int
    checkpoints: int
    commits: int
    outcomes: Mapping[str, int]
    said: list[str]


def many_groups(
    scene: GroupStage, groups: int, records: int, dice: random.Random
) -> dict[str, dict[int, int]]:
    """Mirrored records, and groups that stand anywhere in them, on every partition."""
    write(scene.source, scene.topic, range(records), scene.partitions)
    scene.mirror.run()
    share = records // scene.partitions
    places = {
        scene.group(f"{n:05}"): {p: dice.randrange(share + 1) for p in range(scene.partitions)}
        for n in range(groups)
    }
    commit_all(scene.source, scene.topic, places)
    return places


def commit_all(cluster: LabCluster, topic: str, places: Mapping[str, Mapping[int, int]]) -> None:
    network = Network()
    wire = Wire(cluster.endpoint(), network)
    wanted = {
        group: {TopicPartition(topic, p): Committed(offset) for p, offset in offsets.items()}
        for group, offsets in places.items()
    }

    async def work() -> object:
        await wire.connect()
        return await ConsumerGroups(wire).commit(wanted)

    try:
        network.run(work)
    finally:
        wire.disconnect()
        network.close()


def measured(scene: GroupStage, *, through_spark: bool = False) -> Measured:
    """One run in a process of its own, so that its memory is its own."""
    command = [
        *(sys.executable, "-m", "tests.integration.groups.many_groups"),
        *(scene.source.bootstrap_servers, scene.target.bootstrap_servers),
        *(scene.mirror.flow.name, scene.topic, scene.stem),
        *(["--spark"] if through_spark else []),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[3], timeout=550
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


def _one_run(source: str, target: str, flow: str, topic: str, stem: str, *spark: str) -> Measured:
    here, there = (
        ClusterEndpoint(alias, {"bootstrap.servers": servers, "security.protocol": "PLAINTEXT"})
        for alias, servers in (("sf", source), ("nyc", target))
    )
    groups = FlowGroups(include=(stem + r"\..*",), sync_offsets=True)
    said: list[str] = []
    began, cpu_began = time.monotonic(), time.process_time()
    made = make_flow(flow, topic)
    if spark:
        from causeway.spark import groups_job as through_spark
        from causeway.spark.session import spark_context

        through_spark._SAY_SECONDS = 0.1
        with spark_context("many groups") as context:
            began = time.monotonic()
            carry = through_spark.groups_carrier(context, here, there, said.append)
            report = sync_groups(made, groups, here, there, said.append, writes=True, carry=carry)
    else:
        report = sync_groups(made, groups, here, there, said.append, writes=True)
    return Measured(
        seconds=time.monotonic() - began,
        cpu_seconds=time.process_time() - cpu_began,
        peak_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        checkpoints=report.result.checkpoints,
        commits=report.result.commits,
        outcomes={str(outcome): count for outcome, count in report.outcomes.items()},
        said=said,
    )


if __name__ == "__main__":
    from dataclasses import asdict

    print(json.dumps(asdict(_one_run(*sys.argv[1:]))))
