"""ACLs of mirrors: what differs from the source's, and the changes of a sync.

The ledger (`core/acl_ledger.py`) comes first for what is created and last for what is removed, so that a
death in between leaves no rule that Causeway made and doesn't know; nor does another sync beside this one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from causeway.brokers.acls import AclChanges, topic_acls
from causeway.core.acl_ledger import Ledger
from causeway.core.acls import Acl, AclPlan, plan_acls
from causeway.core.endpoint import ClusterEndpoint
from causeway.core.errors import CausewayError, ClusterUnreachable, NotAuthorized
from causeway.core.flow import Flow
from causeway.core.flow_state import FlowState, acl_gone_record, acl_record
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
        flow, _begun(flow, state), here, there, state.acls.keys(), mirrored_by=_principal(target.endpoint)
    )
    return AclView(plan=plan)


def apply_acls(flow: Flow, clusters: Clusters, plan: AclPlan, ledger: Ledger) -> dict[Acl, CausewayError]:
    """The rules that the target refused to add or to remove. `ledger`: as the plan was made with it."""
    target, book = AclChanges(clusters.target.wire.endpoint), _Book(flow, clusters)
    entries = book.enter(plan.to_create)
    not_made = target.create(plan.to_create)
    never_came = {acl: entries[acl] for acl, error in not_made.items() if not error.retriable}
    standing = book.ledger()
    book.enter(acl for acl in plan.to_create if acl not in never_came and acl not in standing)
    not_removed = target.remove(plan.to_remove)
    gone = [acl for acl in (*plan.to_remove, *plan.to_forget) if acl not in not_removed]
    book.take_out({acl: ledger[acl] for acl in gone} | never_came)
    return not_made | not_removed


class _Book:
    """The ledger as it is written, beside whoever else writes it."""

    def __init__(self, flow: Flow, clusters: Clusters) -> None:
        self._flow, self._target, self._run = flow, clusters.target, clusters.network.run

    def ledger(self) -> Ledger:
        return self._run(lambda: self._target.flow_state(self._flow.name)).acls

    def enter(self, acls: Iterable[Acl]) -> dict[Acl, int]:
        """Also what is there already: whoever takes that entry out doesn't know of this creation."""
        return {acl: self._append(acl_record(self._flow.name, acl)) for acl in acls}

    def take_out(self, entries: Mapping[Acl, int]) -> None:
        for acl, entry in entries.items():
            self._append(acl_gone_record(self._flow.name, acl, entry=entry))

    def _append(self, record: tuple[bytes, bytes]) -> int:
        return self._run(lambda: self._target.append_plain(FLOWS_TOPIC, *record))


def _begun(flow: Flow, state: FlowState) -> Mapping[str, str]:
    """Also topics that are gone from the source: as long as their ACLs stand, so do those of the mirror."""
    return {
        pair.source_topic: mirror
        for mirror, pair in state.pairs.items()
        if flow.naming.covers(pair.source_topic) and flow.naming.target_topic(pair.source_topic) == mirror
    }


def _principal(endpoint: ClusterEndpoint) -> str:
    return f"User:{endpoint.settings.get('sasl.username', 'ANONYMOUS')}"
