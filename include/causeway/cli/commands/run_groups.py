"""What `causeway run` does at its end for consumer groups: what the DAG's groups task does after its copy.

Only where flows.yaml has `sync.group.offsets.enabled`, by the flow's own rules. The copy is done by then and
its exit code stays, with one exception: if it is 0, and the sync fails, the exit code is the sync's.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from causeway.core.kernel.errors import CausewayError
from causeway.core.kernel.plurals import counted

if TYPE_CHECKING:
    from causeway.config.flows_file.deployment import Deployment
    from causeway.core.groups.report import GroupsReport
    from causeway.core.kernel.endpoint import ClusterEndpoint
    from causeway.core.model.flow import Flow
    from causeway.usecases.run_lock.ownership import Say


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupsAfterRun:
    payload: dict[str, object] | None = None
    """None: groups weren't asked for."""
    lines: list[str] = field(default_factory=list)
    exit_code: int = 0


def sync_groups_after_run(
    deployment: Deployment, flow: Flow, endpoints: tuple[ClusterEndpoint, ClusterEndpoint], say: Say
) -> GroupsAfterRun:
    if not deployment.groups[flow.name].sync_offsets:
        return GroupsAfterRun()
    again = f"`causeway groups {flow.name} --sync`"
    try:
        report = _synced(deployment, flow, endpoints, say)
    except CausewayError as error:
        return GroupsAfterRun(
            payload={**error.as_dict(), "message": str(error), "exit_code": error.exit_code},
            lines=[f"GROUPS NOT SYNCED: {error}", f"The records are copied. Sync the groups with {again}"],
            exit_code=error.exit_code,
        )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"the records are copied, the groups aren't all synced; {again} goes on"
        ) from None
    return GroupsAfterRun(payload=report.as_dict(with_places=False), lines=[_groups_line(report)])


def _synced(
    deployment: Deployment, flow: Flow, endpoints: tuple[ClusterEndpoint, ClusterEndpoint], say: Say
) -> GroupsReport:
    from causeway.spark import groups_job as through_spark
    from causeway.usecases.groups.sync import MOST_IN_ONE_TASK, sync_groups, weigh_groups

    rules = deployment.groups[flow.name]
    if weigh_groups(flow, rules, *endpoints) > MOST_IN_ONE_TASK:
        return through_spark.run(deployment, flow.name, endpoints, say=say, writes=True)
    return sync_groups(flow, rules, *endpoints, say, writes=True)


def _groups_line(report: GroupsReport) -> str:
    from causeway.core.groups.report import spelled

    words = spelled(report.in_words()) or "there is none"
    return (
        f"{report.flow}: group offsets: {words}; {counted(report.result.commits, 'offset')} committed; "
        f"`causeway groups {report.flow}` shows each"
    )
