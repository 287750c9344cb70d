"""Fail over, whole: plan, price, consent, and then the steps, one after the other.

The same command again goes on from what is committed and ends in the same state.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from causeway import interruption
from causeway.core.failover.impact_sheet import Sheet
from causeway.core.failover.request import FailoverRequest
from causeway.core.journal.journal import FailoverRun, Status
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.model.flow import Flow
from causeway.core.model.group_filter import FlowGroups
from causeway.usecases.failover.build_plan import make_sheet
from causeway.usecases.failover.copy_remaining import refuse_without_source
from causeway.usecases.failover.failover import Failover
from causeway.usecases.failover.move_groups import Moved
from causeway.usecases.failover.planned import STILL_SECONDS, bring_to_its_end
from causeway.usecases.failover.refusals import refuse_without_rights, stale_plan
from causeway.usecases.failover.verify import Verified
from causeway.usecases.run_lock.ownership import Say
from causeway.usecases.session.source_may_be_gone import (
    FlowSession,
    noted_if_interrupted,
    open_session,
    run_blocking,
    trouble_of,
)

Consent = Callable[[Sheet], None]
"""Shows the sheet; raises if the answer isn't yes."""
BeforeMoving = Callable[[FlowSession, FailoverRun], Awaitable[None]]
"""After the fence, before the plan is compared for the last time; in each try that finds the run begun."""

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
    """What another program committed after the fence, and was put right, in whatever try."""
    left_alone: tuple[str, ...] = ()
    """Besides what the sheet says; all of it where there is none."""
    sheet: Sheet | None = None
    """None: this try went on with the plan of an earlier one."""


def preview_failover(
    flow: Flow,
    source: ClusterEndpoint,
    target: ClusterEndpoint,
    wish: FailoverRequest,
    selection: FlowGroups,
    *,
    is_priced: bool = True,
    home_of: Flow | None = None,
    for_real: bool = False,
) -> Sheet:
    """The sheet alone. Nothing is written. `for_real`: a failover is to follow; its rights are asked for."""
    with open_session(source, target) as sides, trouble_of(flow):
        sides.home_of = home_of
        failover = Failover(flow, sides, selection, "")
        return run_blocking(sides, lambda: _sheet(failover, wish, is_priced=is_priced, for_real=for_real))


def fail_over(
    flow: Flow,
    source: ClusterEndpoint,
    target: ClusterEndpoint,
    wish: FailoverRequest,
    selection: FlowGroups,
    operator: Operator,
    *,
    home_of: Flow | None = None,
    before_moving: BeforeMoving | None = None,
) -> FailedOver:
    """`home_of`: the flow of the other direction, from which everything returns.

    :raises StalePlan: something moved between sheet and fence. | :raises BadInput: as `make_sheet`.
    """
    with open_session(source, target) as sides, trouble_of(flow):
        sides.home_of = home_of
        failover = Failover(flow, sides, selection, operator.by)
        sheet = None
        run = run_blocking(sides, lambda: failover.find_earlier(wish))
        if run is None:
            run, sheet = _begin_run(failover, wish, operator)
        elif run.status is Status.BEGUN:
            _go_on(failover, run, operator.say)
        known = run
        with noted_if_interrupted(_left_open(known), after=_done(known, home_of)):
            return run_blocking(sides, lambda: _finish(failover, known, sheet, operator, before_moving))


def take_agreed_snapshot(failover: Failover, wish: FailoverRequest, agreed: str, say: Say) -> FailoverRun:
    """For a scheduler: of the plan that was agreed to, and of no other; of a planned failover after its last
    record. Whoever agreed has seen the price, so nothing is priced again.

    :raises StalePlan: it is another one by now; nothing was written.
    """
    sides = failover.sides
    run = run_blocking(sides, lambda: failover.find_earlier(wish))
    if run is not None:
        _refuse_disagreed(failover.flow, run.agreement, agreed, wish)
        return run
    sheet = run_blocking(sides, lambda: _agreed_sheet(failover, wish, agreed))
    if wish.is_planned:
        sheet = bring_to_its_end(failover, sheet, say, is_priced=False)
    return run_blocking(sides, lambda: failover.take_snapshot(sheet.plan))


async def _agreed_sheet(failover: Failover, wish: FailoverRequest, agreed: str) -> Sheet:
    flow, sides = failover.flow, failover.sides
    sheet = await make_sheet(flow, sides, wish, failover.selection, is_priced=False)
    _refuse_disagreed(flow, sheet.plan.agreement, agreed, wish)
    await refuse_without_rights(flow, sides, sheet.plan.groups)
    return sheet


async def _sheet(
    failover: Failover, wish: FailoverRequest, *, is_priced: bool = True, for_real: bool = True
) -> Sheet:
    flow, sides, selection = failover.flow, failover.sides, failover.selection
    sheet = await make_sheet(flow, sides, wish, selection, is_priced=is_priced)
    refuse_without_source(flow, sides, wish)
    if for_real:
        await refuse_without_rights(flow, sides, sheet.plan.groups)
    return sheet


def _begin_run(failover: Failover, wish: FailoverRequest, operator: Operator) -> tuple[FailoverRun, Sheet]:
    """Up to its snapshot. :returns: the sheet that holds."""
    flow, sides, say = failover.flow, failover.sides, operator.say
    sheet = run_blocking(sides, lambda: _sheet(failover, wish))
    refuse_another_plan(flow, sheet, operator.expected_plan)
    operator.consent(sheet)
    if wish.is_planned:
        with noted_if_interrupted(_ONLY_MIRRORED):
            still = operator.still_seconds
            sheet = bring_to_its_end(failover, sheet, say, still_seconds=still, is_priced=True)
    plan = sheet.plan
    goes_on = "no group was moved; the same command begins, or goes on"
    with noted_if_interrupted(goes_on), interruption.whole():
        run = run_blocking(sides, lambda: failover.take_snapshot(plan))
        say(f"{flow.name}: failover {run.run}: offsets of {len(plan.groups)} groups kept")
    return run, sheet


def _go_on(failover: Failover, run: FailoverRun, say: Say) -> None:
    flow, sides = failover.flow, failover.sides
    with noted_if_interrupted(_left_open(run)):
        run_blocking(sides, lambda: refuse_without_rights(flow, sides, run.shifts))
    say(f"{flow.name}: going on with failover {run.run}, begun by {run.by}")


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


def refuse_another_plan(flow: Flow, sheet: Sheet, asked_for: str) -> None:
    """:raises StalePlan: the sheet isn't the one that was agreed to; empty: any will do."""
    agreed = sheet.plan.agreement
    if asked_for not in ("", agreed):
        raise stale_plan(flow, f"it is {agreed} now, and {asked_for[:80]} was asked for", sheet.plan.wish)


def _refuse_disagreed(flow: Flow, found: str, agreed: str, wish: FailoverRequest) -> None:
    if found != agreed:
        raise stale_plan(flow, f"it is {found} now, and {agreed} was agreed to", wish)


async def _finish(
    failover: Failover,
    run: FailoverRun,
    sheet: Sheet | None,
    operator: Operator,
    before_moving: BeforeMoving | None,
) -> FailedOver:
    flow, say, is_begun, moved = failover.flow.name, operator.say, run.status is Status.BEGUN, Moved()
    if is_begun:
        await failover.raise_fence(run)
        say(f"{flow}: fenced, nothing can be added any more")
        if before_moving is not None:
            await before_moving(failover.sides, run)
        moved = await failover.move_groups(run)
        say(f"{flow}: {moved.offsets} offsets of {len(run.shifts)} groups committed")
    verified = await failover.verify(run)
    ended = await failover.record(run, {**verified.as_dict(), "left_alone": list(moved.left_alone)})
    return FailedOver(
        run=run.run,
        flow=flow,
        groups=len(run.shifts),
        moved=moved.offsets,
        was_done=not is_begun,
        verified=verified,
        slipped=ended.slipped,
        left_alone=(*moved.left_alone, *(run.left_alone if is_begun and sheet is None else ())),
        sheet=sheet,
    )
