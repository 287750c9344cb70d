"""The schedule: the same by the same seed, and only what the stage can suffer."""

from __future__ import annotations

import itertools
import random

import pytest

from tests.proofs.chaos import faults, schedule
from tests.proofs.chaos.parts import outages
from tests.proofs.chaos.schedule import CHAOS, OF_LINKS, OF_NODES, Fault, chaos_of, endless_faults, fate_of


def test_every_fault_is_somebodys() -> None:
    assert faults.INFLICT.keys() | outages.INFLICT.keys() == set(Fault)
    assert not faults.INFLICT.keys() & outages.INFLICT.keys()


@pytest.mark.parametrize("name", ["SMALL", "FULL", "OLD_BROKER", "OLD_BROKER_FULL"])
def test_one_node_suffers_nothing_that_needs_three(name: str) -> None:
    assert not getattr(schedule, name).faults.keys() & (OF_NODES | OF_LINKS)


def test_the_full_chaos_is_what_is_promised() -> None:
    assert CHAOS.fault_count == 200
    assert CHAOS.faults.keys() == set(Fault)
    written = CHAOS.records_in_front + CHAOS.fault_count * CHAOS.records_per_fault
    assert written * 31 / 32 > 20_000_000, "an eighth goes into transactions, a quarter of it is aborted"
    assert chaos_of(faults=200, records=20_000_000) == CHAOS


@pytest.mark.parametrize("count", [1, 15, 16, 40, 199])
def test_another_size_has_as_many_faults_as_asked_for(count: int) -> None:
    assert chaos_of(faults=count, records=1_000_000).fault_count == count


def test_a_seed_says_everything() -> None:
    first, again = (list(itertools.islice(endless_faults(CHAOS, random.Random(7)), 450)) for _ in range(2))
    assert first == again != list(itertools.islice(endless_faults(CHAOS, random.Random(8)), 450))
    assert [fate_of(7, n).random() for n in range(9)] == [fate_of(7, n).random() for n in range(9)]
