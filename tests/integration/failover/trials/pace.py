"""How long a failover of 100 groups x 100 partitions takes, through Airflow and by hand: a part of the bench.

    python -m tests.integration.failover.trials.pace [--turns 3]; writes docs/benchmarks.md

First while the source lives and then with it killed, which is what a failover is for; each time through the
DAG, from the trigger over REST to the end of `verify`, and from the command line, from the start of Python to
its end. Each turn is rolled back.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median

from confluent_kafka import Producer

from causeway.core.kernel.timestamps import rfc3339
from causeway.core.model.group_filter import FlowGroups
from causeway.lab.cluster import LabCluster
from causeway.lab.record import ClusterSpec
from causeway.usecases.groups.sync import sync_groups
from tests.bench.page import PAGE, SECTIONS
from tests.integration.failover.command_line import CommandLine
from tests.integration.failover.drivers import CommandDoor, DagDoor
from tests.integration.failover.in_airflow import FailoverDag, airflow_between
from tests.integration.groups.stage import commit_all, make_topic
from tests.support.mirroring import Mirror
from tests.support.sections import write_section

TOPICS, PARTITIONS, GROUPS = 20, 5, 100
PORTIONS, PER_PORTION, LOST = 10, 100, 20
"""Of records in each partition: runs of the mirror, records in each; and how many never arrive."""
BASE_MS = 1_790_000_000_000
MOMENT_MS = BASE_MS + PORTIONS * PER_PORTION * 500
BOUND_SECONDS = 60
STEPS = ("plan", "estimate", "snapshot", "fence", "apply", "verify")
BY_HAND = ("look, plan and price", "keep offsets", "fence", "plan again, compare, move", "verify, record")
_SAID = ("; plan ", "groups kept", "fenced, nothing", "groups committed")
_TURNS = 3
FLOWS = """\
clusters:
  sf: {connection: kafka_sf}
  nyc: {connection: kafka_nyc}
flows:
  pace: {source: sf, target: nyc, topics: ["pace-.*"], groups: ["reader-.*"], lanes: 4,
    sync.group.offsets.enabled: true}
"""


@dataclass(frozen=True, slots=True)
class Step:
    name: str
    own_seconds: float
    waited_seconds: float = 0.0
    """For Airflow, until the task's process was at work."""


Turn = Sequence[Step]


@dataclass(frozen=True, slots=True)
class Paces:
    """With the source alive, and with it gone."""

    by_dag: tuple[list[Turn], list[Turn]]
    by_hand: tuple[list[Turn], list[Turn]]


def measure(folder: Path, turns: int) -> Paces:
    clusters = {name: LabCluster(ClusterSpec(name=name), folder / name, say=_say) for name in ("sf", "nyc")}
    paces = Paces(([], []), ([], []))
    try:
        for cluster in clusters.values():
            cluster.start()
        with airflow_between(clusters, FLOWS, folder, _say) as dag:
            _fill(dag, **clusters)
            door = DagDoor(dag)
            by_hand = CommandDoor(CommandLine(folder, folder / "flows.yaml", clusters), dag.flow.name)
            for is_gone in (False, True):
                if is_gone:
                    clusters["sf"].kill()
                for _ in range(turns):
                    paces.by_dag[is_gone].append(_through_dag(door, by_hand))
                    paces.by_hand[is_gone].append(_by_hand(by_hand))
    finally:
        for cluster in clusters.values():
            cluster.stop()
    return paces


def _fill(dag: FailoverDag, sf: LabCluster, nyc: LabCluster) -> None:
    topics, dice = [f"pace-{number}" for number in range(TOPICS)], random.Random(20_261_119)
    places = [(topic, p) for topic in topics for p in range(PARTITIONS)]
    for topic in topics:
        make_topic(sf, topic, PARTITIONS, retention_ms="-1")  # the records are weeks old
    mirror = Mirror(dag.flow, sf, nyc)
    for portion in range(PORTIONS):
        _write(sf, places, range(portion * PER_PORTION, (portion + 1) * PER_PORTION))
        mirror.run()
    mirror.close()
    written = PORTIONS * PER_PORTION
    groups = {f"reader-{n}": {place: dice.randint(0, written) for place in places} for n in range(GROUPS)}
    commit_all(sf, groups)
    rules = FlowGroups(include=("reader-.*",), sync_offsets=True)
    sync_groups(dag.flow, rules, sf.endpoint(), nyc.endpoint(), _say, writes=True)
    _write(sf, places, range(written, written + LOST))


def _write(cluster: LabCluster, places: Iterable[tuple[str, int]], numbers: range) -> None:
    producer = Producer({**cluster.endpoint().settings, "linger.ms": 20})
    for topic, partition in places:
        for n in numbers:
            producer.produce(topic, b"%d" % n, partition=partition, timestamp=BASE_MS + n * 1_000)
        producer.poll(0)
    assert producer.flush(60) == 0


def _through_dag(door: DagDoor, by_hand: CommandDoor) -> Turn:
    began = time.time()
    done = door.fail_over(rfc3339(MOMENT_MS))
    tasks = {each["task_id"]: each for each in door.dag.rest.tasks(door.dag.dag_id, door.runs[-1])}
    turn, before = list[Step](), began
    for name in STEPS:
        start, end = (
            datetime.fromisoformat(tasks[name][at]).timestamp() for at in ("start_date", "end_date")
        )
        turn.append(Step(name, end - start, start - before))
        before = end
    by_hand.roll_back(done.run)
    _say(f"by the DAG: {_whole(turn):.1f} s")
    return turn


def _by_hand(by_hand: CommandDoor) -> Turn:
    """What is printed ends a step; the last one ends with the process."""
    at = rfc3339(MOMENT_MS)
    told, lines = by_hand.command_line.timed("failover", by_hand.flow, "--at", at, "--yes")
    assert told["as_planned"] == told["offsets"] == GROUPS * TOPICS * PARTITIONS, told["as_planned"]
    said = [next(at for line, at in lines if words in line) for words in _SAID]
    marks = pairwise([0.0, *said, lines[-1][1]])
    turn = [Step(name, after - before) for name, (before, after) in zip(BY_HAND, marks, strict=True)]
    by_hand.roll_back(told["run"])
    _say(f"by hand: {_whole(turn):.1f} s")
    return turn


def _whole(turn: Turn) -> float:
    return sum(step.own_seconds + step.waited_seconds for step in turn)


def section(paces: Paces) -> str:
    dag, hand, partitions = paces.by_dag, paces.by_hand, TOPICS * PARTITIONS
    records, day = PORTIONS * PER_PORTION * partitions, time.strftime("%Y-%m-%d", time.gmtime())
    return f"""\
## Failover

From the trigger to verified positions: {GROUPS} groups x {partitions} partitions ({GROUPS * partitions:,}
offsets), to a moment in the middle of {records:,} records that {PORTIONS} runs have mirrored.
`python -m tests.integration.failover.trials.pace` wrote this section on {day}. Brokers and Airflow share this
machine's {os.cpu_count()} cores, and its load average afterwards was {os.getloadavg()[1]:.0f}. Each kind had
{len(dag[0])} turns, and each turn was rolled back. A cell is the median of the turns.

| | source killed, s | slowest | source alive, s | slowest |
|---|---|---|---|---|
| `failover__<flow>`, by REST, nobody asked (`approve: auto`) | {_wholes(dag[True])} | {_wholes(dag[False])} |
| `causeway failover` | {_wholes(hand[True])} | {_wholes(hand[False])} |

The DAG's tasks with the source killed. *Work* includes the start of the task's Python. *Before it* is the
time that Airflow takes from the end of the task before, or from the trigger, until the task starts. The time
in which someone reads the sheet and approves it comes on top.

| task | work, s | before it, s | share |
|---|---|---|---|
{_rows(dag[True], with_waits=True)}

The command's steps with the source killed, the start of Python in the first one:

| step | s | share |
|---|---|---|
{_rows(hand[True], with_waits=False)}
"""


def _wholes(turns: Sequence[Turn]) -> str:
    return f"{median(map(_whole, turns)):.1f} | {max(map(_whole, turns)):.1f}"


def _rows(turns: Sequence[Turn], *, with_waits: bool) -> str:
    middles = [
        Step(
            same[0].name,
            median(step.own_seconds for step in same),
            median(step.waited_seconds for step in same),
        )
        for same in zip(*turns, strict=True)
    ]
    whole = _whole(middles)
    return "\n".join(
        f"| {step.name} | {step.own_seconds:.1f} | "
        + (f"{step.waited_seconds:.1f} | " if with_waits else "")
        + f"{(step.own_seconds + step.waited_seconds) / whole:.0%} |"
        for step in middles
    )


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="pace", description="The time that a large failover takes.")
    parser.add_argument("--turns", type=int, default=_TURNS, help="of each kind")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="causeway-pace-") as folder:
        paces = measure(Path(folder), options.turns)
    said = section(paces)
    _say(said)
    turns = [turn for kind in (paces.by_dag, paces.by_hand) for each in kind for turn in each]
    if slow := [round(_whole(turn)) for turn in turns if _whole(turn) >= BOUND_SECONDS]:
        _say(f"slower than {BOUND_SECONDS} s: {slow}")
    write_section(PAGE, "failover", said, SECTIONS)
    return 1 if slow else 0


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
