"""What writes to the source: bursts before each fault, in two topics, and a live producer all the while.

    orders  4 partitions, keys, headers and the record's number in each value; never twice the same record
    ledger  2 partitions, the same in transactions, one in four aborted
    ticker  2 partitions, written live (the lab's own producer)

Contents depend on the seed and the record's number alone.
"""

from __future__ import annotations

import random
import threading

from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import NewTopic

from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.lab.clients import admin_client, producer, wait_for_leaders
from causeway.lab.live import LiveProducer

TOPICS = {"orders": 4, "ledger": 2, "ticker": 2}
_CODECS = ("none", "lz4", "zstd", "none", "gzip", "snappy")
_PATIENCE_SECONDS = 120.0
_CHAPTERS = 8


class Writer:
    """Counts what a `read_committed` reader of the source will see."""

    def __init__(self, endpoint: ClusterEndpoint, seed: int, *, live_per_second: int) -> None:
        self._endpoint, self._seed = endpoint, seed
        self._number = self._committed = self._bursts = 0
        self._is_live = False
        self._refusal: KafkaError | None = None
        admin = admin_client(endpoint)
        wishes = [NewTopic(name, count) for name, count in TOPICS.items()]
        for answer in admin.create_topics(wishes).values():
            answer.result(60)
        wait_for_leaders(admin, TOPICS)
        self._live = LiveProducer(
            endpoint, topic="ticker", records_per_second=live_per_second, partitions=TOPICS["ticker"]
        )

    @property
    def committed(self) -> int:
        """Records that are on the source permanently."""
        return self._committed + self._live.delivered

    def start_live(self) -> None:
        self._live.start()
        self._is_live = True

    def stop_live(self) -> None:
        if self._is_live:
            self._is_live = False
            self._live.stop()

    def burst(self, records: int) -> None:
        """About seven eighths into orders, the rest into ledger; back when all are acknowledged."""
        self.write_orders(records - records // 8)
        self.write_ledger(records // 8)

    def burst_beside(self, records: int, *, with_ledger: bool) -> threading.Thread:
        """The same from a thread; without transactions it survives any outage of the broker."""
        work = threading.Thread(
            target=self.burst if with_ledger else self.write_orders, args=(records,), name="burst"
        )
        work.start()
        return work

    def write_orders(self, records: int) -> None:
        self._bursts += 1
        client = producer(
            self._endpoint,
            compression_type=_CODECS[self._bursts % len(_CODECS)],
            batch_size=32_768,
            linger_ms=5,
            message_timeout_ms=0,
        )
        self._send(client, "orders", records)
        self._flush(client)
        self._committed += records

    def write_ledger(self, records: int) -> None:
        client = producer(
            self._endpoint, transactional_id="chaos-ledger", compression_type="lz4", batch_size=32_768
        )
        client.init_transactions(_PATIENCE_SECONDS)
        for chapter in range(_CHAPTERS):
            client.begin_transaction()
            self._send(client, "ledger", records // _CHAPTERS)
            self._flush(client)
            if chapter % 4 == 2:
                client.abort_transaction(_PATIENCE_SECONDS)
            else:
                client.commit_transaction(_PATIENCE_SECONDS)
                self._committed += records // _CHAPTERS

    def _send(self, client: Producer, topic: str, records: int) -> None:
        partitions, first = TOPICS[topic], self._number
        padding = random.Random(f"{self._seed}/{first}").randbytes(40).hex()
        self._number += records
        for number in range(first, first + records):
            record = {
                "value": f"{number:010d}/{self._seed}/{padding}".encode(),
                "key": f"key-{number % 977}".encode(),
                "headers": [("n", number.to_bytes(8, "big")), ("empty", b"")],
                "partition": number % partitions,
            }
            while True:
                try:
                    client.produce(topic, on_delivery=self._delivered, **record)
                    break
                except BufferError:
                    client.poll(0.05)
            if number % 500 == 0:
                client.poll(0)

    def _flush(self, client: Producer) -> None:
        left = client.flush(_PATIENCE_SECONDS)
        if left or self._refusal is not None:
            raise AssertionError(f"the source didn't take {left} records: {self._refusal}")

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        self._refusal = self._refusal or error
