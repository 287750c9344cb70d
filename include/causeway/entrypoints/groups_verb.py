"""`causeway groups FLOW`: of each consumer group, whether the target knows where it goes on, and why not."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from causeway.core.errors import UnknownName
from causeway.entrypoints.flow_verbs import opened
from causeway.entrypoints.tables import table
from causeway.entrypoints.verbs import Outcome, Request

if TYPE_CHECKING:
    from causeway.core.group_report import GroupsReport


def add_groups(add: Any) -> None:
    groups = add(
        "groups", groups_of_flow, "where consumer groups go on after a failover, and why not where not"
    )
    groups.add_argument(
        "--sync",
        action="store_true",
        help="do what flows.yaml says: checkpoints, offset syncs, offsets of idle groups (else: look only)",
    )
    groups.add_argument("--group", metavar="NAME", help="show this group's partitions, one by one")
    groups.add_argument("--spark", action="store_true", help="share the work out by Spark, as big flows do")
    groups.add_argument("--report", metavar="PATH", help="write the whole report there, as JSON")


def groups_of_flow(request: Request) -> Outcome:
    from causeway.flows.report_files import write_report_file

    report = _report(request)
    if request.options.report is not None:
        write_report_file(report.as_dict(), Path(request.options.report))
    name = request.options.group
    if name is not None and name not in report.groups and name not in report.excluded:
        raise UnknownName(
            "group", value=name, rule="isn't on the source", remedy=f"see causeway groups {report.flow}"
        )
    text = _text_of_all(report) if name is None else _text_of_one(report, name)
    return Outcome(payload=report.as_dict(), text=text)


def _report(request: Request) -> GroupsReport:
    deployment, flow, source, target = opened(request)
    if request.options.spark:
        from causeway.spark import groups as through_spark

        return through_spark.run(
            deployment, flow.name, (source, target), say=request.progress, writes=request.options.sync
        )
    from causeway.flows.groups.run import sync_groups

    return sync_groups(
        flow,
        deployment.groups[flow.name],
        source,
        target,
        request.progress,
        writes=request.options.sync,
    )


def _text_of_all(report: GroupsReport) -> str:
    from causeway.core.group_report import report_lines, spelled
    from causeway.core.group_sync import IS_WELL

    rows = []
    for group in report.groups:
        outcomes = report.of_group(group)
        well = sum(count for outcome, count in outcomes.items() if outcome in IS_WELL)
        rows.append((group, sum(outcomes.values()), well, spelled(outcomes)))
    rows += [(group, 0, 0, f"excluded, {why}") for group, why in report.excluded.items()]
    did = "" if report.wrote else "\nlooked only: `--sync` does it"
    lines = [
        table(("GROUP", "PARTITIONS", "WELL", "WHY"), rows),
        "",
        *report_lines(report, names_excluded=False),
    ]
    return "\n".join(lines) + did


def _text_of_one(report: GroupsReport, group: str) -> str:
    if group in report.excluded:
        return f"{group}: excluded, {report.excluded[group]}"
    rows = [
        (
            str(row.source),
            row.source_next,
            str(row.target),
            row.target_next,
            row.before,
            str(row.outcome),
            row.why,
        )
        for row in report.result.rows
        if row.group == group
    ]
    headers = ("SOURCE", "OFFSET", "TARGET", "OFFSET", "BEFORE", "OUTCOME", "WHY")
    from causeway.core.group_report import spelled

    return f"{table(headers, rows)}\n\n{group}: {spelled(report.of_group(group))}"
