"""A thousand groups on a hundred partitions, by Causeway and by MirrorMaker 2: a part of the bench.

    python -m tests.integration.groups.compare_mm2 [--scale 0.02]

Both have the same clusters, records and groups. MirrorMaker 2 looks for groups each second, and is there
from the first record on, which is its best case. Only the full size writes docs/benchmarks.md.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, KafkaException
from confluent_kafka import TopicPartition as Place

from causeway.core.records.mm2_formats import Checkpoint, decode_checkpoint
from causeway.lab.cluster import LabCluster
from causeway.lab.jars import ensure_jars
from causeway.lab.record import ClusterSpec
from tests.bench.page import PAGE, SECTIONS
from tests.bench.peers.mirror_maker import JARS, LOG4J2, command_line, render
from tests.integration.groups.many_groups import Measured, many_groups, measured
from tests.integration.groups.stage import GroupStage
from tests.proofs.chaos.parts.processes import Started, start
from tests.support.mirroring import end_offsets
from tests.support.sections import write_section

GROUPS, PARTITIONS, RECORDS = 1_000, 100, 100_000
ALIAS, TASKS = "mm", 4
_QUIET_SECONDS, _MOST_SECONDS = 60.0, 900.0
_MIB = 1 << 20
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Ours:
    run: Measured
    wall_seconds: float
    """Of the process, from its start to its end."""
    cpu_seconds: float


@dataclass(frozen=True, slots=True)
class Peer:
    copied_seconds: float
    """From the start of the process until the last record was on the target."""
    out_seconds: float
    """Until the last place had its first checkpoint."""
    cpu_seconds: float
    cpu_seconds_since_copied: float
    peak_bytes: int
    places: int
    exact: int
    """Of these, checkpoints that lead to the very record, once nothing has come for a minute."""


def compare(folder: Path, scale: float, seed: int, say: Say) -> tuple[Ours, Peer, int]:
    groups, partitions, records = (max(int(n * scale), 4) for n in (GROUPS, PARTITIONS, RECORDS))
    source, target = (LabCluster(ClusterSpec(name=n), folder / n, say=say) for n in ("sf", "nyc"))
    peer: Started | None = None
    try:
        source.start()
        target.start()
        scene = GroupStage(source, target, "many", partitions=partitions)
        many_groups(scene, groups, records, random.Random(seed))
        say(f"{groups:,} groups on {partitions} partitions with {records:,} records")
        ours = _ours(scene)
        say(f"causeway: {ours}")
        scene.close()
        peer = _start(folder, scene)
        theirs = _Watch(peer, scene, groups * partitions, records).until_quiet()
        say(f"mirror maker: {theirs}")
        return ours, theirs, groups * partitions
    finally:
        if peer is not None:
            peer.kill_all()
        source.stop()
        target.stop()


def _ours(scene: GroupStage) -> Ours:
    began, cpu = time.monotonic(), _children_cpu()
    run = measured(scene)
    return Ours(run, time.monotonic() - began, _children_cpu() - cpu)


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _start(folder: Path, scene: GroupStage) -> Started:
    settings = {
        "clusters": f"{ALIAS}, nyc",
        f"{ALIAS}.bootstrap.servers": scene.source.bootstrap_servers,
        "nyc.bootstrap.servers": scene.target.bootstrap_servers,
        f"{ALIAS}->nyc.enabled": "true",
        f"{ALIAS}->nyc.topics": scene.topic,
        f"{ALIAS}->nyc.groups": f"{scene.stem}.*",
        f"nyc->{ALIAS}.enabled": "false",
        "tasks.max": f"{TASKS}",
        "refresh.groups.interval.seconds": "1",
        "emit.checkpoints.interval.seconds": "1",
        "sync.group.offsets.enabled": "true",
        "sync.group.offsets.interval.seconds": "1",
        "replication.factor": "1",
        **{f"{name}.topic.replication.factor": "1" for name in ("checkpoints", "heartbeats", "offset-syncs")},
        **{f"{kind}.storage.replication.factor": "1" for kind in ("offset", "status", "config")},
    }
    logging, properties = folder / "log4j2.properties", folder / "mm2.properties"
    logging.write_text(LOG4J2, encoding="utf-8")
    properties.write_text(render(settings), encoding="utf-8")
    return start(
        "mirror-maker", command_line(ensure_jars(JARS), logging, properties), folder / "mirror-maker.log"
    )


class _Watch:
    """Reads what MirrorMaker 2 writes, and what it costs, until nothing has come for a minute."""

    def __init__(self, peer: Started, scene: GroupStage, places: int, records: int) -> None:
        self._peer, self._scene, self._places, self._records = peer, scene, places, records
        self._began = self._news = time.monotonic()
        self._copied = self._out = 0.0
        self._cpu_copied = self._cpu_out = 0.0
        self._found: dict[tuple[str, int], Checkpoint] = {}

    def until_quiet(self) -> Peer:
        consumer = Consumer(
            {**self._scene.target.endpoint().settings, "group.id": "unused", "enable.auto.commit": False}
        )
        consumer.assign([Place(f"{ALIAS}.checkpoints.internal", 0, 0)])
        try:
            while not self._is_over():
                self._read(consumer)
                if not self._copied and self._on_target() >= self._records:
                    self._copied, self._cpu_copied = self._now(), self._cpu()
        finally:
            consumer.close()
        exact = sum(int(each.source_next) == int(each.target_next) for each in self._found.values())
        return Peer(
            copied_seconds=self._copied,
            out_seconds=self._out,
            cpu_seconds=self._cpu_out,
            cpu_seconds_since_copied=self._cpu_out - self._cpu_copied,
            peak_bytes=_peak_bytes(self._peer.pid),
            places=len(self._found),
            exact=exact,
        )

    def _is_over(self) -> bool:
        now = time.monotonic()
        is_quiet = self._copied and self._found and now - self._news > _QUIET_SECONDS
        return bool(is_quiet) or now - self._began > _MOST_SECONDS or self._peer.exit_code is not None

    def _read(self, consumer: Consumer) -> None:
        for message in consumer.consume(20_000, 0.5):
            if message.error() is not None:
                continue
            said = decode_checkpoint(message.key(), message.value())
            place = (said.group, said.target.partition)
            if place not in self._found:
                self._out, self._cpu_out = self._now(), self._cpu()
            self._found[place] = said
            self._news = time.monotonic()

    def _on_target(self) -> int:
        try:
            ends = end_offsets(self._scene.target, of=f"{ALIAS}.{self._scene.topic}")
        except KafkaException:
            return 0
        return sum(end for _, end in ends.values())

    def _now(self) -> float:
        return time.monotonic() - self._began

    def _cpu(self) -> float:
        stat = Path(f"/proc/{self._peer.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


def _peak_bytes(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no peak")


def section(ours: Ours, theirs: Peer, places: int) -> str:
    day = time.strftime("%Y-%m-%d", time.gmtime())
    synced = sum(ours.run.outcomes.values())
    peer = (
        f"{theirs.out_seconds:.1f}",
        f"{theirs.out_seconds - theirs.copied_seconds:.1f}",
        f"{theirs.cpu_seconds:.1f}",
        f"{theirs.cpu_seconds_since_copied:.1f}",
        f"{theirs.peak_bytes / _MIB:,.0f}",
        f"{theirs.places:,}",
        f"{theirs.exact:,}",
    )
    here = (
        "",
        f"{ours.wall_seconds:.1f}, of the run alone {ours.run.seconds:.1f}",
        "",
        f"{ours.cpu_seconds:.1f}",
        f"{ours.run.peak_bytes / _MIB:,.0f}",
        f"{synced:,}",
        f"{synced:,}",
    )
    return f"""\
## Groups

{GROUPS:,} groups on {PARTITIONS} partitions, with {places:,} offsets anywhere in {RECORDS:,} records:
checkpoints, and offsets committed for idle groups. `python -m tests.integration.groups.compare_mm2` wrote
this section on {day}. Both contenders ran one after the other, on the same brokers and {os.cpu_count()}
cores.

- **Causeway** is one run in the task, without Spark: its process from the start of Python to its end.
- **MirrorMaker 2** runs in dedicated mode with `tasks.max` {TASKS}. Each second it looks for groups, emits
  checkpoints and syncs offsets (its defaults are 600, 60 and 60 s). It has to work while the records are
  copied, or it could translate less. So its times count from the start of its process, and from the last
  record's copy. It is watched until no new offset has come for a minute, {_MOST_SECONDS / 60:.0f} minutes at
  most.
- **Memory** is the peak of the resident set. MirrorMaker 2's holds its copying, too.
- **Exact** is an offset that leads to the very record.
- The machine's load average afterwards was {os.getloadavg()[1]:.0f}. Far above the number of cores the
  machine did much else, and only the ratios mean something.

| | checkpoints out, s | after the copy, s | CPU-s | after the copy | peak MiB | offsets | exact |
|---|---|---|---|---|---|---|---|
| MirrorMaker 2 | {" | ".join(peer)} |
| Causeway | {" | ".join(here)} |
"""


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="beside", description="Many groups, beside MirrorMaker 2.")
    parser.add_argument("--scale", type=float, default=1.0, help="of the full size: 0.1 for a look")
    parser.add_argument("--seed", type=int, default=20_261_119)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="causeway-beside-") as folder:
        ours, theirs, places = compare(Path(folder), options.scale, options.seed, _say)
    said = section(ours, theirs, places)
    _say(said)
    if ours.run.outcomes != {"synced": places}:
        _say(f"of {places:,} places only {ours.run.outcomes}")
        return 1
    if options.scale == 1:
        write_section(PAGE, "groups", said, SECTIONS)
    return 0


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
