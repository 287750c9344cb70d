"""Seeds of the simulation end as recorded; `python -m tests.golden.simulation` plays all thousand.

An order of requests that is meant to change writes them again. What lasts doesn't change with it.
"""

from __future__ import annotations

import os
import random

from tests.golden.simulation.digest import NOTHING_LASTS, ending_of
from tests.golden.simulation.record import ALL, differences, play_all, recorded

SAMPLE, STIRRED = 40, 10
CHANCE = int(os.environ.get("CAUSEWAY_DIGESTS_SEED") or random.SystemRandom().randrange(1_000_000))
AGAIN = f"CAUSEWAY_DIGESTS_SEED={CHANCE}; on purpose? python -m tests.golden.simulation --write"


def test_all_seeds_are_recorded() -> None:
    assert tuple(recorded()) == ALL
    assert len(ALL) == 1_000


def test_seeds_end_as_recorded() -> None:
    sample = random.Random(CHANCE).sample(ALL, SAMPLE)
    different = differences(recorded(), play_all(sample))
    assert not different, "\n".join([*different, AGAIN])


def test_what_lasts_is_the_same_under_other_timing() -> None:
    """The same source, and everything else that chance decides is decided in another way."""
    lasting = [seed for seed, ending in recorded().items() if ending.lasting != NOTHING_LASTS]
    sample = random.Random(CHANCE).sample(lasting, STIRRED)
    stirred = {(world, seed): ending_of(world, seed, stirred=1) for world, seed in sample}
    now = {seed: ending.lasting for seed, ending in stirred.items()}
    assert now == {seed: recorded()[seed].lasting for seed in sample}, AGAIN
    assert any(ending.whole != recorded()[seed].whole for seed, ending in stirred.items())
