"""Where partitions begin: `python -m tests.simulation.replay SEED --world starting` plays one again."""

from __future__ import annotations

import gc

import pytest

from tests.simulation.scenario import starting_scenario_of
from tests.simulation.seeds import play, told

_SAMPLE, _PIECE = range(0, 200), 50


@pytest.mark.parametrize("first", [_SAMPLE[i] for i in range(0, len(_SAMPLE), _PIECE)])
def test_a_start_is_asked_once_and_each_record_from_there_on_crosses_once(first: int) -> None:
    played = [play(seed, scenario_of=starting_scenario_of) for seed in range(first, first + _PIECE)]
    failed = [told(o, scenario_of=starting_scenario_of) for o in played if o.failure is not None]
    gc.collect()
    assert not failed, "\n\n".join(failed)
    assert not any(outcome.parked for outcome in played), "nothing happens here that excuses a park"
