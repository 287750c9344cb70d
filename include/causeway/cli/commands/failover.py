"""`causeway failover FLOW`: the sheet, the question, the failover; or `--rollback RUN`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from causeway import interruption
from causeway.cli.interrupted import nothing_done_yet
from causeway.cli.request import Request, opened, who
from causeway.core.kernel.errors import BadInput
from causeway.render.outcome import Outcome
from causeway.render.tables import IN_JSON, shortened

if TYPE_CHECKING:
    from causeway.cli.commands.next import Look
    from causeway.core.failover.impact_sheet import Sheet
    from causeway.core.failover.request import FailoverRequest
    from causeway.core.journal.journal import FailoverRun
    from causeway.core.journal.remaining_work import Remaining
    from causeway.usecases.failover.execute import FailedOver

LEFT_ALONE = 5
_BESIDE_ROLLBACK: dict[str, object] = {
    "groups": [],
    "topics": [],
    "safety": None,
    "active": "refuse",
    "clamp": None,
    "dry_run": False,
    "plan": None,
    "html": None,
}
"""What means nothing there, as long as nobody says it."""


def add_failover(add: Any) -> None:
    failover = add(
        "failover", failover_flow, "move consumer groups to the target; shows an impact sheet first, and asks"
    )
    _add_what(failover.add_mutually_exclusive_group(required=True))
    for option, of in (("--groups", "groups"), ("--topics", "source topics")):
        failover.add_argument(
            option,
            nargs="+",
            action="extend",
            metavar="NAME",
            default=[],
            help=f"names or patterns of {of} (default: all)",
        )
    failover.add_argument("--safety", metavar="TIME", help="begin this much earlier than --at says: 30s")
    failover.add_argument(
        "--active",
        choices=("refuse", "leave"),
        default="refuse",
        help="groups with members on the target: refuse to move any (default), or leave those",
    )
    failover.add_argument(
        "--clamp",
        choices=("earliest",),
        help="begin with the oldest record where those of that time are gone",
    )
    failover.add_argument(
        "--still",
        metavar="TIME",
        default="10s",
        help="with --planned: how long the source must get no record (default: 10s)",
    )
    failover.add_argument("--dry-run", action="store_true", help="show the impact sheet only; write nothing")
    failover.add_argument("--plan", metavar="HASH", help="continue only if the plan is still this one")
    failover.add_argument("--yes", action="store_true", help="don't ask for confirmation")
    failover.add_argument(
        "--html", metavar="FILE", help="also write the impact sheet to this file, as a page"
    )


def _add_what(what: Any) -> None:
    what.add_argument(
        "--at",
        metavar="TIME",
        help="begin at the first record of this time or later: 2026-11-18T04:03:00Z (with a zone); "
        "latest: where each group last stood",
    )
    what.add_argument(
        "--planned",
        action="store_true",
        help="the source works and its writers have stopped: copy the rest, then move each group",
    )
    what.add_argument(
        "--rollback",
        metavar="RUN",
        help="undo this failover: put its groups back, lift the fence that it raised",
    )


def failover_flow(request: Request) -> Outcome:
    from causeway.cli.commands.next import look_next
    from causeway.usecases.report_files import asked_path

    done = None
    with nothing_done_yet("no group was moved, and no fence was raised or lifted"):
        if request.options.rollback is not None:
            outcome = _roll_back(request)
        else:
            wish = _wish(request)
            asked_path("--html", request.options.html)
            if request.options.dry_run:
                return _dry_run(request, wish)
            done = _fail_over(request, wish)
    look = look_next(request)
    if done is not None:
        outcome = failed_over(done, may_go_back=_may_go_back(look))
    return look.below(outcome)


def _may_go_back(look: Look) -> bool:
    """Not where the same command is typed again after a failback has begun: its rollback is refused then."""
    from causeway.core.episode.stage import Stage

    return look.found is None or look.found.stage in (Stage.FAILED_OVER, Stage.HARMED)


def _fail_over(request: Request, wish: FailoverRequest) -> FailedOver:
    from causeway.render.failover_request import still_seconds_given
    from causeway.render.failover_text import question_text
    from causeway.usecases.failover.execute import Operator, fail_over

    still_seconds, plan = still_seconds_given(request.options.still), plan_given(request)
    deployment, flow, source, target = opened(request)

    def consent(sheet: Sheet) -> None:
        _keep_page(request, sheet)
        request.progress(question_text(sheet))
        ask(request, flow.name, f"fail {len(sheet.plan.groups)} groups over to {flow.target}")

    return fail_over(
        flow,
        source,
        target,
        wish,
        deployment.groups[flow.name],
        Operator(
            by=who(),
            consent=consent,
            say=request.progress,
            expected_plan=plan,
            still_seconds=still_seconds,
        ),
    )


def _dry_run(request: Request, wish: FailoverRequest) -> Outcome:
    from causeway.render.failover_text import sheet_text
    from causeway.usecases.failover.execute import preview_failover, refuse_another_plan

    plan = plan_given(request)
    deployment, flow, source, target = opened(request)
    sheet = preview_failover(flow, source, target, wish, deployment.groups[flow.name])
    refuse_another_plan(flow, sheet, plan)
    _keep_page(request, sheet)
    return Outcome(
        payload=sheet.as_dict(),
        text=f"{sheet_text(sheet)}\n\n{flow.name}: nothing was written",
        exit_code=LEFT_ALONE if _left_alone(sheet) else 0,
    )


def _wish(request: Request) -> FailoverRequest:
    from causeway.cli.request import deployment_of
    from causeway.render.failover_request import PLANNED, WrittenRequest, read_request

    options = request.options
    written = WrittenRequest(
        flow=deployment_of(request).flow(options.flow).name,
        at=PLANNED if options.planned else options.at,
        safety=options.safety,
        groups=options.groups,
        topics=options.topics,
        active=options.active,
        clamp=options.clamp is not None,
    )
    return read_request(written)


def _keep_page(request: Request, sheet: Sheet) -> None:
    from causeway.render.failover_html import write_page

    path = request.options.html
    if path is not None:
        write_page(sheet, Path(path))
        request.progress(f"{sheet.flow}: the sheet is in {path}")


def ask(request: Request, flow: str, what: str, *, in_a_script: str = "--yes") -> None:
    """Typing a name is slower than a key, on purpose.

    :raises BadInput: something else was typed, or nobody is there to type.
    """
    if request.options.yes:
        return
    request.progress(f"type {flow} to {what}:")
    typed = _typed()
    if typed != flow:
        raise BadInput(
            "the answer",
            value=typed[:80] or "(nothing)",
            rule=f"isn't {flow}, so nothing was done",
            remedy=f"run it again and type the flow's name, or say {in_a_script} in a script",
        )


def _typed() -> str:
    """Empty also where standard input is closed, or holds what is no text."""
    try:
        with interruption.at_once():
            return sys.stdin.readline().strip() if sys.stdin is not None else ""
    except (OSError, ValueError):
        return ""


def plan_given(request: Request) -> str:
    """:raises BadInput: empty, as a script's variable is that nobody has set: it would agree to anything."""
    plan = request.options.plan
    if plan is None:
        return ""
    if not plan.strip():
        rule, remedy = (
            "must be the plan of a sheet",
            "write the one that --dry-run shows, or leave --plan out",
        )
        raise BadInput("--plan", value="(empty)", rule=rule, remedy=remedy)
    return str(plan.strip())


def failed_over(done: FailedOver, *, may_go_back: bool = True) -> Outcome:
    from dataclasses import asdict

    checked = done.verified
    left = [*done.left_alone, *(_left_alone(done.sheet) if done.sheet is not None else ())]
    head = (
        f"{done.flow}: failover {done.run} was done already: nothing to do"
        if done.was_done
        else f"{done.flow}: failover {done.run}: {done.groups} groups, {done.moved:,} offsets committed"
    )
    back = (
        f"{done.flow}: fenced; back with `causeway failover {done.flow} --rollback {done.run}`, only before "
        "anybody writes to the mirror"
    )
    earlier = f", {len(checked.earlier):,} of them earlier than the moment" if checked.earlier else ""
    unread = f"; {checked.unread:,} could not be read now" if checked.unread else ""
    lines = [
        head,
        f"{done.flow}: {checked.as_planned:,} of {checked.offsets:,} offsets read back as planned, "
        f"{checked.moved_on:,} have moved on; first records of {checked.sampled:,} partitions looked at"
        f"{earlier}; {checked.at_the_end:,} are at their end{unread}",
        *shortened([f"PUT RIGHT {line}" for line in done.slipped], where=f" put right{IN_JSON}"),
        *shortened([f"LEFT ALONE {line}" for line in left], where=f" left alone{IN_JSON}"),
        *([back] if may_go_back else []),
    ]
    payload = {
        **asdict(done.verified),
        "run": done.run,
        "flow": done.flow,
        "groups": done.groups,
        "committed": done.moved,
        "was_done": done.was_done,
        "slipped": list(done.slipped),
        "left_alone": left,
        "sheet": None if done.sheet is None else done.sheet.as_dict(),
    }
    return Outcome(payload=payload, text="\n".join(lines), exit_code=LEFT_ALONE if left else 0)


def _refuse_beside_rollback(request: Request) -> None:
    """:raises BadInput: somebody expects less of it than it does."""
    for name, unsaid in _BESIDE_ROLLBACK.items():
        if getattr(request.options, name) != unsaid:
            raise BadInput(
                f"--{name.replace('_', '-')}",
                rule="has no meaning beside --rollback, which undoes all of that failover",
                remedy="leave it out; before it asks, it names the groups that would read again",
            )


def _left_alone(sheet: Sheet) -> list[str]:
    """All that stays as it is though somebody may have meant it."""
    plan = sheet.plan
    left = list(map(str, plan.left_alone))
    if not (plan.moves or left or plan.wish.is_planned):
        left.append(
            "every group: none is known that reads these topics; --groups NAME --topics TOPIC moves one"
        )
    return [*left, *sheet.notes]


def _roll_back(request: Request) -> Outcome:
    from causeway.config.flows_file.reverse_flow import flows_ahead
    from causeway.render.failover_text import astray_text
    from causeway.usecases.failover.completed_failback import CameFrom
    from causeway.usecases.failover.rollback import roll_back

    _refuse_beside_rollback(request)
    deployment, flow, source, target = opened(request)
    came_from = CameFrom(source, flows_ahead(deployment, flow))

    def consent(run: FailoverRun, remaining: Remaining) -> None:
        for line in shortened(list(map(astray_text, remaining.astray))):
            request.progress(line)
        ask(request, flow.name, f"put {len(run.shifts)} groups back to where they were on {flow.target}")

    done = roll_back(
        flow,
        target,
        request.options.rollback,
        by=who(),
        consent=consent,
        say=request.progress,
        came_from=came_from,
    )
    text = (
        f"{done.flow}: failover {done.run} was rolled back already: nothing to do"
        if done.was_done
        else f"{done.flow}: failover {done.run} rolled back: {done.restored} offsets of {done.groups} groups "
        f"put back; fence: {done.fence}"
    )
    payload = {
        "run": done.run,
        "flow": done.flow,
        "groups": done.groups,
        "restored": done.restored,
        "fence": done.fence,
        "was_done": done.was_done,
        "had_moved": [{"group": a.group, "partition": str(a.target), "at": a.at} for a in done.read_on],
    }
    return Outcome(payload=payload, text=text)
