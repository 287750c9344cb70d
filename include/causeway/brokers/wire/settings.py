"""Settings of topics and of brokers, as they are in force. Only asks.

What this user may not see is None.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kafka.protocol.admin import DescribeConfigsRequest

from causeway.brokers.transport.connection import Wire
from causeway.core.copy.ports import Unreachable
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.kernel.kafka_errors import error_name

TOPIC = 2
BROKER = 4
_DENIED = {Code.TOPIC_AUTHORIZATION_FAILED, Code.CLUSTER_AUTHORIZATION_FAILED}


async def topic_settings(wire: Wire, names: Sequence[str]) -> Mapping[str, Mapping[str, str] | None]:
    """In force; None: this user may not see them. A topic that isn't there is left out.

    :raises Unreachable: no answer, or one that says nothing.
    """
    return await settings_of(wire, TOPIC, names)


async def settings_of(
    wire: Wire, kind: int, names: Sequence[str], node: int | None = None
) -> dict[str, Mapping[str, str] | None]:
    """In force, by name; a broker's own must be asked of that broker."""
    if not names:
        return {}
    resource = DescribeConfigsRequest.DescribeConfigsResource
    request = DescribeConfigsRequest(
        resources=[
            resource(resource_type=kind, resource_name=name, configuration_keys=None) for name in names
        ],
        include_synonyms=False,
        include_documentation=False,
    )
    answer = await (wire.ask_anyone(request) if node is None else wire.send(request, node))
    return {
        result.resource_name: _settings_of(wire, result)
        for result in answer.results
        if result.error_code != Code.UNKNOWN_TOPIC_OR_PARTITION  # this broker doesn't know it yet
    }


def _settings_of(wire: Wire, result: Any) -> dict[str, str] | None:
    if result.error_code in _DENIED:
        return None
    if result.error_code:
        raise Unreachable(
            f"settings of {result.resource_name} on {wire.endpoint}: {error_name(result.error_code)}"
        )
    return {entry.name: entry.value for entry in result.configs if entry.value is not None}
