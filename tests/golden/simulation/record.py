"""`digests.txt`: a line for each seed, with its world and its two digests."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.golden.simulation.digest import NOTHING_LASTS, Ending, ending_of

DIGESTS = Path(__file__).parent / "digests.txt"
SEEDS = {"any": 600, "settling": 100, "settling-anyway": 100, "starting": 100, "adopting": 100}
"""By world, a thousand together."""

Seed = tuple[str, int]
ALL: tuple[Seed, ...] = tuple((world, seed) for world, most in SEEDS.items() for seed in range(most))


def play_all(seeds: Iterable[Seed]) -> dict[Seed, Ending]:
    """:raises Failed: one of them doesn't end as it should."""
    endings: dict[Seed, Ending] = {}
    for number, (world, seed) in enumerate(seeds):
        endings[world, seed] = ending_of(world, seed)
        if number % 50 == 0:
            gc.collect()
    return endings


def recorded() -> dict[Seed, Ending]:
    found: dict[Seed, Ending] = {}
    for line in DIGESTS.read_text(encoding="ascii").splitlines():
        world, seed, digests = line.split(maxsplit=2)
        found[world, int(seed)] = Ending.of(digests)
    return found


def write(endings: Mapping[Seed, Ending]) -> None:
    lines = [f"{world} {seed} {ending}" for (world, seed), ending in endings.items()]
    DIGESTS.write_text("\n".join(lines) + "\n", encoding="ascii")


def differences(before: Mapping[Seed, Ending], now: Mapping[Seed, Ending]) -> list[str]:
    """What differs, in a line each; of what lasts first, because that is the graver change."""
    lasting, whole = list[str](), list[str]()
    for (world, seed), ending in now.items():
        earlier = before.get((world, seed))
        if earlier == ending:
            continue
        if earlier is None or earlier.lasting != ending.lasting:
            lasting.append(f"{world} {seed}: WHAT LASTS differs: {earlier} is recorded, now it is {ending}")
        else:
            whole.append(f"{world} {seed}: {_what(ending)}: {earlier} is recorded, now it is {ending}")
    return lasting + whole


def _what(ending: Ending) -> str:
    if ending.lasting == NOTHING_LASTS:
        return "another ending"
    return "the same records and positions, divided into other transactions"
