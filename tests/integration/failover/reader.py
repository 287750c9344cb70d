"""What `read_committed` readers see, by another client than ours: all, or from where a group stands."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import NamedTuple

from confluent_kafka import OFFSET_STORED, Consumer, KafkaError, TopicPartition

from causeway.lab.cluster import LabCluster

_SECONDS = 60.0
_AT_ONCE, _PATIENCE_SECONDS = 5_000, 0.05
Place = tuple[str, int]


class Seen(NamedTuple):
    offset: int
    time_ms: int
    value: bytes


Log = list[Seen]
"""Of one partition, in order."""


def read_all(cluster: LabCluster, topics: Iterable[str], partitions: int) -> dict[Place, Log]:
    places = [(topic, p) for topic in topics for p in range(partitions)]
    return _read(cluster, "causeway-test-reader", dict.fromkeys(places, 0))


def read_on(cluster: LabCluster, group: str, places: Iterable[Place]) -> dict[Place, Log]:
    """As a consumer of the group that comes back: from what is committed, or not at all."""
    return _read(cluster, group, dict.fromkeys(places, OFFSET_STORED))


def _read(cluster: LabCluster, group: str, begins: dict[Place, int]) -> dict[Place, Log]:
    settings = {
        **cluster.endpoint().settings,
        "group.id": group,
        "enable.auto.commit": False,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 20,
    }
    found: dict[Place, Log] = {place: [] for place in begins}
    consumer, at_end, news = Consumer(settings), set[Place](), time.monotonic()
    consumer.assign([TopicPartition(*place, at) for place, at in begins.items()])
    try:
        while len(at_end) < len(begins):
            for message in consumer.consume(_AT_ONCE, _PATIENCE_SECONDS):
                place, news = (message.topic(), message.partition()), time.monotonic()
                if message.error() is None:
                    found[place].append(Seen(message.offset(), message.timestamp()[1], message.value()))
                else:
                    assert message.error().code() == KafkaError._PARTITION_EOF, message.error()
                    at_end.add(place)
            assert time.monotonic() - news < _SECONDS, f"{group}: nothing comes, and no end"
    finally:
        consumer.close()
    return found
