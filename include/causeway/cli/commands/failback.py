"""`causeway failback FLOW`: `--resume` or `--rebuild` opens the way back, `--home` takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from causeway.cli.commands.failover import ask, plan_given
from causeway.cli.commands.next import with_next
from causeway.cli.interrupted import nothing_done_yet
from causeway.cli.request import Request, opened, who
from causeway.render.outcome import PARKED, Outcome

if TYPE_CHECKING:
    from causeway.config.flows_file.deployment import Deployment
    from causeway.core.failback.divergence import FailbackMode, FailbackPlan
    from causeway.core.failover.impact_sheet import Sheet
    from causeway.usecases.failback.complete import CompletedFailback, NothingToMoveError
    from causeway.usecases.failback.journal_store import FlowPair

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
    from causeway.config.flows_file.reverse_flow import flow_back
    from causeway.core.failback.divergence import FailbackMode
    from causeway.core.failback.rebuild_impact import refuse_unseen
    from causeway.usecases.failback.journal_store import FlowPair

    if request.options.rebuild and request.options.yes and not request.options.dry_run:
        refuse_unseen(request.options.flow, plan_given(request), "--plan")
    deployment, forward, old, new = opened(request)
    ways = FlowPair(forward, flow_back(deployment, forward), old, new)
    if request.options.home:
        return _home(request, ways, deployment)
    return _back(request, ways, FailbackMode.REBUILD if request.options.rebuild else FailbackMode.RESUME)


def _back(request: Request, ways: FlowPair, way: FailbackMode) -> Outcome:
    from causeway.core.failback.divergence import failback_fields
    from causeway.render.failback_text import plan_text, rebuild_question, run_text
    from causeway.usecases.failback.start import Operator, fail_back

    if request.options.dry_run:
        return _preview(request, ways, way)
    accepts_loss, old, new = request.options.accept_loss, ways.forward.source, ways.forward.target

    def consent(plan: FailbackPlan) -> None:
        request.progress(plan_text(plan, accepts_loss=accepts_loss))
        if plan.rebuild is None:
            ask(request, plan.flow, f"mirror what was written on {new} back to {old}")
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


def _preview(request: Request, ways: FlowPair, way: FailbackMode) -> Outcome:
    from causeway.render.failback_text import plan_text
    from causeway.usecases.failback.start import preview_failback, refuse_another_plan

    expected = plan_given(request)
    plan = preview_failback(ways, way)
    refuse_another_plan(plan, expected)
    text = plan_text(plan, accepts_loss=request.options.accept_loss)
    return Outcome(payload=plan.as_dict(), text=f"{text}\n\n{plan.flow}: nothing was written")


def _home(request: Request, ways: FlowPair, deployment: Deployment) -> Outcome:
    from causeway.render.failover_request import still_seconds_given
    from causeway.render.failover_text import question_text, sheet_text
    from causeway.usecases.failback.complete import (
        NothingToMoveError,
        complete_failback,
        preview_completion,
    )
    from causeway.usecases.failback.protect_groups import protect_again
    from causeway.usecases.failover.execute import Operator, refuse_another_plan

    selection = deployment.groups[ways.reverse.name]
    still_seconds = still_seconds_given(request.options.still)
    if request.options.dry_run:
        expected = plan_given(request)
        try:
            sheet = preview_completion(ways, selection)
        except NothingToMoveError as nothing:
            return _nothing_to_move(request, ways, nothing)
        refuse_another_plan(ways.reverse, sheet, expected)
        text = f"{sheet_text(sheet)}\n\n{ways.forward.name}: nothing was written"
        return Outcome(payload=sheet.as_dict(), text=text)

    def consent(sheet: Sheet) -> None:
        request.progress(question_text(sheet))
        ask(request, ways.forward.name, f"move {len(sheet.plan.groups)} groups back to {ways.forward.source}")

    operator = Operator(
        by=who(),
        consent=consent,
        say=request.progress,
        expected_plan=plan_given(request),
        still_seconds=still_seconds,
    )
    done = complete_failback(ways, selection, operator)
    unprotected: list[str] = []
    if not done.not_yet:
        unprotected = protect_again(ways, deployment.groups[ways.forward.name], request.progress)
    return _home_again(request, done, unprotected)


def _nothing_to_move(request: Request, ways: FlowPair, nothing: NothingToMoveError) -> Outcome:
    payload: dict[str, object] = {"flow": ways.forward.name, "was_done": True}
    return with_next(request, Outcome(payload=payload, text=f"{nothing}; nothing was written"))


def _home_again(request: Request, done: CompletedFailback, unprotected: list[str]) -> Outcome:
    """The last line is the truth: what was done, and what keeps the flow from going on."""
    from causeway.cli.commands.failover import failed_over
    from causeway.render.failback_text import exports_left

    if done.moved is None:
        payload, lines, code = {"run": done.run.run, "was_done": True}, [], 0
    else:
        moved = failed_over(done.moved, may_go_back=False)
        payload = {**moved.payload, "failback": done.run.run, "was_done": False}
        lines, code = [moved.text], moved.exit_code
    payload |= {"not_yet": list(done.not_yet), "unprotected": unprotected}
    flow = done.run.flow
    if done.not_yet:
        text = "\n".join([*lines, f"{flow}: groups and positions are home", *done.not_yet])
        return Outcome(payload={**payload, "next": None}, text=text, exit_code=FENCED)
    text = "\n".join([*lines, *unprotected, *exports_left(done.run), f"{flow}: all is home"])
    code = code or (PARKED if unprotected else 0)
    return with_next(request, Outcome(payload=payload, text=text, exit_code=code))
