"""A producer that keeps writing, with the time of sending in each value: what makes lag and delay visible."""

from __future__ import annotations

import json
import threading
import time
from dataclasses import dataclass
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka.admin import NewTopic

from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import ClusterTrouble
from causeway.lab.clients import admin_client, producer, wait_for_leaders

_TICK_SECONDS = 0.01
_STOP_SECONDS = 60.0
_ANSWER_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class LiveRecord:
    number: int
    """From 0, in the order of sending; record `n` is in partition `n % partitions`."""
    sent_at_ms: int


def live_value(record: LiveRecord) -> bytes:
    return json.dumps({"number": record.number, "sent_at_ms": record.sent_at_ms}).encode()


def parse_live_value(value: bytes) -> LiveRecord:
    return LiveRecord(**json.loads(value))


class LiveProducer:
    """Writes into `topic` from a thread of its own, from `start` (or `with`) until `stop`.

    Outages of the broker don't end it: records wait, none is lost, none comes twice, and it catches up.
    """

    def __init__(
        self,
        endpoint: ClusterEndpoint,
        *,
        topic: str = "ticker",
        records_per_second: int = 100,
        partitions: int = 2,
    ) -> None:
        """`partitions` is for a topic that has to be created; one that is there stays as it is."""
        self.topic = topic
        self._endpoint, self._rate, self._partitions = endpoint, records_per_second, partitions
        self._sent = self._delivered = 0
        self._refusal: KafkaError | None = None
        self._failure: BaseException | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._write_in_thread, name=f"live-{topic}", daemon=True)

    @property
    def delivered(self) -> int:
        """Records that the cluster has acknowledged so far."""
        return self._delivered

    def start(self) -> Self:
        self._partitions = _ensure_topic(self._endpoint, self.topic, self._partitions)
        self._thread.start()
        return self

    def stop(self) -> int:
        """Send no more, wait for the acknowledgements; how many records were written in all.

        :raises ClusterTrouble: the cluster refused a record, or doesn't answer.
        """
        self._stopping.set()
        self._thread.join(_STOP_SECONDS + 5)
        if self._failure is not None:
            raise self._failure
        if self._delivered < self._sent:
            raise ClusterTrouble(
                f"topic {self.topic} of {self._endpoint}",
                value=f"{self._delivered:,} of {self._sent:,} records",
                rule=self._refusal.str()
                if self._refusal
                else "the cluster did not acknowledge the rest in time",
                remedy="look at the broker's log",
            )
        return self._delivered

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _write_in_thread(self) -> None:
        try:
            self._write_until_stopped()
        except (KafkaException, OSError) as failure:
            self._failure = failure

    def _write_until_stopped(self) -> None:
        # 0: a record never gives up, however long the broker is away.
        client = producer(self._endpoint, message_timeout_ms=0, linger_ms=5, compression_type="lz4")
        began = time.monotonic()
        while not self._stopping.wait(_TICK_SECONDS):
            due = int((time.monotonic() - began) * self._rate)
            while self._sent < due and not self._stopping.is_set():
                record = LiveRecord(self._sent, time.time_ns() // 1_000_000)
                try:
                    client.produce(
                        self.topic,
                        live_value(record),
                        str(record.number).encode(),
                        partition=record.number % self._partitions,
                        on_delivery=self._on_delivery,
                    )
                except BufferError:
                    break
                self._sent += 1
            client.poll(0)
        client.flush(_STOP_SECONDS)

    def _on_delivery(self, error: KafkaError | None, _: Message) -> None:
        if error is None:
            self._delivered += 1
        else:
            self._refusal = self._refusal or error


def _ensure_topic(endpoint: ClusterEndpoint, topic: str, partitions: int) -> int:
    """How many partitions the topic has."""
    client = admin_client(endpoint)
    try:
        client.create_topics([NewTopic(topic, partitions)])[topic].result(_ANSWER_SECONDS)
    except KafkaException as refusal:
        if refusal.args[0].code() != KafkaError.TOPIC_ALREADY_EXISTS:
            raise
        return len(client.list_topics(topic, timeout=_ANSWER_SECONDS).topics[topic].partitions)
    wait_for_leaders(client, {topic: partitions})
    return partitions
