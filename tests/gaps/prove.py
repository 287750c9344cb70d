"""The gaps in full size, for `make prove`: ten of each, found before the first wrong record.

    python -m tests.gaps.prove [--repeats 10] [--seed N]

plays them to MirrorMaker 2 too, on clusters of its own, and writes its section of docs/comparison.md.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from causeway.lab.cluster import LabCluster
from causeway.lab.record import ClusterSpec
from tests.chaos.compare import PAGE, SECTIONS
from tests.chaos.report import said, today, versions
from tests.gaps.causeway import CausewayOnGaps
from tests.gaps.ground import Case, GapGround
from tests.gaps.peer import MirrorMakerOnGaps, Seen
from tests.sections import write_section

REPEATS = 10
_READY_SECONDS = 300.0
Say = Callable[[str], None]


def prove(folder: Path, seed: int, say: Say, *, repeats: int = REPEATS) -> str:
    """:raises GapFailed: one wasn't found, or its way out leads nowhere."""
    play_causeway(folder, seed, say, repeats=repeats)
    rows = "\n".join(f"| {case} | {repeats} of {repeats} | {_WAY_OUT[case]} |" for case in Case)
    return f"""\
## Silent gaps

Seed {seed}, {repeats} of each, on real brokers: a flow has mirrored {6 * repeats + 1} topics; then,
between two runs, the damage. Logs are cut while their broker is stopped: the last batches of the
segment go, as an unclean election takes them. *Found*: the next run and `causeway status` name the
offsets or the ids, and the mirror's end hasn't moved. The command that was printed is then run as it
was printed; the first of each kind also with `--dry-run`, with other ranges (refused), and again
(nothing to do). In the end each mirror shows what was accepted, record by record, and the ledger every
range.

| what happened | found before the first wrong record | way out that was printed and run |
|---|---|---|
{rows}
"""


_WAY_OUT = {
    Case.RETENTION: "`accept-gap`",
    Case.SHORTER: "`restart-topic`",
    Case.REGROWN: "`restart-topic`",
    Case.CUT: "`accept-gap`",
    Case.CUT_REGROWN: "`accept-gap`",
    Case.TARGET_DELETED: "`restart-topic`",
}


def play_causeway(folder: Path, seed: int, say: Say, *, repeats: int) -> None:
    with _clusters(folder) as (source, target):
        played = CausewayOnGaps(GapGround(source, target, seed, repeats), folder, say)
        try:
            commands = played.play()
        finally:
            played.close()
    say(f"gaps: {len(commands)} of {len(Case) * repeats} found, seed {seed}")


def play_mirror_maker(folder: Path, seed: int, say: Say, *, repeats: int) -> list[Seen]:
    with _clusters(folder) as (source, target):
        played = MirrorMakerOnGaps(GapGround(source, target, seed, repeats), folder, say)
        try:
            return played.play()
        finally:
            played.stop()


@contextmanager
def _clusters(folder: Path) -> Iterator[tuple[LabCluster, LabCluster]]:
    made = [LabCluster(ClusterSpec(name=name), folder / name, say=lambda _: None) for name in ("sf", "nyc")]
    try:
        for cluster in made:
            cluster.launch()
        for cluster in made:
            cluster.wait_until_ready(timeout_seconds=_READY_SECONDS)
        yield made[0], made[1]
    finally:
        for cluster in made:
            cluster.stop()


def comparison(seed: int, repeats: int, seen: Sequence[Seen]) -> str:
    rows = "\n".join(_row(case, repeats, [each for each in seen if each.case is case]) for case in Case)
    return f"""\
# The same losses, side by side

What a mirror does when records get lost behind its back: {repeats} of each, seed {seed}, played on {today()}
with {said(versions())}.
Each mirror has brokers of its own: everything is mirrored, the mirror is ended in order, the damage is done,
the mirror is started again. Written by `python -m tests.gaps.prove`.

{_HEAD}
{rows}

- *Named*: an error in its log names the topic; what it logs below that level wasn't counted. *Lost*: on
  the source (retention: written to it, and gone before it was copied), and not on the mirror.
  *Repeated*: there once more than on the source.
- MirrorMaker 2 runs in dedicated mode with its defaults. It is judged when a topic that nothing
  happened to is whole again and nothing more has come for 20 seconds.
- Where a source was made again and is shorter, MirrorMaker appends the new records behind the old ones,
  which is what one may want; Causeway does the same, once somebody has said so.
- Causeway names the offsets or the ids, and goes on after a command that repeats them: see proof.md.
"""


_HEAD = (
    "| what happened | Causeway: parked before the first wrong record | MirrorMaker 2: named "
    "| went on writing | records lost | records repeated |\n|---|---|---|---|---|---|"
)


def _row(case: Case, repeats: int, seen: Sequence[Seen]) -> str:
    told, wrote = sum(each.was_told for each in seen), sum(each.wrote > 0 for each in seen)
    lost, repeated = sum(each.lost for each in seen), sum(each.repeated for each in seen)
    count = len(seen)
    found = f"{repeats} of {repeats} | {told} of {count} | {wrote} of {count}"
    return f"| {case} | {found} | {lost:,} | {repeated:,} |"


def _say(line: str) -> None:
    print(line, flush=True)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="gaps", description="Six losses, to Causeway and to MirrorMaker 2.")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument(
        "--mirrors",
        default="causeway,mirror-maker",
        help="mirror-maker: where `make prove` has played this seed",
    )
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    options = parser.parse_args(arguments)
    repeats, seed = options.repeats, options.seed
    if "causeway" in options.mirrors:
        with tempfile.TemporaryDirectory(prefix="causeway-gaps-") as folder:
            play_causeway(Path(folder), seed, _say, repeats=repeats)
    with tempfile.TemporaryDirectory(prefix="causeway-gaps-") as folder:
        seen = play_mirror_maker(Path(folder), seed, _say, repeats=repeats)
    write_section(PAGE, "gaps", comparison(seed, repeats, seen), SECTIONS)
    _say(f"written: {PAGE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
