"""Fail over, whole: plan, price, consent, and then the steps, one after the other.

The same command again goes on from what is committed and ends in the same state.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from causeway import interruption
from causeway.brokers.consumer_groups import ConsumerGroups
from causeway.core.endpoint import ClusterEndpoint
from causeway.core.failover.journal import FailoverRun, Status
from causeway.core.failover.sheet import Sheet
from causeway.core.failover.wish import Wish
from causeway.core.flow import Flow
from causeway.core.group_filter import FlowGroups
from causeway.flows.failover.checking import Verified, verify_run
from causeway.flows.failover.drain import refuse_without_source
from causeway.flows.failover.look import make_sheet
from causeway.flows.failover.moving import Moved
from causeway.flows.failover.planned import STILL_SECONDS, Switch
from causeway.flows.failover.sides import Sides, open_sides, told_if_interrupted, trouble_of
from causeway.flows.failover.steps import (
    close_flow,
    compare_and_move,
    earlier_run,
    keep_offsets,
    known_run,
    record_done,
    refuse_without_rights,
    stale_plan,
)
from causeway.flows.ownership import Say

Consent = Callable[[Sheet], None]
"""Shows the sheet; raises if the answer isn't yes."""
BeforeMoving = Callable[[Sides, FailoverRun], Awaitable[None]]
"""Behind the fence, before the plan is compared for the last time; in each try that finds the run begun."""

_ONLY_MIRRORED = (
    "the failover has not begun: no group was moved, and no fence was raised; what was mirrored and synced "
    "until now stays"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """Who fails over, and how they say yes."""

    by: str
    consent: Consent
    say: Say
    expected_plan: str = ""
    """The plan that was agreed to; empty: whatever the sheet shows."""
    still_seconds: float = STILL_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedOver:
    run: str
    flow: str
    groups: int
    moved: int
    """Offsets that this try committed; those of an earlier try aren't among them."""
    was_done: bool
    """An earlier run did all of it, and nothing was left to do."""
    verified: Verified
    slipped: tuple[str, ...] = ()
    """What somebody committed behind the fence, and was put right, in whatever try."""
    left_alone: tuple[str, ...] = ()
    """Besides what the sheet says; all of it where there is none."""
    sheet: Sheet | None = None
    """None: this try went on with the plan of an earlier one."""


def look_before_failover(
    flow: Flow,
    source: ClusterEndpoint,
    target: ClusterEndpoint,
    wish: Wish,
    selection: FlowGroups,
    *,
    is_priced: bool = True,
    home_of: Flow | None = None,
    for_real: bool = False,
) -> Sheet:
    """The sheet alone. Nothing is written. `for_real`: a failover is to follow; its rights are asked for."""
    with open_sides(source, target) as sides, trouble_of(flow):
        sides.home_of = home_of
        sheet = sides.network.run(lambda: make_sheet(flow, sides, wish, selection, is_priced=is_priced))
        refuse_without_source(flow, sides, wish)
        if for_real:
            sides.network.run(lambda: refuse_without_rights(flow, sides, sheet.plan.groups))
        return sheet


def fail_over(
    flow: Flow,
    source: ClusterEndpoint,
    target: ClusterEndpoint,
    wish: Wish,
    selection: FlowGroups,
    operator: Operator,
    *,
    home_of: Flow | None = None,
    before_moving: BeforeMoving | None = None,
) -> FailedOver:
    """`home_of`: the flow of the other direction, from which everything goes home.

    :raises StalePlan: something moved between sheet and fence. | :raises BadInput: as `make_sheet`.
    """
    with open_sides(source, target) as sides, trouble_of(flow):
        sides.home_of = home_of
        sheet = None
        run = sides.network.run(lambda: earlier_run(flow, sides, wish))
        if run is None:
            sheet = first = sides.network.run(lambda: make_sheet(flow, sides, wish, selection))
            refuse_without_source(flow, sides, wish)
            sides.network.run(lambda: refuse_without_rights(flow, sides, first.plan.groups))
            _agree(flow, sheet, operator)
            if wish.is_planned:
                still, by, say = operator.still_seconds, operator.by, operator.say
                switch = Switch(flow, source, target, selection, by, say, still_seconds=still)
                with told_if_interrupted(_ONLY_MIRRORED):
                    sheet = switch.bring_to_its_end(sides, sheet)
            goes_on = "no group was moved; the same command begins, or goes on"
            with told_if_interrupted(goes_on), interruption.whole():
                run = _begin(flow, sides, sheet, operator)
        elif run.status is Status.BEGUN:
            known = run
            with told_if_interrupted(_left_open(known)):
                sides.network.run(lambda: refuse_without_rights(flow, sides, known.shifts))
            operator.say(f"{flow.name}: going on with failover {run.run}, begun by {run.by}")
        begun = run
        with told_if_interrupted(_left_open(begun), after=_done(begun, home_of)):
            return sides.network.run(
                lambda: _finish(flow, sides, begun, sheet, selection, operator, before_moving)
            )


def _left_open(run: FailoverRun) -> str:
    if run.status is not Status.BEGUN:
        return ""
    goes_on = f"failover {run.run} of {run.flow} isn't finished: the same command goes on with it"
    return f"{goes_on}, `causeway failover {run.flow} --rollback {run.run}` takes it back"


def _done(run: FailoverRun, home_of: Flow | None) -> str:
    if home_of is not None:
        return way_home(home_of)
    if run.status is not Status.BEGUN:
        return ""
    return f"failover {run.run} of {run.flow} is done; `causeway next {run.flow}` says what comes next"


def way_home(flow: Flow) -> str:
    """What is left of it, once its groups have moved."""
    return f"the way home of {flow.name} isn't finished: the same command goes on with it"


def _agree(flow: Flow, sheet: Sheet, operator: Operator) -> None:
    refuse_another_plan(flow, sheet, operator.expected_plan)
    operator.consent(sheet)


def refuse_another_plan(flow: Flow, sheet: Sheet, asked_for: str) -> None:
    """:raises StalePlan: the sheet isn't the one that was agreed to; empty: any will do."""
    agreed = sheet.plan.agreement
    if asked_for not in ("", agreed):
        raise stale_plan(flow, f"it is {agreed} now, and {asked_for[:80]} was asked for")


def _begin(flow: Flow, sides: Sides, sheet: Sheet, operator: Operator) -> FailoverRun:
    plan = sheet.plan
    run = sides.network.run(lambda: keep_offsets(flow, sides, plan, operator.by))
    operator.say(f"{flow.name}: failover {run.run}: offsets of {len(plan.groups)} groups kept")
    return run


async def _finish(
    flow: Flow,
    sides: Sides,
    run: FailoverRun,
    sheet: Sheet | None,
    selection: FlowGroups,
    operator: Operator,
    before_moving: BeforeMoving | None,
) -> FailedOver:
    is_begun, moved = run.status is Status.BEGUN, Moved()
    if is_begun:
        await close_flow(flow, sides, run, operator.by)
        operator.say(f"{flow.name}: fenced, nothing can be added any more")
        if before_moving is not None:
            await before_moving(sides, run)
        moved = await compare_and_move(flow, sides, run, selection, operator.by)
        operator.say(f"{flow.name}: {moved.offsets} offsets of {len(run.shifts)} groups committed")
    verified = await verify_run(run, sides, ConsumerGroups(sides.target.wire))
    if is_begun:
        facts = {**verified.as_dict(), "left_alone": list(moved.left_alone)}
        told = run.left_alone if sheet is None else ()
        moved = replace(moved, left_alone=(*moved.left_alone, *told))
        await record_done(flow, sides, run.run, operator.by, facts)
    slipped = (await known_run(flow, sides, run.run)).slipped
    return FailedOver(
        run=run.run,
        flow=flow.name,
        groups=len(run.shifts),
        moved=moved.offsets,
        was_done=not is_begun,
        verified=verified,
        slipped=slipped,
        left_alone=moved.left_alone,
        sheet=sheet,
    )
