"""Whether the return of the groups, which somebody wants to take back, has completed its failback.

The journal of the cluster that the groups came from says so. From then on the forward flow mirrors again, and
a planned switch is what moves the groups away.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from causeway.core.copy.ports import Unreachable
from causeway.core.episode.episodes import homecomings
from causeway.core.failback.divergence import FailbackRun
from causeway.core.failover.request import Mode
from causeway.core.journal.journal import FailoverRun, Status
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import BadInput, ClusterUnreachable
from causeway.core.kernel.timestamps import rfc3339
from causeway.core.model.flow import Flow
from causeway.core.state.repair_commands import next_command
from causeway.usecases.journal.store import read_journal
from causeway.usecases.session.source_may_be_gone import FlowSession, run_in_target_session


@dataclass(frozen=True, slots=True)
class CameFrom:
    """Where the groups of a homecoming came from: that cluster knows whether all is home."""

    cluster: ClusterEndpoint
    flows: Sequence[Flow]
    """To which they may have returned."""


def refuse_home(run: FailoverRun, came_from: CameFrom | None) -> None:
    """:raises BadInput: the failback that this has returned the groups for is completed: the other flow
    mirrors on. | :raises ClusterUnreachable: nobody says whether it is."""
    if run.wish.mode is not Mode.HOME or run.status is not Status.DONE or came_from is None:
        return
    back = _completed_by(run, came_from)
    if back is not None:
        raise BadInput(
            f"failover {run.run}",
            rule=f"can't be taken back any more: it has completed failback {back.run}, and all is home since "
            f"{rfc3339(back.at_ms)}",
            remedy=f"{next_command(back.flow)} says where the flow is; `causeway failover {back.flow} "
            "--planned` moves the groups away again",
        )


def _completed_by(run: FailoverRun, came_from: CameFrom) -> FailbackRun | None:
    async def look(sides: FlowSession) -> list[FailbackRun]:
        journals = [(await read_journal(sides, flow.name), flow.name) for flow in came_from.flows]
        return [back for journal, name in journals for back in homecomings(journal, name)]

    try:
        found = run_in_target_session(came_from.cluster, look)
    except (ClusterUnreachable, Unreachable) as silent:
        raise ClusterUnreachable(
            f"rollback of failover {run.run}",
            rule=f"needs {came_from.cluster.alias}, which can't be asked whether all is home: {silent}",
            remedy=f"wait until {came_from.cluster.alias} answers; nothing was put back",
        ) from silent
    return next((back for back in found if back.facts.get("moved") == run.run), None)
