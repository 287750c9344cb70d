"""Ten random failbacks with names that stay, ten with prefixes, ten rebuilds, held against what was read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from causeway.lab.cluster import LabCluster
from causeway.lab.record import ClusterSpec
from tests.failback.rebuilding import RebuildVerdict, play_rebuild
from tests.failback.stage import FailbackStage
from tests.failback.trials import Verdict, play

TRIALS = 10
Say = Callable[[str], None]


class TrialsFailed(Exception):
    """A record was lost, came twice or a group stood wrong; each seed has been printed."""


def prove(folder: Path, seed: int, say: Say) -> str:
    clusters = [LabCluster(ClusterSpec(name=name), folder / name, say=say) for name in ("sf", "nyc")]
    try:
        for cluster in clusters:
            cluster.start()
        verdicts = {
            keeps: [_trial(*clusters, seed + number, say, keeps_names=keeps) for number in range(TRIALS)]
            for keeps in (True, False)
        }
        rebuilt = [_rebuild(*clusters, seed + number, say) for number in range(TRIALS)]
    finally:
        for cluster in clusters:
            cluster.stop()
    failed = [
        verdict.seed for of_kind in (*verdicts.values(), rebuilt) for verdict in of_kind if verdict.wrong
    ]
    if failed:
        raise TrialsFailed(f"seeds {failed} of the random failbacks")
    return _section(verdicts[True], verdicts[False]) + _rebuild_section(rebuilt)


def _trial(old: LabCluster, new: LabCluster, seed: int, say: Say, *, keeps_names: bool) -> Verdict:
    kind = "identity" if keeps_names else "prefix"
    return _held(FailbackStage(old, new, f"failback-{kind}-{seed}", keeps_names), play, seed, kind, say)


def _rebuild(old: LabCluster, new: LabCluster, seed: int, say: Say) -> RebuildVerdict:
    stage = FailbackStage(old, new, f"rebuild-{seed}", keeps_names=True)
    return _held(stage, play_rebuild, seed, "rebuild", say)


def _held(
    stage: FailbackStage, trial: Callable[[FailbackStage, int], Any], seed: int, kind: str, say: Say
) -> Any:
    try:
        verdict = trial(stage, seed)
    finally:
        stage.close()
    for line in verdict.wrong:
        say(f"seed {seed}, {kind}: {line}")
    say(f"failback {kind} {seed}: {verdict.records} records, a divergent tail of {verdict.tail}")
    return verdict


def _rebuild_section(verdicts: list[RebuildVerdict]) -> str:
    return f"""
Failover, traffic, `failback --rebuild`, traffic, `--home`, traffic, a planned failover, and all of it again;
{len(verdicts)} times with names that stay (seeds {verdicts[0].seed} to {verdicts[-1].seed}). Each time the
old primary's logs were empty, and each price was what then was deleted, exported and copied anew. At the end
readers of both clusters saw the same {sum(v.records for v in verdicts):,} records, each once, in order, with
keys, headers and times, and {sum(v.tail for v in verdicts):,} divergent ones in exports and nowhere else.
"""


def _section(identity: list[Verdict], prefix: list[Verdict]) -> str:
    seeds = f"{identity[0].seed} to {identity[-1].seed}"
    return f"""\
## Failback

Failover, traffic, `failback --resume`, traffic, `failback --home`, traffic; {len(identity)} times with
names that stay, and then a planned failover again, and {len(prefix)} times with prefixes (seeds {seeds});
on two real brokers, with plain writers and transactions, aborted ones too. Readers of both clusters saw
each record that was ever written on both sides once, in order per partition, but for the divergent tail:
with names that stay {sum(v.tail for v in identity):,} records, each on the old primary and in its export,
and in no other place. With prefixes {sum(v.tail for v in prefix):,} records crossed later. No record came
back to where it had come from. Each group, each time that it was moved, went on with the very record that
it would have read next.
"""
