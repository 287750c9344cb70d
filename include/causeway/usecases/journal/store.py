"""The journal of failovers on the target: read whole, written in one piece per step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from causeway.brokers.admin.topics import ClusterAdmin
from causeway.core.copy.ports import Unreachable
from causeway.core.journal.journal import Journal, fold
from causeway.core.journal.journal_format import FAILOVERS_TOPIC, flow_of_key, journal_record
from causeway.core.kernel.acl_vocabulary import Operation
from causeway.core.kernel.errors import NotAuthorized, ProtocolFault
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.model.flow import Flow
from causeway.core.topics.plan import NewTopicPlan
from causeway.usecases.run_lock.internal_topics import create_missing_topics
from causeway.usecases.session.both_clusters import state_on
from causeway.usecases.session.source_may_be_gone import FlowSession

_JOURNAL = TopicPartition(FAILOVERS_TOPIC, 0)
_SETTINGS = (("cleanup.policy", "compact"),)


async def read_journal(sides: FlowSession, flow: str, *, least: int = 0) -> Journal:
    """For this flow; what can't be read of another one is left out as foreign records are. Empty where there
    never was a failover. `least`: up to there it was acknowledged.

    :raises Unreachable: its leader answers less than that: it may be cut off from the other brokers.
    :raises NotAuthorized: there may have been one, and this user may not see it.
    :raises ProtocolFault: a record of it can't be read, and nobody has named it (`causeway recover`).
    """
    described = (await sides.target.wire.topics([FAILOVERS_TOPIC]))[FAILOVERS_TOPIC]
    if described.lacks(Operation.READ):
        raise sides.target.wire.lacks_right(FAILOVERS_TOPIC, Operation.READ)
    journal = Journal()
    if described.error == Code.UNKNOWN_TOPIC_OR_PARTITION and not least:
        return journal
    end = await sides.target.end_of(_JOURNAL)
    if end < least:
        raise Unreachable(f"{_JOURNAL} ends at {end}, though it has taken records up to {least}")
    named: frozenset[str] | None = None
    async for record in sides.target.records(_JOURNAL, 0, end):
        try:
            journal = fold(journal, record.offset, record.key, record.value)
        except ProtocolFault:
            if flow_of_key(record.key) != flow:
                journal = replace(journal, foreign=(*journal.foreign, record.offset))
                continue
            named = await _records_named(sides) if named is None else named
            if journal_record(record.offset) not in named:
                raise
    if journal.foreign:
        named = await _records_named(sides) if named is None else named
        kept = tuple(offset for offset in journal.foreign if journal_record(offset) not in named)
        journal = replace(journal, foreign=kept)
    return journal


async def _records_named(sides: FlowSession) -> frozenset[str]:
    """Records that a person has named, to be left out without a word."""
    await state_on(sides.target, "")
    return sides.target.stepped_over


async def seen_journal(sides: FlowSession, flow: str) -> Journal:
    """Empty also where this user may not see it: an operator who fails over sees that before any question."""
    try:
        return await read_journal(sides, flow)
    except NotAuthorized:
        return Journal()


async def write_journal(sides: FlowSession, records: Iterable[tuple[bytes, bytes]]) -> None:
    await sides.target.append_many(FAILOVERS_TOPIC, records)


async def proved_journal(sides: FlowSession, flow: str, record: tuple[bytes, bytes]) -> Journal:
    """The journal up to this record, which is written first: no leader that was deposed can hide a word."""
    (at,) = await sides.target.append_each(FAILOVERS_TOPIC, [record])
    return await read_journal(sides, flow, least=at + 1)


async def create_journal(flow: Flow, sides: FlowSession) -> None:
    existing = frozenset(await sides.target.wire.topics(None))
    plan = NewTopicPlan(FAILOVERS_TOPIC, 1, _SETTINGS, flow.own_replication_factor)
    create_missing_topics((plan,), ClusterAdmin(sides.target.wire.endpoint), existing)
