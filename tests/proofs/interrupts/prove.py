"""Two hundred random moments at which commands are interrupted."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from causeway.lab.cluster import LabCluster
from causeway.lab.record import ClusterSpec
from tests.proofs.interrupts.stage import Stage
from tests.proofs.interrupts.trials import VERBS, Played, Trials

MOMENTS = 200
Say = Callable[[str], None]


class InterruptsFailed(Exception):
    """Something was left, or not reported; each seed has been printed."""


def prove(folder: Path, seed: int, say: Say, *, moments: int = MOMENTS) -> str:
    clusters = [LabCluster(ClusterSpec(name=name), folder / name, say=say) for name in ("sf", "nyc")]
    project = folder / "project"
    project.mkdir()
    sf, nyc = clusters
    trials = Trials(Stage(sf, nyc, project, f"struck{os.getpid()}x"))
    try:
        for cluster in clusters:
            cluster.start()
        played = [_play(trials, VERBS[n % len(VERBS)], seed + n, say) for n in range(moments)]
    finally:
        trials.close()
        for cluster in clusters:
            cluster.stop()
    wrong = [each for each in played if each.wrong]
    if wrong:
        raise InterruptsFailed(f"{len(wrong)} of {moments} interrupts: {', '.join(map(_named, wrong))}")
    return _section(played)


def _play(trials: Trials, verb: str, seed: int, say: Say) -> Played:
    played = trials.play(verb, seed)
    say(str(played))
    return played


def _named(played: Played) -> str:
    return f"{played.verb} seed {played.seed}"


def _section(played: list[Played]) -> str:
    slowest = max(each.ended.ended_in_seconds for each in played)
    return f"""\
## Interrupts

Ctrl-C or SIGTERM at {len(played)} random moments (seeds {played[0].seed} to {played[-1].seed}) of
{", ".join(VERBS)}. Every fourth was pressed twice. Each command ended with exit code 130 and one line, at
most {slowest:.1f} s later. It left no process, no file, no scratch topic and no clone of a group. If
something of a failover or a failback stayed, the line named it and the command that continues. That command
finished it.
"""
