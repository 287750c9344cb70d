"""What doctor sees of consumer groups. Only asks."""

from __future__ import annotations

from collections.abc import Sequence

from causeway.brokers.admin.topics import ClusterAdmin
from causeway.brokers.wire.consumer_groups import ConsumerGroups
from causeway.brokers.wire.describe import group_operations
from causeway.core.copy.ports import Refused
from causeway.core.doctor.groups import GroupFacts
from causeway.core.kernel.acl_vocabulary import Operation
from causeway.core.kernel.errors import NotAuthorized
from causeway.core.model.flow import Flow
from causeway.core.model.group_filter import FlowGroups
from causeway.usecases.groups.unprotected import unprotected_groups
from causeway.usecases.run_lock.internal_topics import group_topics
from causeway.usecases.session.both_clusters import Clusters

_MOST_ASKED = 100


async def read_group_facts(
    flow: Flow, groups: FlowGroups, clusters: Clusters, admin: ClusterAdmin
) -> GroupFacts:
    here = ConsumerGroups(clusters.source.wire)
    listed = await here.listed()
    selected = sorted(name for name in listed if groups.selects(name))
    answers = await here.committed(groups.named - listed.keys())
    return GroupFacts(
        selected=selected,
        hidden=sorted(name for name, answer in answers.items() if isinstance(answer, Refused)),
        lacking=await _lacking(flow, groups, clusters, admin),
        not_committable=await _not_committable(clusters, selected) if groups.sync_offsets else (),
        unprotected=await unprotected_groups(flow, groups, clusters.target, clusters.source),
    )


async def _lacking(
    flow: Flow, groups: FlowGroups, clusters: Clusters, admin: ClusterAdmin
) -> dict[str, list[Operation]]:
    wanted = group_topics(flow, groups)
    if not wanted:
        return {}
    found = await clusters.target.wire.topics([topic.name for topic in wanted])
    refused = admin.create_topics(
        [topic for topic in wanted if not found[topic.name].leaders], validate_only=True
    )
    lacking: dict[str, list[Operation]] = {}
    for topic in wanted:
        operations = [
            each for each in (Operation.READ, Operation.WRITE) if found[topic.name].lacks(each) is not None
        ]
        if isinstance(refused.get(topic.name), NotAuthorized):
            operations.append(Operation.CREATE)
        lacking[topic.name] = operations
    return lacking


async def _not_committable(clusters: Clusters, selected: Sequence[str]) -> list[str]:
    """Asked of some: where many are selected, rights are given by pattern."""
    found: list[str] = []
    for name in selected[:_MOST_ASKED]:
        operations = await group_operations(clusters.target.wire, name)
        if operations is not None and Operation.READ not in operations:
            found.append(name)
    return found
