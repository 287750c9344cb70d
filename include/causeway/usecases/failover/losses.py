"""What of a flow would be lost if its source didn't come back: counted there, where it can be asked."""

from __future__ import annotations

from collections.abc import Mapping

from causeway.brokers.transport.lagging_nodes import known_topics
from causeway.brokers.transport.topic_metadata import TopicMetadata
from causeway.brokers.wire.log_reader import LATEST, READ_COMMITTED, WireLogReader
from causeway.core.copy.ports import LogEnd
from causeway.core.failover.impact_sheet import Loss
from causeway.core.failover.request import FailoverRequest
from causeway.core.failover.start_offset import NO_TIMESTAMP
from causeway.core.kernel.estimate import Estimate, at_least, at_most, exact, unknown
from causeway.core.kernel.identity import TopicPartition
from causeway.core.model.naming import is_heartbeats
from causeway.usecases.copy.planning import survey_topics
from causeway.usecases.failover.mirror_state import MirrorPartition, MirrorState
from causeway.usecases.offsets.scan_records import Stopped, Tally, count_records
from causeway.usecases.session.source_may_be_gone import FlowSession

_NO_POSITION = "the mirror has no position of this partition"
Counted = tuple[Tally | Stopped, int]
"""What lies after an offset, and how many offsets that are."""
Answers = dict[TopicPartition, Counted | str]
"""By source partition; of what can't be counted, why not."""


async def find_losses(sides: FlowSession, ground: MirrorState, wish: FailoverRequest) -> tuple[Loss, ...]:
    """What is on the source and not on the target, counted where the source answers."""
    counted = await sides.of_source(lambda reader: _count_unmirrored(reader, ground))
    if counted is None:
        silent = unknown(f"the source can't be asked what it still has: {sides.silent}")
        return tuple(_loss(each, silent, silent, silent) for each in ground.partitions.values())
    begun = tuple(_priced(each, counted.get(each.source)) for each in ground.partitions.values())
    never = await sides.of_source(lambda reader: _count_never_begun(reader, sides, ground, wish))
    return (*begun, *(never or ()))


async def _count_never_begun(
    reader: WireLogReader, sides: FlowSession, ground: MirrorState, wish: FailoverRequest
) -> tuple[Loss, ...]:
    """Topics that the flow asks for, and partitions of them, that came after its last run began."""
    targets = await _never_begun(reader, sides, ground, wish)
    topics = await reader.wire.topics(sorted({tp.topic for tp in targets}))
    counted = await _count_behind(reader, topics, dict.fromkeys(targets, 0))
    return tuple(_never_mirrored(tp, targets[tp], found) for tp, found in counted.items())


async def _never_begun(
    reader: WireLogReader, sides: FlowSession, ground: MirrorState, wish: FailoverRequest
) -> dict[TopicPartition, TopicPartition]:
    flow, state = ground.flow, ground.state
    if flow.failback_of:
        return {}  # it begins nowhere by itself
    begun = {pair.source_topic: pair.partitions for pair in state.pairs.values()}
    wanted = (await survey_topics(flow, reader, sides.target, state)).topics.mirrored
    return {
        TopicPartition(topic.source, number): TopicPartition(topic.target, number)
        for topic in wanted
        if wish.selects_topic(topic.source) and not is_heartbeats(topic.source)
        for number in range(begun.get(topic.source, 0), topic.partitions)
    }


def _never_mirrored(source: TopicPartition, target: TopicPartition, counted: Counted | str) -> Loss:
    records, size_bytes = _sized(counted)
    never = exact(0) if records.is_nothing else unknown(f"{source} was never mirrored")
    return Loss(
        source=source,
        target=target,
        records=records,
        size_bytes=size_bytes,
        seconds=never,
        mirrored_until_ms=None,
    )


async def _count_unmirrored(reader: WireLogReader, ground: MirrorState) -> Answers:
    """After the mirror's positions."""
    by_source = ground.by_source
    topics = await known_topics(reader.wire, ground.source_topic_ids)
    reached = {
        tp: partition.source_next
        for tp, partition in by_source.items()
        if partition.source_next is not None and topics[tp.topic].topic_id == partition.pair.source_topic_id
    }
    return await _count_behind(reader, topics, reached)


async def _count_behind(
    reader: WireLogReader, topics: Mapping[str, TopicMetadata], reached: Mapping[TopicPartition, int]
) -> Answers:
    ends = await reader.list_offsets(dict.fromkeys(reached, LATEST), isolation=READ_COMMITTED)
    starts = await reader.log_starts(list(reached))
    found: Answers = {}
    ranges: dict[TopicPartition, tuple[int, int]] = {}
    for tp, offset in reached.items():
        end, start = ends[tp], starts[tp]
        if isinstance(end, LogEnd) and isinstance(start, int):
            ranges[tp] = (max(offset, start), end.offset)
        else:
            found[tp] = f"the source's offsets: {start if isinstance(end, LogEnd) else end}"
    tallies = await count_records(reader, {name: topic.topic_id for name, topic in topics.items()}, ranges)
    return found | {tp: (tallies[tp], max(end - start, 0)) for tp, (start, end) in ranges.items()}


def _priced(partition: MirrorPartition, counted: Counted | str | None) -> Loss:
    counted = counted or f"{_NO_POSITION}, or it was recreated on the source"
    records, size_bytes = _sized(counted)
    tally = counted[0]
    seconds = _seconds(partition, tally) if isinstance(tally, Tally) else size_bytes
    return _loss(partition, records, size_bytes, seconds)


def _sized(counted: Counted | str) -> tuple[Estimate, Estimate]:
    """Records and bytes."""
    if isinstance(counted, str):
        return unknown(counted), unknown(counted)
    tally, offsets = counted
    if isinstance(tally, Tally):
        return exact(tally.records), exact(tally.size_bytes)
    bytes_unknown = unknown(f"not all that isn't mirrored was read: {tally.why}")
    return at_most(offsets, f"not all was read: {tally.why}"), bytes_unknown


def _seconds(partition: MirrorPartition, tally: Tally) -> Estimate:
    until = _newest_ms(partition)
    if not tally.records:
        return exact(0)
    if until is None or tally.newest_ms == NO_TIMESTAMP:
        return unknown("records carry no time")
    behind_ms = tally.newest_ms - until
    if behind_ms < 0:
        return at_least(0, "record times don't rise with the offsets")
    return exact(-(-behind_ms // 1000))


def _loss(partition: MirrorPartition, records: Estimate, size_bytes: Estimate, seconds: Estimate) -> Loss:
    return Loss(
        source=partition.source,
        target=partition.target,
        records=records,
        size_bytes=size_bytes,
        seconds=seconds,
        mirrored_until_ms=_newest_ms(partition),
    )


def _newest_ms(partition: MirrorPartition) -> int | None:
    newest = max((run.last_timestamp_ms for run in partition.runs), default=NO_TIMESTAMP)
    return None if newest == NO_TIMESTAMP else newest
