"""`causeway plan FLOW` and `causeway run FLOW`: what a run would copy, and the run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from causeway.cli.request import (
    Request,
    opened,
    run_for_seconds,
    topics_named,
    who,
)
from causeway.render.outcome import PARKED, Outcome

if TYPE_CHECKING:
    from causeway.core.copy.report import RunReport


def plan(request: Request) -> Outcome:
    from causeway.render.flow_status import planned
    from causeway.usecases.inspect.flow_status import inspect_flow

    topics = topics_named(request)
    _, flow, source, target = opened(request)
    return planned(inspect_flow(flow, source, target, topics))


def run(request: Request) -> Outcome:
    from causeway.usecases.report_files import asked_path

    report_path = asked_path("--report", request.options.report)
    if request.options.dry_run:
        return plan(request)
    from causeway.cli.commands.run_groups import GroupsAfterRun, sync_groups_after_run

    seconds, topics = run_for_seconds(request.options.run_for), topics_named(request)
    deployment, flow, source, target = opened(request)
    if seconds is None and not request.options.until_caught_up:
        seconds = deployment.schedules[flow.name].run_for_seconds
    from causeway.spark import copy_job
    from causeway.usecases.copy.run import RunOptions
    from causeway.usecases.run_lock.ownership import RunOwner

    holder = f"{who()} pid {os.getpid()}"
    report = copy_job.run(
        deployment,
        flow.name,
        (source, target),
        RunOptions(
            holder=RunOwner(name=holder, run_id=f"{holder} {copy_job.new_run_id()}"),
            run_for_seconds=seconds,
            topics=topics,
            take_over=request.options.take_over,
        ),
        say=request.progress,
        report_path=report_path,
    )
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
    from causeway.render.run_report import copied_again
    from causeway.spark import copy_job

    lines = [copy_job.last_line(report)]
    lines += [
        copied_again(p.source, p.target, p.recopied_from)
        for p in report.partitions.values()
        if p.recopied_from is not None
    ]
    lines += [
        f"PARKED {p['source']}: {p['reason']}: {p['facts']}; {p['remedy']}"
        for p in _parked_rows(report.as_dict())
    ]
    lines += [f"IN DOUBT lane {d['lane']}, {d['times']} times in a row: {d['why']}" for d in report.in_doubt]
    lines += [f"LEFT ALONE {r['topic']}: {r['reason']}; {r['remedy']}" for r in report.refused_topics]
    return lines


def _parked_rows(report: dict[str, object]) -> list[dict[str, str]]:
    found = report["parked"]
    assert isinstance(found, list)
    return found
