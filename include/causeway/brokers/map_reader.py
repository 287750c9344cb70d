"""Reading the offset map: the committed runs of some partitions or of all, in one pass over its log.

A partition of the map is read as a whole, whoever is asked for: those that share it come along for nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Sequence
from dataclasses import dataclass

from causeway.brokers.log_reader import READ_UNCOMMITTED
from causeway.brokers.topic_reader import WireTopicReader
from causeway.core.identity import TopicPartition
from causeway.core.isolation import Seen
from causeway.core.kafka_errors import KafkaErrorCode as Code
from causeway.core.map_entries import MapEntries
from causeway.core.offset_map import Run, map_partition
from causeway.core.records import decode_records
from causeway.core.rights import Operation


@dataclass(frozen=True, slots=True)
class MapSnapshot:
    """One partition of the map at one moment. In front of `stable` nothing was open."""

    entries: MapEntries
    stable: int


class WireMapReader(WireTopicReader):
    async def map_runs(
        self, map_topic: str, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, list[Run]]:
        """The runs of these target partitions, older ones first; none of a partition that has none."""
        count = await self.map_partitions(map_topic)
        wanted = frozenset(partitions)
        numbers = {map_partition(tp, count) for tp in wanted} if count else set[int]()
        found = await self._read(map_topic, sorted(numbers), wanted)
        return {tp: found.get(tp, []) for tp in partitions}

    async def read_map(
        self, map_topic: str, numbers: Collection[int] | None = None
    ) -> dict[TopicPartition, list[Run]]:
        """The runs of everything that these partitions of the map tell of; None: all of them."""
        count = await self.map_partitions(map_topic)
        return await self._read(map_topic, sorted(range(count) if numbers is None else numbers), None)

    async def map_partitions(self, map_topic: str) -> int:
        """How many the map has; 0: it hasn't been made.

        :raises NotAuthorized: a map that may not be read must not look like an empty one.
        """
        described = (await self.wire.topics([map_topic]))[map_topic]
        if described.error == Code.UNKNOWN_TOPIC_OR_PARTITION:
            return 0
        if described.lacks(Operation.READ):
            raise self.wire.lacks_right(map_topic, Operation.READ)
        return len(described.leaders)

    async def map_snapshot(
        self, tp: TopicPartition, wanted: Container[TopicPartition] | None = None
    ) -> MapSnapshot:
        entries, stable = MapEntries(wanted), await self.end_of(tp)
        async for record in self.committed_records(tp, stable):
            if record.key is not None:
                entries.take(record.key, record.value)
        return MapSnapshot(entries, stable)

    async def keys_written(
        self, tp: TopicPartition, start: int, end: int, ours: Container[int]
    ) -> set[bytes]:
        """The keys of all records there, open, committed or aborted, that other producers than ours wrote."""
        keys: set[bytes] = set()
        async for head, batch, seen in self.batches(tp, start, end, READ_UNCOMMITTED):
            if seen is Seen.DATA and head.producer_id not in ours:
                keys |= {record.key for record in decode_records(batch, head) if record.key is not None}
        return keys

    async def _read(
        self, map_topic: str, numbers: Sequence[int], wanted: Container[TopicPartition] | None
    ) -> dict[TopicPartition, list[Run]]:
        runs: dict[TopicPartition, list[Run]] = {}
        for number in numbers:
            snapshot = await self.map_snapshot(TopicPartition(map_topic, number), wanted)
            runs.update(snapshot.entries.by_target())
        return runs
