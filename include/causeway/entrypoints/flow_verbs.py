"""The verbs that work on a flow's clusters: plan, run, status, verify, fence, lift."""

from __future__ import annotations

import getpass
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

from causeway.core.counting import counted
from causeway.core.errors import BadInput
from causeway.entrypoints.verbs import PARKED, Outcome, Request, deployment_of, reason_given, run_for_seconds

if TYPE_CHECKING:
    from causeway.config.deployment import Deployment
    from causeway.core.endpoint import ClusterEndpoint
    from causeway.core.flow import Flow
    from causeway.core.report import RunReport
    from causeway.flows.fence import FenceOutcome


def plan(request: Request) -> Outcome:
    from causeway.entrypoints.flow_view import planned
    from causeway.flows.look import look_at_flow

    _, flow, source, target = opened(request)
    return planned(look_at_flow(flow, source, target))


def status(request: Request) -> Outcome:
    from causeway.entrypoints.flow_view import standing
    from causeway.flows.look import look_at_flow

    _, flow, source, target = opened(request)
    return standing(look_at_flow(flow, source, target))


def run(request: Request) -> Outcome:
    if request.options.dry_run:
        return plan(request)
    from causeway.entrypoints.run_report import copied_again
    from causeway.spark import driver

    try:
        report = _driven(request)
    except KeyboardInterrupt as stop:
        said = str(stop) or "what was committed stays, the next run goes on from there"
        raise KeyboardInterrupt(said) from None
    lines = [driver.last_line(report)]
    lines += [
        copied_again(p.source, p.target, p.recopied_from)
        for p in report.partitions.values()
        if p.recopied_from is not None
    ]
    lines += [
        f"PARKED {p['source']}: {p['reason']}: {p['facts']}; {p['remedy']}" for p in _parked(report.as_dict())
    ]
    lines += [f"LEFT ALONE {r['topic']}: {r['reason']}; {r['remedy']}" for r in report.refused_topics]
    exit_code = PARKED if report.leaves_something_out else 0
    return Outcome(payload=report.as_dict(), text="\n".join(lines), exit_code=exit_code)


def _driven(request: Request) -> RunReport:
    from causeway.flows.copy import RunOptions
    from causeway.flows.ownership import Holder
    from causeway.spark import driver

    options = request.options
    seconds = run_for_seconds(options.run_for)
    deployment, flow, source, target = opened(request)
    if seconds is None and not options.until_caught_up:
        seconds = deployment.schedules[flow.name].run_for_seconds
    holder = f"{who()} pid {os.getpid()}"
    return driver.run(
        deployment,
        flow.name,
        (source, target),
        RunOptions(
            holder=Holder(name=holder, run_id=f"{holder} {driver.new_run_id()}"),
            run_for_seconds=seconds,
            take_over=options.take_over,
        ),
        say=request.progress,
        report_path=None if options.report is None else Path(options.report),
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

    report = verify_mirror(flow, source, target, on_progress=tell)
    return Outcome(
        payload=verdicts(flow.name, report), text=verdict_text(flow.name, report), exit_code=report.exit_code
    )


def fence(request: Request) -> Outcome:
    from causeway.flows.fence import fence_flow

    because = reason_given(request.options.because)
    _, flow, _, target = opened(request)
    done = fence_flow(flow, target, by=who(), because=because)
    return Outcome(payload=_turned(done), text=f"{flow.name}: {_fenced(flow.name, done)}")


def _fenced(name: str, done: FenceOutcome) -> str:
    from causeway.core.instants import rfc3339

    stands = done.stands
    is_first = done.changed or stands is None
    since = "" if stands is None else f"by {stands.by} since {rfc3339(stands.since_ms)}: {stands.because}; "
    return (
        f"{'fenced' if is_first else f'is fenced already, {since}that stays as it was'} (generation "
        f"{done.generation}); {counted(done.lanes_claimed, 'lane')} claimed: nothing can be added until "
        f'`causeway lift {name} --because "..."`'
    )


def lift(request: Request) -> Outcome:
    from causeway.flows.fence import lift_fence

    because = reason_given(request.options.because)
    _, flow, _, target = opened(request)
    done = lift_fence(flow, target, by=who(), because=because)
    state = "lifted" if done.changed else "no fence stood"
    return Outcome(payload=_turned(done), text=f"{flow.name}: {state} (generation {done.generation})")


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
    return f"{getpass.getuser()}@{socket.gethostname()}"


def number(name: str, text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise BadInput(
            name, value=text[:40], rule="must be a whole number, 0 or more", remedy="write it in digits"
        )
    return int(text)


def _parked(report: dict[str, object]) -> list[dict[str, str]]:
    found = report["parked"]
    assert isinstance(found, list)
    return found


def _turned(done: FenceOutcome) -> dict[str, object]:
    from causeway.core.instants import rfc3339

    stands = done.stands
    words = {}
    if stands is not None:
        words = {"by": stands.by, "because": stands.because, "since": rfc3339(stands.since_ms)}
    return {
        "flow": done.flow,
        "fenced": done.fenced,
        "generation": done.generation,
        "lanes_claimed": done.lanes_claimed,
        "changed": done.changed,
        "fence": words or None,
    }
