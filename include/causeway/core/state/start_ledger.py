"""The ledger of starts: where a partition begins that has no history, as the flow's start rule once decided.

The rule is asked once for each pair of topics and partition, ever: `latest` is another place each time, and
what lies between two answers would be passed over without a word. So the answer is written to the flow's
state before any lane starts, and from then on it is the place, however often a run dies before its first
commit or a committed offset expires.

Invariant: of two answers for one partition the first one in the log counts, and every record has a key of
its own, so compaction never takes the one that counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from uuid import UUID

from causeway.core.kernel.identity import Pair, SourceOffset
from causeway.core.kernel.json_fields import list_of, whole_number
from causeway.core.state.flow_log import as_record

PairKey = tuple[str, UUID, UUID]
"""Target topic, and the ids of source and target topic: a topic that is recreated is another one."""
_PLACES_IN_A_RECORD = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class StartAt:
    """Where a partition begins."""

    offset: SourceOffset
    epoch: int
    """Leader epoch of the record before it; -1: not known."""
    target_end: int = 0
    """Where the target's log ended then: a start says nothing of a log that was written to since."""
    generation: int = -1
    """Of the run that asked; -1: not written down yet."""


def key_of(pair: Pair) -> PairKey:
    return pair.target.topic, pair.source_topic_id, pair.target_topic_id


def _record_values(
    key: PairKey, starts: Mapping[int, StartAt], *, generation: int, at_ms: int
) -> Iterator[tuple[str, dict[str, object]]]:
    """The records of one pair of topics: what makes the key of each unique, and its value."""
    topic, source_id, target_id = key
    numbers = sorted(starts)
    for at in range(0, len(numbers), _PLACES_IN_A_RECORD):
        chunk = numbers[at : at + _PLACES_IN_A_RECORD]
        places = [[n, int(starts[n].offset), starts[n].epoch, starts[n].target_end] for n in chunk]
        value: dict[str, object] = {
            "target_topic": topic,
            "source_id": str(source_id),
            "target_id": str(target_id),
            "generation": generation,
            "places": places,
        }
        yield f"{topic}/{source_id.hex}/{target_id.hex}/{generation}/{chunk[0]}/{at_ms}", value


def start_records(
    flow: str, key: PairKey, starts: Mapping[int, StartAt], *, generation: int, at_ms: int
) -> list[tuple[bytes, bytes]]:
    """Where these partitions begin, before anything is copied."""
    records: list[tuple[bytes, bytes]] = []
    for place, value in _record_values(key, starts, generation=generation, at_ms=at_ms):
        head, body = as_record("starts", flow, value)
        records.append((head + f"/{place}".encode(), body))
    return records


def parse_starts(value: Mapping[str, object]) -> tuple[PairKey, dict[int, StartAt]]:
    """:raises KeyError: | :raises ValueError: it isn't one."""
    generation = whole_number(value["generation"])
    key = str(value["target_topic"]), UUID(str(value["source_id"])), UUID(str(value["target_id"]))
    starts: dict[int, StartAt] = {}
    for place in list_of(value["places"]):
        number, offset, epoch, end = map(whole_number, list_of(place))
        starts[number] = StartAt(
            offset=SourceOffset(offset), epoch=epoch, target_end=end, generation=generation
        )
    return key, starts
