"""The gaps in full size, for `make prove`: ten of each, found before the first wrong record.

    python -m tests.proofs.gaps.prove [--repeats 10] [--seed N]

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
from tests.proofs.chaos.peer.compare import PAGE, SECTIONS
from tests.proofs.chaos.report import said, today, versions
from tests.proofs.gaps.causeway import CausewayOnGaps
from tests.proofs.gaps.loss_cases import Case, GapGround
from tests.proofs.gaps.peer import MirrorMakerOnGaps, Seen
from tests.support.sections import write_section

REPEATS = 10
_READY_SECONDS = 300.0
Say = Callable[[str], None]


def prove(folder: Path, seed: int, say: Say, *, repeats: int = REPEATS) -> str:
    """:raises GapFailed: one wasn't found, or its remedy leads nowhere."""
    play_causeway(folder, seed, say, repeats=repeats)
    rows = "\n".join(f"| {case} | {repeats} of {repeats} | {_WAY_OUT[case]} |" for case in Case)
    return f"""\
## Silent gaps

Seed {seed}, {repeats} of each, on real brokers. A flow has mirrored {6 * repeats + 1} topics, and then the
damage is done between two runs. Logs are cut while their broker is stopped: the last batches of the segment
are removed, as an unclean election does.

*Found* means: the next run and `causeway status` name the offsets or the ids, and the mirror's end has not
moved. The printed command is then run as it was printed. The first of each kind is also run with `--dry-run`,
with other ranges (refused), and again (nothing to do). In the end each mirror shows what was accepted, record
by record, and the ledger shows every range.

| what happened | found before the first wrong record | command that was printed and run |
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

What a mirror does after records were lost while it did not run: {repeats} of each, seed {seed}, played on
{today()}. Versions: {said(versions())}.

Each mirror has brokers of its own. Everything is mirrored, the mirror is ended in order, the damage is
done, and the mirror is started again. `python -m tests.proofs.gaps.prove` writes this section.

{_HEAD}
{rows}

- *Named*: an error in its log names the topic. What it logs below that level does not count.
- *Lost*: on the source, and not on the mirror. With retention: written to the source, and gone before it
  was copied.
- *Repeated*: once more on the mirror than on the source.
- MirrorMaker 2 runs in dedicated mode with its defaults. It is judged when an unharmed topic is whole again
  and nothing more has come for 20 seconds.
- If a source was recreated and is shorter, MirrorMaker 2 appends the new records after the old ones. An
  operator may want that. Causeway does the same once an operator asks for it.
- Causeway names the offsets or the ids. It continues after a command that repeats them: see
  [proof.md](proof.md).
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
