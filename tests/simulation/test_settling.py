"""Settling: `read_uncommitted` readers too see each record once, where each worker has one successor in time.

And where everything else goes wrong as well, `read_committed` readers lose nothing by it.
"""

from __future__ import annotations

import gc
from dataclasses import replace

import pytest

from tests.simulation.scenario import Scenario, settling_anyway_scenario_of, settling_scenario_of
from tests.simulation.seeds import play, told

_PIECE = 50


@pytest.mark.parametrize("first", range(0, 200, _PIECE))
def test_a_reader_without_isolation_sees_no_record_twice(first: int) -> None:
    played = [play(seed, scenario_of=settling_scenario_of) for seed in range(first, first + _PIECE)]
    gc.collect()
    assert [str(each) for each in played if each.failure is not None or each.repeats] == []
    assert sum(each.settled for each in played) > 0


def test_without_settling_the_same_deaths_show_records_twice() -> None:
    """Else the zero above would say nothing."""

    def aborting(seed: int) -> Scenario:
        return replace(settling_scenario_of(seed), settles=False)

    played = [play(seed, scenario_of=aborting) for seed in range(_PIECE)]
    assert [str(each) for each in played if each.failure is not None] == []
    assert sum(each.repeats for each in played) > 0
    assert sum(each.settled for each in played) == 0


@pytest.mark.parametrize("first", range(0, 200, 2 * _PIECE))
def test_readers_with_isolation_lose_nothing_by_it_whatever_happens(first: int) -> None:
    seeds = range(first, first + 2 * _PIECE)
    played = [play(seed, scenario_of=settling_anyway_scenario_of) for seed in seeds]
    gc.collect()
    failed = [
        told(each, scenario_of=settling_anyway_scenario_of) for each in played if each.failure is not None
    ]
    assert not failed, "\n\n".join(failed)
    assert sum(each.settled for each in played) > 0
