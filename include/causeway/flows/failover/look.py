"""Make the failover sheet: look at both clusters, plan, and put a price on it. Nothing is written."""

from __future__ import annotations

from collections.abc import Mapping

from causeway.brokers.log_reader import LATEST, READ_COMMITTED, WireLogReader
from causeway.core.errors import UnknownName
from causeway.core.failover.figure import Figure, at_least, at_most, exact, unknown
from causeway.core.failover.place import NO_TIMESTAMP, Place
from causeway.core.failover.plan import Mirrored, plan_failover
from causeway.core.failover.sheet import Loss, Sheet
from causeway.core.failover.wish import Wish
from causeway.core.flow import Flow
from causeway.core.group_filter import FlowGroups
from causeway.core.identity import TopicPartition
from causeway.core.instants import rfc3339
from causeway.core.ports import LogEnd
from causeway.flows.failover.ground import Ground, MirrorPartition, select_topics, survey
from causeway.flows.failover.membership import ask_groups, group_facts
from causeway.flows.failover.reading import Stopped, Tally, count_records
from causeway.flows.failover.returning import look_at_returning
from causeway.flows.failover.sides import Sides
from causeway.flows.failover.times import find_places

_NO_POSITION = "the mirror has no position of this partition"


async def make_sheet(
    flow: Flow,
    sides: Sides,
    wish: Wish,
    selection: FlowGroups,
    *,
    is_fenced: bool = False,
    is_priced: bool = True,
) -> Sheet:
    """`is_priced`: with what would be lost, which has to be counted on the source.

    :raises BadInput: the wish can't be fulfilled; the message says what can.
    """
    turned = await look_at_returning(flow, sides)
    state = turned.beside(await sides.flow_state(flow, may_be_new=bool(turned.pairs)))
    topics, notes = await select_topics(flow, sides, wish, state)
    members = await ask_groups(flow, sides, wish, selection, state, topics)
    ground = await survey(flow, sides, state, topics, notes, is_fenced=is_fenced, turned=turned)
    groups = group_facts(members, ground, wish)
    if wish.groups and not groups:
        raise UnknownName(
            "groups",
            value=", ".join(wish.groups),
            rule="none that has to do with these topics is known on either cluster",
            remedy="write the full name of the group, and with --topics those of its topics",
        )
    places = {} if wish.moment_ms is None else await find_places(sides, ground, wish.moment_ms)
    plan = plan_failover(wish, groups, _mirrored(ground, places))
    fence = state.fence
    return Sheet(
        flow=flow.name,
        made_at_ms=sides.network.time_ms(),
        losses=await _losses(sides, ground) if is_priced else (),
        source_silent=sides.silent,
        fenced="" if fence is None else f"by {fence.by} since {rfc3339(fence.since_ms)}: {fence.because}",
        plan=plan,
        places=places,
        notes=ground.notes,
    )


def _mirrored(ground: Ground, places: Mapping[TopicPartition, Place]) -> dict[TopicPartition, Mirrored]:
    return {
        tp: Mirrored(
            target=tp,
            target_topic_id=ground.topic_ids[tp.topic],
            log_start=partition.log_start,
            end=partition.end,
            runs=partition.runs,
            place=places.get(tp),
        )
        for tp, partition in ground.partitions.items()
    }


async def _losses(sides: Sides, ground: Ground) -> tuple[Loss, ...]:
    """What is on the source and not on the target, counted where the source answers."""
    counted = await sides.of_source(lambda reader: _count_unmirrored(reader, ground))
    if counted is None:
        silent = unknown(f"the source can't be asked what it still has: {sides.silent}")
        return tuple(_loss(each, silent, silent, silent) for each in ground.partitions.values())
    return tuple(_priced(each, counted.get(each.source)) for each in ground.partitions.values())


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
