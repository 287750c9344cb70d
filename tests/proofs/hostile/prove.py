"""Every hostile case, for `make prove`: `python -m tests.proofs.hostile.prove [--only FAMILIES]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.proofs.hostile.case import Case
from tests.proofs.hostile.player import Player, Tally
from tests.proofs.hostile.stage import mirrored_clusters
from tests.proofs.hostile.tables import families

CASES_AT_LEAST = 1_200
Say = Callable[[str], None]


class HostileFailed(Exception):
    """A case with another outcome than it has to have; each has been printed."""


def prove(folder: Path, say: Say) -> str:
    """:raises HostileFailed: something is wrong, or there are too few cases."""
    tallies, seconds = played(folder, families(), say)
    cases = sum(tally.cases for tally in tallies.values())
    if wrong := sum(len(tally.wrong) for tally in tallies.values()):
        raise HostileFailed(f"{wrong} complaints about {cases:,} cases")
    if cases < CASES_AT_LEAST:
        raise HostileFailed(f"{cases:,} cases, wanted {CASES_AT_LEAST:,}")
    return _section(tallies, cases, seconds)


def played(folder: Path, tables: dict[str, tuple[Case, ...]], say: Say) -> tuple[dict[str, Tally], float]:
    began = time.monotonic()
    tallies = {}
    with mirrored_clusters(folder) as clusters:
        player = Player(folder / "play", clusters, has_mirror=True)
        for family, cases in tables.items():
            tally = tallies[family] = player.play_all(cases)
            say(
                f"{family}: {tally.cases} cases in {tally.seconds:.0f} s, {len(tally.wrong)} complaints; "
                f"slowest: {tally.slowest[1]}, {tally.slowest[0]:.1f} s"
            )
            for wrong in tally.wrong:
                say(f"  {wrong}")
    return tallies, time.monotonic() - began


def _section(tallies: dict[str, Tally], cases: int, seconds: float) -> str:
    rows = "\n".join(
        f"| {family} | {tally.cases} | {tally.seconds:.0f} |" for family, tally in tallies.items()
    )
    return f"""\
## Hostile input

{cases:,} cases in {seconds / 60:.0f} minutes: arguments, paths, times, numbers, names, streams, surroundings.
In each the exit code is that of its kind. The error is one line with thing, value, rule and remedy. There is
no traceback, no raw control character, no hang and no unwanted file. Both clusters are the same before and
after what was refused: topics, both ends of each log, groups and their commits.

| family | cases | seconds |
|---|---|---|
{rows}
"""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="hostile", description="Play every hostile case.")
    parser.add_argument("--only", help=f"some of {','.join(families())}")
    options = parser.parse_args(arguments)
    tables = families()
    if options.only:
        tables = {name: tables[name] for name in options.only.split(",")}
    with tempfile.TemporaryDirectory(prefix="causeway-hostile-") as folder:
        tallies, seconds = played(Path(folder), tables, lambda line: print(line, flush=True))
    cases, wrong = (sum(map(count, tallies.values())) for count in (_cases, _complaints))
    print(f"{cases:,} cases, {wrong} complaints, {seconds:.0f} s", flush=True)
    return 1 if wrong else 0


def _cases(tally: Tally) -> int:
    return tally.cases


def _complaints(tally: Tally) -> int:
    return len(tally.wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
