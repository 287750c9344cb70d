"""Committed offsets of a group, by another client than the product's."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from causeway.brokers.transport.connection import Network, Wire
from causeway.brokers.wire.consumer_groups import ConsumerGroups
from causeway.core.copy.ports import Refused
from causeway.core.groups.sync_rules import Committed
from causeway.core.kernel.identity import TopicPartition as Place
from causeway.lab.clients import admin_client
from causeway.lab.cluster import LabCluster

_SECONDS = 60.0


def committed_places(cluster: LabCluster, group: str) -> list[TopicPartition]:
    """Without the metadata, which confluent-kafka can't read back: it takes bytes after its end."""
    _wait_for_coordinator(cluster, group)
    admin = admin_client(cluster.endpoint())
    (answer,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    places: list[TopicPartition] = answer.result(_SECONDS).topic_partitions
    return places


def committed_by_wire(cluster: LabCluster, group: str) -> Mapping[Place, Committed]:
    """With the metadata; by the product's own requests: they wait for a coordinator that still loads."""
    network = Network()
    wire = Wire(cluster.endpoint(), network)

    async def work() -> Mapping[Place, Committed]:
        await wire.connect()
        found = (await ConsumerGroups(wire).committed([group]))[group]
        assert not isinstance(found, Refused), found
        return found

    try:
        return network.run(work)
    finally:
        wire.disconnect()
        network.close()


def _wait_for_coordinator(cluster: LabCluster, group: str) -> None:
    """confluent-kafka ends the process (signal 11) if the coordinator answers that it is still loading, as
    one does on a cluster that started a moment ago."""
    committed_by_wire(cluster, group)
