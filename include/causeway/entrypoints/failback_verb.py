"""`causeway failback FLOW`: `--resume` or `--rebuild` opens the way back, `--home` takes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from causeway.entrypoints.failover_verb import ask, plan_given
from causeway.entrypoints.flow_verbs import opened, who
from causeway.entrypoints.verbs import Outcome, Request

if TYPE_CHECKING:
    from causeway.core.failback.plan import FailbackPlan, Way
    from causeway.core.failover.sheet import Sheet
    from causeway.core.group_filter import FlowGroups
    from causeway.flows.failback.logbook import Ways


def add_failback(add: Any) -> None:
    failback = add(
        "failback",
        failback_flow,
        "go back to the old primary after a failover; shows the price first, and asks",
    )
    what = failback.add_mutually_exclusive_group(required=True)
    what.add_argument(
        "--resume",
        action="store_true",
        help="the old primary is back: keep what never crossed, and lead back what was written since",
    )
    what.add_argument(
        "--rebuild",
        action="store_true",
        help="the old primary is back: keep what never crossed, then empty its topics and mirror all anew",
    )
    what.add_argument(
        "--home",
        action="store_true",
        help="the writers have stopped: mirror what is left, move the groups home, and mirror forward again",
    )
    failback.add_argument(
        "--still",
        metavar="TIME",
        default="10s",
        help="with --home: how long nothing may be written to the new primary (default: 10s)",
    )
    failback.add_argument(
        "--accept-loss",
        action="store_true",
        help="with --rebuild: let records go that the new primary doesn't have any more",
    )
    failback.add_argument("--dry-run", action="store_true", help="the price only; writes nothing")
    failback.add_argument("--plan", metavar="HASH", help="only if the plan is still this one")
    failback.add_argument("--yes", action="store_true", help="don't ask")


def failback_flow(request: Request) -> Outcome:
    from causeway.core.failback.plan import Way
    from causeway.entrypoints.failback_ways import flow_back
    from causeway.flows.failback.logbook import Ways

    deployment, forward, old, new = opened(request)
    ways = Ways(forward, flow_back(deployment, forward), old, new)
    if request.options.home:
        return _home(request, ways, deployment.groups[ways.reverse.name])
    return _back(request, ways, Way.REBUILD if request.options.rebuild else Way.RESUME)


def _back(request: Request, ways: Ways, way: Way) -> Outcome:
    from causeway.core.failback.plan import failback_fields
    from causeway.entrypoints.failback_text import plan_text, run_text
    from causeway.flows.failback.back import Operator, fail_back, look_before_failback

    if request.options.dry_run:
        plan = look_before_failback(ways, way)
        text = f"{plan_text(plan)}\n\n{plan.flow}: nothing was written"
        return Outcome(payload=plan.as_dict(), text=text)

    def consent(plan: FailbackPlan) -> None:
        request.progress(plan_text(plan))
        ask(request, plan.flow, _what(ways, plan))

    operator = Operator(
        by=who(),
        consent=consent,
        say=request.progress,
        expected_plan=plan_given(request),
        accepts_loss=request.options.accept_loss,
    )
    done = fail_back(ways, way, operator)
    payload = {
        "run": done.run.run,
        "flow": done.run.flow,
        **failback_fields(done.run),
        "was_done": done.was_done,
        "plan": None if done.plan is None else done.plan.as_dict(),
    }
    return Outcome(payload=payload, text=run_text(done.run, was_done=done.was_done))


def _what(ways: Ways, plan: FailbackPlan) -> str:
    old, new = ways.forward.source, ways.forward.target
    if plan.rebuild is None:
        return f"lead what was written on {new} back to {old}"
    topics = len({cut.old.topic for cut in plan.cuts})
    return f"delete all records of {topics} topics of {old}, and mirror {new} there anew"


def _home(request: Request, ways: Ways, selection: FlowGroups) -> Outcome:
    from causeway.entrypoints.failover_text import sheet_text
    from causeway.entrypoints.failover_verb import failed_over
    from causeway.entrypoints.failover_wish import still_seconds_given
    from causeway.flows.failback.home import come_home, home_wish
    from causeway.flows.failover.apply import Operator, look_before_failover

    still_seconds = still_seconds_given(request.options.still)
    reverse, old, new = ways.reverse, ways.old, ways.new
    if request.options.dry_run:
        sheet = look_before_failover(reverse, new, old, home_wish(reverse), selection, home_of=ways.forward)
        text = f"{sheet_text(sheet)}\n\n{ways.forward.name}: nothing was written"
        return Outcome(payload=sheet.as_dict(), text=text)

    def consent(sheet: Sheet) -> None:
        request.progress(sheet_text(sheet))
        ask(request, ways.forward.name, f"move {len(sheet.plan.groups)} groups home to {ways.forward.source}")

    operator = Operator(
        by=who(),
        consent=consent,
        say=request.progress,
        expected_plan=plan_given(request),
        still_seconds=still_seconds,
    )
    done = come_home(ways, selection, operator)
    last = f"{ways.forward.name}: all is home: run it again (`causeway run {ways.forward.name}`, or its DAG)"
    if done.moved is None:
        return Outcome(payload={"run": done.run.run, "was_done": True}, text=last)
    moved = failed_over(done.moved, stays_fenced=False)
    return Outcome(
        payload={**moved.payload, "failback": done.run.run, "was_done": False},
        text=f"{moved.text}\n{last}",
        exit_code=moved.exit_code,
    )
