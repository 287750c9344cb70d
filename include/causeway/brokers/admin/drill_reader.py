"""A consumer like anybody's, for drills: it begins where its group has committed."""

from __future__ import annotations

import time
from collections.abc import Collection

from confluent_kafka import Consumer, KafkaError, TopicPartition

from causeway import interruption
from causeway.brokers.admin.probe import SILENT
from causeway.brokers.error_map import mapped
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.identity import TopicPartition as Place

_POLL_SECONDS = 0.5
_PARTITION_EOF = KafkaError._PARTITION_EOF  # noqa: SLF001 - librdkafka's own name for it


def read_first(
    endpoint: ClusterEndpoint, group: str, places: Collection[Place], *, timeout_seconds: float
) -> dict[Place, int | None]:
    """The offset of each partition's first record; None: nothing lies after its place.

    What isn't answered in time is left out.
    """
    settings = {
        **endpoint.settings,
        "group.id": group,
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
    }
    found: dict[Place, int | None] = {}
    deadline = time.monotonic() + timeout_seconds
    with mapped(cluster=endpoint):
        consumer = Consumer(settings, logger=SILENT)
        try:
            consumer.assign([TopicPartition(place.topic, place.partition) for place in places])
            while len(found) < len(places) and time.monotonic() < deadline:
                interruption.check()
                message = consumer.poll(_POLL_SECONDS)
                if message is None:
                    continue
                place = Place(str(message.topic()), int(message.partition() or 0))
                error = message.error()
                if error is None:
                    found.setdefault(place, message.offset())
                elif error.code() == _PARTITION_EOF:
                    found.setdefault(place, None)
        finally:
            consumer.close()
    return found
