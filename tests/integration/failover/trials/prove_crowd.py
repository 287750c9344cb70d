"""A hundred groups on twenty topics, moved by Airflow and by hand while their source is dead."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from causeway.lab.cluster import LabCluster
from causeway.lab.record import ClusterSpec
from tests.integration.failover.command_line import CommandLine
from tests.integration.failover.drivers import CommandDoor, DagDoor
from tests.integration.failover.in_airflow import FailoverDag, airflow_between
from tests.integration.failover.trials.crowd import FLOWS, Crowd, Played, Size, play

_SHOWN = 20
Say = Callable[[str], None]


class CrowdFailed(Exception):
    """A group stands wrong, a sheet was wrong, or somebody would never read what isn't lost."""


def prove(folder: Path, seed: int, say: Say) -> str:
    clusters = {name: LabCluster(ClusterSpec(name=name), folder / name, say=say) for name in ("sf", "nyc")}
    try:
        for cluster in clusters.values():
            cluster.start()
        with airflow_between(clusters, FLOWS, folder, say) as dag:
            crowd = Crowd(dag.flow, clusters["sf"], clusters["nyc"], Size(), random.Random(seed))
            command_line = CommandLine(folder, folder / "flows.yaml", clusters)
            by_hand = CommandDoor(command_line, dag.flow.name)
            played = play(crowd, [DagDoor(dag), by_hand], by_hand, _mirroring(dag))
    finally:
        for cluster in clusters.values():
            cluster.stop()
    for line in played.wrong[:_SHOWN]:
        say(line)
    if played.wrong:
        raise CrowdFailed(f"seed {seed} of the crowd: {len(played.wrong)} things are wrong")
    return _section(played, seed)


@contextmanager
def _mirroring(dag: FailoverDag) -> Iterator[None]:
    """The flow's own DAG, with Spark: when its source is gone it waits, and ends after 90 seconds."""
    mirror = f"mirror__{dag.flow.name}"
    dag.rest.unpause(mirror)
    dag.rest.trigger(mirror, "following", {})
    yield
    dag.until(lambda: dag.rest.run_state(mirror, "following") in {"success", "failed"}, "following")


def _section(played: Played, seed: int) -> str:
    size = played.size
    return f"""\
## Failover of a crowd

{size.topics} topics of {size.partitions} partitions, {size.groups} groups that read some or all of them (seed
{seed}), {played.records:,} records. A real Airflow mirrors with Spark. Groups are synced, and half of them
read on. Then the source is killed with -9 while it is written and mirrored.

Without the source the flow is failed over by REST and from the command line, to a moment and to `latest`
each. Each of these failovers is rolled back. Then the source comes back, and the last failover stays:
{played.failovers} failovers in all. Readers of both clusters show what was right.

- Each time each group was at the very record of the moment, or at the one that it was last known to read
  next.
- Each rollback put each offset back.
- The sheets without the source had bounds, and each bound held. The sheet with the source was exact for each
  group and partition: {played.lost:,} records lost, {played.rereads:,} read again.
- After the last failover a consumer of each group read on, {played.read_on:,} records in all. On
  {played.offsets:,} offsets 0 records were skipped, except those that the sheet reported as lost.
"""
