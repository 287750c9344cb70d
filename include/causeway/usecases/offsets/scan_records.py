"""Look at records of many partitions at once: the first one that is late enough, or how many there are.

Only what a `read_committed` reader sees counts. Reading is bounded: what isn't found within the bytes that a
look may cost is an answer of its own, and says how far it came.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from causeway.brokers.wire.log_reader import WireLogReader
from causeway.core.copy.ports import Diverged, Fetched, FetchFrom, Refused
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.records.batches import BatchHead
from causeway.core.records.records import Record, decode_records
from causeway.core.records.visibility import Visibility, read_committed

_FETCH_BYTES, _WAIT_MS = 16 << 20, 100
_MOST_BYTES, _LEAST_BYTES = 256 << 20, 4 << 20
"""Of all partitions together, of each."""
_FRUITLESS, _PAUSE_SECONDS = 50, 0.05
_PASSING = {Code.NOT_LEADER_OR_FOLLOWER, Code.LEADER_NOT_AVAILABLE, Code.UNKNOWN_TOPIC_OR_PARTITION}

Batch = tuple[BatchHead, memoryview]
Take = Callable[[TopicPartition, BatchHead, memoryview], bool]
"""Whether this partition has been looked at enough."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """The first visible record in `[start, end)` that isn't earlier than `not_before_ms`."""

    start: int
    end: int
    not_before_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    offset: int
    timestamp_ms: int
    is_append_time: bool


@dataclass(frozen=True, slots=True)
class Stopped:
    """Nothing before `at`; further wasn't looked."""

    at: int
    why: str
    is_long: bool = False
    """It could have been read, and would have cost more than a look may."""


@dataclass(slots=True, kw_only=True)
class Tally:
    records: int = 0
    size_bytes: int = 0
    newest_ms: int = -1


async def first_records(
    reader: WireLogReader, topic_ids: Mapping[str, UUID], searches: Mapping[TopicPartition, Search]
) -> dict[TopicPartition, Sample | Stopped | None]:
    """None: there is no such record."""
    found: dict[TopicPartition, Sample | Stopped | None] = dict.fromkeys(searches)

    def take(tp: TopicPartition, head: BatchHead, batch: memoryview) -> bool:
        search = searches[tp]
        if head.magic == 2 and search.not_before_ms is not None and head.max_timestamp < search.not_before_ms:
            return False
        for record in decode_records(batch, head):
            if search.start <= record.offset < search.end and _is_late_enough(record, search):
                found[tp] = Sample(
                    offset=record.offset,
                    timestamp_ms=record.timestamp_ms,
                    is_append_time=head.is_log_append_time,
                )
                return True
        return False

    ranges = {tp: (search.start, search.end) for tp, search in searches.items()}
    stopped = await walk(reader, topic_ids, ranges, take)
    return found | {tp: at for tp, at in stopped.items() if found[tp] is None}


async def count_records(
    reader: WireLogReader, topic_ids: Mapping[str, UUID], ranges: Mapping[TopicPartition, tuple[int, int]]
) -> dict[TopicPartition, Tally | Stopped]:
    tallies = {tp: Tally() for tp in ranges}

    def take(tp: TopicPartition, head: BatchHead, batch: memoryview) -> bool:
        start, end = ranges[tp]
        tally = tallies[tp]
        is_whole = head.magic == 2 and head.base_offset >= start and head.next_offset <= end
        if is_whole:
            tally.records += head.record_count
            tally.newest_ms = max(tally.newest_ms, head.max_timestamp)
        else:
            times = [r.timestamp_ms for r in decode_records(batch, head) if start <= r.offset < end]
            tally.records += len(times)
            tally.newest_ms = max([tally.newest_ms, *times])
        tally.size_bytes += head.size_bytes
        return False

    return {**tallies, **await walk(reader, topic_ids, ranges, take)}


def _is_late_enough(record: Record, search: Search) -> bool:
    return search.not_before_ms is None or record.timestamp_ms >= search.not_before_ms


async def walk(
    reader: WireLogReader,
    topic_ids: Mapping[str, UUID],
    ranges: Mapping[TopicPartition, tuple[int, int]],
    take: Take,
) -> dict[TopicPartition, Stopped]:
    """Give each visible batch to `take` until it has enough, the range is over, or too much was read."""
    at = {tp: start for tp, (start, end) in ranges.items() if start < end}
    most_bytes = max(_MOST_BYTES // max(len(at), 1), _LEAST_BYTES)
    budget = dict.fromkeys(at, most_bytes)
    stopped: dict[TopicPartition, Stopped] = {}
    fruitless = 0
    while at:
        wanted = {tp: FetchFrom(topic_ids[tp.topic], offset) for tp, offset in at.items()}
        answers = await reader.fetch(wanted, max_bytes=_FETCH_BYTES, max_wait_ms=_WAIT_MS)
        before = dict(at)
        for tp, answer in answers.items():
            match answer:
                case Fetched():
                    reached, is_enough = _take_all(tp, answer, at[tp], take)
                    budget[tp] -= len(answer.records)
                    at[tp] = reached
                    if is_enough or reached >= min(ranges[tp][1], answer.last_stable):
                        del at[tp]
                    elif budget[tp] <= 0:
                        why = f"more than {most_bytes >> 20} MiB would have to be read"
                        stopped[tp] = Stopped(at.pop(tp), why, is_long=True)
                case Refused(code=code) if code in _PASSING:
                    reader.ask_anew_who_leads(tp)
                case Refused() | Diverged():
                    stopped[tp] = Stopped(at.pop(tp), str(answer))
        fruitless = fruitless + 1 if at == before else 0
        if fruitless > _FRUITLESS:
            stopped |= {tp: Stopped(offset, "nothing more came") for tp, offset in at.items()}
            break
        if fruitless:
            await reader.wire.network.sleep(_PAUSE_SECONDS)
    return stopped


def _take_all(tp: TopicPartition, answer: Fetched, at: int, take: Take) -> tuple[int, bool]:
    """How far the answer reaches, and whether it was enough."""
    for head, batch, seen in read_committed(answer.records, answer.aborted, at):
        if seen is Visibility.DATA and take(tp, head, batch):
            return head.next_offset, True
        at = max(at, head.next_offset)
    return at, False
