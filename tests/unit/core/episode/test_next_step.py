"""Where a flow is in its episode, and the one command that comes next: decided from what is kept."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from causeway.core.episode.next_step import what_next
from causeway.core.episode.stage import Names, Next, Seen, Stage
from causeway.core.failback.divergence import FailbackMode, Step
from causeway.core.failover.drill_run import LONGEST_MS, without_result
from causeway.core.journal.journal import Journal, Status
from causeway.core.kernel.errors import ProtocolFault
from causeway.core.kernel.identity import Generation, TopicPartition
from causeway.core.state.fences import COMMAND, Fence
from causeway.core.state.flow_state import FlowState, Run
from causeway.core.state.parked import Parked, ParkReason
from tests.support.episodes import COMING, FAILBACK, FAILOVER, HOME, journal

NAMES = Names(flow="sf_to_nyc", source="sf", target="nyc", reverse="nyc_to_sf")
BACKWARD = Names(flow="nyc_to_sf", source="nyc", target="sf", reverse="sf_to_nyc")
"""Asked of the flow of the other direction: with prefixes it is a flow like any other."""
NOW = 1_000_000


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


def at(kept: Journal, of: FlowState, **more: Any) -> Next:
    return what_next(Seen(**{"names": NAMES, "now_ms": NOW, "state": of, "journal": kept, **more}))


DAY_MS = 86_400_000
DRILLED = replace(without_result("sf_to_nyc", "d", by="amy", at_ms=NOW - 9, state="begun"), state="done")
AWAY, SHUT = fence("failover f1"), fence("failback b1")
ADOPT = "`causeway adopt sf_to_nyc orders 0 7` goes on after them"
BACK = "causeway failback sf_to_nyc"
CASES: dict[str, tuple[Journal, FlowState, dict[str, Any], Stage, str]] = {
    "nothing yet": (journal(), FlowState(), {}, Stage.NEW, "causeway run sf_to_nyc --until-caught-up"),
    "a run holds it": (journal(), state(ended=False), {}, Stage.MIRRORING, "causeway drill sf_to_nyc"),
    "between two runs": (journal(), state(), {}, Stage.MIRRORING, "causeway drill sf_to_nyc"),
    "between two runs, and rehearsed": (
        journal(drills=(DRILLED,)),
        state(),
        {},
        Stage.MIRRORING,
        "",
    ),
    "some of its topics are fenced": (
        journal(drills=(DRILLED,)),
        state(replace(fence("", by="amy"), topics=frozenset({"sf.orders"}))),
        {},
        Stage.PARKED,
        'causeway lift sf_to_nyc --because "..."',
    ),
    "rehearsed long ago": (
        journal(drills=(DRILLED,)),
        state(ran_at=NOW + 31 * DAY_MS),
        {"now_ms": NOW + 31 * DAY_MS},
        Stage.MIRRORING,
        "causeway drill sf_to_nyc",
    ),
    "nobody runs it": (
        journal(drills=(DRILLED,)),
        state(),
        {"now_ms": NOW + DAY_MS},
        Stage.MIRRORING,
        "causeway run sf_to_nyc",
    ),
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
        "causeway drill sf_to_nyc",
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
    "asked of a flow with names of its own, whose groups return for the other one": (
        journal(replace(COMING, status=Status.BEGUN)),
        state(),
        {"names": BACKWARD},
        Stage.COMING_HOME,
        f"{BACK} --home",
    ),
    "its groups have returned, and it is still fenced by that": (
        journal(COMING),
        state(fence("failover h1")),
        {"names": BACKWARD},
        Stage.COMING_HOME,
        f"{BACK} --home",
    ),
    "its groups return, and nobody can say for which flow": (
        journal(COMING),
        state(fence("failover h1")),
        {"names": replace(BACKWARD, reverse="")},
        Stage.COMING_HOME,
        "causeway status nyc_to_sf",
    ),
    "its groups have returned, and it mirrors on": (
        journal(COMING),
        state(),
        {"names": BACKWARD},
        Stage.MIRRORING,
        "causeway drill nyc_to_sf",
    ),
    "the return of its groups broke off, and it has mirrored on since": (
        journal(replace(COMING, status=Status.BEGUN)),
        state(generation=9),
        {"names": BACKWARD},
        Stage.FAILING_OVER,
        "causeway failover nyc_to_sf --rollback h1",
    ),
    "the return of its groups is being rolled back": (
        journal(replace(COMING, status=Status.ROLLING_BACK)),
        state(fence("failover h1")),
        {"names": BACKWARD},
        Stage.ROLLING_BACK,
        "causeway failover nyc_to_sf --rollback h1",
    ),
    "rolled back": (
        journal(replace(FAILOVER, status=Status.ROLLED_BACK)),
        state(),
        {},
        Stage.MIRRORING,
        "causeway drill sf_to_nyc",
    ),
    "a failback has begun": (
        journal(FAILOVER, replace(FAILBACK, step=Step.BEGUN)),
        state(SHUT),
        {},
        Stage.FAILING_BACK,
        f"{BACK} --resume",
    ),
    "a rebuild was killed": (
        journal(FAILOVER, replace(FAILBACK, step=Step.EXPORTED, way=FailbackMode.REBUILD)),
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
    assert bool(found.success) == bool(command)


def test_that_nothing_mirrors_is_reported() -> None:
    of = {"reverse_state": state(fence(FAILBACK.stand_by_words)), "homecoming": None}
    found = at(journal(FAILOVER, FAILBACK), state(SHUT), **of)
    assert "nothing mirrors: nyc_to_sf still stands by" in found.what
    assert '`causeway lift nyc_to_sf --because "..."`' in found.when


def test_it_names_the_run_that_brings_the_lag_down_where_none_is_at_work() -> None:
    idle = at(journal(FAILOVER, FAILBACK), state(SHUT), reverse_state=state())
    assert "; first run it: `causeway run nyc_to_sf --until-caught-up`" in idle.what
    ran = at(journal(FAILOVER, FAILBACK), state(SHUT), reverse_state=state(ran_at=900))
    assert (
        "its last run has ended: while its lag is large, repeat `causeway run nyc_to_sf --until-caught-up`"
        in ran.what
    )
    busy = at(journal(FAILOVER, FAILBACK), state(SHUT), reverse_state=state(ran_at=900, ended=False))
    assert "causeway run" not in busy.what


def test_between_two_runs_it_says_when_the_last_one_ended_and_claims_no_since() -> None:
    """`since` of the newest run would move with each run."""
    found = at(journal(), state(ran_at=NOW - 8_000))
    assert found.what.startswith("nobody holds it now; its last run ended 8 s ago, by dag; ")
    assert (found.since_ms, found.when) == (None, "")
    alone = at(journal(), state(), now_ms=NOW + DAY_MS)
    assert alone.when == "unless a scheduler does"


def test_the_way_back_waits_for_a_source_only_where_it_is_silent() -> None:
    answers = at(journal(FAILOVER), state(AWAY))
    assert answers.when == "when applications are to return: sf answers"
    silent = at(journal(FAILOVER), state(AWAY), source_is_silent=True)
    assert silent.when == "once sf is back (sf doesn't answer now)"


def test_who_and_since_when_is_reported() -> None:
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
