"""What a cluster says of itself: versions, features, settings, rights, its clock. Only asks, changes nothing.

What this user may not see is None; what a broker is too old to tell is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any
from uuid import UUID

from kafka.protocol.admin import (
    DescribeAclsRequest,
    DescribeClusterRequest,
    DescribeGroupsRequest,
    DescribeQuorumRequest,
)
from kafka.protocol.metadata import ApiVersionsRequest, MetadataRequest

from causeway import __version__ as causeway_version
from causeway.brokers.transport.connection import GROUP, Wire
from causeway.brokers.wire.settings import BROKER, TOPIC, settings_of
from causeway.core.copy.ports import Unreachable
from causeway.core.kernel.acl_vocabulary import Operation
from causeway.core.kernel.cluster_facts import (
    BrokerFacts,
    ClockReading,
    ClusterView,
    Grant,
    TopicView,
    middle_reading,
)
from causeway.core.kernel.errors import NotAuthorized
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.kernel.kafka_errors import error_name

_ANY, _ALLOW, _PREFIXED = 1, 3, 4
_MOVING = {Code.COORDINATOR_LOAD_IN_PROGRESS, Code.COORDINATOR_NOT_AVAILABLE, Code.NOT_COORDINATOR}
_METADATA_LOG = "__cluster_metadata"
_TRIES, _PAUSE_SECONDS = 500, 0.02


async def describe_cluster(wire: Wire, nodes: Sequence[int]) -> ClusterView:
    """:raises Unreachable: one of its brokers doesn't answer."""
    apis = {node: await _ask_versions(wire, node) for node in nodes}
    first = apis[nodes[0]]
    has_authorizer, grants = await _authorizer(wire)
    return ClusterView(
        alias=wire.endpoint.alias,
        cluster_id=wire.cluster_id,
        principal=wire.endpoint.principal or "User:<the flow's>",
        brokers=tuple(
            [
                BrokerFacts(
                    node_id=node,
                    api_versions={api.api_key: api.max_version for api in answer.api_keys},
                    settings=(await settings_of(wire, BROKER, [str(node)], node))[str(node)],
                )
                for node, answer in apis.items()
            ]
        ),
        finalized={f.name: f.max_version_level for f in first.finalized_features or ()},
        supported={f.name: f.max_version for f in first.supported_features or ()},
        operations=await _cluster_operations(wire),
        has_authorizer=has_authorizer,
        grants=grants,
        clock=await _clock(wire),
    )


async def describe_topics(wire: Wire, names: Collection[str]) -> dict[str, TopicView]:
    """Those that are there and may be seen."""
    if not names:
        return {}
    answer = await wire.ask_anyone(_metadata_request(names))
    found = {topic.name: topic for topic in answer.topics if topic.partitions}
    settings = await settings_of(wire, TOPIC, list(found))
    return {
        name: TopicView(
            partitions=len(topic.partitions),
            fewest_replicas=min(len(p.replica_nodes) for p in topic.partitions),
            most_replicas=max(len(p.replica_nodes) for p in topic.partitions),
            settings=settings[name],
        )
        for name, topic in found.items()
        if name in settings
    }


async def wait_until_known(wire: Wire, nodes: Sequence[int], topic: str, partitions: int) -> None:
    """Until every broker knows all leaders: a coordinator that doesn't would refuse a new topic.

    :raises Unreachable: one of them still doesn't after a while.
    """
    for node in nodes:
        for _ in range(_TRIES):
            found = (await wire.send(_metadata_request([topic]), node)).topics[0]
            if sum(p.leader_id >= 0 for p in found.partitions) == partitions:
                break
            await wire.network.sleep(_PAUSE_SECONDS)
        else:
            raise Unreachable(f"broker {node} of {wire.endpoint} doesn't know the new topic {topic}")


async def group_state(wire: Wire, group: str) -> str:
    """Kafka's word, of groups of any kind; `Dead` is also one that was never there.

    :raises NotAuthorized: a group that may not be seen must not look dead.
    """
    request = DescribeGroupsRequest(groups=[group], min_version=3, max_version=5)
    for _ in range(_TRIES):
        found = (await wire.send(request, await wire.coordinator(group, GROUP))).groups[0]
        if found.error_code not in _MOVING:
            break
        wire.forget_coordinator(group, GROUP)
        await wire.network.sleep(_PAUSE_SECONDS)
    if found.error_code == Code.GROUP_AUTHORIZATION_FAILED:
        raise wire.not_authorized(found.error_code, group, Operation.DESCRIBE)
    if found.error_code:
        raise Unreachable(f"group {group} of {wire.endpoint}: {error_name(found.error_code)}")
    return str(found.group_state)


async def group_operations(wire: Wire, group: str) -> frozenset[int] | None:
    """Empty: the group may not even be described."""
    request = DescribeGroupsRequest(
        groups=[group], include_authorized_operations=True, min_version=3, max_version=5
    )
    try:
        node = await wire.coordinator(group, GROUP)
    except NotAuthorized:
        return frozenset()
    found = (await wire.send(request, node)).groups[0]
    if found.error_code == Code.GROUP_AUTHORIZATION_FAILED:
        return frozenset()
    return None if found.authorized_operations is None else frozenset(found.authorized_operations)


def _metadata_request(names: Collection[str]) -> MetadataRequest:
    return MetadataRequest(
        topics=[MetadataRequest.MetadataRequestTopic(name=name, topic_id=UUID(int=0)) for name in names],
        allow_auto_topic_creation=False,
        min_version=10,
        max_version=12,
    )


async def _ask_versions(wire: Wire, node: int) -> Any:
    request = ApiVersionsRequest(
        version=3, client_software_name="causeway", client_software_version=causeway_version
    )
    try:
        return await wire.send(request, node)
    except Unreachable as trouble:
        raise Unreachable(f"{wire.place_of(node)}: {trouble}") from trouble


async def _cluster_operations(wire: Wire) -> frozenset[int] | None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True, max_version=1)
    answer = await wire.ask_anyone(request)
    operations = frozenset(answer.authorized_operations or ())
    return operations or None  # without the right to Describe the broker lists none


async def _authorizer(wire: Wire) -> tuple[bool, tuple[Grant, ...] | None]:
    """Whether there is one, and all that it allows; None: may not be seen."""
    request = DescribeAclsRequest(
        resource_type_filter=_ANY,
        resource_name_filter=None,
        pattern_type_filter=_ANY,
        principal_filter=None,
        host_filter=None,
        operation=_ANY,
        permission_type=_ANY,
        min_version=1,
    )
    answer = await wire.ask_anyone(request)
    if answer.error_code == Code.SECURITY_DISABLED:
        return False, None
    if answer.error_code:
        return True, None
    return True, tuple(
        Grant(
            principal=acl.principal,
            resource_type=found.resource_type,
            name=found.resource_name,
            is_prefix=found.pattern_type == _PREFIXED,
            operation=acl.operation,
        )
        for found in answer.resources
        for acl in found.acls
        if acl.permission_type == _ALLOW
    )


async def _clock(wire: Wire) -> ClockReading | None:
    """The leading controller counts itself as caught up now, by its clock (Kafka 3.3 and newer)."""
    topic_type = DescribeQuorumRequest.TopicData
    partition = topic_type.PartitionData(partition_index=0)
    request = DescribeQuorumRequest(
        topics=[topic_type(topic_name=_METADATA_LOG, partitions=[partition])], max_version=1
    )
    asked = wire.network.time_ms()
    answer = await wire.send(request, wire.any_node())
    answered = wire.network.time_ms()
    if answer.error_code:
        return None
    found = answer.topics[0].partitions[0]
    times = [v.last_caught_up_timestamp for v in found.current_voters if v.replica_id == found.leader_id]
    return middle_reading(times[0], asked, answered) if times and times[0] > 0 else None
