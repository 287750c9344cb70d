"""Causeway and MirrorMaker 2 under one schedule of faults, side by side; writes docs/comparison.md.

    python -m tests.proofs.chaos.peer.compare RESULTS [--mirrors causeway,default,exactly-once] [--seed N]
                                          [--faults 200] [--records 20000000]

Each mirror has clusters of its own and leaves RESULTS/MIRROR.json, so they can be played one at a time. The
page is written from what is there, of one seed and size, and says which one isn't.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.proofs.chaos.campaign import Campaign, CampaignFailed
from tests.proofs.chaos.peer.peer import PeerCampaign
from tests.proofs.chaos.prove import three_nodes
from tests.proofs.chaos.report import FORMAT, fault_table, proof_as_json, said, today, versions
from tests.proofs.chaos.schedule import Size, chaos_of
from tests.support.sections import write_section

_METHOD = Path(__file__).with_name("comparison.md")
PAGE = Path(__file__).parents[4] / "docs/comparison.md"
SECTIONS = ("faults", "gaps", "offsets")
"""Of the page; `tests.proofs.gaps.prove` and `tests.proofs.translation.lags` write the others."""
MIRRORS = {
    "causeway": "Causeway",
    "default": "MirrorMaker 2, defaults",
    "exactly-once": "MirrorMaker 2, exactly once",
}


def play(mirror: str, size: Size, seed: int, folder: Path) -> dict[str, Any]:
    """:raises CampaignFailed: with its seed and everything that happened."""
    with three_nodes(folder) as (source, target):
        common = (source, target, folder, seed, size, say)
        if mirror == "causeway":
            proof = Campaign(*common).play()
            by_hand = not_played = 0
        else:
            peer = PeerCampaign(*common, is_exactly_once=mirror == "exactly-once")
            proof, by_hand, not_played = peer.play(), peer.restarts_by_hand, peer.not_played
    return {
        "format": FORMAT,
        "mirror": mirror,
        "seed": seed,
        "faults_asked": size.fault_count,
        "day": today(),
        "cores": os.cpu_count(),
        "versions": versions(),
        "restarts_by_hand": by_hand,
        "not_played": not_played,
        "proof": proof_as_json(proof),
    }


def page(found: Mapping[str, Mapping[str, Any]]) -> str:
    """Of Causeway and at least one other mirror; what hasn't been played is named."""
    first = found["causeway"]
    records = min(each["proof"]["records"] for each in found.values())
    head = f"| | {' | '.join(MIRRORS[name] for name in found)} |\n|---|{'---|' * len(found)}\n"
    return f"""\
# The same faults, side by side

What readers of a mirror see when everything around it breaks. Causeway and MirrorMaker 2 each have brokers of
their own, and go through one schedule of faults. `python -m tests.proofs.chaos.peer.compare` writes this
section; `make bench` measures speed.

**Size of this run: {first["faults_asked"]} faults over {records:,} records, seed {first["seed"]}.** Played
on {first["day"]}, with all processes on one machine of {first["cores"]} cores. Versions:
{said(first["versions"])}. MirrorMaker 2 is Kafka's own, of the same version.

{head}{_rows(found)}
{_missing(found)}
{_METHOD.read_text(encoding="utf-8")}
## The faults of this run

{fault_table(first["proof"]["faults"])}"""


def _missing(found: Mapping[str, Mapping[str, Any]]) -> str:
    names = [title for name, title in MIRRORS.items() if name not in found]
    return f"\n**Not played in this size yet: {', '.join(names)}.**\n" if names else ""


def _rows(found: Mapping[str, Mapping[str, Any]]) -> str:
    def row(name: str, *path: str) -> str:
        values = []
        for each in found.values():
            value: Any = each
            for step in path:
                value = value[step]
            values.append(f"{value:,}")
        return f"| {name} | {' | '.join(values)} |"

    def minutes(each: Mapping[str, Any]) -> str:
        return f"{each['proof']['seconds'] / 60:.0f} min"

    rows = [row("records on the source", "proof", "records")]
    for reader in ("read_committed", "read_uncommitted"):
        for what in ("lost", "repeated", "out_of_order", "foreign"):
            shown = "not on the source" if what == "foreign" else what.replace("_", " ")
            rows.append(row(f"`{reader}`: {shown}", "proof", reader, what))
    rows += [
        row("faults that found a transaction open", "proof", "faults_in_open_transactions"),
        row("runs or processes started", "proof", "runs"),
        row("started again by hand", "restarts_by_hand"),
        row("faults without a counterpart", "not_played"),
        f"| time for the schedule | {' | '.join(map(minutes, found.values()))} |",
    ]
    return "\n".join(rows)


def say(line: str) -> None:
    print(line, flush=True)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="compare", description="Causeway and MirrorMaker 2 under one schedule."
    )
    parser.add_argument("results", type=Path)
    parser.add_argument("--mirrors", default=",".join(MIRRORS))
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--faults", type=int, default=200)
    parser.add_argument("--records", type=int, default=20_000_000)
    options = parser.parse_args(arguments)
    if unknown := set(options.mirrors.split(",")) - MIRRORS.keys():
        parser.error(f"no mirror {', '.join(sorted(unknown))}; there are {', '.join(MIRRORS)}")
    size = chaos_of(faults=options.faults, records=options.records)
    options.results.mkdir(parents=True, exist_ok=True)
    for mirror in options.mirrors.split(","):
        say(f"{MIRRORS[mirror]}, seed {options.seed}, {size.fault_count} faults")
        folder = Path(tempfile.mkdtemp(prefix=f"causeway-comparison-{mirror}-"))
        try:
            result = play(mirror, size, options.seed, folder)
        except CampaignFailed as failure:
            say(str(failure))
            say(f"logs and what the readers saw stay in {folder}")
            return 1
        shutil.rmtree(folder)
        text = json.dumps(result, indent=1)
        (options.results / f"{mirror}.json").write_text(f"{text}\n", encoding="utf-8")
        say(text)
    return _write_page(options.results)


def _write_page(results: Path) -> int:
    files = {name: results / f"{name}.json" for name in MIRRORS}
    found = {
        name: json.loads(file.read_text(encoding="utf-8")) for name, file in files.items() if file.exists()
    }
    if "causeway" in found and len(found) > 1:
        if len({(each["seed"], each["faults_asked"]) for each in found.values()}) > 1:
            say("the results are of different seeds or sizes: no page")
            return 1
        write_section(PAGE, "faults", page(found), SECTIONS)
        say(f"written: {PAGE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
