"""From a timestamp index to the record that it means.

An index also knows the ends of transactions and aborted records, and the time of an end is the broker's, not
the record's: in a log that was filled later than its records were written, it points far too early. So where
it points at nothing that a reader sees, the record is looked for after that place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from causeway.brokers.wire.log_reader import READ_COMMITTED, WireLogReader
from causeway.core.copy.ports import Refused
from causeway.core.kernel.identity import TopicPartition
from causeway.usecases.offsets.scan_records import Sample, Search, Stopped, first_records


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    end: int
    further: Callable[[int], int | None]
    """Where after an offset the record can be; None: nowhere before the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRecord:
    found: Sample | Stopped | None
    """None: nothing is as late."""
    passed_markers: bool = False


async def find_record(
    reader: WireLogReader,
    topic_ids: Mapping[str, UUID],
    ranges: Mapping[TopicPartition, Range],
    moment_ms: int,
) -> dict[TopicPartition, FoundRecord | Refused]:
    """The first visible record of each partition that isn't earlier than the moment."""
    index = await reader.list_offsets(dict.fromkeys(ranges, moment_ms), isolation=READ_COMMITTED)
    answers: dict[TopicPartition, FoundRecord | Refused] = {}
    pointed: dict[TopicPartition, Search] = {}
    for tp in ranges:
        answer = index[tp]
        if isinstance(answer, Refused):
            answers[tp] = answer
        elif answer.offset < 0:
            answers[tp] = FoundRecord(found=None)
        else:
            pointed[tp] = Search(start=answer.offset, end=answer.offset + 1)
    here = await first_records(reader, topic_ids, pointed)
    behind = await first_records(reader, topic_ids, _behind(ranges, pointed, here, moment_ms))
    for tp in pointed:
        if isinstance(here[tp], Sample):
            answers[tp] = FoundRecord(found=here[tp])
        else:
            answers[tp] = FoundRecord(found=behind.get(tp), passed_markers=True)
    return answers


def _behind(
    ranges: Mapping[TopicPartition, Range],
    pointed: Mapping[TopicPartition, Search],
    here: Mapping[TopicPartition, Sample | Stopped | None],
    moment_ms: int,
) -> dict[TopicPartition, Search]:
    searches: dict[TopicPartition, Search] = {}
    for tp, search in pointed.items():
        start = None if isinstance(here[tp], Sample) else ranges[tp].further(search.start)
        if start is not None:
            searches[tp] = Search(start=start, end=ranges[tp].end, not_before_ms=moment_ms)
    return searches
