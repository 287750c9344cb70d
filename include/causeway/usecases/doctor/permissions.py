"""What doctor sees of the rights for failover, drill and failback, and of what is kept of them. Only asks."""

from __future__ import annotations

from collections.abc import Collection

from causeway.brokers.wire.consumer_groups import ConsumerGroups
from causeway.brokers.wire.settings import topic_settings
from causeway.core.doctor.failover import rights_to_ask
from causeway.core.kernel.acl_vocabulary import NeededRight
from causeway.core.model.flow import Flow
from causeway.core.model.group_filter import FlowGroups
from causeway.core.permissions.flow import group_rights, needed_rights
from causeway.usecases.journal.store import seen_journal
from causeway.usecases.run_lock.missing_rights import lacking_rights
from causeway.usecases.session.both_clusters import Clusters
from causeway.usecases.session.source_may_be_gone import FlowSession


async def lacking_for_failover(
    flow: Flow, groups: FlowGroups, clusters: Clusters, topics: Collection[str]
) -> list[NeededRight]:
    """`topics`: those of the source that the flow mirrors. Of groups those that it sees to."""
    listed = await ConsumerGroups(clusters.source.wire).listed()
    names = {name for name in listed if groups.selects(name)} | groups.named
    settings = await topic_settings(clusters.source.wire, sorted(topics))
    compacted = {name for name, found in settings.items() if (found or {}).get("cleanup.policy") == "compact"}
    of_groups = () if groups.is_off else group_rights(flow, groups, names)
    judged = (*needed_rights(flow, topics), *of_groups)
    return await lacking_rights(rights_to_ask(flow, names, topics, compacted, judged), clusters.wires)


async def journal_of(flow: Flow, clusters: Clusters) -> str:
    """What is odd about it; empty: nothing, as far as this user may see it."""
    return (await seen_journal(FlowSession(clusters.network, clusters.target, None), flow.name)).note
