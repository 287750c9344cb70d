"""Drift and sync of a flow's mirrors: what differs from the source, and making it equal again.

Looking is free of consequences: nothing is written anywhere. A sync acts on the mirrors that the flow has
begun with, and on no flow that is fenced: what was failed over to belongs to its users from then on.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from causeway.brokers.admin import ClusterAdmin
from causeway.core.acls import Acl
from causeway.core.endpoint import ClusterEndpoint
from causeway.core.errors import CausewayError, ClusterUnreachable
from causeway.core.flow import Flow
from causeway.core.ports import Doubt, Unreachable
from causeway.core.setting_drift import SettingDrift
from causeway.flows.clusters import Clusters, admins, open_clusters
from causeway.flows.log_health import refuse_unsound
from causeway.flows.ownership import refuse_fenced
from causeway.flows.upkeep.acls import AclsDone, AclView, look_at_acls, sync_acls
from causeway.flows.upkeep.mirrors import Mirrors, see_mirrors
from causeway.flows.upkeep.settings import (
    SettingsView,
    look_at_settings,
    rehearse_settings,
    sync_settings,
)
from causeway.flows.upkeep.still_open import StillOpen


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
        state = clusters.network.run(lambda: clusters.flow_state(flow))
        clusters.network.run(lambda: refuse_unsound(flow, clusters.target, state))
        refuse_fenced(flow.name, state)
        if dry_run:
            return _rehearsed(drift, ClusterAdmin(target))
        still_open = StillOpen(flow, clusters)
        settings = sync_settings(flow, clusters, drift.settings.changes, still_open)
        acls = sync_acls(flow, clusters, still_open) if drift.acls.plan is not None else AclsDone()
        unseen = (acls.unseen,) if acls.unseen is not None and drift.acls.error is None else ()
        return Synced(
            drift=drift,
            settings=settings.made,
            created=acls.created,
            removed=acls.removed,
            refused=tuple(dict.fromkeys((*settings.refused, *unseen, *acls.refused))),
            is_dry_run=False,
        )


def _rehearsed(drift: Drift, target: ClusterAdmin) -> Synced:
    settings, plan = rehearse_settings(drift.settings.changes, target), drift.acls.plan
    return Synced(
        drift=drift,
        settings=settings.made,
        created=plan.to_create if plan else (),
        removed=plan.to_remove if plan else (),
        refused=tuple(dict.fromkeys(settings.refused)),
        is_dry_run=True,
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
