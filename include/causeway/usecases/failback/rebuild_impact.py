"""Put a price on a rebuild: what is deleted, what comes again, what never comes again, who is at work there.

Nothing is written. Reading is bounded, and what wasn't read is reported as a bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from causeway.brokers.wire.consumer_groups import ConsumerGroups
from causeway.brokers.wire.log_reader import READ_COMMITTED, READ_UNCOMMITTED, WireLogReader
from causeway.brokers.wire.settings import topic_settings
from causeway.core.copy.lane_rules import is_covered
from causeway.core.copy.ports import Refused, Unreachable
from causeway.core.failback.divergence import Divergence, FailbackPlan
from causeway.core.failback.rebuild_impact import (
    PartitionImpact,
    Reader,
    RebuildImpact,
    Stretch,
    compacts,
    copies_there,
    is_apart,
    is_inside,
    mirrored_stretches,
    offsets_inside,
    offsets_outside,
    thinned_there_only,
)
from causeway.core.kernel.errors import BadInput
from causeway.core.kernel.estimate import Estimate, at_least, at_most, exact, total, unknown
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.plurals import some
from causeway.core.offsets.offset_map import MappedRange, valid_ranges
from causeway.core.records.batches import BatchHead
from causeway.core.records.records import decode_records
from causeway.usecases.failback.divergence import FailbackSession, bounds
from causeway.usecases.offsets.scan_records import walk
from causeway.usecases.session.both_clusters import state_on
from causeway.usecases.session.pair_positions import read_pair_positions


async def find_rebuild_impact(pairing: FailbackSession, plan: FailbackPlan) -> FailbackPlan:
    """The same plan with its price.

    :raises BadInput: with prefixes there is nothing to rebuild, or the topics differ in partitions.
    """
    _refuse_prefixes(plan)
    olds = [cut.old for cut in plan.cuts]
    runs = await _on_the_new_primary(pairing, plan.cuts)
    stretches = {cut.old: mirrored_stretches(runs[cut.old], cut.new_start) for cut in plan.cuts}
    held = await _count_old(pairing.old, plan.cuts, stretches)
    there = await _count_new(pairing.new, plan.cuts, runs)
    cleaning = await _cleaning(pairing, sorted({tp.topic for tp in olds}))
    readers = await _readers(pairing, olds)
    _, ends = await bounds(pairing.old, olds, READ_UNCOMMITTED)
    price = RebuildImpact(
        source=pairing.forward.source,
        partitions=tuple(
            _priced(cut, held[cut.old], stretches[cut.old], there[cut.new], cleaning[cut.old.topic])
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
            value=some(sorted({cut.old.topic for cut in plan.late})) or "no topic",
            rule="is for topics that have one name on both sides: with prefixes nothing has diverged",
            remedy=f"`causeway failback {plan.flow} --resume`",
        )


async def _on_the_new_primary(
    pairing: FailbackSession, cuts: Sequence[Divergence]
) -> dict[TopicPartition, list[MappedRange]]:
    """By the old primary's partitions: what the forward flow's map tells of them."""
    news = [cut.new for cut in cuts]
    runs = await pairing.new.map_runs(pairing.forward.map_topic, news)
    state = await state_on(pairing.new, pairing.forward.name)
    positions = await read_pair_positions(pairing.forward, pairing.new, state, news, stable=True, marked=True)
    found: dict[TopicPartition, list[MappedRange]] = {}
    for cut in cuts:
        ids = (cut.old_topic_id, cut.new_topic_id)
        found[cut.old] = valid_ranges(
            run for run in runs[cut.new] if run.ids == ids and is_covered(run, positions[cut.new])
        )
    return found


@dataclass(slots=True)
class _Held:
    records: int = 0
    size_bytes: int = 0
    outside: int = 0
    """Before the tail, and not on the new primary."""
    newest_ms: int = -1
    stopped: str = ""


async def _count_old(
    reader: WireLogReader, cuts: Sequence[Divergence], stretches: Mapping[TopicPartition, Sequence[Stretch]]
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


def _add(
    held: _Held, cut: Divergence, stretches: Sequence[Stretch], head: BatchHead, batch: memoryview
) -> None:
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


@dataclass(slots=True)
class _There:
    """What the new primary has, as far as it was read."""

    expected: Sequence[Stretch]
    """Where the map tells of copies."""
    start: int
    end: int
    read_until: int
    records: int = 0
    copies: int = 0
    stopped: str = ""
    is_long: bool = False

    @property
    def anew(self) -> Estimate:
        return at_most(self.end - self.start, self.stopped) if self.stopped else exact(self.records)

    @property
    def missing(self) -> Estimate:
        """Copies that the map tells of and that aren't there any more: compaction was at work, whatever the
        topic's settings say by now. Of a log that is too long for a look the rest counts as the map tells it;
        what can't be read isn't known to be there."""
        if self.stopped and not self.is_long:
            return unknown(self.stopped)
        count = max(offsets_inside(self.expected, self.start, self.read_until) - self.copies, 0)
        return at_least(count, self.stopped) if count and self.stopped else exact(count)


async def _count_new(
    reader: WireLogReader, cuts: Sequence[Divergence], runs: Mapping[TopicPartition, Sequence[MappedRange]]
) -> dict[TopicPartition, _There]:
    _, ends = await bounds(reader, [cut.new for cut in cuts], READ_COMMITTED)
    there: dict[TopicPartition, _There] = {}
    for cut in cuts:
        expected, end = copies_there(runs[cut.old], cut.old_start, cut.new_start), ends[cut.new]
        there[cut.new] = _There(expected, start=cut.new_start, end=end, read_until=end)

    def take(tp: TopicPartition, head: BatchHead, batch: memoryview) -> bool:
        _add_there(there[tp], head, batch)
        return False

    ranges = {tp: (each.start, each.end) for tp, each in there.items()}
    topic_ids = {cut.new.topic: cut.new_topic_id for cut in cuts}
    for tp, stopped in (await walk(reader, topic_ids, ranges, take)).items():
        there[tp].read_until, there[tp].is_long = stopped.at, stopped.is_long
        there[tp].stopped = f"not all was read: {stopped.why}"
    return there


def _add_there(there: _There, head: BatchHead, batch: memoryview) -> None:
    first, behind = head.base_offset, head.next_offset
    is_whole = head.magic == 2 and there.start <= first and behind <= there.end
    is_copy, is_other = is_inside(there.expected, first, behind), is_apart(there.expected, first, behind)
    if is_whole and (is_copy or is_other):
        there.records += head.record_count
        there.copies += head.record_count if is_copy else 0
        return
    for record in decode_records(batch, head):
        if there.start <= record.offset < there.end:
            there.records += 1
            there.copies += is_inside(there.expected, record.offset, record.offset + 1)


@dataclass(frozen=True, slots=True)
class _Cleaning:
    keeps_newest: bool
    """The old primary compacts, too: what the cleaner takes isn't missed."""
    thinned: str


def _priced(
    cut: Divergence,
    held: _Held,
    stretches: Sequence[Stretch],
    there: _There,
    cleaning: _Cleaning,
) -> PartitionImpact:
    records, size_bytes, gone = exact(held.records), exact(held.size_bytes), exact(held.outside)
    if held.stopped:
        records = at_most(cut.old_end - cut.old_start, held.stopped)
        size_bytes = unknown(held.stopped)
        gone = at_most(offsets_outside(stretches, cut.old_start, cut.mirrored_next), held.stopped)
    if not cleaning.keeps_newest:
        gone = total([gone, there.missing])
    if cleaning.thinned and cut.old_start < cut.mirrored_next:
        gone = total([gone, unknown(cleaning.thinned)])
    return PartitionImpact(
        old=cut.old,
        held=records,
        held_bytes=size_bytes,
        gone=gone,
        anew=there.anew,
        newest_ms=-1 if held.stopped else held.newest_ms,
    )


async def _cleaning(pairing: FailbackSession, topics: Sequence[str]) -> dict[str, _Cleaning]:
    here = await topic_settings(pairing.old.wire, topics)
    there = await topic_settings(pairing.new.wire, topics)
    return {
        topic: _Cleaning(compacts(here.get(topic)), thinned_there_only(here.get(topic), there.get(topic)))
        for topic in topics
    }


async def _readers(pairing: FailbackSession, partitions: Sequence[TopicPartition]) -> tuple[Reader, ...]:
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
