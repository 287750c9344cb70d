"""A flow that keeps settings and ACLs up, and the rules of one user, amy, on either side."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from causeway.brokers.admin.acls import AclChanges, topic_acls
from causeway.core.model.flow import Upkeep
from causeway.core.state.acl import Acl
from causeway.lab.cluster import LabCluster
from causeway.usecases.session.both_clusters import open_clusters
from causeway.usecases.upkeep.sync import Drift, Synced, read_drift, sync_flow
from tests.integration.permissions.guarded import Guarded

Records = Iterable[tuple[bytes, bytes | None]]
ALL = Upkeep(sync_settings=True, sync_acls=True, emit_heartbeats=True, mirror_heartbeats=True)
BY_CERTIFICATE = "User:CN=amy,OU=data team,O=b"
AMY = ("User:amy", BY_CERTIFICATE)


def sync(guarded: Guarded, *, dry_run: bool = False) -> Synced:
    return sync_flow(guarded.flow, guarded.runs.source, guarded.runs.target, dry_run=dry_run)


def drift(guarded: Guarded) -> Drift:
    return read_drift(guarded.flow, guarded.runs.source, guarded.runs.target)


def add(cluster: LabCluster, *acls: Acl) -> None:
    assert asyncio.run(AclChanges(cluster.endpoint()).create(acls)) == {}


def remove(cluster: LabCluster, *acls: Acl) -> None:
    assert asyncio.run(AclChanges(cluster.endpoint()).remove(acls)) == {}


def of_amy(guarded: Guarded) -> set[Acl]:
    """Her rules on mirrors of this flow, by password or by certificate."""
    with open_clusters(guarded.source.endpoint(), guarded.target.endpoint()) as both:
        found = both.network.run(lambda: topic_acls(both.target.wire))
    assert found is not None
    mine = (f"{guarded.flow.source}.", guarded.orders, guarded.clicks)
    return {each for each in found if each.principal in AMY and each.topic.startswith(mine)}


def ledger(guarded: Guarded) -> frozenset[Acl]:
    with open_clusters(guarded.runs.source, guarded.runs.target) as both:
        return frozenset(both.network.run(lambda: both.flow_state(guarded.flow)).acls)


def of_amys(acls: Iterable[Acl]) -> set[Acl]:
    return {each for each in acls if each.principal == "User:amy"}
