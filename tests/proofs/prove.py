"""`make prove`: every promise in its full size, one part after the other; writes docs/proof.md.

    python -m tests.proofs.prove [--only chaos,gaps] [--seed N]                  some parts; --help names them
    python -m tests.proofs.prove --only chaos --faults 20 --records 1000000      a smaller one

A part that fails ends it with its own words, and the page stays as it was. With `--only`, the page keeps
what it says of the other parts: each part tells when it was played, and with what.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import confluent_kafka
import pyspark

from causeway import __version__
from tests.airflow.ui.prove import WalkFailed
from tests.airflow.ui.prove import prove as prove_ui
from tests.integration.failback.prove import TrialsFailed as FailbacksFailed
from tests.integration.failback.prove import prove as prove_failback
from tests.integration.failover.trials.prove import TrialsFailed
from tests.integration.failover.trials.prove import prove as prove_failover
from tests.integration.failover.trials.prove_crowd import CrowdFailed
from tests.integration.failover.trials.prove_crowd import prove as prove_crowd
from tests.integration.fidelity.prove import prove as prove_compacting
from tests.integration.groups.prove import GroupsFailed
from tests.integration.groups.prove import prove as prove_groups
from tests.integration.takeover.prove import TakeoverFailed
from tests.integration.takeover.prove import prove as prove_takeover
from tests.proofs.chaos.campaign import CampaignFailed
from tests.proofs.chaos.prove import prove as prove_campaign
from tests.proofs.chaos.prove import prove_chaos, prove_settling
from tests.proofs.expiry.prove import JanitorNoticed
from tests.proofs.expiry.prove import prove as prove_expiry
from tests.proofs.follow.measure import follow_fresh
from tests.proofs.gaps.causeway import GapFailed
from tests.proofs.gaps.prove import prove as prove_gaps
from tests.proofs.hostile.prove import HostileFailed
from tests.proofs.hostile.prove import prove as prove_hostile
from tests.proofs.interrupts.prove import InterruptsFailed
from tests.proofs.interrupts.prove import prove as prove_interrupts
from tests.proofs.proxy.prove import CellsFailed
from tests.proofs.proxy.prove import prove as prove_proxy
from tests.proofs.translation.prove import TranslationFailed
from tests.proofs.translation.prove import prove as prove_translation
from tests.simulation.mutants import found_by
from tests.simulation.prove import prove as prove_simulation
from tests.simulation.prove import prove_settling as prove_settling_worlds
from tests.simulation.prove import prove_starting as prove_starting_worlds
from tests.simulation.prove import section as simulation_section
from tests.simulation.prove import settling_section, starting_section
from tests.support.sections import sections_of

_ROOT = Path(__file__).parents[2]
_PAGE = _ROOT / "docs/proof.md"
_MUTATIONS = Path(__file__).with_name("chaos") / "mutations.md"
_CHAOS_FAULTS, _CHAOS_RECORDS = 200, 20_000_000
_FOLLOWED_SECONDS, _FOLLOWED_PER_SECOND = 60, 5_000
_HEAD = """\
# Proved

Every promise of the copy, played in full size. `make prove` writes this page. `make test` plays each part in
a small size.
"""


class SeedsFailed(Exception):
    """Seeds of the simulation that break a promise; each has been printed."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What the command line says of sizes."""

    seed: int
    chaos_faults: int
    chaos_records: int


Part = Callable[[Path, Wish], str]


def campaign(folder: Path, wish: Wish) -> str:
    return prove_campaign(folder, wish.seed, _say)


def chaos(folder: Path, wish: Wish) -> str:
    return prove_chaos(folder, wish.seed, _say, faults=wish.chaos_faults, records=wish.chaos_records)


def settling(folder: Path, wish: Wish) -> str:
    return prove_settling(folder, wish.seed, _say)


def following(folder: Path, _wish: Wish) -> str:
    _say(f"following a source of {_FOLLOWED_PER_SECOND:,} records/s for {_FOLLOWED_SECONDS} s")
    found = follow_fresh(folder, seconds=_FOLLOWED_SECONDS, records_per_second=_FOLLOWED_PER_SECOND)
    _say(f"followed: {found}")
    return f"""\
## Following a live source

A run with `--run-for`, while a producer writes {_FOLLOWED_PER_SECOND:,} records/s for {_FOLLOWED_SECONDS} s.
The time of a record runs from just before `produce` on the source to just after the poll of a
`read_committed` consumer on the target. Brokers, producer, reader and Spark share this one machine's
{os.cpu_count()} cores. {found}.
"""


def gaps(folder: Path, wish: Wish) -> str:
    return prove_gaps(folder, wish.seed, _say)


def ui(folder: Path, _wish: Wish) -> str:
    return prove_ui(folder, _say)


def compacting(folder: Path, _wish: Wish) -> str:
    return prove_compacting(folder, _say)


def proxy(folder: Path, _wish: Wish) -> str:
    return prove_proxy(folder, _say)


def failover(folder: Path, wish: Wish) -> str:
    return prove_failover(folder, wish.seed, _say)


def crowd(folder: Path, wish: Wish) -> str:
    return prove_crowd(folder, wish.seed, _say)


def failback(folder: Path, wish: Wish) -> str:
    return prove_failback(folder, wish.seed, _say)


def expiry(folder: Path, wish: Wish) -> str:
    return prove_expiry(folder, wish.seed, _say)


def interrupts(folder: Path, wish: Wish) -> str:
    return prove_interrupts(folder, wish.seed, _say)


def hostile(folder: Path, _wish: Wish) -> str:
    return prove_hostile(folder, _say)


def simulation(_folder: Path, _wish: Wish) -> str:
    tally = prove_simulation()
    _say(str(tally))
    if tally.failures:
        raise SeedsFailed(f"{len(tally.failures)} seeds failed")
    settled = prove_settling_worlds()
    if settled.failures:
        raise SeedsFailed(f"{len(settled.failures)} settling seeds failed")
    begun = prove_starting_worlds()
    if begun.failures:
        raise SeedsFailed(f"{len(begun.failures)} starting seeds failed")
    found = found_by()
    if "nothing" in dict(found).values():
        raise SeedsFailed(f"no seed misses a rule that was taken out: {found}")
    return simulation_section(tally, found) + settling_section(settled) + starting_section(begun)


def translation(folder: Path, wish: Wish) -> str:
    return prove_translation(folder, wish.seed, _say)


def mutations(_folder: Path, _wish: Wish) -> str:
    return _MUTATIONS.read_text(encoding="utf-8")


def groups(folder: Path, wish: Wish) -> str:
    return prove_groups(folder, wish.seed, _say)


def takeover(folder: Path, wish: Wish) -> str:
    return prove_takeover(folder, wish.seed, _say)


PARTS: dict[str, Part] = {
    each.__name__: each
    for each in (
        following,
        failover,
        crowd,
        ui,
        failback,
        expiry,
        compacting,
        groups,
        translation,
        takeover,
        proxy,
        interrupts,
        hostile,
        simulation,
        campaign,
        settling,
        chaos,
        gaps,
        mutations,
    )
}


_DEFAULT = ",".join(part for part in PARTS if part != "ui")
"""The part `ui` wants a browser, which not every machine has: it is played by name only."""

_ON_THE_PAGE = (
    "campaign",
    "settling",
    "chaos",
    "gaps",
    "following",
    "failover",
    "crowd",
    "ui",
    "failback",
    "expiry",
    "compacting",
    "groups",
    "translation",
    "takeover",
    "proxy",
    "interrupts",
    "hostile",
    "simulation",
)
"""The parts in this order; the mutations come last."""

_FAILURES = (
    CampaignFailed,
    CellsFailed,
    CrowdFailed,
    FailbacksFailed,
    GapFailed,
    GroupsFailed,
    HostileFailed,
    InterruptsFailed,
    JanitorNoticed,
    SeedsFailed,
    TakeoverFailed,
    TranslationFailed,
    TrialsFailed,
    WalkFailed,
)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="prove", description="Prove every promise in its full size.")
    parser.add_argument("--only", default=_DEFAULT, help=f"some of {','.join(PARTS)}")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1_000_000))
    parser.add_argument("--faults", type=int, default=_CHAOS_FAULTS, help="of the part chaos")
    parser.add_argument("--records", type=int, default=_CHAOS_RECORDS, help="of the part chaos")
    options = parser.parse_args(arguments)
    wish = Wish(options.seed, options.faults, options.records)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # by nohup; the part interrupts presses Ctrl-C
        signal.signal(signal.SIGINT, signal.default_int_handler)
    chosen = options.only.split(",")
    if unknown := set(chosen) - PARTS.keys():
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    told = sections_of(_PAGE.read_text(encoding="utf-8")) if _PAGE.exists() else {}
    for name in chosen:
        _say(f"prove: {name}")
        with tempfile.TemporaryDirectory(prefix="causeway-proof-") as folder:
            try:
                told[name] = f"{PARTS[name](Path(folder), wish).rstrip()}\n\n{_played()}\n"
            except _FAILURES as failure:
                _say(str(failure))
                return 1
    _PAGE.write_text(_page(told), encoding="utf-8")
    _say(f"proved: {_PAGE.relative_to(_ROOT)}")
    return 0


def _page(told: dict[str, str]) -> str:
    sections = [f"\n<!-- {name} -->\n{told[name]}" for name in _ON_THE_PAGE if name in told]
    mutations = f"\n<!-- mutations -->\n{_MUTATIONS.read_text(encoding='utf-8')}"
    return "".join([_HEAD, *sections, mutations])


def _played() -> str:
    day = time.strftime("%Y-%m-%d", time.gmtime())
    return (
        f"Played on {day} with Causeway {__version__}, Spark {pyspark.__version__}, Python "
        f"{platform.python_version()}, librdkafka {confluent_kafka.libversion()[0]}."
    )


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
