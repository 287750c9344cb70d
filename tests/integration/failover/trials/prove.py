"""Fifty random failovers held against what readers see."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from causeway.lab.cluster import LabCluster
from causeway.lab.record import ClusterSpec
from tests.integration.failover.stage import FailoverStage
from tests.integration.failover.trials.trials import Verdict, play

TRIALS = 50
Say = Callable[[str], None]


class TrialsFailed(Exception):
    """A sheet showed one thing and readers saw another; each seed has been printed."""


def prove(folder: Path, seed: int, say: Say) -> str:
    clusters = [LabCluster(ClusterSpec(name=name), folder / name, say=say) for name in ("sf", "nyc")]
    try:
        for cluster in clusters:
            cluster.start()
        sf, nyc = clusters
        verdicts = [_trial(sf, nyc, seed + number, say) for number in range(TRIALS)]
        failed = [verdict.seed for verdict in verdicts if verdict.wrong]
        if failed:
            raise TrialsFailed(f"seeds {failed} of the random failovers: the sheet was wrong")
        return _section(verdicts)
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


def _section(verdicts: list[Verdict]) -> str:
    seeds = f"{verdicts[0].seed} to {verdicts[-1].seed}"
    return f"""\
## Failover

{len(verdicts)} random failovers (seeds {seeds}) between two real brokers, to a moment or to `latest`. Their
records have jittering times and come in transactions with aborts. The mirror runs several times, some records
are not mirrored, and groups rest anywhere.

In each failover the proof compares what readers of both clusters saw with the sheet, record by record.
{sum(v.lost for v in verdicts):,} records were lost, {sum(v.rereads for v in verdicts):,} read again and
{sum(v.skips for v in verdicts):,} skipped, all as the sheets had predicted. Each group began at the first
record of its moment.
"""
