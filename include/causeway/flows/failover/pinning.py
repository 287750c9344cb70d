"""From a timestamp index to the record that it means.

An index also knows the ends of transactions and aborted records, and the time of an end is the broker's, not
the record's: in a log that was filled later than its records were written, it points far too early. So where
it points at nothing that a reader sees, the record is looked for behind that place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from causeway.brokers.log_reader import READ_COMMITTED, WireLogReader
from causeway.core.identity import TopicPartition
from causeway.core.ports import Refused
from causeway.flows.failover.reading import Sample, Search, Stopped, first_records


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    end: int
    further: Callable[[int], int | None]
    """Where behind an offset the record can be; None: nowhere in front of the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned:
    found: Sample | Stopped | None
    """None: nothing is as late."""
    passed_markers: bool = False


async def pin(
    reader: WireLogReader,
    topic_ids: Mapping[str, UUID],
    ranges: Mapping[TopicPartition, Range],
    moment_ms: int,
) -> dict[TopicPartition, Pinned | Refused]:
    """The first visible record of each partition that isn't earlier than the moment."""
    index = await reader.list_offsets(dict.fromkeys(ranges, moment_ms), isolation=READ_COMMITTED)
    answers: dict[TopicPartition, Pinned | Refused] = {}
    pointed: dict[TopicPartition, Search] = {}
    for tp in ranges:
        answer = index[tp]
        if isinstance(answer, Refused):
            answers[tp] = answer
        elif answer.offset < 0:
            answers[tp] = Pinned(found=None)
        else:
            pointed[tp] = Search(start=answer.offset, end=answer.offset + 1)
    here = await first_records(reader, topic_ids, pointed)
    behind = await first_records(reader, topic_ids, _behind(ranges, pointed, here, moment_ms))
    for tp in pointed:
        if isinstance(here[tp], Sample):
            answers[tp] = Pinned(found=here[tp])
        else:
            answers[tp] = Pinned(found=behind.get(tp), passed_markers=True)
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
