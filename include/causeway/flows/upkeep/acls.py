"""ACLs of mirrors: what differs from the source's, and the changes of a sync.

The ledger (`core/acl_ledger.py`) comes first for what is created and last for what is removed, so that a
death in between leaves no rule that Causeway made and doesn't know.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from causeway.brokers.acls import AclChanges, topic_acls
from causeway.core.acl_ledger import changed_patterns, entries
from causeway.core.acls import Acl, AclPlan, plan_acls
from causeway.core.endpoint import ClusterEndpoint
from causeway.core.errors import CausewayError, ClusterUnreachable, NotAuthorized
from causeway.core.flow import Flow
from causeway.core.flow_state import FlowState, acls_record
from causeway.core.naming import FLOWS_TOPIC
from causeway.core.ports import Unreachable
from causeway.flows.clusters import Clusters

SWITCHED_OFF = "sync.topic.acls.enabled is false"


@dataclass(frozen=True, slots=True, kw_only=True)
class AclView:
    plan: AclPlan | None
    """None: ACLs aren't looked at."""
    note: str = ""
    """Why they aren't."""
    error: CausewayError | None = None
    """This user may not look."""

    @property
    def would_change(self) -> bool:
        return self.plan is not None and bool(self.plan.to_create or self.plan.to_remove)


def look_at_acls(flow: Flow, state: FlowState, clusters: Clusters) -> AclView:
    if not flow.upkeep.sync_acls:
        return AclView(plan=None, note=SWITCHED_OFF)
    source, target = clusters.source.wire, clusters.target.wire
    try:
        here = clusters.network.run(lambda: topic_acls(source))
        there = clusters.network.run(lambda: topic_acls(target))
    except NotAuthorized as error:
        return AclView(plan=None, error=error)
    except Unreachable as trouble:
        raise ClusterUnreachable(f"flow {flow.name}", rule=str(trouble), remedy="try again") from trouble
    for alias, acls in ((flow.source, here), (flow.target, there)):
        if acls is None:
            return AclView(plan=None, note=f"{alias} has no authorizer: ACLs are skipped")
    assert here is not None
    assert there is not None
    plan = plan_acls(
        flow, _begun(flow, state), here, there, entries(state.acls), mirrored_by=_principal(target.endpoint)
    )
    return AclView(plan=plan)


def apply_acls(flow: Flow, clusters: Clusters, plan: AclPlan) -> dict[Acl, CausewayError]:
    """The rules that the target refused to add or to remove."""
    target = AclChanges(clusters.target.wire.endpoint)
    _write_ledger(flow, clusters, add=plan.to_create)
    not_made = target.create(plan.to_create)
    not_removed = target.remove(plan.to_remove)
    gone = [acl for acl in plan.to_remove if acl not in not_removed]
    never_came = [acl for acl, error in not_made.items() if not error.retriable]
    _write_ledger(flow, clusters, remove={*gone, *plan.to_forget, *never_came})
    return not_made | not_removed


def _write_ledger(
    flow: Flow, clusters: Clusters, *, add: Collection[Acl] = (), remove: Collection[Acl] = ()
) -> None:
    async def write() -> None:
        state = await clusters.target.flow_state(flow.name)
        for pattern, acls in changed_patterns(state.acls, add=add, remove=remove).items():
            await clusters.target.append_plain(FLOWS_TOPIC, *acls_record(flow.name, pattern, acls))

    if add or remove:
        clusters.network.run(write)


def _begun(flow: Flow, state: FlowState) -> Mapping[str, str]:
    """Also topics that are gone from the source: as long as their ACLs stand, so do those of the mirror."""
    return {
        pair.source_topic: mirror
        for mirror, pair in state.pairs.items()
        if flow.naming.covers(pair.source_topic) and flow.naming.target_topic(pair.source_topic) == mirror
    }


def _principal(endpoint: ClusterEndpoint) -> str:
    return f"User:{endpoint.settings.get('sasl.username', 'ANONYMOUS')}"
