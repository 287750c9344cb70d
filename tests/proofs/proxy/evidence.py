"""What must be true after each cell, asked of the brokers directly.

Both sides are read by a librdkafka consumer (`read_committed`), record by record and in order; position, map
and the ends of the logs by the wire.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from uuid import UUID

from confluent_kafka import Consumer, KafkaError, Message
from confluent_kafka import TopicPartition as Place

from causeway.brokers.transport.connection import Network, Wire
from causeway.brokers.wire.log_reader import WireLogReader
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.ports import LogEnd
from causeway.core.kernel.identity import TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.offsets.offset_map import MAP_PARTITIONS, MappedRange, valid_ranges
from causeway.core.state.position import Position
from causeway.lab.cluster import LabCluster

_MARKER_TRIES, _MARKER_PAUSE_SECONDS = 500, 0.01
Record = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Mark:
    """Where the logs ended, by partition, when a cell began."""

    source: dict[int, int]
    target: dict[int, int]


class Evidence:
    def __init__(
        self, flow: Flow, topic: str, partitions: int, source: LabCluster, target: LabCluster
    ) -> None:
        self._flow, self._partitions = flow, range(partitions)
        self._topics = (topic, f"sf.{topic}")
        self._network = Network()
        self._source = WireLogReader(Wire(source.endpoint(), self._network))
        self._target = WireTarget(Wire(target.endpoint(), self._network))
        self._network.run(self._source.wire.connect)
        self._network.run(self._target.wire.connect)
        self._consumers = [_consumer(cluster) for cluster in (source, target)]
        self.data_ids: tuple[UUID, ...] = ()
        self.wait_for_leaders()

    def close(self) -> None:
        for consumer in self._consumers:
            consumer.close()
        self._source.wire.disconnect()
        self._target.wire.disconnect()
        self._network.close()

    def wait_for_leaders(self) -> None:
        """Until both topics can be written."""
        ids = []
        for reader, name in zip((self._source, self._target), self._topics, strict=True):
            while True:
                found = self._network.run(partial(reader.wire.topics, [name]))[name]
                if not found.error and len(found.leaders) == len(self._partitions):
                    break
                self._network.run(lambda: self._network.sleep(0.05))
            ids.append(found.topic_id)
        self.data_ids = tuple(ids)

    def target_names(self, topic: str) -> tuple[bytes, ...]:
        """How a topic of the target is named in requests: also by its id, once it is there."""
        found = self._network.run(lambda: self._target.wire.topics([topic]))[topic]
        return (topic.encode(),) if found.error else (topic.encode(), found.topic_id.bytes)

    def mark(self) -> Mark:
        return Mark(*(self._ends(side, committed=False) for side in (0, 1)))

    def assert_exact(self, mark: Mark) -> None:
        """Every record of the source since the mark is on the target: once, in order, and nothing else."""
        places = [TopicPartition(self._topics[1], number) for number in self._partitions]
        places += [TopicPartition(self._flow.map_topic, number) for number in range(MAP_PARTITIONS)]
        self._assert_nothing_open(places)
        wanted, seen = self._read(0, mark.source), self._read(1, mark.target)
        for number in self._partitions:
            _assert_same(
                self._topics[1],
                number,
                [_content(m) for m in wanted[number]],
                [_content(m) for m in seen[number]],
            )
        self._assert_map(wanted, seen)
        self._assert_positions(seen)

    def _assert_nothing_open(self, places: list[TopicPartition]) -> None:
        """The markers of the last transaction may still be on their way; a dead one's would never come."""
        for _ in range(_MARKER_TRIES):
            ends = self._network.run(lambda: self._target.log_ends(places))
            stable = self._network.run(lambda: self._target.last_stables(places))
            if all(isinstance(end, LogEnd) and end.offset == stable[tp] for tp, end in ends.items()):
                return
            self._network.run(lambda: self._network.sleep(_MARKER_PAUSE_SECONDS))
        raise AssertionError(f"a transaction is open on the target: {stable} of {ends}")

    def _assert_map(self, wanted: dict[int, list[Message]], seen: dict[int, list[Message]]) -> None:
        places = [TopicPartition(self._topics[1], number) for number in self._partitions]
        runs = self._network.run(lambda: self._target.map_runs(self._flow.map_topic, places))
        for number, place in enumerate(places):
            exact = {m.offset(): n.offset() for m, n in zip(wanted[number], seen[number], strict=True)}
            told = {s: t for run in valid_ranges(runs[place]) for s, t in _pairs(run)}
            first = min(exact)
            assert {s: t for s, t in told.items() if s >= first} == exact, f"the map of {place} is wrong"

    def _assert_positions(self, seen: dict[int, list[Message]]) -> None:
        places = [TopicPartition(self._topics[1], number) for number in self._partitions]
        found = self._network.run(lambda: self._target.positions(self._flow.group, places, stable=True))
        ends = self._ends(0, committed=True)
        for number, place in enumerate(places):
            position = found[place]
            assert isinstance(position, Position), f"{place}: {position}"
            told = (position.source_next, position.target_next)
            assert told == (ends[number], seen[number][-1].offset() + 1), f"the position of {place} is wrong"

    def _ends(self, side: int, *, committed: bool) -> dict[int, int]:
        reader = (self._source, self._target)[side]
        wanted = {TopicPartition(self._topics[side], number): -1 for number in self._partitions}
        found = self._network.run(lambda: reader.list_offsets(wanted, isolation=int(committed)))
        ends: dict[int, int] = {}
        for place, end in found.items():
            assert isinstance(end, LogEnd), f"{place}: {end}"
            ends[place.partition] = end.offset
        return ends

    def _read(self, side: int, start: dict[int, int]) -> dict[int, list[Message]]:
        """What a consumer that begins there sees, up to the end."""
        consumer, topic = self._consumers[side], self._topics[side]
        consumer.assign([Place(topic, number, at) for number, at in start.items()])
        seen: dict[int, list[Message]] = {number: [] for number in start}
        waiting = set(start)
        while waiting:
            message = consumer.poll(30)
            assert message is not None, f"{topic} can't be read to its end"
            error = message.error()
            if error is None:
                seen[message.partition()].append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                waiting.discard(message.partition())
            else:
                raise AssertionError(f"{topic}: {error}")
        consumer.unassign()
        return seen


def _consumer(cluster: LabCluster) -> Consumer:
    return Consumer(
        {
            **cluster.endpoint().settings,
            "group.id": "unused",
            "enable.auto.commit": "false",
            "isolation.level": "read_committed",
            "enable.partition.eof": "true",
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": "10",
        }
    )


def _content(message: Message) -> Record:
    return (message.timestamp(), message.key(), message.value(), message.headers())


def _assert_same(topic: str, number: int, wanted: list[Record], seen: list[Record]) -> None:
    assert wanted, f"{topic}-{number}: nothing to compare"
    if wanted == seen:
        return
    at = next(
        (i for i, (w, s) in enumerate(zip(wanted, seen, strict=False)) if w != s), min(len(wanted), len(seen))
    )
    raise AssertionError(
        f"{topic}-{number}: {len(seen)} records of {len(wanted)}, the first that differs is number {at}: "
        f"{seen[at : at + 1]} for {wanted[at : at + 1]}"
    )


def _pairs(run: MappedRange) -> list[tuple[int, int]]:
    source, target, pairs = int(run.source_first), int(run.target_first), []
    for copied, skipped in run.segments:
        pairs += [(source + i, target + i) for i in range(copied)]
        source, target = source + copied + skipped, target + copied
    return pairs
