"""The journal of failovers on the target: read whole, written in one piece per step."""

from __future__ import annotations

from collections.abc import Iterable

from causeway.brokers.admin import ClusterAdmin
from causeway.core.failover.journal import FAILOVERS_TOPIC, Journal, fold
from causeway.core.flow import Flow
from causeway.core.identity import TopicPartition
from causeway.core.kafka_errors import KafkaErrorCode as Code
from causeway.core.rights import Operation
from causeway.core.topics import NewTopicPlan
from causeway.flows.failover.sides import Sides
from causeway.flows.internal_topics import create_missing_topics

_SETTINGS = (("cleanup.policy", "compact"),)


async def read_journal(sides: Sides) -> Journal:
    """Empty where there never was a failover.

    :raises NotAuthorized: there may have been one, and this user may not see it.
    """
    described = (await sides.target.wire.topics([FAILOVERS_TOPIC]))[FAILOVERS_TOPIC]
    if described.lacks(Operation.READ):
        raise sides.target.wire.lacks_right(FAILOVERS_TOPIC, Operation.READ)
    journal = Journal()
    if described.error == Code.UNKNOWN_TOPIC_OR_PARTITION:
        return journal
    async for record in sides.target.visible_records(TopicPartition(FAILOVERS_TOPIC, 0)):
        journal = fold(journal, record.offset, record.key, record.value)
    return journal


async def write_journal(sides: Sides, records: Iterable[tuple[bytes, bytes]]) -> None:
    await sides.target.append_many(FAILOVERS_TOPIC, records)


async def create_journal(flow: Flow, sides: Sides) -> None:
    existing = frozenset(await sides.target.wire.topics(None))
    plan = NewTopicPlan(FAILOVERS_TOPIC, 1, _SETTINGS, flow.own_replication_factor)
    create_missing_topics((plan,), ClusterAdmin(sides.target.wire.endpoint), existing)
