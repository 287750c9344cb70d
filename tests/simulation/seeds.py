"""Seeds, played one by one: a failing one comes back with the end of its trace."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from unittest.mock import patch

from causeway.core.offsets import offset_map
from tests.simulation.cluster.history import Broken
from tests.simulation.scenario import Scenario, scenario_of
from tests.simulation.world import World


@dataclass(frozen=True, slots=True)
class Outcome:
    scenario: Scenario
    failure: str | None
    records: int
    repeats: int
    """Records that a `read_uncommitted` reader saw once more."""
    settled: int
    checks: int
    events: int
    parked: tuple[str, ...]
    trace: list[str]
    is_broken_promise: bool = False
    """The failure is one of those that the world looks for, not an error in code."""

    def __str__(self) -> str:
        what = (
            self.failure or f"good: {self.records} records, {self.checks} checks, parked {list(self.parked)}"
        )
        return f"seed {self.scenario.seed}: {what}"


def play(
    seed: int,
    *,
    trace: bool = False,
    with_conduct: bool = True,
    scenario_of: Callable[[int], Scenario] = scenario_of,
    stirred: int | None = None,
    at_the_end: Callable[[World], None] = lambda _: None,
) -> Outcome:
    """`with_conduct=False`: only what readers see, positions and the map are looked at. `at_the_end` gets the
    world if it has ended as it should."""
    scenario = scenario_of(seed)
    world = World(scenario, with_conduct=with_conduct, stirred=stirred)
    if trace:
        world.loop.trace = []
    failure, is_promise = None, False
    gc_was_on = gc.isenabled()
    gc.disable()  # a collection would run clean-up code of dead workers at a moment that no seed decides
    try:
        with patch.object(offset_map, "MOST_SEGMENTS", scenario.most_segments):
            world.play()
            at_the_end(world)
    except Exception as broken:  # noqa: BLE001 - whatever it is, the seed has failed
        failure, is_promise = f"{type(broken).__name__}: {broken}", isinstance(broken, Broken)
    finally:
        if gc_was_on:
            gc.enable()
    return Outcome(
        scenario=scenario,
        failure=failure,
        records=world.records,
        repeats=world.repeats(),
        settled=world.settled,
        checks=world.checks,
        events=world.loop.events,
        parked=tuple(str(p.reason) for p in world.runs[-1].parked.values()) if world.runs else (),
        trace=world.loop.trace or [],
        is_broken_promise=is_promise,
    )


def told(outcome: Outcome, *, lines: int = 25, scenario_of: Callable[[int], Scenario] = scenario_of) -> str:
    """A failed seed with the end of its trace: it is played once more, because tracing costs time."""
    trace = play(outcome.scenario.seed, trace=True, scenario_of=scenario_of).trace[-lines:]
    world = scenario_of.__name__.removesuffix("scenario_of").strip("_").replace("_", "-") or "any"
    again = f"python -m tests.simulation.replay {outcome.scenario.seed} --all --world {world}"
    return "\n".join([str(outcome), str(outcome.scenario), *trace, again])
