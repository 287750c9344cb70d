"""Can the simulation fail? Each rule of the protocol taken out on purpose, and a seed that sees it."""

from __future__ import annotations

import pytest

from tests.simulation.mutants import MUTANTS, find
from tests.simulation.seeds import play


@pytest.mark.parametrize("name", MUTANTS)
def test_without_this_rule_a_seed_fails(name: str) -> None:
    mutant = MUTANTS[name]
    found = find(mutant)
    assert found is not None, f"no seed sees that {mutant.rule}"
    assert play(found.scenario.seed, scenario_of=mutant.scenario_of).failure is None, (
        "that seed fails with the rule as well"
    )
