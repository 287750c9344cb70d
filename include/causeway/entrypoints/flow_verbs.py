"""The verbs that work on a flow's clusters: plan, run, status, verify, fence, lift."""

from __future__ import annotations

import getpass
import os
import socket
from typing import TYPE_CHECKING

from causeway.core.counting import counted
from causeway.core.errors import BadInput
from causeway.entrypoints.verbs import PARKED, Outcome, Request, deployment_of, reason_given, run_for_seconds

if TYPE_CHECKING:
    from pathlib import Path

    from causeway.config.deployment import Deployment
    from causeway.core.endpoint import ClusterEndpoint
    from causeway.core.flow import Flow
    from causeway.core.report import RunReport
    from causeway.flows.fence import FenceOutcome

LARGEST_OFFSET, LARGEST_PARTITION = (1 << 63) - 1, (1 << 31) - 1


def plan(request: Request) -> Outcome:
    from causeway.entrypoints.flow_view import planned
    from causeway.flows.look import look_at_flow

    topics = _topics(request)
    _, flow, source, target = opened(request)
    return planned(look_at_flow(flow, source, target, topics))


def status(request: Request) -> Outcome:
    from causeway.entrypoints.flow_view import standing, with_unprotected
    from causeway.entrypoints.next_verb import with_next
    from causeway.flows.groups.unprotected import look_for_unprotected
    from causeway.flows.look_at_status import look_for_status

    deployment, flow, source, target = opened(request)
    shown = standing(look_for_status(flow, source, target))
    found = look_for_unprotected(flow, deployment.groups[flow.name], source, target)
    return with_next(request, with_unprotected(flow.name, shown, found))


def run(request: Request) -> Outcome:
    from causeway.flows.report_files import asked_path

    report_path = asked_path("--report", request.options.report)
    if request.options.dry_run:
        return plan(request)
    from causeway.entrypoints.run_groups import GroupsAfterRun, sync_groups_after_run

    seconds, topics = run_for_seconds(request.options.run_for), _topics(request)
    deployment, flow, source, target = opened(request)
    if seconds is None and not request.options.until_caught_up:
        seconds = deployment.schedules[flow.name].run_for_seconds
    report = _driven(request, deployment, flow, (source, target), seconds, topics, report_path)
    groups = GroupsAfterRun()
    if not request.options.no_groups:
        groups = sync_groups_after_run(deployment, flow, (source, target), request.progress)
    exit_code = PARKED if report.leaves_something_out else 0
    return Outcome(
        payload={**report.as_dict(), "groups": groups.payload},
        text="\n".join([*_run_lines(report), *groups.lines]),
        exit_code=exit_code or groups.exit_code,
    )


def _run_lines(report: RunReport) -> list[str]:
    from causeway.entrypoints.run_report import copied_again
    from causeway.spark import driver

    lines = [driver.last_line(report)]
    lines += [
        copied_again(p.source, p.target, p.recopied_from)
        for p in report.partitions.values()
        if p.recopied_from is not None
    ]
    lines += [
        f"PARKED {p['source']}: {p['reason']}: {p['facts']}; {p['remedy']}" for p in _parked(report.as_dict())
    ]
    lines += [f"IN DOUBT lane {d['lane']}, {d['times']} times in a row: {d['why']}" for d in report.in_doubt]
    lines += [f"LEFT ALONE {r['topic']}: {r['reason']}; {r['remedy']}" for r in report.refused_topics]
    return lines


def _driven(
    request: Request,
    deployment: Deployment,
    flow: Flow,
    endpoints: tuple[ClusterEndpoint, ClusterEndpoint],
    seconds: float | None,
    topics: frozenset[str] | None,
    report_path: Path | None,
) -> RunReport:
    from causeway.flows.copy import RunOptions
    from causeway.flows.ownership import Holder
    from causeway.spark import driver

    options = request.options
    holder = f"{who()} pid {os.getpid()}"
    return driver.run(
        deployment,
        flow.name,
        endpoints,
        RunOptions(
            holder=Holder(name=holder, run_id=f"{holder} {driver.new_run_id()}"),
            run_for_seconds=seconds,
            topics=topics,
            take_over=options.take_over,
        ),
        say=request.progress,
        report_path=report_path,
    )


def verify(request: Request) -> Outcome:
    from causeway.entrypoints.verdicts import verdict_text, verdicts
    from causeway.flows.verify_mirror import verify_mirror

    _, flow, source, target = opened(request)
    last: list[int] = [0]

    def tell(progress: object) -> None:
        from causeway.flows.verify import VerifyProgress

        assert isinstance(progress, VerifyProgress)
        if progress.partitions_done > last[0]:
            last[0] = progress.partitions_done
            request.progress(
                f"{flow.name}: {progress.partitions_done} of "
                f"{counted(progress.partitions_total, 'partition')}, "
                f"{counted(progress.records_equal, 'record')} equal"
            )

    whole = request.options.all
    if whole and flow.failback_of:
        raise BadInput(
            f"--all of {flow.name}",
            rule=f"can't be asked of the way back of {flow.failback_of}: exports would count as extra",
            remedy=f"`causeway verify {flow.failback_of} --all` compares both directions",
        )
    report = verify_mirror(flow, source, target, on_progress=tell, across_failbacks=whole)
    return Outcome(
        payload=verdicts(flow.name, report),
        text=verdict_text(flow.name, report, forward=flow.failback_of),
        exit_code=report.exit_code,
    )


def fence(request: Request) -> Outcome:
    from causeway.flows.fence import fence_flow

    because = reason_given(request.options.because)
    _, flow, _, target = opened(request)
    topics = _names(request.options.topics)
    done = fence_flow(flow, target, by=who(), because=because, topics=topics)
    text = f"{flow.name}: {_fenced(flow.name, done)}"
    return Outcome(payload=_turned(done), text="\n".join([text, *_beside(flow.name, done)]))


def _beside(name: str, done: FenceOutcome) -> list[str]:
    """The fences of others, which stand as they were."""
    from causeway.core.remedies import fence_lines

    lines = zip(done.standing, fence_lines(name, done.standing), strict=True)
    return [f"{name}: beside it stands {line}" for fence, line in lines if fence != done.stands]


def _topics(request: Request) -> frozenset[str] | None:
    """None: all of the flow's. `plan` has no such option, `run --dry-run` does."""
    given = getattr(request.options, "topics", None)
    return None if given is None else frozenset(_names(given))


def _names(given: str | None) -> tuple[str, ...]:
    names = tuple(name.strip() for name in (given or "").split(",") if name.strip())
    if given is not None and not names:
        raise BadInput("--topics", value=given, rule="must name one topic or more", remedy="a,b")
    return names


def _fenced(name: str, done: FenceOutcome) -> str:
    from causeway.core.remedies import lift_commands

    stands = done.stands
    is_first = done.changed or stands is None
    already = "" if stands is None else f"is fenced already, {stands}; that stays as it was"
    topics = None if stands is None else stands.topics
    what = f"fenced {', '.join(sorted(topics))}" if topics else "fenced"
    commands = dict(zip(done.standing, lift_commands(name, done.standing), strict=True))
    until = commands[stands] if stands is not None else f"`causeway lift {name}`"
    return (
        f"{what if is_first else already} (generation {done.generation}); "
        f"{counted(done.lanes_claimed, 'lane')} claimed: nothing can be added"
        f"{' there' if topics else ''} until {until}"
    )


def lift(request: Request) -> Outcome:
    from causeway.core.remedies import fence_lines
    from causeway.flows.failback.lifting import lift_by_hand

    because = reason_given(request.options.because)
    _, flow, source, target = opened(request)
    wanted = request.options.fence
    chosen = None if wanted is None else number("--fence", wanted)
    done = lift_by_hand(flow, source, target, by=who(), because=because, number=chosen)
    state = "lifted" if done.changed else "no fence stood"
    left = [f"{flow.name}: {line}" for line in fence_lines(flow.name, done.standing)]
    text = f"{flow.name}: {state} (generation {done.generation})" + ("; others stand" if left else "")
    return Outcome(payload=_turned(done), text="\n".join([text, *left]))


def opened(
    request: Request, name: str | None = None
) -> tuple[Deployment, Flow, ClusterEndpoint, ClusterEndpoint]:
    """The flow (the one that was asked for) and its clusters' endpoints; nothing has been connected yet."""
    from causeway.entrypoints.project import cluster_endpoint

    deployment = deployment_of(request)
    flow = deployment.flow(name or request.options.flow)
    source, target = (
        cluster_endpoint(deployment, alias, request.environ, request.directory, request.say)
        for alias in (flow.source, flow.target)
    )
    return deployment, flow, source, target


def who() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container may run as a number that has no name
        user = f"uid {os.getuid()}"
    return f"{user}@{socket.gethostname()}"


def number(name: str, text: str, *, most: int = LARGEST_OFFSET) -> int:
    """:raises BadInput: no number that Kafka could have."""
    digits = text.lstrip("0") or text[:1]
    is_number = text.isascii() and text.isdigit()
    if not is_number or len(digits) > len(str(most)) or int(digits) > most:
        rule = f"must be a whole number from 0 to {most}"
        raise BadInput(name, value=text[:40], rule=rule, remedy="write it in digits")
    return int(digits)


def partition_number(text: str) -> int:
    return number("PARTITION", text, most=LARGEST_PARTITION)


def _parked(report: dict[str, object]) -> list[dict[str, str]]:
    found = report["parked"]
    assert isinstance(found, list)
    return found


def _turned(done: FenceOutcome) -> dict[str, object]:
    from causeway.entrypoints.flow_view import fence_as_dict, fence_words

    return {
        "flow": done.flow,
        "fenced": done.fenced,
        "generation": done.generation,
        "lanes_claimed": done.lanes_claimed,
        "changed": done.changed,
        "fence": fence_words(done.stands),
        "fences": [fence_as_dict(fence) for fence in done.standing],
    }
