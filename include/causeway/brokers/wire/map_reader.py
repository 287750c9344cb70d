"""Reading the offset map: the committed runs of some partitions or of all, in one pass over its log.

A partition of the map is read as a whole, whoever is asked for: those that share it come along for nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from dataclasses import dataclass

from causeway.brokers.wire.log_reader import READ_UNCOMMITTED
from causeway.brokers.wire.topic_reader import WireTopicReader
from causeway.core.copy.ports import unknown_partitions
from causeway.core.kernel.acl_vocabulary import Operation
from causeway.core.kernel.errors import NewerFormat
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.kernel.kafka_errors import error_name
from causeway.core.offsets.map_entries import MapEntries, MapOf
from causeway.core.offsets.map_format import is_ours, newer_key
from causeway.core.offsets.offset_map import MappedRange, map_partition
from causeway.core.offsets.unreadable_records import OddInMap, odd_of_map
from causeway.core.records.records import decode_records
from causeway.core.records.visibility import Visibility


@dataclass(frozen=True, slots=True)
class MapSnapshot:
    """One partition of the map at one moment. Before `stable` nothing was open."""

    entries: MapEntries
    stable: int


class WireMapReader(WireTopicReader):
    async def map_runs(
        self, map_topic: str, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, list[MappedRange]]:
        """The runs of these target partitions, older ones first; none of a partition that has none."""
        return {tp: known.runs for tp, known in (await self.map_of(map_topic, partitions)).items()}

    async def map_of(
        self, map_topic: str, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, MapOf]:
        """The same, and the places that were set without records."""
        count = await self.map_partitions(map_topic)
        wanted = frozenset(partitions)
        numbers = {map_partition(tp, count) for tp in wanted} if count else set[int]()
        found = await self._read_partitions(map_topic, sorted(numbers), wanted)
        return {tp: found.get(tp, MapOf([])) for tp in partitions}

    async def read_map(
        self, map_topic: str, numbers: Collection[int] | None = None
    ) -> dict[TopicPartition, list[MappedRange]]:
        """The runs of everything that these partitions of the map tell of; None: all of them."""
        count = await self.map_partitions(map_topic)
        found = await self._read_partitions(
            map_topic, sorted(range(count) if numbers is None else numbers), None
        )
        return {tp: known.runs for tp, known in found.items() if known.runs}

    async def whole_map(self, map_topic: str) -> dict[TopicPartition, MapOf]:
        """All that it tells of, places too."""
        return await self._read_partitions(map_topic, range(await self.map_partitions(map_topic)), None)

    async def map_partitions(self, map_topic: str) -> int:
        """How many the map has; 0: it hasn't been made.

        :raises NotAuthorized: a map that may not be read must not look like an empty one.
        :raises Unreachable: nor one that no broker can describe yet.
        """
        described = (await self.wire.topics([map_topic]))[map_topic]
        if described.error == Code.UNKNOWN_TOPIC_OR_PARTITION:
            return 0
        if described.lacks(Operation.READ):
            raise self.wire.lacks_right(map_topic, Operation.READ)
        if described.error or not described.leaders:
            raise unknown_partitions(map_topic, error_name(described.error) if described.error else "")
        return len(described.leaders)

    async def partitions_to_write(self, map_topic: str) -> int:
        """The same, for whoever writes there.

        :raises Unreachable: it isn't there: what is written would be found nowhere.
        """
        count = await self.map_partitions(map_topic)
        if not count:
            raise unknown_partitions(map_topic, "the topic isn't there")
        return count

    async def map_snapshot(
        self, tp: TopicPartition, wanted: Container[TopicPartition] | None = None
    ) -> MapSnapshot:
        """:raises NewerFormat: a newer Causeway has written there; a tombstone after it takes it back."""
        entries, stable = MapEntries(wanted), await self.end_of(tp)
        newer: dict[bytes, NewerFormat] = {}
        async for record in self.committed_records(tp, stable):
            if record.key is None or not is_ours(record.key):
                continue  # somebody else's
            if (fault := newer_key(record.key)) is None:
                entries.take(record.key, record.value)
            elif record.value is not None:
                newer[record.key] = fault
            else:
                newer.pop(record.key, None)
        for fault in newer.values():
            raise fault
        return MapSnapshot(entries, stable)

    async def map_generations(self, map_topic: str) -> dict[TopicPartition, int]:
        """By target partition, the newest generation that the map knows of."""
        found = await self.whole_map(map_topic)
        newest = {
            tp: max([run.generation for run in known.runs] + [known.place.generation if known.place else -1])
            for tp, known in found.items()
        }
        return {tp: int(generation) for tp, generation in newest.items() if generation >= 0}

    async def odd_in_map(self, map_topic: str) -> list[OddInMap]:
        """All records that nobody can read, or that aren't ours, as they stand now."""
        odd: list[OddInMap] = []
        for number in range(await self.map_partitions(map_topic)):
            at = TopicPartition(map_topic, number)
            latest: dict[bytes, tuple[int, bytes | None]] = {}
            async for record in self.committed_records(at):
                latest[record.key or b""] = (record.offset, record.value)
            odd += odd_of_map(at, latest)
        return odd

    async def keys_written(
        self, tp: TopicPartition, start: int, end: int, ours: Container[int]
    ) -> set[bytes]:
        """The keys of all records there, open, committed or aborted, that other producers than ours wrote."""
        keys: set[bytes] = set()
        async for head, batch, seen in self.batches(tp, start, end, READ_UNCOMMITTED):
            if seen is Visibility.DATA and head.producer_id not in ours:
                keys |= {record.key for record in decode_records(batch, head) if record.key is not None}
        return keys

    async def _read_partitions(
        self, map_topic: str, numbers: Sequence[int], wanted: Container[TopicPartition] | None
    ) -> dict[TopicPartition, MapOf]:
        found: dict[TopicPartition, MapOf] = {}
        for number in numbers:
            snapshot = await self.map_snapshot(TopicPartition(map_topic, number), wanted)
            found.update(snapshot.entries.by_target())
        return found
