"""Many seeds on two processes: `python -m tests.simulation.prove [SEEDS] [--first N]`.

Prints one line for each seed that fails and one at the end; `section` is that line as a part of
docs/proof.md.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from multiprocessing import get_context

from tests.simulation.scenario import (
    Trouble,
    settling_anyway_scenario_of,
    settling_scenario_of,
    starting_scenario_of,
)
from tests.simulation.seeds import play, told

SEEDS, SETTLING_SEEDS, STARTING_SEEDS = 10_000, 1_000, 2_000
_PROCESSES = 2
_PIECE = 50


@dataclass(slots=True)
class Tally:
    """What seeds came to, added up."""

    seeds: int = 0
    records: int = 0
    checks: int = 0
    events: int = 0
    transactions_v1: int = 0
    parked: Counter[str] = field(default_factory=Counter)
    troubles: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, other: Tally) -> None:
        self.seeds += other.seeds
        self.records += other.records
        self.checks += other.checks
        self.events += other.events
        self.transactions_v1 += other.transactions_v1
        self.parked.update(other.parked)
        self.troubles.update(other.troubles)
        self.failures += other.failures

    def __str__(self) -> str:
        return (
            f"simulation: {self.seeds:,} seeds, {len(self.failures)} failed; {self.records:,} records, "
            f"{sum(self.troubles.values()):,} faults, {self.events:,} events, {self.checks:,} checks "
            f"in {self.seconds:.0f} s"
        )


def play_piece(seeds: range) -> Tally:
    tally = Tally()
    for seed in seeds:
        outcome = play(seed)
        tally.seeds += 1
        tally.records += outcome.records
        tally.checks += outcome.checks
        tally.events += outcome.events
        tally.transactions_v1 += not outcome.scenario.is_v2
        tally.parked.update(outcome.parked)
        tally.troubles.update(trouble.value for _, trouble in outcome.scenario.troubles)
        if outcome.failure is not None:
            tally.failures.append(told(outcome))
    gc.collect()
    return tally


def prove(seeds: int = SEEDS, *, first: int = 0, processes: int = _PROCESSES) -> Tally:
    began, whole = time.monotonic(), Tally()
    pieces = [range(at, min(at + _PIECE, first + seeds)) for at in range(first, first + seeds, _PIECE)]
    with get_context("spawn").Pool(processes) as pool:
        for tally in pool.imap_unordered(play_piece, pieces):
            for failure in tally.failures:
                print(failure, flush=True)
            whole.add(tally)
    whole.seconds = time.monotonic() - began
    return whole


@dataclass(slots=True)
class SettlingTally:
    """The same deaths with and without settling, and settling in worlds where everything else goes wrong."""

    seeds: int = 0
    settled: int = 0
    repeats: int = 0
    repeats_without: int = 0
    failures: list[str] = field(default_factory=list)

    def add(self, other: SettlingTally) -> None:
        self.seeds += other.seeds
        self.settled += other.settled
        self.repeats += other.repeats
        self.repeats_without += other.repeats_without
        self.failures += other.failures


def play_settling_piece(seeds: range) -> SettlingTally:
    tally = SettlingTally()
    for seed in seeds:
        calm = play(seed, scenario_of=settling_scenario_of)
        without = play(seed, scenario_of=lambda s: replace(settling_scenario_of(s), settles=False))
        anyway = play(seed, scenario_of=settling_anyway_scenario_of)
        tally.seeds += 1
        tally.settled += calm.settled
        tally.repeats += calm.repeats
        tally.repeats_without += without.repeats
        if calm.repeats:
            tally.failures.append(f"seed {seed}, settling: {calm.repeats} records seen twice")
        tally.failures += [f"settling: {o}" for o in (calm, without) if o.failure is not None]
        if anyway.failure is not None:
            tally.failures.append(told(anyway, scenario_of=settling_anyway_scenario_of))
    gc.collect()
    return tally


def prove_settling(seeds: int = SETTLING_SEEDS, *, processes: int = _PROCESSES) -> SettlingTally:
    whole = SettlingTally()
    pieces = [range(at, min(at + _PIECE, seeds)) for at in range(0, seeds, _PIECE)]
    with get_context("spawn").Pool(processes) as pool:
        for tally in pool.imap_unordered(play_settling_piece, pieces):
            for failure in tally.failures:
                print(failure, flush=True)
            whole.add(tally)
    return whole


def play_starting_piece(seeds: range) -> Tally:
    tally = Tally()
    for seed in seeds:
        outcome = play(seed, scenario_of=starting_scenario_of)
        tally.seeds += 1
        tally.records += outcome.records
        tally.parked.update(outcome.parked)
        tally.troubles.update(trouble.value for _, trouble in outcome.scenario.troubles)
        if outcome.failure is not None or outcome.parked:
            tally.failures.append(told(outcome, scenario_of=starting_scenario_of))
    gc.collect()
    return tally


def prove_starting(seeds: int = STARTING_SEEDS, *, processes: int = _PROCESSES) -> Tally:
    whole = Tally()
    pieces = [range(at, min(at + _PIECE, seeds)) for at in range(0, seeds, _PIECE)]
    with get_context("spawn").Pool(processes) as pool:
        for tally in pool.imap_unordered(play_starting_piece, pieces):
            for failure in tally.failures:
                print(failure, flush=True)
            whole.add(tally)
    return whole


def starting_section(tally: Tally) -> str:
    expired = tally.troubles["offsets_expire"]
    return f"""
Beginnings: {tally.seeds:,} worlds have each start rule, topics that grow, first rounds that die, and sources
that refuse to answer. Positions expired {expired:,} times. Each start was asked once. Each of
{tally.records:,} records from there on was mirrored once, in order, and none before it was. Nothing parked.
"""


def settling_section(tally: SettlingTally) -> str:
    return f"""
Settling: in {tally.seeds:,} worlds workers die and connections break, and each has one successor in time. A
`read_uncommitted` reader saw {tally.repeats:,} records twice, and {tally.repeats_without:,} without settling.
{tally.settled:,} records were kept. In as many worlds everything above goes wrong as well. There nothing was
lost, repeated or out of order for `read_committed` readers.
"""


def section(tally: Tally, found: Iterable[tuple[str, str]] = ()) -> str:
    """A part of docs/proof.md; `found` are rules that were taken out and what found each."""
    troubles = "\n".join(f"| {_words(kind)} | {tally.troubles[kind]:,} |" for kind in map(str, Trouble))
    text = f"""\
## In virtual time

The product's own code runs between two simulated clusters, from the plan of a round down to each request. A
contract suite compares these clusters with real brokers (`tests/contract`). A seed decides what is written,
what goes wrong, and when.

After each step a `read_committed` reader of the mirror sees a prefix of the source, and position, data and
offset map agree. At the end, with all troubles over, everything is copied, or is parked for a reason that
really happened. `python -m tests.simulation.replay SEED` plays one seed again.

| | |
|---|---|
| seeds | {tally.seeds:,}, {tally.transactions_v1:,} of them with transactions v1 |
| failed | {len(tally.failures)} |
| records on the mirrors | {tally.records:,} |
| faults, beside messages lost, late and repeated | {sum(tally.troubles.values()):,} |
| checks | {tally.checks:,} |
| partitions that were parked at the end, rightly | {sum(tally.parked.values()):,} |
| time | {tally.seconds / 60:.0f} minutes |

| fault | times |
|---|---|
{troubles}
"""
    rows = "\n".join(f"| {rule} | {what} |" for rule, what in found)
    if rows:
        text += "\nEach rule was taken out on purpose. What was seen:\n\n"
        text += f"| without | found by |\n|---|---|\n{rows}\n"
    return text


def _words(kind: str) -> str:
    return kind.replace("_", " ")


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="prove", description="Play many seeds.")
    parser.add_argument("seeds", type=int, nargs="?", default=SEEDS)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args(arguments)
    tally = prove(options.seeds, first=options.first)
    print(tally)
    settling = prove_settling(min(options.seeds, SETTLING_SEEDS))
    print(f"settling: {settling.seeds:,} seeds, {len(settling.failures)} failed;{settling_section(settling)}")
    starting = prove_starting(min(options.seeds, STARTING_SEEDS))
    print(f"starting: {starting.seeds:,} seeds, {len(starting.failures)} failed;{starting_section(starting)}")
    return 1 if tally.failures or settling.failures or starting.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
