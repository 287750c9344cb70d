"""Makes a workload's data on the source, once for all contenders."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import NewTopic

from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.lab.clients import admin_client, producer, wait_for_leaders
from tests.bench.workloads import Workload

_SEED = 4_301
_WORDS = 2_000
_VALUES = 997
_ANSWER_SECONDS = 120.0
_FLUSH_SECONDS = 600.0


def make_data(endpoint: ClusterEndpoint, workload: Workload) -> None:
    """Topics and records; partitions are filled in stretches, so that batches get their size."""
    admin = admin_client(endpoint)
    wishes = [NewTopic(name, workload.partitions_per_topic) for name in workload.topic_names]
    for answer in admin.create_topics(wishes).values():
        answer.result(_ANSWER_SECONDS)
    wait_for_leaders(admin, dict.fromkeys(workload.topic_names, workload.partitions_per_topic))
    refusals: list[KafkaError] = []
    client = producer(endpoint, **_settings(workload))

    def delivered(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            refusals.append(error)

    for (topic, partition), value in zip(_places(workload), values(workload), strict=False):
        _produce(client, topic, partition, value, delivered)
    left = client.flush(_FLUSH_SECONDS)
    if left or refusals:
        raise AssertionError(f"the source didn't take {left} records: {refusals[:1]}")


def values(workload: Workload) -> Iterator[bytes]:
    """Text of words, which a codec can halve; the same for each run of the bench."""
    chance = random.Random(_SEED)
    words = [
        "".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 9))) for _ in range(_WORDS)
    ]
    size = workload.value_bytes
    texts = [" ".join(chance.choices(words, k=size // 4 + 4)).encode()[: size - 8] for _ in range(_VALUES)]
    return (b"%08d" % (number % 100_000_000) + texts[number % _VALUES] for number in itertools.count())


def _settings(workload: Workload) -> dict[str, str | int]:
    settings: dict[str, str | int] = {"compression_type": workload.codec, "message_timeout_ms": 0}
    if workload.batch_bytes == 0:
        return settings | {"linger_ms": 0, "batch_num_messages": 1}
    return settings | {"linger_ms": 100, "batch_size": workload.batch_bytes, "batch_num_messages": 100_000}


def _places(workload: Workload) -> Iterator[tuple[str, int]]:
    """Where each record goes: a stretch for one partition, then one for the next."""
    places = [(topic, p) for topic in workload.topic_names for p in range(workload.partitions_per_topic)]
    stretch = max(min(workload.batch_bytes // workload.value_bytes, 1_000), 1)
    rounds = itertools.cycle(place for place in places for _ in range(stretch))
    return itertools.islice(rounds, workload.records)


def _produce(client: Producer, topic: str, partition: int, value: bytes, delivered: object) -> None:
    while True:
        try:
            client.produce(topic, value, partition=partition, on_delivery=delivered)
        except BufferError:
            client.poll(0.05)
        else:
            return
