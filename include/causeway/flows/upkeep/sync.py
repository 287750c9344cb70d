"""Drift and sync of a flow's mirrors: what differs from the source, and making it equal again.

Looking is free of consequences: nothing is written anywhere. A sync acts on the mirrors that the flow has
begun with, and on no flow that is fenced: what was failed over to belongs to its users from then on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from causeway.core.acls import Acl
from causeway.core.endpoint import ClusterEndpoint
from causeway.core.errors import CausewayError, ClusterUnreachable
from causeway.core.flow import Flow
from causeway.core.ports import Doubt, Unreachable
from causeway.core.setting_drift import SettingDrift
from causeway.flows.clusters import Clusters, admins, open_clusters
from causeway.flows.ownership import refuse_fenced
from causeway.flows.upkeep.acls import AclView, apply_acls, look_at_acls
from causeway.flows.upkeep.mirrors import Mirrors, see_mirrors
from causeway.flows.upkeep.settings import SettingsView, apply_settings, look_at_settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """What differs, before anything was done about it."""

    mirrors: Mirrors
    settings: SettingsView
    acls: AclView

    @property
    def would_change(self) -> bool:
        return bool(self.settings.changes) or self.acls.would_change


@dataclass(frozen=True, slots=True, kw_only=True)
class Synced:
    """What was changed, or of a dry run would be."""

    drift: Drift
    settings: tuple[SettingDrift, ...]
    created: tuple[Acl, ...]
    removed: tuple[Acl, ...]
    refused: tuple[CausewayError, ...]
    """By the target, with its reasons."""
    is_dry_run: bool


def look_at_drift(flow: Flow, source: ClusterEndpoint, target: ClusterEndpoint) -> Drift:
    """:raises CausewayError: a cluster can't be used; what can't be seen of a topic is in the drift."""
    with _opened(flow, source, target) as clusters:
        return _drift(flow, clusters)


def sync_flow(flow: Flow, source: ClusterEndpoint, target: ClusterEndpoint, *, dry_run: bool) -> Synced:
    """:raises FlowFenced: the mirrors aren't this flow's to change.

    :raises CausewayError: a cluster can't be used; refusals of single topics are in the result.
    """
    with _opened(flow, source, target) as clusters:
        drift = _drift(flow, clusters)
        refuse_fenced(flow.name, clusters.network.run(lambda: clusters.flow_state(flow)))
        _, target_admin = admins(source, target)
        not_set = apply_settings(drift.settings.changes, target_admin, dry_run=dry_run)
        plan = drift.acls.plan
        not_done: dict[Acl, CausewayError] = {}
        if plan is not None and not dry_run:
            not_done = apply_acls(flow, clusters, plan, drift.mirrors.state.acls)
        return Synced(
            drift=drift,
            settings=tuple(each for each in drift.settings.changes if each not in not_set),
            created=tuple(acl for acl in plan.to_create if acl not in not_done) if plan else (),
            removed=tuple(acl for acl in plan.to_remove if acl not in not_done) if plan else (),
            refused=tuple(dict.fromkeys((*not_set.values(), *not_done.values()))),
            is_dry_run=dry_run,
        )


@contextmanager
def _opened(flow: Flow, source: ClusterEndpoint, target: ClusterEndpoint) -> Iterator[Clusters]:
    try:
        with open_clusters(source, target) as clusters:
            yield clusters
    except (Unreachable, Doubt) as trouble:
        raise ClusterUnreachable(f"flow {flow.name}", rule=str(trouble), remedy="try again") from trouble


def _drift(flow: Flow, clusters: Clusters) -> Drift:
    mirrors = see_mirrors(flow, clusters)
    source, target = clusters.source.wire.endpoint, clusters.target.wire.endpoint
    return Drift(
        mirrors=mirrors,
        settings=look_at_settings(flow, mirrors, *admins(source, target)),
        acls=look_at_acls(flow, mirrors, clusters),
    )
