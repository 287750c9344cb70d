"""Fifty random failovers held against what readers see, and the time that a large one takes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

from causeway.flows.failover.apply import Operator, fail_over
from causeway.lab.cluster import LabCluster
from causeway.lab.record import ClusterSpec
from tests.failover.stage import BASE_MS, FailoverStage
from tests.failover.trials import Verdict, play

TRIALS = 50
GROUPS, PARTITIONS, RECORDS = 100, 100, 50
Say = Callable[[str], None]


class TrialsFailed(Exception):
    """A sheet said one thing and readers saw another; each seed has been printed."""


def prove(folder: Path, seed: int, say: Say) -> str:
    clusters = [LabCluster(ClusterSpec(name=name), folder / name, say=say) for name in ("sf", "nyc")]
    try:
        for cluster in clusters:
            cluster.start()
        verdicts = [_trial(*clusters, seed + number, say) for number in range(TRIALS)]
        failed = [verdict.seed for verdict in verdicts if verdict.wrong]
        if failed:
            raise TrialsFailed(f"seeds {failed} of the random failovers: the sheet was wrong")
        return _section(verdicts, _time_a_large_one(*clusters, say))
    finally:
        for cluster in clusters:
            cluster.stop()


def _trial(source: LabCluster, target: LabCluster, seed: int, say: Say) -> Verdict:
    stage = FailoverStage(source, target, f"trial-{seed}")
    try:
        verdict = play(stage, seed)
    finally:
        stage.mirror.close()
    for line in verdict.wrong:
        say(f"seed {seed}: {line}")
    return verdict


def _time_a_large_one(source: LabCluster, target: LabCluster, say: Say) -> list[tuple[str, float]]:
    """Seconds of each step, in their order."""
    stage = FailoverStage(source, target, "large", partitions=PARTITIONS)
    for p in range(PARTITIONS):
        stage.write([BASE_MS + n * 1_000 for n in range(RECORDS)], p)
    stage.run()
    for number in range(GROUPS):
        stage.commit(f"g{number}", dict.fromkeys(range(PARTITIONS), number % RECORDS))
    marks = [("", time.monotonic())]

    def mark(line: str) -> None:
        say(line)
        marks.append((line, time.monotonic()))

    operator = Operator(by="a proof", consent=lambda _: mark("sheet"), say=mark)
    wish = stage.wish(BASE_MS + 20_000)
    done = fail_over(stage.flow, source.endpoint(), target.endpoint(), wish, stage.rules, operator)
    mark("verified and recorded")
    stage.mirror.close()
    assert done.verified.as_planned == GROUPS * PARTITIONS
    names = (
        "look, plan and price",
        "keep offsets of now",
        "fence",
        "look again, compare, move",
        "verify, record",
    )
    lengths = [later - before for (_, before), (_, later) in pairwise(marks)]
    return list(zip(names, lengths, strict=True))


def _section(verdicts: list[Verdict], steps: list[tuple[str, float]]) -> str:
    rows = "\n".join(f"| {name} | {seconds:.1f} s |" for name, seconds in steps)
    seeds = f"{verdicts[0].seed} to {verdicts[-1].seed}"
    whole = f"{sum(seconds for _, seconds in steps):.1f} s"
    return f"""\
## Failover

{len(verdicts)} random failovers (seeds {seeds}) between two real brokers: jittering times, transactions
with aborts, several runs of the mirror, records that weren't mirrored, groups that stand anywhere; to a
moment or to `latest`. In each, what readers of both clusters saw was held against the sheet, record by
record: {sum(v.lost for v in verdicts):,} records lost, {sum(v.rereads for v in verdicts):,} read again
and {sum(v.skips for v in verdicts):,} skipped, all as the sheets had said; each group stood at the first
record of its moment.

{GROUPS} groups x {PARTITIONS} partitions, {PARTITIONS * RECORDS:,} records, source alive: {whole} from the
command to verified positions; both brokers on this machine's {os.cpu_count()} cores.

| step | time |
|---|---|
{rows}
"""
