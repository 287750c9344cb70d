"""Where a flow is in its episode, and the one command that comes next: decided from what is kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from causeway.core.errors import ProtocolFault
from causeway.core.failback.plan import FailbackRun, Step, Way
from causeway.core.failover.drill import LONGEST_MS, without_result
from causeway.core.failover.episode import what_next
from causeway.core.failover.episode_stage import Names, Next, Seen, Stage
from causeway.core.failover.journal import FailoverRun, Journal, Status
from causeway.core.failover.wish import Mode, Wish
from causeway.core.fences import COMMAND, Fence
from causeway.core.flow_state import FlowState, Run
from causeway.core.identity import Generation, TopicPartition
from causeway.core.lane_task import Parked, ParkReason

NAMES = Names(flow="sf_to_nyc", source="sf", target="nyc", reverse="nyc_to_sf")
NOW = 1_000_000
FAILOVER = FailoverRun(
    run="f1",
    flow="sf_to_nyc",
    wish=Wish(flow="sf_to_nyc", at_ms=None),
    plan_hash="p",
    by="amy",
    begun_ms=100,
    status=Status.DONE,
    is_agreed=True,
    generation=7,
)
FAILBACK = FailbackRun(
    run="b1",
    flow="sf_to_nyc",
    reverse="nyc_to_sf",
    way=Way.RESUME,
    step=Step.RETURNING,
    by="bob",
    begun_ms=200,
    at_ms=210,
    facts={"parted": True},
)
HOME = replace(FAILBACK, step=Step.HOME, at_ms=300)
COMING = replace(
    FAILOVER,
    run="h1",
    flow="nyc_to_sf",
    wish=Wish(flow="nyc_to_sf", at_ms=None, mode=Mode.HOME),
    begun_ms=250,
)


def fence(owner: str, generation: int = 8, by: str = "ops") -> Fence:
    return Fence(
        generation=generation,
        by=by,
        because=owner or "a flood",
        since_ms=90,
        token=f"t{generation}",
        owner=owner,
    )


def state(*fences: Fence, ran_at: int | None = 50, ended: bool = True, generation: int = 5) -> FlowState:
    run = None
    if ran_at is not None:
        run = Run(generation=Generation(generation), holder="dag", run_id="r", lanes=2, since_ms=ran_at)
    newest = max([generation, *(f.generation for f in fences)])
    return FlowState(
        generation=Generation(newest),
        run=run,
        ended=generation if ended else -1,
        fences={f.token: f for f in fences},
    )


def journal(*runs: FailoverRun | FailbackRun, drills: tuple[Any, ...] = ()) -> Journal:
    return Journal(
        runs={r.run: r for r in runs if isinstance(r, FailoverRun)},
        failbacks={r.run: r for r in runs if isinstance(r, FailbackRun)},
        drills={d.run: d for d in drills},
    )


def at(kept: Journal, of: FlowState, **more: Any) -> Next:
    return what_next(Seen(**{"names": NAMES, "now_ms": NOW, "state": of, "journal": kept, **more}))


AWAY, SHUT = fence("failover f1"), fence("failback b1")
ADOPT = "`causeway adopt sf_to_nyc orders 0 7` goes on behind them"
BACK = "causeway failback sf_to_nyc"
CASES: dict[str, tuple[Journal, FlowState, dict[str, Any], Stage, str]] = {
    "nothing yet": (journal(), FlowState(), {}, Stage.NEW, "causeway run sf_to_nyc --until-caught-up"),
    "a run holds it": (journal(), state(ended=False), {}, Stage.MIRRORING, "causeway drill sf_to_nyc"),
    "nobody holds it": (journal(), state(), {}, Stage.MIRRORING, "causeway run sf_to_nyc"),
    "the source is silent": (
        journal(),
        state(),
        {"source_is_silent": True},
        Stage.MIRRORING,
        "causeway failover sf_to_nyc --at latest --dry-run",
    ),
    "people fenced it": (
        journal(),
        state(fence("")),
        {},
        Stage.FENCED,
        'causeway lift sf_to_nyc --because "..."',
    ),
    "two fenced it": (
        journal(),
        state(fence("", 8), fence("", 9)),
        {},
        Stage.FENCED,
        'causeway lift sf_to_nyc --fence 9 --because "..."',
    ),
    "a drill": (
        journal(drills=(without_result("sf_to_nyc", "d", by="amy", at_ms=NOW - 1, state="begun"),)),
        state(),
        {},
        Stage.DRILL,
        "causeway drill sf_to_nyc --history",
    ),
    "a drill that was killed": (
        journal(drills=(without_result("sf_to_nyc", "d", by="amy", at_ms=NOW - LONGEST_MS, state="begun"),)),
        state(),
        {},
        Stage.MIRRORING,
        "causeway run sf_to_nyc",
    ),
    "a partition is parked": (
        journal(),
        state(),
        {"parked": {TopicPartition("orders", 0): Parked(ParkReason.NOT_ADOPTED, "why", ADOPT)}},
        Stage.PARKED,
        "causeway adopt sf_to_nyc orders 0 7",
    ),
    "a failover broke off": (
        journal(replace(FAILOVER, status=Status.BEGUN)),
        state(AWAY),
        {},
        Stage.FAILING_OVER,
        "causeway failover sf_to_nyc --at latest",
    ),
    "a failover broke off and the mirror went on": (
        journal(replace(FAILOVER, status=Status.BEGUN)),
        state(generation=9),
        {},
        Stage.FAILING_OVER,
        "causeway failover sf_to_nyc --rollback f1",
    ),
    "a rollback broke off": (
        journal(replace(FAILOVER, status=Status.ROLLING_BACK)),
        state(AWAY),
        {},
        Stage.ROLLING_BACK,
        "causeway failover sf_to_nyc --rollback f1",
    ),
    "a rollback broke off and the mirror went on": (
        journal(replace(FAILOVER, status=Status.ROLLING_BACK)),
        state(generation=9, ended=False),
        {},
        Stage.MIRRORING,
        "causeway drill sf_to_nyc",
    ),
    "a homecoming's rollback broke off": (
        journal(FAILOVER, FAILBACK),
        state(SHUT),
        {"homecoming": replace(COMING, status=Status.ROLLING_BACK)},
        Stage.COMING_HOME,
        "causeway failover nyc_to_sf --rollback h1",
    ),
    "failed over": (journal(FAILOVER), state(AWAY), {}, Stage.FAILED_OVER, f"{BACK} --resume"),
    "failed over, and no way back": (
        journal(FAILOVER),
        state(AWAY),
        {"names": replace(NAMES, reverse="")},
        Stage.FAILED_OVER,
        "causeway failover sf_to_nyc --rollback f1",
    ),
    "somebody lifted its fence": (
        journal(FAILOVER),
        state(),
        {},
        Stage.FAILED_OVER,
        'causeway fence sf_to_nyc --because "failover f1"',
    ),
    "the mirror went on since": (
        journal(FAILOVER),
        state(generation=9, ended=False),
        {},
        Stage.MIRRORING,
        "causeway drill sf_to_nyc",
    ),
    "home was rolled back": (
        journal(FAILOVER, HOME),
        state(ran_at=900),
        {"is_taken_back": True},
        Stage.COMING_HOME,
        f"{BACK} --home",
    ),
    "home was rolled back, and another failover came since": (
        journal(HOME, replace(FAILOVER, begun_ms=400)),
        state(AWAY),
        {"is_taken_back": True},
        Stage.FAILED_OVER,
        f"{BACK} --resume",
    ),
    "rolled back": (
        journal(replace(FAILOVER, status=Status.ROLLED_BACK)),
        state(),
        {},
        Stage.MIRRORING,
        "causeway run sf_to_nyc",
    ),
    "a failback has begun": (
        journal(FAILOVER, replace(FAILBACK, step=Step.BEGUN)),
        state(SHUT),
        {},
        Stage.FAILING_BACK,
        f"{BACK} --resume",
    ),
    "a rebuild was killed": (
        journal(FAILOVER, replace(FAILBACK, step=Step.EXPORTED, way=Way.REBUILD)),
        state(SHUT),
        {},
        Stage.FAILING_BACK,
        f"{BACK} --rebuild",
    ),
    "a failback was given up": (
        journal(FAILOVER, replace(HOME, facts={"given_up": True})),
        state(SHUT),
        {},
        Stage.FAILED_OVER,
        f"{BACK} --resume",
    ),
    "killed before it opened the way back": (
        journal(FAILOVER, FAILBACK),
        state(SHUT),
        {"reverse_state": state(SHUT)},
        Stage.FAILING_BACK,
        f"{BACK} --resume",
    ),
    "the other one leads": (
        journal(FAILOVER, FAILBACK),
        state(SHUT),
        {"reverse_state": state()},
        Stage.RESTING,
        f"{BACK} --home",
    ),
    "the other one leads, and the old primary is silent": (
        journal(FAILOVER, FAILBACK),
        state(SHUT),
        {"source_is_silent": True},
        Stage.RESTING,
        f"{BACK} --home",
    ),
    "people fenced the one that leads": (
        journal(FAILOVER, FAILBACK),
        state(SHUT),
        {"reverse_state": state(fence(""))},
        Stage.FENCED,
        'causeway lift nyc_to_sf --because "..."',
    ),
    "people fenced the one that rests": (
        journal(FAILOVER, FAILBACK),
        state(SHUT, fence("", 9)),
        {"reverse_state": state()},
        Stage.RESTING,
        f"{BACK} --home",
    ),
    "the one that rests was opened": (
        journal(FAILOVER, FAILBACK),
        state(),
        {"reverse_state": state()},
        Stage.RESTING,
        'causeway fence sf_to_nyc --because "failback b1"',
    ),
    "the one that rests was opened in the middle of the homecoming": (
        journal(FAILOVER, FAILBACK),
        state(),
        {"reverse_state": state(fence("failover h1")), "homecoming": replace(COMING, status=Status.BEGUN)},
        Stage.RESTING,
        'causeway fence sf_to_nyc --because "failback b1"',
    ),
    "with prefixes none of the two rests": (
        journal(FAILOVER, replace(FAILBACK, facts={"parted": False})),
        state(),
        {"reverse_state": state()},
        Stage.RESTING,
        f"{BACK} --home",
    ),
    "a homecoming broke off": (
        journal(FAILOVER, FAILBACK),
        state(SHUT),
        {"reverse_state": state(fence("failover h1")), "homecoming": replace(COMING, status=Status.BEGUN)},
        Stage.COMING_HOME,
        f"{BACK} --home",
    ),
    "a homecoming was taken back": (
        journal(FAILOVER, FAILBACK),
        state(SHUT),
        {"reverse_state": state(), "homecoming": replace(COMING, status=Status.ROLLED_BACK)},
        Stage.RESTING,
        f"{BACK} --home",
    ),
    "a homecoming was taken back, and the other one still stands by": (
        journal(FAILOVER, FAILBACK),
        state(SHUT),
        {"reverse_state": state(fence(FAILBACK.stand_by_words))},
        Stage.COMING_HOME,
        f"{BACK} --home",
    ),
    "it stands by, and people fenced it, too": (
        journal(FAILOVER, FAILBACK),
        state(SHUT),
        {"reverse_state": state(fence(FAILBACK.stand_by_words, 8), fence("", 9))},
        Stage.FENCED,
        'causeway lift nyc_to_sf --fence 9 --because "..."',
    ),
    "home, and killed before it was opened": (
        journal(FAILOVER, HOME),
        state(SHUT),
        {"homecoming": COMING},
        Stage.COMING_HOME,
        f"{BACK} --home",
    ),
    "home, and people fenced it meanwhile": (
        journal(FAILOVER, HOME),
        state(fence("", 9)),
        {"homecoming": COMING},
        Stage.FENCED,
        'causeway lift sf_to_nyc --because "..."',
    ),
    "home": (
        journal(FAILOVER, HOME),
        state(),
        {"homecoming": COMING},
        Stage.HOME_NOT_RUNNING,
        "causeway run sf_to_nyc",
    ),
    "home, and it runs": (
        journal(FAILOVER, HOME),
        state(ran_at=400, ended=False, generation=9),
        {"homecoming": COMING},
        Stage.MIRRORING,
        "causeway drill sf_to_nyc",
    ),
    "the second failover": (
        journal(FAILOVER, HOME, replace(FAILOVER, run="f2", begun_ms=500, generation=20)),
        state(fence("failover f2", 20)),
        {},
        Stage.FAILED_OVER,
        f"{BACK} --resume",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_each_stage_names_the_one_command_that_comes_next(case: str) -> None:
    kept, of, more, stage, command = CASES[case]
    found = at(kept, of, **more)
    assert (found.stage, found.command) == (stage, command)
    assert found.success


def test_that_nothing_mirrors_is_told() -> None:
    of = {"reverse_state": state(fence(FAILBACK.stand_by_words)), "homecoming": None}
    found = at(journal(FAILOVER, FAILBACK), state(SHUT), **of)
    assert "nothing mirrors: nyc_to_sf still stands by" in found.what
    assert '`causeway lift nyc_to_sf --because "..."`' in found.when


def test_it_names_the_run_that_brings_the_lag_down_where_none_is_at_work() -> None:
    idle = at(journal(FAILOVER, FAILBACK), state(SHUT), reverse_state=state())
    assert "`causeway run nyc_to_sf --until-caught-up` brings its lag down" in idle.what
    busy = at(journal(FAILOVER, FAILBACK), state(SHUT), reverse_state=state(ran_at=900, ended=False))
    assert "causeway run" not in busy.what


def test_who_and_since_when_is_told() -> None:
    found = at(journal(FAILOVER, FAILBACK), state(SHUT), reverse_state=state())
    assert (found.by, found.since_ms) == ("bob", 210)
    assert found.as_dict()["stage"] == "resting"
    fenced = at(journal(), state(fence("")))
    assert (fenced.by, fenced.since_ms) == ("ops", 90)


def test_a_command_at_work_is_waited_for() -> None:
    found = at(journal(), state(fence(COMMAND)))
    assert (found.stage, found.when) == (
        Stage.FENCED,
        "only if that command is dead: it lifts its fence itself",
    )


@pytest.mark.parametrize("kept", [journal(), journal(FAILOVER), journal(FAILOVER, FAILBACK)])
def test_harm_to_what_is_kept_comes_before_all_that_it_tells(kept: Journal) -> None:
    remedy = 'stop whoever still runs the flow, then `causeway recover sf_to_nyc --because "..."` fences it'
    lost = ProtocolFault("causeway-flows.internal of nyc", rule="has lost what it knew", remedy=remedy)
    later = ProtocolFault("record 3", rule="can't be read", remedy="find out who wrote it")
    found = at(kept, FlowState(), troubles=(lost, later))
    assert found.stage is Stage.HARMED
    assert found.command == 'causeway recover sf_to_nyc --because "..."'
    assert found.what == str(lost)


def test_a_record_of_a_newer_causeway_names_no_command_that_steps_over_it() -> None:
    newer = ProtocolFault("record 3", rule="was written by a newer Causeway", remedy="upgrade: run that one")
    found = at(journal(), FlowState(), troubles=(newer,))
    assert (found.stage, found.command) == (Stage.HARMED, "causeway status sf_to_nyc")
    assert "upgrade" in found.when
