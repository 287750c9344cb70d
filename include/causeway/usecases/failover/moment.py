"""Ask both sides where a moment is: the target's timestamp index, and the source's, led through the map."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from causeway.brokers.transport.lagging_nodes import known_topics
from causeway.brokers.wire.log_reader import LATEST, READ_COMMITTED, WireLogReader
from causeway.core.copy.ports import LogEnd, Refused
from causeway.core.failover.start_offset import (
    Answer,
    PartitionTimes,
    StartOffset,
    decide_start,
    first_possible,
    recorded_times,
)
from causeway.core.kernel.identity import SourceOffset, TargetOffset, TopicPartition
from causeway.core.offsets.mm2_offset_syncs import LowerBound
from causeway.core.offsets.why_not import AheadOfMirror, OlderThanMap
from causeway.usecases.failover.mirror_state import MirrorPartition, MirrorState
from causeway.usecases.failover.timestamp_lookup import FoundRecord, Range, find_record
from causeway.usecases.offsets.scan_records import Sample, Search, Stopped, first_records
from causeway.usecases.session.source_may_be_gone import FlowSession

Answers = dict[TopicPartition, Answer]
"""By target partition."""
Samples = Mapping[TopicPartition, Sample | Stopped | None]


async def find_start_offsets(
    sides: FlowSession, ground: MirrorState, moment_ms: int
) -> dict[TopicPartition, StartOffset]:
    partitions = ground.partitions
    index, by_sample = await _ask_index(sides, ground, moment_ms)
    source = await sides.of_source(lambda reader: _ask_source(reader, ground, moment_ms))
    silent = Answer(why_not="the source can't be asked", detail=sides.silent)
    oldest = {tp: Search(start=p.log_start, end=p.end) for tp, p in partitions.items() if p.log_start < p.end}
    firsts = await first_records(sides.target, ground.topic_ids, oldest)
    now_ms = sides.network.time_ms()
    return {
        tp: decide_start(
            PartitionTimes(
                moment_ms=moment_ms,
                now_ms=now_ms,
                log_start=partition.log_start,
                end=partition.end,
                index=index[tp],
                source=silent if source is None else source[tp],
                recorded=recorded_times(partition.runs, moment_ms),
                first=_first(firsts.get(tp)),
                is_append_time=_is_append_time(firsts.get(tp)) or _is_append_time(by_sample.get(tp)),
            )
        )
        for tp, partition in partitions.items()
    }


def _first(found: Sample | Stopped | None) -> tuple[TargetOffset, int] | None:
    return (TargetOffset(found.offset), found.timestamp_ms) if isinstance(found, Sample) else None


def _is_append_time(found: Sample | Stopped | None) -> bool:
    return isinstance(found, Sample) and found.is_append_time


async def _ask_index(sides: FlowSession, ground: MirrorState, moment_ms: int) -> tuple[Answers, Samples]:
    def further(partition: MirrorPartition) -> Callable[[int], int | None]:
        """The map's times spare reading what is too early."""
        runs = partition.runs
        return lambda at: first_possible(runs, at, moment_ms) if runs else at

    ranges = {tp: Range(end=p.end, further=further(p)) for tp, p in ground.partitions.items()}
    pinned = await find_record(sides.target, ground.topic_ids, ranges, moment_ms)
    answers = {tp: _index_answer(ground.partitions[tp], found) for tp, found in pinned.items()}
    samples = {tp: found.found for tp, found in pinned.items() if isinstance(found, FoundRecord)}
    return answers, samples


def _index_answer(partition: MirrorPartition, pinned: FoundRecord | Refused) -> Answer:
    if isinstance(pinned, Refused):
        return Answer(why_not=f"the target's index: {pinned}")
    match pinned.found:
        case Sample(offset=at, timestamp_ms=at_ms):
            return Answer(at=TargetOffset(at), at_ms=at_ms, passed_markers=pinned.passed_markers)
        case Stopped(at=at):  # nothing before it is late enough
            return Answer(at=TargetOffset(at), passed_markers=pinned.passed_markers, is_bound=True)
    return _past_end(partition)


def _past_end(partition: MirrorPartition) -> Answer:
    return Answer(at=partition.end, is_past_end=True)


async def _ask_source(reader: WireLogReader, ground: MirrorState, moment_ms: int) -> Answers:
    by_source = ground.by_source
    topics = await known_topics(reader.wire, ground.source_topic_ids)
    ends = await reader.list_offsets(dict.fromkeys(by_source, LATEST), isolation=READ_COMMITTED)
    answers: Answers = {}
    ranges: dict[TopicPartition, Range] = {}
    for tp, partition in by_source.items():
        end = ends[tp]
        if topics[tp.topic].topic_id != partition.pair.source_topic_id:
            answers[partition.target] = Answer(why_not=f"{tp.topic} was made anew on the source")
        elif isinstance(end, LogEnd):
            ranges[tp] = Range(end=end.offset, further=_further_on_source(partition, moment_ms))
        else:
            answers[partition.target] = Answer(why_not=f"the source's end: {end}")
    ids = {name: topic.topic_id for name, topic in topics.items()}
    for tp, pinned in (await find_record(reader, ids, ranges, moment_ms)).items():
        answers[by_source[tp].target] = _source_answer(by_source[tp], pinned)
    return answers


def _further_on_source(partition: MirrorPartition, moment_ms: int) -> Callable[[int], int]:
    """What no run of the map can hold lies after the mirror's position."""

    def further(at: int) -> int:
        for run in partition.runs:
            if run.source_next > at and run.last_timestamp_ms >= moment_ms:
                return max(at, run.source_first)
        return max(at, partition.source_next or 0)

    return further


def _source_answer(partition: MirrorPartition, pinned: FoundRecord | Refused) -> Answer:
    if isinstance(pinned, Refused):
        return Answer(why_not=f"the source's index: {pinned}")
    match pinned.found:
        case Sample(offset=at):
            return _translated(partition, SourceOffset(at))
        case Stopped(at=at):
            return replace(_translated(partition, SourceOffset(at)), is_bound=True)
    return _past_end(partition)


def _translated(partition: MirrorPartition, offset: SourceOffset) -> Answer:
    match partition.map.to_target(offset):
        case int(at):
            if at >= partition.end:
                return Answer(at=partition.end, is_past_end=True, is_not_mirrored=True)
            back = partition.map.to_source(TargetOffset(at))
            return Answer(at=TargetOffset(at), fell_in_hole=back != offset)
        case AheadOfMirror():
            return Answer(at=partition.end, is_past_end=True, is_not_mirrored=True)
        case LowerBound(at=at):
            return Answer(at=TargetOffset(max(at, partition.log_start)), is_bound=True)
        case OlderThanMap():
            return Answer(at=partition.log_start)
        case why:
            return Answer(why_not=f"source offset {offset} of that moment: {why}")
