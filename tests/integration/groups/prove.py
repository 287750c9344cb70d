"""Groups in full size, for `make prove`: a hundred random stops, a thousand groups."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

from causeway.lab.cluster import LabCluster
from causeway.lab.record import ClusterSpec
from tests.integration.groups.jvm import GroupProbe
from tests.integration.groups.many_groups import Measured, many_groups, measured
from tests.integration.groups.stage import GroupStage
from tests.integration.groups.stops import assert_each_is_read_once, prepared

STOPS, RECORDS = 100, 2_000
GROUPS, PARTITIONS, MANY_RECORDS = 1_000, 100, 100_000
_KINDS, _CLIENTS = ("plain", "transactional"), ("librdkafka", "java")
_MIB = 1 << 20
Say = Callable[[str], None]


class GroupsFailed(Exception):
    """A group that missed a record or read one again, or one that didn't get its place."""


def prove(folder: Path, seed: int, say: Say) -> str:
    """:raises GroupsFailed: with the seed, which plays the same again."""
    source, target = (_cluster(name, folder, say) for name in ("sf", "nyc"))
    try:
        with GroupProbe(folder / "probe.log") as java:
            stops = _stops(source, target, java, seed, say)
        scene = GroupStage(source, target, "many", partitions=PARTITIONS)
        many_groups(scene, GROUPS, MANY_RECORDS, random.Random(seed))
        here, again, spark = _many(scene, seed, say)
        scene.close()
    finally:
        for cluster in (source, target):
            cluster.stop()
    return _section(seed, stops, here, again, spark)


def _cluster(name: str, folder: Path, say: Say) -> LabCluster:
    cluster = LabCluster(ClusterSpec(name=name), folder / name, say=say)
    cluster.start()
    return cluster


def _stops(source: LabCluster, target: LabCluster, java: GroupProbe, seed: int, say: Say) -> int:
    done = 0
    for kind in _KINDS:
        dice = random.Random(f"{seed} {kind}")
        scene = prepared(GroupStage(source, target, f"stops-{kind}", partitions=5), kind, RECORDS, dice)
        for number in range(STOPS // len(_KINDS)):
            client = _CLIENTS[number % len(_CLIENTS)]
            try:
                assert_each_is_read_once(scene, f"{number}", client, java, dice)
            except AssertionError as failure:
                raise GroupsFailed(f"seed {seed}, {kind}, stop {number} ({client}): {failure}") from failure
            done += 1
        scene.close()
        say(f"groups: {done} stops, each remaining record read once")
    return done


def _many(scene: GroupStage, seed: int, say: Say) -> tuple[Measured, Measured, Measured]:
    here, again = measured(scene), measured(scene)
    say(f"groups: {GROUPS:,} on {PARTITIONS} partitions: {here.seconds:.1f} s; said {here.said}")
    spark = measured(scene, through_spark=True)
    wanted = {"synced": GROUPS * PARTITIONS}
    for run in (here, again, spark):
        if run.outcomes != wanted:
            raise GroupsFailed(f"seed {seed}: of {wanted} there are {run.outcomes}")
    return here, again, spark


def _section(seed: int, stops: int, here: Measured, again: Measured, spark: Measured) -> str:
    rows = "".join(
        f"| {what} | {run.seconds:.1f} | {run.cpu_seconds:.1f} | {run.peak_bytes / _MIB:.0f} "
        f"| {run.checkpoints:,} | {run.commits:,} |\n"
        for what, run in (
            ("in the task, everything new", here),
            ("in the task, nothing new", again),
            ("through Spark (`local[*]`), nothing new", spark),
        )
    )
    return f"""\
## Consumer groups

Seed {seed}. {stops} times a real group was stopped on the source at a random point and started on the target.
Half of them used librdkafka, half Java's client. Half read small transactions with aborted ones between. Each
remaining record was read once, in order; none was missed, none read again.

{GROUPS:,} groups at random offsets of {PARTITIONS} partitions: {GROUPS * PARTITIONS:,} offsets, translated
and committed in one run. Both brokers ran beside it on this machine's {os.cpu_count()} cores. Memory is the
peak of the Python process that runs it (with Spark: of the driver, without its JVM).

| run | s | CPU s | MiB | checkpoints written | offsets committed |
|---|---|---|---|---|---|
{rows}"""
