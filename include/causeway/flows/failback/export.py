"""The divergent tail, kept on the new primary: what the old one has and nobody else ever got.

A topic for each topic that diverged, partition for partition; key, value, headers and time as they were, and
behind them where the record lies on the old primary. What is there already isn't written again, and at the
end both are read and compared, record by record.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from uuid import UUID

from causeway.brokers.admin import ClusterAdmin
from causeway.brokers.target_log import WireTarget
from causeway.core.errors import ProtocolFault, UnfitTarget
from causeway.core.failback.plan import Cut, FailbackPlan, export_topic
from causeway.core.identity import TopicPartition
from causeway.core.quarantine import CLUSTER, OFFSET, PARTITION, TOPIC, TOPIC_ID, new_quarantine_topic
from causeway.core.records import Headers, Record
from causeway.flows.failback.parting import Pairing
from causeway.flows.failback.writing import PortionWriter, decided_end
from causeway.flows.ownership import Say

_PORTION_BYTES = 8 << 20


async def export_tails(pairing: Pairing, plan: FailbackPlan, begun_ms: int, say: Say) -> dict[str, int]:
    """:returns: how many records each export holds, by its name.

    :raises ProtocolFault: an export differs from the tail; nothing may be dropped then.
    """
    wanted = [cut for cut in plan.cuts if cut.has_tail]
    if not wanted:
        return {}
    _make_topics(pairing, wanted, begun_ms)
    writer = await PortionWriter.claimed(pairing.forward, pairing.new)
    counts: dict[str, int] = {}
    for cut in wanted:
        place = TopicPartition(export_topic(cut.old.topic, begun_ms), cut.old.partition)
        await _copy(pairing, cut, place, writer)
        counts[place.topic] = counts.get(place.topic, 0) + await _compare(pairing, cut, place)
    for topic, count in counts.items():
        say(f"{plan.flow}: {count:,} divergent records are in {topic} too, compared one by one")
    return counts


def _make_topics(pairing: Pairing, cuts: Iterable[Cut], begun_ms: int) -> None:
    """Take any size and any time, and keep it."""
    partitions: dict[str, int] = {}
    for cut in cuts:
        name = export_topic(cut.old.topic, begun_ms)
        partitions[name] = max(partitions.get(name, 0), cut.old.partition + 1)
    factor = pairing.forward.own_replication_factor
    plans = [
        replace(new_quarantine_topic(name, factor), partitions=count) for name, count in partitions.items()
    ]
    admin = ClusterAdmin(pairing.new.wire.endpoint)
    for topic, why in admin.create_topics(plans).items():
        raise UnfitTarget(f"export {topic}", rule=str(why), remedy="grant Create on it, then run it again")
    admin.wait_for_leaders(partitions)


async def _copy(pairing: Pairing, cut: Cut, place: TopicPartition, writer: PortionWriter) -> None:
    """Behind what an earlier try has written."""
    at = cut.mirrored_next
    async for record in pairing.new.records(place, 0, await decided_end(pairing.new, place)):
        at = max(at, _origin(record) + 1)
    portion: list[Record] = []
    size_bytes = 0
    async for record in pairing.old.records(cut.old, at, cut.old_end):
        portion.append(_exported(record, cut, pairing.forward.source))
        size_bytes += len(record.key or b"") + len(record.value or b"")
        if size_bytes >= _PORTION_BYTES:
            await writer.write(place, portion)
            portion, size_bytes = [], 0
    if portion:
        await writer.write(place, portion)


async def _compare(pairing: Pairing, cut: Cut, place: TopicPartition) -> int:
    """How many there are, each once and in order."""
    new: WireTarget = pairing.new
    copies = new.records(place, 0, await decided_end(new, place))
    count = 0
    async for record in pairing.old.records(cut.old, cut.mirrored_next, cut.old_end):
        expected = _exported(record, cut, pairing.forward.source)
        copy = await anext(copies, None)
        while copy is not None and _origin(copy) < record.offset:
            copy = await anext(copies, None)  # the old primary's retention has taken it meanwhile
        if copy is None or replace(copy, offset=record.offset) != expected:
            raise _fault(place, f"differs from {cut.old} at offset {record.offset}")
        count += 1
    if (more := await anext(copies, None)) is not None:
        raise _fault(place, f"holds a record that {cut.old} doesn't: offset {more.offset}")
    return count


def _fault(place: TopicPartition, rule: str) -> ProtocolFault:
    return ProtocolFault(
        f"export {place}", rule=rule, remedy="nothing was dropped; delete that topic, then run it again"
    )


def _exported(record: Record, cut: Cut, alias: str) -> Record:
    return replace(
        record, headers=record.headers + _coordinates(cut.old, cut.old_topic_id, alias, record.offset)
    )


def _coordinates(old: TopicPartition, topic_id: UUID, alias: str, offset: int) -> Headers:
    told = (
        (CLUSTER, alias),
        (TOPIC, old.topic),
        (TOPIC_ID, str(topic_id)),
        (PARTITION, str(old.partition)),
        (OFFSET, str(offset)),
    )
    return tuple((name.encode(), text.encode()) for name, text in told)


def _origin(record: Record) -> int:
    """:raises ProtocolFault: not written by us."""
    name, value = record.headers[-1] if record.headers else (b"", None)
    if name != OFFSET.encode() or value is None or not value.isdigit():
        raise ProtocolFault(
            "a record of an export",
            value=record.offset,
            rule="has no place on the old primary in its headers",
        )
    return int(value)
