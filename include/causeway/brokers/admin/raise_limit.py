"""Raise a limit of a topic, and nothing else: the only setting that a copy ever changes."""

from __future__ import annotations

from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from causeway.brokers.admin.probe import SILENT
from causeway.brokers.error_map import mapped
from causeway.core.kernel.endpoint import ClusterEndpoint

_REQUEST_SECONDS = 30.0


def raise_topic_limit(endpoint: ClusterEndpoint, topic: str, setting: str, value: int) -> None:
    """Incremental: the topic's other settings stay as they are.

    :raises CausewayError: why it can't be done.
    """
    entry = ConfigEntry(setting, str(value), incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    with mapped(cluster=endpoint, resource=topic, operation="AlterConfigs"):
        client = AdminClient(dict(endpoint.settings), logger=SILENT)
        for answer in client.incremental_alter_configs([resource], request_timeout=_REQUEST_SECONDS).values():
            answer.result()
