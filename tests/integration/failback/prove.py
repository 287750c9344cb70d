"""Random failbacks with names that stay and with prefixes, rebuilds, circles: ten of each, held against what
was read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from causeway.lab.cluster import LabCluster
from causeway.lab.record import ClusterSpec
from tests.integration.failback.circles import CircleVerdict, play_circles
from tests.integration.failback.rebuilding import RebuildVerdict, play_rebuild
from tests.integration.failback.stage import FailbackStage
from tests.integration.failback.trials import Verdict, play

TRIALS = 10
Say = Callable[[str], None]
Held = TypeVar("Held", Verdict, RebuildVerdict, CircleVerdict)


class TrialsFailed(Exception):
    """A record was lost, came twice or a group stood wrong; each seed has been printed."""


def prove(folder: Path, seed: int, say: Say) -> str:
    clusters = [LabCluster(ClusterSpec(name=name), folder / name, say=say) for name in ("sf", "nyc")]
    try:
        for cluster in clusters:
            cluster.start()
        old, new = clusters
        verdicts = {
            keeps: [_trial(old, new, seed + number, say, keeps_names=keeps) for number in range(TRIALS)]
            for keeps in (True, False)
        }
        rebuilt = [_rebuild(old, new, seed + number, say) for number in range(TRIALS)]
        # Half of them with names that stay, half with prefixes.
        circles = [_circles(old, new, seed + number, say) for number in range(TRIALS)]
    finally:
        for cluster in clusters:
            cluster.stop()
    kinds: list[Sequence[Verdict | RebuildVerdict | CircleVerdict]] = [*verdicts.values(), rebuilt, circles]
    failed = [verdict.seed for of_kind in kinds for verdict in of_kind if verdict.wrong]
    if failed:
        raise TrialsFailed(f"seeds {failed} of the random failbacks")
    return _section(verdicts[True], verdicts[False]) + _rebuild_section(rebuilt) + _circle_section(circles)


def _trial(old: LabCluster, new: LabCluster, seed: int, say: Say, *, keeps_names: bool) -> Verdict:
    kind = "identity" if keeps_names else "prefix"
    return _held(FailbackStage(old, new, f"failback-{kind}-{seed}", keeps_names), play, seed, kind, say)


def _rebuild(old: LabCluster, new: LabCluster, seed: int, say: Say) -> RebuildVerdict:
    stage = FailbackStage(old, new, f"rebuild-{seed}", keeps_names=True)
    return _held(stage, play_rebuild, seed, "rebuild", say)


def _circles(old: LabCluster, new: LabCluster, seed: int, say: Say) -> CircleVerdict:
    stage = FailbackStage(old, new, f"circles-{seed}", keeps_names=seed % 2 == 0)
    return _held(stage, play_circles, seed, "circles", say)


def _held(
    stage: FailbackStage, trial: Callable[[FailbackStage, int], Held], seed: int, kind: str, say: Say
) -> Held:
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
Failover, traffic, `failback --rebuild`, traffic, `--home`, traffic, a planned switch, and all of it again:
{len(verdicts)} times with names that stay (seeds {verdicts[0].seed} to {verdicts[-1].seed}). Each time the
old primary's logs were empty. Each price was what then was deleted, exported and copied again. At the end
readers of both clusters saw the same {sum(v.records for v in verdicts):,} records, each once, in order, with
keys, headers and times. {sum(v.tail for v in verdicts):,} divergent records were in exports and nowhere else.
"""


def _section(identity: list[Verdict], prefix: list[Verdict]) -> str:
    seeds = f"{identity[0].seed} to {identity[-1].seed}"
    return f"""\
## Failback

Failover, traffic, `failback --resume`, traffic, `failback --home`, traffic, on two real brokers:
{len(identity)} times with names that stay, and then a planned switch again; {len(prefix)} times with prefixes
(seeds {seeds}). Writers write plain records and transactions, aborted ones too.

- Readers of both clusters saw each record that was ever written on both sides once, in order per partition,
  except the divergent tail.
- With names that stay the tail had {sum(v.tail for v in identity):,} records. Each was on the old primary
  and in its export, and nowhere else. With prefixes {sum(v.tail for v in prefix):,} records were mirrored
  later.
- No record came back to where it had come from.
- Each group, each time that it was moved, continued with the very record that it would have read next.
"""


def _circle_section(verdicts: list[CircleVerdict]) -> str:
    return f"""
Failover, traffic, `failback --resume`, traffic, `failback --home`, traffic: all of it twice, and a third
failover. That was played {len(verdicts)} times (seeds {verdicts[0].seed} to {verdicts[-1].seed}), half of
them with names that stay, half with prefixes. Three groups read on wherever they were. Before each failover
a group sync found every group protected, and a drill moved all three.

Each sheet named the very records that were lost, nothing read again, nothing skipped, and no group left
alone. Each group continued with the record that it would have read next. There were
{sum(v.records for v in verdicts):,} records in all.
"""
