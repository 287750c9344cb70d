"""The runs of one episode as the journal keeps them: a failover, the failback after it, the homecoming."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from causeway.core.failback.divergence import FailbackMode, FailbackRun, Step
from causeway.core.failover.request import FailoverRequest, Mode
from causeway.core.journal.journal import FailoverRun, Journal, Status


def failover_run(flow: str, mode: Mode = Mode.UNPLANNED, **changes: Any) -> FailoverRun:
    made = FailoverRun(
        run="r1",
        flow=flow,
        wish=FailoverRequest(flow=flow, at_ms=None, mode=mode),
        plan_hash="p",
        by="amy",
        begun_ms=5,
        status=Status.DONE,
    )
    return replace(made, **changes)


def failback_run(step: Step, **changes: Any) -> FailbackRun:
    made = FailbackRun(
        run="b1", flow="f", reverse="g", way=FailbackMode.RESUME, step=step, by="amy", begun_ms=8, at_ms=9
    )
    return replace(made, **changes)


FAILOVER = failover_run("sf_to_nyc", run="f1", begun_ms=100, is_agreed=True, generation=7)
FAILBACK = failback_run(
    Step.RETURNING,
    flow="sf_to_nyc",
    reverse="nyc_to_sf",
    by="bob",
    begun_ms=200,
    at_ms=210,
    facts={"parted": True},
)
HOME = replace(FAILBACK, step=Step.HOME, at_ms=300)
COMING = failover_run("nyc_to_sf", Mode.HOME, run="h1", begun_ms=250, is_agreed=True, generation=7)


def journal(*runs: FailoverRun | FailbackRun, drills: tuple[Any, ...] = ()) -> Journal:
    return Journal(
        runs={r.run: r for r in runs if isinstance(r, FailoverRun)},
        failbacks={r.run: r for r in runs if isinstance(r, FailbackRun)},
        drills={d.run: d for d in drills},
    )
