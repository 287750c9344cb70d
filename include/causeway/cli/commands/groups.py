"""`causeway groups FLOW`: of each consumer group, whether the target knows where it goes on, and why not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from causeway.cli.request import Request, opened
from causeway.core.kernel.errors import UnknownName
from causeway.core.kernel.timestamps import how_long_ago, rfc3339
from causeway.render.outcome import Outcome
from causeway.render.tables import one_line, table

if TYPE_CHECKING:
    from causeway.core.groups.report import GroupsReport
    from causeway.core.groups.sync_rules import Verdict


def add_groups(add: Any) -> None:
    groups = add(
        "groups",
        groups_of_flow,
        "show where each consumer group would continue on the target, or why it can't",
    )
    groups.add_argument(
        "--sync",
        action="store_true",
        help="write checkpoints, offset syncs and offsets of idle groups, as flows.yaml says",
    )
    groups.add_argument("--group", metavar="NAME", help="show this group's partitions, one by one")
    groups.add_argument(
        "--spark", action="store_true", help="share the work among Spark tasks, as big flows do"
    )
    groups.add_argument("--report", metavar="PATH", help="write the whole report to this file, as JSON")


def groups_of_flow(request: Request) -> Outcome:
    from causeway.usecases.report_files import asked_path, write_report_file

    path = asked_path("--report", request.options.report)
    report = _report(request)
    if path is not None:
        write_report_file(report.as_dict(), path)
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
        from causeway.spark import groups_job as through_spark

        return through_spark.run(
            deployment, flow.name, (source, target), say=request.progress, writes=request.options.sync
        )
    from causeway.usecases.groups.sync import sync_groups

    return sync_groups(
        flow,
        deployment.groups[flow.name],
        source,
        target,
        request.progress,
        writes=request.options.sync,
    )


def _text_of_all(report: GroupsReport) -> str:
    from causeway.core.groups.report import report_lines, spelled
    from causeway.core.groups.sync_rules import IS_WELL

    rows = []
    for group in report.groups:
        outcomes = report.of_group(group)
        well = sum(count for outcome, count in outcomes.items() if outcome in IS_WELL)
        at_ms, why = report.result.synced_ms.get(group), spelled(report.in_words(group))
        age = None if at_ms is None else f"{rfc3339(at_ms)} ({how_long_ago(at_ms, report.at_ms)})"
        rows.append((group, sum(outcomes.values()), well, age, why))
    rows += [(group, 0, 0, None, f"excluded, {why}") for group, why in report.excluded.items()]
    lines = [
        table(("GROUP", "PARTITIONS", "WELL", "LAST SYNCED", "WHY"), rows),
        "",
        *map(one_line, report_lines(report, names_excluded=False)),
        *_about_syncs(report),
    ]
    return "\n".join(lines)


def _about_syncs(report: GroupsReport) -> list[str]:
    """Who commits the offsets, and what LAST SYNCED counts."""
    if not report.syncs_offsets:
        return [f"{report.flow} commits no group offsets: sync.group.offsets.enabled is false in flows.yaml"]
    lines = [
        "LAST SYNCED: when Causeway last committed an offset of this group on the target; an offset that has "
        "not changed is committed again after 24 h"
    ]
    if report.fenced:
        lines.append(
            f"{report.flow} is fenced {report.fenced}: no group sync commits; "
            f"`causeway next {report.flow}` says what comes next"
        )
    elif report.would_commit:
        lines.append(f"`causeway groups {report.flow} --sync` commits; so does `causeway run` at its end")
    return lines


def _text_of_one(report: GroupsReport, group: str) -> str:
    if group in report.excluded:
        return one_line(f"{group}: excluded, {report.excluded[group]}")
    from causeway.core.groups.report import WOULD_BE_SYNCED, spelled

    rows = [
        (
            str(row.source),
            row.source_next,
            str(row.target),
            row.target_next,
            row.before,
            WOULD_BE_SYNCED if _is_due(report, row) else str(row.outcome),
            None if row.synced_ms is None else rfc3339(row.synced_ms),
            row.why,
        )
        for row in report.result.rows
        if row.group == group
    ]
    headers = ("SOURCE", "OFFSET", "TARGET", "OFFSET", "BEFORE", "OUTCOME", "LAST SYNCED", "WHY")
    return f"{table(headers, rows)}\n\n{one_line(group)}: {spelled(report.in_words(group))}"


def _is_due(report: GroupsReport, row: Verdict) -> bool:
    """It looks synced, and only a run would make it so."""
    from causeway.core.groups.sync_rules import Outcome

    return not report.wrote and row.outcome is Outcome.SYNCED and row.commit is not None
