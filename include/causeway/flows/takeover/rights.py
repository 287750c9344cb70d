"""The rights that a takeover needs, asked for before anything is compared or written. Only asks: what would
come of making a topic is a dry run."""

from __future__ import annotations

from collections.abc import Iterable

from causeway.brokers.admin import ClusterAdmin
from causeway.brokers.inspection import group_operations
from causeway.core.errors import NotAuthorized
from causeway.core.flow import Flow
from causeway.core.kafka_errors import KafkaErrorCode as Code
from causeway.core.rights import NeededRight, Operation, takeover_rights
from causeway.core.takeover import MirrorMakerPlaces
from causeway.flows.clusters import Clusters
from causeway.flows.internal_topics import inherited_topic


async def refuse_without_rights(
    flow: Flow, places: MirrorMakerPlaces, clusters: Clusters, admin: ClusterAdmin
) -> None:
    """:raises NotAuthorized: the first right that is missing, with its grant."""
    for right in await lacking_rights(flow, takeover_rights(flow, places), clusters, admin):
        code = (
            Code.GROUP_AUTHORIZATION_FAILED if right.resource == "group" else Code.TOPIC_AUTHORIZATION_FAILED
        )
        wire = (clusters.source if right.side == "source" else clusters.target).wire
        raise wire.not_authorized(int(code), right.name, right.operation)


async def lacking_rights(
    flow: Flow, needed: Iterable[NeededRight], clusters: Clusters, admin: ClusterAdmin
) -> list[NeededRight]:
    """Those of a takeover's rights that this user doesn't have. `admin` is the target's."""
    return [right for right in needed if await _is_lacking(flow, right, clusters, admin)]


async def _is_lacking(flow: Flow, right: NeededRight, clusters: Clusters, admin: ClusterAdmin) -> bool:
    wire = (clusters.source if right.side == "source" else clusters.target).wire
    if right.resource == "group":
        operations = await group_operations(wire, right.name)
        return operations is not None and right.operation not in operations
    described = (await wire.topics([right.name]))[right.name]
    if right.operation is not Operation.CREATE:
        return described.lacks(right.operation) is not None
    if described.leaders:
        return False
    refused = admin.create_topics([inherited_topic(flow)], validate_only=True)
    return isinstance(refused.get(right.name), NotAuthorized)
