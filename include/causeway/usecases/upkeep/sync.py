"""Drift and sync of a flow's mirrors: what differs from the source, and making it equal again.

Looking is free of consequences: nothing is written anywhere. A sync acts on the mirrors that the flow has
begun with, and on no flow that is fenced: what was failed over to belongs to its users from then on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from causeway.brokers.admin.topics import ClusterAdmin
from causeway.core.copy.ports import OutcomeUnknown, Unreachable
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import CausewayError, ClusterUnreachable
from causeway.core.model.flow import Flow
from causeway.core.state.acl import Acl
from causeway.core.topics.setting_drift import SettingDrift
from causeway.usecases.run_lock.ownership import refuse_fenced
from causeway.usecases.session.blocking import blocking
from causeway.usecases.session.both_clusters import Clusters, admins, run_at_both
from causeway.usecases.session.flows_topic_health import refuse_unsound
from causeway.usecases.upkeep.acls import AclsDone, AclView, read_acl_view, sync_acls
from causeway.usecases.upkeep.mirrors import Mirrors, see_mirrors
from causeway.usecases.upkeep.settings import (
    SettingsView,
    read_settings_view,
    rehearse_settings,
    sync_settings,
)
from causeway.usecases.upkeep.still_open import StillOpen

T = TypeVar("T")


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


def read_drift(flow: Flow, source: ClusterEndpoint, target: ClusterEndpoint) -> Drift:
    """:raises CausewayError: a cluster can't be used; what can't be seen of a topic is in the drift."""
    return _run(flow, source, target, lambda clusters: _drift(flow, clusters))


def sync_flow(flow: Flow, source: ClusterEndpoint, target: ClusterEndpoint, *, dry_run: bool) -> Synced:
    """:raises FlowFenced: the mirrors aren't this flow's to change.

    :raises CausewayError: a cluster can't be used; refusals of single topics are in the result.
    """

    async def work(clusters: Clusters) -> Synced:
        drift = await _drift(flow, clusters)
        state = await clusters.flow_state(flow)
        await refuse_unsound(flow, clusters.target, state)
        refuse_fenced(flow.name, state)
        if dry_run:
            return await _rehearsed(drift, ClusterAdmin(target))
        still_open = StillOpen(flow, clusters)
        settings = await sync_settings(flow, clusters, drift.settings.changes, still_open)
        acls = await sync_acls(flow, clusters, still_open) if drift.acls.plan is not None else AclsDone()
        unseen = (acls.unseen,) if acls.unseen is not None and drift.acls.error is None else ()
        return Synced(
            drift=drift,
            settings=settings.made,
            created=acls.created,
            removed=acls.removed,
            refused=tuple(dict.fromkeys((*settings.refused, *unseen, *acls.refused))),
            is_dry_run=False,
        )

    return _run(flow, source, target, work)


async def _rehearsed(drift: Drift, target: ClusterAdmin) -> Synced:
    settings, plan = await rehearse_settings(drift.settings.changes, target), drift.acls.plan
    return Synced(
        drift=drift,
        settings=settings.made,
        created=plan.to_create if plan else (),
        removed=plan.to_remove if plan else (),
        refused=tuple(dict.fromkeys(settings.refused)),
        is_dry_run=True,
    )


def _run(
    flow: Flow, source: ClusterEndpoint, target: ClusterEndpoint, work: Callable[[Clusters], Awaitable[T]]
) -> T:
    try:
        return run_at_both(source, target, work)
    except (Unreachable, OutcomeUnknown) as trouble:
        raise ClusterUnreachable(f"flow {flow.name}", rule=str(trouble), remedy="try again") from trouble


async def _drift(flow: Flow, clusters: Clusters) -> Drift:
    mirrors = await see_mirrors(flow, clusters)
    sides = admins(clusters.source.wire.endpoint, clusters.target.wire.endpoint)
    settings = await blocking(lambda: read_settings_view(flow, mirrors, *sides))
    acls = await read_acl_view(flow, mirrors, clusters)
    return Drift(mirrors=mirrors, settings=settings, acls=acls)
