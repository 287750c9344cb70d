"""What of a flow would be lost if its source didn't come back: counted there, where it can be asked."""

from __future__ import annotations

from causeway.brokers.log_reader import LATEST, READ_COMMITTED, WireLogReader
from causeway.core.failover.figure import Figure, at_least, at_most, exact, unknown
from causeway.core.failover.place import NO_TIMESTAMP
from causeway.core.failover.sheet import Loss
from causeway.core.failover.wish import Wish
from causeway.core.identity import TopicPartition
from causeway.core.naming import is_heartbeats
from causeway.core.ports import LogEnd
from causeway.flows.failover.ground import Ground, MirrorPartition
from causeway.flows.failover.reading import Stopped, Tally, count_records
from causeway.flows.failover.sides import Sides
from causeway.flows.planning import survey_topics

_NO_POSITION = "the mirror has no position of this partition"


async def find_losses(sides: Sides, ground: Ground, wish: Wish) -> tuple[Loss, ...]:
    """What is on the source and not on the target, counted where the source answers."""
    counted = await sides.of_source(lambda reader: _count_unmirrored(reader, ground))
    if counted is None:
        silent = unknown(f"the source can't be asked what it still has: {sides.silent}")
        return tuple(_loss(each, silent, silent, silent) for each in ground.partitions.values())
    begun = tuple(_priced(each, counted.get(each.source)) for each in ground.partitions.values())
    never = await sides.of_source(lambda reader: _count_never_begun(reader, sides, ground, wish))
    return (*begun, *(never or ()))


async def _count_never_begun(
    reader: WireLogReader, sides: Sides, ground: Ground, wish: Wish
) -> tuple[Loss, ...]:
    """Topics that the flow asks for, and partitions of them, that came after its last run began."""
    targets = await _never_begun(reader, sides, ground, wish)
    topics = await reader.wire.topics(sorted({tp.topic for tp in targets}))
    ends = await reader.list_offsets(dict.fromkeys(targets, LATEST), isolation=READ_COMMITTED)
    starts = await reader.log_starts(list(targets))
    ranges: dict[TopicPartition, tuple[int, int]] = {}
    for tp in targets:
        end, start = ends[tp], starts[tp]
        if isinstance(end, LogEnd) and isinstance(start, int):
            ranges[tp] = (start, end.offset)
    tallies = await count_records(reader, {name: t.topic_id for name, t in topics.items()}, ranges)
    return tuple(_never_mirrored(tp, targets[tp], tallies[tp], ranges[tp]) for tp in ranges)


async def _never_begun(
    reader: WireLogReader, sides: Sides, ground: Ground, wish: Wish
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


def _never_mirrored(
    source: TopicPartition, target: TopicPartition, tally: Tally | Stopped, offsets: tuple[int, int]
) -> Loss:
    if isinstance(tally, Tally):
        records, size_bytes = exact(tally.records), exact(tally.size_bytes)
    else:
        records = at_most(offsets[1] - offsets[0], f"not all was read: {tally.why}")
        size_bytes = unknown(f"not all that isn't mirrored was read: {tally.why}")
    never = unknown(f"{source} was never mirrored") if records.number else exact(0)
    return Loss(
        source=source,
        target=target,
        records=records,
        size_bytes=size_bytes,
        seconds=never,
        mirrored_until_ms=None,
    )


async def _count_unmirrored(
    reader: WireLogReader, ground: Ground
) -> dict[TopicPartition, tuple[Tally | Stopped | None, int]]:
    """By source partition: what lies behind the mirror's position, and how many offsets that are."""
    by_source = ground.by_source
    topics = await reader.wire.topics(sorted({tp.topic for tp in by_source}))
    ends = await reader.list_offsets(dict.fromkeys(by_source, LATEST), isolation=READ_COMMITTED)
    starts = await reader.log_starts(list(by_source))
    ranges: dict[TopicPartition, tuple[int, int]] = {}
    for tp, partition in by_source.items():
        end, start = ends[tp], starts[tp]
        is_same = topics[tp.topic].topic_id == partition.pair.source_topic_id
        if (
            is_same
            and partition.source_next is not None
            and isinstance(end, LogEnd)
            and isinstance(start, int)
        ):
            ranges[tp] = (max(partition.source_next, start), end.offset)
    ids = {name: topic.topic_id for name, topic in topics.items()}
    tallies = await count_records(reader, ids, ranges)
    return {tp: (tallies[tp], max(end - start, 0)) for tp, (start, end) in ranges.items()}


def _priced(partition: MirrorPartition, counted: tuple[Tally | Stopped | None, int] | None) -> Loss:
    if counted is None:
        silent = unknown(f"{_NO_POSITION}, or it was made anew on the source")
        return _loss(partition, silent, silent, silent)
    tally, offsets = counted
    if not isinstance(tally, Tally):
        why = tally.why if tally else ""
        bytes_unknown = unknown(f"not all that isn't mirrored was read: {why}")
        return _loss(partition, at_most(offsets, f"not all was read: {why}"), bytes_unknown, bytes_unknown)
    return _loss(partition, exact(tally.records), exact(tally.size_bytes), _seconds(partition, tally))


def _seconds(partition: MirrorPartition, tally: Tally) -> Figure:
    until = _newest_ms(partition)
    if not tally.records:
        return exact(0)
    if until is None or tally.newest_ms == NO_TIMESTAMP:
        return unknown("records carry no time")
    behind_ms = tally.newest_ms - until
    if behind_ms < 0:
        return at_least(0, "record times don't rise with the offsets")
    return exact(-(-behind_ms // 1000))


def _loss(partition: MirrorPartition, records: Figure, size_bytes: Figure, seconds: Figure) -> Loss:
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
