"""The divergent tail, kept on the new primary: what the old one has and nobody else ever got.

A topic for each topic that diverged, partition for partition; key, value, headers and time as they were, and
after them where the record lies on the old primary. What is there already isn't written again, and at the end
both are read and compared, record by record.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from causeway.brokers.admin.topics import ClusterAdmin
from causeway.brokers.wire.log_reader import READ_UNCOMMITTED
from causeway.core.failback.divergence import Divergence, FailbackPlan, export_topic
from causeway.core.kernel.errors import NotAuthorized, ProtocolFault, UnfitTarget
from causeway.core.kernel.identity import TopicPartition
from causeway.core.records.records import Headers, Record
from causeway.core.topics.quarantine import CLUSTER, OFFSET, PARTITION, TOPIC, TOPIC_ID, new_quarantine_topic
from causeway.usecases.failback.divergence import FailbackSession, bounds
from causeway.usecases.run_lock.command_fence import CommandFence
from causeway.usecases.run_lock.ownership import Say
from causeway.usecases.run_lock.transactional_writer import PortionWriter, decided_end

_PORTION_BYTES = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What was compared. Nobody drops anything without one, nor anything after its ends."""

    exports: Mapping[str, int]
    """Records that each export holds, by its name."""
    ends: Mapping[TopicPartition, int]
    """Up to here nothing of the old primary's divergent tails is there alone."""


async def export_tails(
    pairing: FailbackSession,
    plan: FailbackPlan,
    begun_ms: int,
    say: Say,
    own: CommandFence,
    held: Mapping[str, int] | None = None,
) -> Kept:
    """Under the forward flow's fence, `own`.

    `held`: what exports of the same failback held when they were compared before.

    :raises ProtocolFault: an export differs from the tail; nothing may be dropped then.
    """
    held = held or {}
    topics = {cut.old.topic for cut in plan.cuts if cut.has_tail}
    topics |= {cut.old.topic for cut in plan.cuts if export_topic(cut.old.topic, begun_ms) in held}
    wanted = [cut for cut in plan.cuts if cut.old.topic in topics]
    counts: dict[str, int] = {}
    if wanted:
        _make_topics(pairing, wanted, begun_ms)
        writer = await PortionWriter.claimed(pairing.forward, pairing.new, own)
        for cut in wanted:
            place = TopicPartition(export_topic(cut.old.topic, begun_ms), cut.old.partition)
            await _copy(pairing, cut, place, writer)
            counts[place.topic] = counts.get(place.topic, 0) + await _compare(pairing, cut, place)
    for topic, count in counts.items():
        _refuse_shrunk(topic, count, held.get(topic, 0))
        say(f"{plan.flow}: {count:,} divergent records are in {topic} too, compared one by one")
    return Kept(exports=counts, ends={cut.old: cut.old_end for cut in plan.cuts})


def _refuse_shrunk(topic: str, count: int, held: int) -> None:
    if count < held:
        raise ProtocolFault(
            f"export {topic}",
            value=f"{count} records",
            rule=f"held {held} when it was compared, and what it lost may be nowhere else",
            remedy="nothing more was dropped; find out who deletes there",
        )


def _make_topics(pairing: FailbackSession, cuts: Iterable[Divergence], begun_ms: int) -> None:
    """Partition for partition; take any size and any time, and keep it."""
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
        if isinstance(why, NotAuthorized):
            raise why
        raise UnfitTarget(f"export {topic}", rule=str(why), remedy="cure that, then run it again")
    admin.wait_for_leaders(partitions)


async def _copy(
    pairing: FailbackSession, cut: Divergence, place: TopicPartition, writer: PortionWriter
) -> None:
    """After what an earlier try has written."""
    at = cut.tail_from
    async for record in pairing.new.records(place, 0, await decided_end(pairing.new, place)):
        at = max(at, _origin(record, place) + 1)
    portion: list[Record] = []
    size_bytes = 0
    async for record in pairing.old.records(cut.old, at, cut.old_end):
        portion.append(_exported(record, cut, pairing))
        size_bytes += len(record.key or b"") + len(record.value or b"")
        if size_bytes >= _PORTION_BYTES:
            await writer.write(place, portion)
            portion, size_bytes = [], 0
    if portion:
        await writer.write(place, portion)


async def _compare(pairing: FailbackSession, cut: Divergence, place: TopicPartition) -> int:
    """How many there are, each once and in order; what the old primary has no more was compared before."""
    originals = pairing.old.records(cut.old, cut.tail_from, cut.old_end)
    original, gone, before, count = await anext(originals, None), cut.old_start, -1, 0
    async for copy in pairing.new.records(place, 0, await decided_end(pairing.new, place)):
        at, count = _origin(copy, place), count + 1
        if at <= before:
            raise _fault(place, f"holds offset {at} of {cut.old} after offset {before}")
        before = at
        if original is None or at < original.offset:
            gone = gone if at < gone else await _start(pairing, cut)
            if at >= gone:
                raise _fault(place, f"holds a record that {cut.old} doesn't: offset {at}")
        elif at == original.offset and replace(copy, offset=at) == _exported(original, cut, pairing):
            original = await anext(originals, None)
        else:
            raise _fault(place, f"differs from {cut.old} at offset {original.offset}")
    if original is not None:
        raise _fault(place, f"lacks offset {original.offset} of {cut.old}")
    return count


async def _start(pairing: FailbackSession, cut: Divergence) -> int:
    """Retention on the old primary doesn't wait, and an earlier try may have emptied it."""
    return (await bounds(pairing.old, [cut.old], READ_UNCOMMITTED))[0][cut.old]


def _fault(place: TopicPartition, rule: str) -> ProtocolFault:
    return ProtocolFault(
        f"export {place}", rule=rule, remedy="nothing was dropped; delete that topic, then run it again"
    )


def _exported(record: Record, cut: Divergence, pairing: FailbackSession) -> Record:
    place = _coordinates(cut.old, cut.old_topic_id, pairing.forward.source, record.offset)
    return replace(record, headers=record.headers + place)


def _coordinates(old: TopicPartition, topic_id: UUID, alias: str, offset: int) -> Headers:
    told = (
        (CLUSTER, alias),
        (TOPIC, old.topic),
        (TOPIC_ID, str(topic_id)),
        (PARTITION, str(old.partition)),
        (OFFSET, str(offset)),
    )
    return tuple((name.encode(), text.encode()) for name, text in told)


def _origin(record: Record, place: TopicPartition) -> int:
    """:raises ProtocolFault: not written by us."""
    name, value = record.headers[-1] if record.headers else (b"", None)
    if name != OFFSET.encode() or value is None or not value.isdigit():
        raise _fault(place, f"holds a record that says no place on the old primary: offset {record.offset}")
    return int(value)
