"""What a `read_committed` reader sees, by another client than the product's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition

from causeway.lab.cluster import LabCluster
from tests.support.quick import QUICK_READER

_SECONDS = 30.0


def messages(cluster: LabCluster, topic: str, partition: int = 0, **settings: str | int) -> Iterator[Message]:
    """All of one partition, in order, up to its end; nothing where there is no such topic."""
    reader = Consumer(
        {
            **cluster.endpoint().settings,
            "group.id": "unused",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            **QUICK_READER,
            **settings,
        }
    )
    try:
        # A client that doesn't know the topic yet asks for its beginning half a second later.
        found = reader.list_topics(topic, timeout=_SECONDS).topics[topic].error
        if found is not None and found.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
            return
        reader.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
        error = None
        while (message := reader.poll(_SECONDS)) is not None:
            error = message.error()
            if error is None:
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:
                return
        raise AssertionError(f"no end of {topic}-{partition} within {_SECONDS} s; {error}")
    finally:
        reader.close()


def values_of(cluster: LabCluster, topic: str) -> list[bytes]:
    """Of partition 0."""
    return [message.value() for message in messages(cluster, topic)]


def content(message: Message) -> tuple[Any, ...]:
    """All of a record but its place."""
    return message.timestamp(), message.key(), message.value(), message.headers()
