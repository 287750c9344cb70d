"""Plays the whole matrix on both kinds of target, and tells what it found as a section of docs/proof.md.

python -m tests.proofs.proxy.prove [--players N] [--only WORD]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from causeway.lab.cluster import LabCluster
from causeway.lab.record import NEWEST_KAFKA, ClusterSpec
from tests.proofs.proxy.fault_points import SITES_V1, SITES_V2, Cell, Ending, Site, cells
from tests.proofs.proxy.matrix import PLAYERS, Played, play
from tests.proofs.proxy.proxy import Fault

OLD_KAFKA = "3.9.2"
SITES = {NEWEST_KAFKA: SITES_V2, OLD_KAFKA: SITES_V1}
Say = Callable[[str], None]


class CellsFailed(Exception):
    """Some cells aren't green: which ones, and how they failed."""


def prove(folder: Path, say: Say, *, players: int = PLAYERS, only: str = "") -> str:
    """:raises CellsFailed: after all cells have been played."""
    source = LabCluster(ClusterSpec(name="sf"), folder / "sf")
    played: dict[str, list[Played]] = {}
    try:
        source.start()
        for version, sites in SITES.items():
            chosen = [cell for cell in cells(sites) if only in str(cell)]
            say(f"proxy: {len(chosen)} cells on Kafka {version}")
            played[version] = _play(source, version, chosen, folder, players)
    finally:
        source.stop()
    for version, found in played.items():
        say(
            f"proxy: {sum(not each.failure for each in found)} of {len(found)} cells green on Kafka {version}"
        )
    failed = [each for found in played.values() for each in found if each.failure]
    if failed:
        raise CellsFailed("\n\n".join(f"{each.cell}\n{each.failure}" for each in failed))
    return _section(played)


def _play(
    source: LabCluster, version: str, chosen: Sequence[Cell], folder: Path, players: int
) -> list[Played]:
    target = LabCluster(ClusterSpec(name="nyc", kafka_version=version), folder / f"nyc-{version}")
    try:
        target.start()
        return list(play(chosen, source, target, folder / f"players-{version}", players).values())
    finally:
        target.stop()


def _section(played: dict[str, list[Played]]) -> str:
    parts = "\n".join(_table(version, found) for version, found in played.items())
    return f"""\
## One fault at each request of the protocol

A proxy between one worker and real brokers reads the head of every request. In each cell it does one wrong to
one request:

- It loses the request or its answer.
- It delays one of the two until a successor is in the middle of its work. For requests that change something
  it also does so until just before the successor's claim.
- It cuts the connection inside of one of the two.
- It lets the broker have the request twice.

The worker continues, or is killed with SIGKILL at that very moment. After each cell a `read_committed` reader
sees the source's records on the target, each once and in order. Position and offset map are exact to the
record, no transaction is open, and the lag is 0. A cell whose fault never came does not count.

{parts}"""


def _table(version: str, found: list[Played]) -> str:
    counts = Counter(each.cell.site for each in found)
    rows = "\n".join(f"| {_words(site)} | {count} |" for site, count in counts.items())
    kinds = len(Fault) * len(Ending)
    return f"""\
Kafka {version}: {len(found)} cells, all of them green. There are {kinds} for each request, and
{kinds + len(Ending)} for a request that could still change something when it is late.

| request | cells |
|---|---|
{rows}
"""


def _words(site: Site) -> str:
    name = "".join(word.capitalize() for word in site.api.name.split("_"))
    about = "" if site.about == "nothing" else f", {site.about}"
    return f"{site.side}: {name}{about}, {site.when or f'number {site.nth}'}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="prove", description="Play every cell of the proxy's matrix.")
    parser.add_argument("--players", type=int, default=PLAYERS)
    parser.add_argument("--only", default="", help="cells whose name holds this")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="causeway-proxy-") as folder:
        try:
            print(prove(Path(folder), _say, players=options.players, only=options.only))
        except CellsFailed as failure:
            print(failure)
            return 1
    return 0


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
