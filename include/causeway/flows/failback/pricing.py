"""Put a price on a rebuild: what is deleted, what comes anew, what never comes again, who is at work there.

Nothing is written. Reading is bounded, and what wasn't read is told as a bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from causeway.brokers.consumer_groups import ConsumerGroups
from causeway.brokers.inspection import topic_settings
from causeway.brokers.log_reader import READ_COMMITTED, READ_UNCOMMITTED, WireLogReader
from causeway.core.batches import BatchHead
from causeway.core.errors import BadInput
from causeway.core.failback.plan import Cut, FailbackPlan
from causeway.core.failback.rebuild import (
    PartitionPrice,
    Reader,
    RebuildPrice,
    Stretch,
    is_inside,
    mirrored_stretches,
    offsets_outside,
)
from causeway.core.failover.figure import Figure, at_most, exact, unknown
from causeway.core.identity import TopicPartition
from causeway.core.lane_rules import is_covered
from causeway.core.offset_map import runs_that_hold
from causeway.core.ports import Refused, Unreachable
from causeway.core.records import decode_records
from causeway.flows.failback.parting import Pairing, bounds
from causeway.flows.failover.reading import Stopped, Tally, count_records, walk

_THINNED = "compaction on the new primary may have taken records that the old one keeps"


async def price_rebuild(pairing: Pairing, plan: FailbackPlan) -> FailbackPlan:
    """The same plan with its price.

    :raises BadInput: with prefixes there is nothing to rebuild, or the topics differ in partitions.
    """
    _refuse_prefixes(plan)
    olds = [cut.old for cut in plan.cuts]
    stretches = await _on_the_new_primary(pairing, plan.cuts)
    held = await _count_old(pairing.old, plan.cuts, stretches)
    anew = await _count_new(pairing.new, plan.cuts)
    thinned = await _thinned_there_only(pairing, sorted({tp.topic for tp in olds}))
    readers = await _readers(pairing, olds)
    _, ends = await bounds(pairing.old, olds, READ_UNCOMMITTED)
    price = RebuildPrice(
        source=pairing.forward.source,
        partitions=tuple(
            _priced(cut, held[cut.old], stretches[cut.old], anew[cut.new], cut.old.topic in thinned)
            for cut in plan.cuts
        ),
        readers=readers,
        written_to=tuple(sorted({cut.old.topic for cut in plan.cuts if ends[cut.old] != cut.old_end})),
    )
    return replace(plan, rebuild=price)


def _refuse_prefixes(plan: FailbackPlan) -> None:
    if plan.late or not plan.cuts:
        raise BadInput(
            f"rebuild of flow {plan.flow}",
            value=", ".join(sorted({cut.old.topic for cut in plan.late})[:5]) or "no topic",
            rule="is for topics that have one name on both sides: with prefixes nothing has diverged",
            remedy=f"`causeway failback {plan.flow} --resume`",
        )


async def _on_the_new_primary(pairing: Pairing, cuts: Sequence[Cut]) -> dict[TopicPartition, list[Stretch]]:
    """By the forward flow's map: which of the old primary's offsets are still there."""
    news = [cut.new for cut in cuts]
    runs = await pairing.new.map_runs(pairing.forward.map_topic, news)
    positions = await pairing.new.positions(pairing.forward.group, news, stable=True, marked=True)
    found: dict[TopicPartition, list[Stretch]] = {}
    for cut in cuts:
        ids = (cut.old_topic_id, cut.new_topic_id)
        ours = runs_that_hold(
            run
            for run in runs[cut.new]
            if (run.source_topic_id, run.target_topic_id) == ids and is_covered(run, positions[cut.new])
        )
        found[cut.old] = mirrored_stretches(ours, cut.new_start)
    return found


@dataclass(slots=True)
class _Held:
    records: int = 0
    size_bytes: int = 0
    outside: int = 0
    """In front of the tail, and not on the new primary."""
    newest_ms: int = -1
    stopped: str = ""


async def _count_old(
    reader: WireLogReader, cuts: Sequence[Cut], stretches: Mapping[TopicPartition, Sequence[Stretch]]
) -> dict[TopicPartition, _Held]:
    by_old = {cut.old: cut for cut in cuts}
    held = {tp: _Held() for tp in by_old}

    def take(tp: TopicPartition, head: BatchHead, batch: memoryview) -> bool:
        _add(held[tp], by_old[tp], stretches[tp], head, batch)
        return False

    topic_ids = {cut.old.topic: cut.old_topic_id for cut in cuts}
    ranges = {cut.old: (cut.old_start, cut.old_end) for cut in cuts}
    for tp, stopped in (await walk(reader, topic_ids, ranges, take)).items():
        held[tp].stopped = f"not all was read: {stopped.why}"
    return held


def _add(held: _Held, cut: Cut, stretches: Sequence[Stretch], head: BatchHead, batch: memoryview) -> None:
    held.size_bytes += head.size_bytes
    held.newest_ms = max(held.newest_ms, head.max_timestamp)
    is_whole = head.magic == 2 and cut.old_start <= head.base_offset and head.next_offset <= cut.old_end
    if is_whole and is_inside(stretches, head.base_offset, head.next_offset):
        held.records += head.record_count
        return
    for record in decode_records(batch, head):
        if cut.old_start <= record.offset < cut.old_end:
            held.records += 1
            is_tail = record.offset >= cut.mirrored_next
            held.outside += not is_tail and not is_inside(stretches, record.offset, record.offset + 1)


async def _count_new(reader: WireLogReader, cuts: Sequence[Cut]) -> dict[TopicPartition, Figure]:
    _, ends = await bounds(reader, [cut.new for cut in cuts], READ_COMMITTED)
    ranges = {cut.new: (cut.new_start, ends[cut.new]) for cut in cuts}
    topic_ids = {cut.new.topic: cut.new_topic_id for cut in cuts}
    found = await count_records(reader, topic_ids, ranges)
    return {tp: _figure(tally, ranges[tp]) for tp, tally in found.items()}


def _figure(tally: Tally | Stopped, offsets: Stretch) -> Figure:
    if isinstance(tally, Stopped):
        return at_most(offsets[1] - offsets[0], f"not all was read: {tally.why}")
    return exact(tally.records)


def _priced(
    cut: Cut,
    held: _Held,
    stretches: Sequence[Stretch],
    anew: Figure,
    is_thinned: bool,  # noqa: FBT001 - one of the facts
) -> PartitionPrice:
    records, size_bytes, gone = exact(held.records), exact(held.size_bytes), exact(held.outside)
    if held.stopped:
        records = at_most(cut.old_end - cut.old_start, held.stopped)
        size_bytes = unknown(held.stopped)
        gone = at_most(offsets_outside(stretches, cut.old_start, cut.mirrored_next), held.stopped)
    if is_thinned and cut.old_start < cut.mirrored_next:
        gone = unknown(_THINNED)
    newest_ms = -1 if held.stopped else held.newest_ms
    return PartitionPrice(
        old=cut.old, held=records, held_bytes=size_bytes, gone=gone, anew=anew, newest_ms=newest_ms
    )


async def _thinned_there_only(pairing: Pairing, topics: Sequence[str]) -> set[str]:
    """Topics that are compacted on the new primary and aren't on the old one: there the map tells of records
    that the cleaner has taken. Where both are, what is left is the newest of each key, as it should be."""
    here = await topic_settings(pairing.old.wire, topics)
    there = await topic_settings(pairing.new.wire, topics)
    return {topic for topic in topics if _compacts(there.get(topic)) and not _compacts(here.get(topic))}


def _compacts(settings: Mapping[str, str] | None) -> bool:
    """What may not be seen counts as not compacted."""
    return settings is not None and "compact" in settings.get("cleanup.policy", "")


async def _readers(pairing: Pairing, partitions: Sequence[TopicPartition]) -> tuple[Reader, ...]:
    """Who has committed there, but for the reverse flow: those are its positions. A reader without a group
    leaves no trace."""
    groups = ConsumerGroups(pairing.old.wire)
    wanted: dict[str, list[int]] = {}
    for tp in partitions:
        wanted.setdefault(tp.topic, []).append(tp.partition)
    listed = await groups.listed()
    readers: list[Reader] = []
    for name, offsets in sorted((await groups.committed(sorted(listed), wanted)).items()):
        if isinstance(offsets, Refused):
            raise Unreachable(f"offsets of {name}: {offsets}")
        topics = tuple(sorted({tp.topic for tp in offsets}))
        if topics and name != pairing.reverse.group:
            readers.append(Reader(group=name, topics=topics, is_active=listed[name].is_active))
    return tuple(readers)
