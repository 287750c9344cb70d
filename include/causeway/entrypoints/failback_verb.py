"""`causeway failback FLOW`: `--resume` or `--rebuild` opens the way back, `--home` takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from causeway.entrypoints.failover_verb import ask, plan_given
from causeway.entrypoints.flow_verbs import opened, who
from causeway.entrypoints.interrupted import nothing_done_yet
from causeway.entrypoints.next_verb import with_next
from causeway.entrypoints.verbs import PARKED, Outcome, Request

if TYPE_CHECKING:
    from causeway.config.deployment import Deployment
    from causeway.core.failback.plan import FailbackPlan, Way
    from causeway.core.failover.sheet import Sheet
    from causeway.flows.failback.home import CameHome
    from causeway.flows.failback.logbook import Ways

FENCED = 4


def add_failback(add: Any) -> None:
    failback = add(
        "failback",
        failback_flow,
        "return to the old primary after a failover; shows the impact first, and asks",
    )
    what = failback.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--resume",
        action="store_true",
        help="export records that were never mirrored, then mirror new records back to the old primary",
    )
    what.add_argument(
        "--rebuild",
        action="store_true",
        help="export as --resume does, DELETE these topics' records on the old primary, mirror all back",
    )
    what.add_argument(
        "--home",
        action="store_true",
        help="the writers have stopped: copy the rest, move the groups back, open the forward flow",
    )
    failback.add_argument(
        "--still",
        metavar="TIME",
        default="10s",
        help="with --home: how long the new primary must get no record (default: 10s)",
    )
    failback.add_argument(
        "--accept-loss",
        action="store_true",
        help="with --rebuild: accept that records are lost which exist nowhere else",
    )
    failback.add_argument("--dry-run", action="store_true", help="show the impact only; write nothing")
    failback.add_argument("--plan", metavar="HASH", help="continue only if the plan is still this one")
    failback.add_argument(
        "--yes",
        action="store_true",
        help="don't ask for confirmation; with --rebuild this needs --plan",
    )


def failback_flow(request: Request) -> Outcome:
    with nothing_done_yet("no group was moved, no record was written, and no fence was raised or lifted"):
        return _fail_back(request)


def _fail_back(request: Request) -> Outcome:
    from causeway.core.failback.plan import Way
    from causeway.core.failback.rebuild import refuse_unseen
    from causeway.entrypoints.failback_ways import flow_back
    from causeway.flows.failback.logbook import Ways

    if request.options.rebuild and request.options.yes and not request.options.dry_run:
        refuse_unseen(request.options.flow, plan_given(request), "--plan")
    deployment, forward, old, new = opened(request)
    ways = Ways(forward, flow_back(deployment, forward), old, new)
    if request.options.home:
        return _home(request, ways, deployment)
    return _back(request, ways, Way.REBUILD if request.options.rebuild else Way.RESUME)


def _back(request: Request, ways: Ways, way: Way) -> Outcome:
    from causeway.core.failback.plan import failback_fields
    from causeway.entrypoints.failback_text import plan_text, rebuild_question, run_text
    from causeway.flows.failback.back import (
        Operator,
        fail_back,
        look_before_failback,
        refuse_another_plan,
    )

    accepts_loss, old, new = request.options.accept_loss, ways.forward.source, ways.forward.target
    if request.options.dry_run:
        expected = plan_given(request)
        plan = look_before_failback(ways, way)
        refuse_another_plan(plan, expected)
        text = f"{plan_text(plan, accepts_loss=accepts_loss)}\n\n{plan.flow}: nothing was written"
        return Outcome(payload=plan.as_dict(), text=text)

    def consent(plan: FailbackPlan) -> None:
        request.progress(plan_text(plan, accepts_loss=accepts_loss))
        if plan.rebuild is None:
            ask(request, plan.flow, f"lead what was written on {new} back to {old}")
        else:
            what, script = rebuild_question(plan, plan.rebuild, new), f"--yes --plan {plan.hash}"
            ask(request, plan.flow, what, in_a_script=script)

    operator = Operator(
        by=who(),
        consent=consent,
        say=request.progress,
        expected_plan=plan_given(request),
        accepts_loss=accepts_loss,
    )
    done = fail_back(ways, way, operator)
    payload = {
        "run": done.run.run,
        "flow": done.run.flow,
        **failback_fields(done.run),
        "was_done": done.was_done,
        "plan": None if done.plan is None else done.plan.as_dict(),
    }
    return with_next(request, Outcome(payload=payload, text=run_text(done.run, was_done=done.was_done)))


def _home(request: Request, ways: Ways, deployment: Deployment) -> Outcome:
    from causeway.entrypoints.failover_text import question_text, sheet_text
    from causeway.entrypoints.failover_wish import still_seconds_given
    from causeway.flows.failback.home import come_home, look_before_homecoming
    from causeway.flows.failback.protection import protect_again
    from causeway.flows.failover.apply import Operator, refuse_another_plan

    selection = deployment.groups[ways.reverse.name]
    still_seconds = still_seconds_given(request.options.still)
    if request.options.dry_run:
        expected = plan_given(request)
        sheet = look_before_homecoming(ways, selection)
        refuse_another_plan(ways.reverse, sheet, expected)
        text = f"{sheet_text(sheet)}\n\n{ways.forward.name}: nothing was written"
        return Outcome(payload=sheet.as_dict(), text=text)

    def consent(sheet: Sheet) -> None:
        request.progress(question_text(sheet))
        ask(request, ways.forward.name, f"move {len(sheet.plan.groups)} groups home to {ways.forward.source}")

    operator = Operator(
        by=who(),
        consent=consent,
        say=request.progress,
        expected_plan=plan_given(request),
        still_seconds=still_seconds,
    )
    done = come_home(ways, selection, operator)
    unprotected: list[str] = []
    if not done.not_yet:
        unprotected = protect_again(ways, deployment.groups[ways.forward.name], request.progress)
    return _home_again(request, done, unprotected)


def _home_again(request: Request, done: CameHome, unprotected: list[str]) -> Outcome:
    """The last line is the truth: what was done, and what keeps the flow from going on."""
    from causeway.entrypoints.failover_verb import failed_over

    if done.moved is None:
        payload, lines, code = {"run": done.run.run, "was_done": True}, [], 0
    else:
        moved = failed_over(done.moved, stays_fenced=False)
        payload = {**moved.payload, "failback": done.run.run, "was_done": False}
        lines, code = [moved.text], moved.exit_code
    payload |= {"not_yet": list(done.not_yet), "unprotected": unprotected}
    flow = done.run.flow
    if done.not_yet:
        text = "\n".join([*lines, f"{flow}: groups and positions are home", *done.not_yet])
        return Outcome(payload={**payload, "next": None}, text=text, exit_code=FENCED)
    text = "\n".join([*lines, *unprotected, f"{flow}: all is home"])
    code = code or (PARKED if unprotected else 0)
    return with_next(request, Outcome(payload=payload, text=text, exit_code=code))
