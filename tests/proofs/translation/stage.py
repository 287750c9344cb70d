"""Three kinds of topics, copied by runs that are killed, over growth, a restart and maintenance."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from confluent_kafka import Message
from confluent_kafka.admin import NewPartitions, NewTopic

from causeway.core.kernel.errors import Superseded
from causeway.core.kernel.identity import TopicPartition
from causeway.core.offsets.translation import FlowMap
from causeway.lab.clients import admin_client, producer, wait_for_leaders
from causeway.lab.cluster import LabCluster
from causeway.usecases.offsets.maintain_map import MaintenanceReport, maintain_map
from causeway.usecases.offsets.translate import load_flow_map
from tests.proofs.translation.copying import flow_of
from tests.proofs.translation.truth import Tally, check_partition, contents, known_by
from tests.support.mirroring import Mirror

_COMPACTED = {"cleanup.policy": "compact", "segment.ms": "60000", "min.cleanable.dirty.ratio": "0.001"}
_TRANSACTION_RECORDS = 40
_CLEANER_SECONDS = 60.0
_ROOT = Path(__file__).parents[3]


class Stage:
    """`source` wants a cleaner that hurries (`log.cleaner.backoff.ms`)."""

    def __init__(
        self, source: LabCluster, target: LabCluster, name: str, *, seed: int, transaction_bytes: int
    ) -> None:
        self.source, self.target, self.chance = source, target, random.Random(seed)
        self.plain, self.ledger, self.clicks = f"plain-{name}", f"ledger-{name}", f"clicks-{name}"
        self.partitions = {self.plain: 2, self.ledger: 1, self.clicks: 1}
        self.flow = flow_of(f"flow_{name}", list(self.partitions), transaction_bytes)
        self._told = {
            "name": self.flow.name,
            "topics": list(self.partitions),
            "transaction_bytes": transaction_bytes,
            "source": source.endpoint().settings,
            "target": target.endpoint().settings,
        }
        self._number = 0
        self.clicked: dict[int, int] = {}
        """The compacted topic's records, also those that the cleaner has taken since."""
        self._ms = time.time_ns() // 1_000_000 - 86_400_000
        self.kills = 0
        admin = admin_client(source.endpoint())
        wishes = [
            NewTopic(topic, count, config=_COMPACTED if topic == self.clicks else {})
            for topic, count in self.partitions.items()
        ]
        for answer in admin.create_topics(wishes).values():
            answer.result(60)
        wait_for_leaders(admin, self.partitions)

    # the source

    def write(self, records: int) -> None:
        """Half of them plain, a third in transactions, the rest into the compacted topic."""
        client = producer(self.source.endpoint(), linger_ms=5, queue_buffering_max_messages=1_000_000)
        for _ in range(records // 2):
            self._produce(client, self.plain, self._number % self.partitions[self.plain])
        for number in range(records // 6):
            self._produce(client, self.clicks, 0, key=b"%d" % self.chance.randrange(max(records // 12, 1)))
            if number % max(records // 30, 1) == 0:
                client.flush(60)
                self._ms += 70_000  # the next batch begins a new segment
        assert client.flush(120) == 0
        self._write_transactions(records // 3)

    def _write_transactions(self, records: int) -> None:
        client = producer(self.source.endpoint(), transactional_id=f"writer-{self.flow.name}", linger_ms=5)
        client.init_transactions(60)
        for _ in range(max(records // _TRANSACTION_RECORDS, 1)):
            client.begin_transaction()
            for _ in range(_TRANSACTION_RECORDS):
                self._produce(client, self.ledger, 0)
            client.flush(60)  # librdkafka may end an aborted one whose batches the broker hasn't seen
            (client.abort_transaction if self.chance.random() < 0.2 else client.commit_transaction)(60)

    def _note_click(self, known: int, refused: object, message: Message) -> None:
        assert refused is None, refused
        self.clicked[known] = message.offset()

    def _produce(self, client: object, topic: str, partition: int, key: bytes | None = None) -> None:
        self._number += 1
        self._ms += 1
        value = b"%d %s" % (self._number, b"." * self.chance.randrange(80))
        key, headers = key or b"k%d" % (self._number % 1_000), [("n", b"%d" % self._number)]
        known = known_by(self._ms, key, value, headers)
        while True:
            with suppress(BufferError):
                client.produce(  # type: ignore[attr-defined]
                    topic,
                    value,
                    key,
                    partition=partition,
                    timestamp=self._ms,
                    headers=headers,
                    on_delivery=partial(self._note_click, known) if topic == self.clicks else None,
                )
                return
            client.poll(0.05)  # type: ignore[attr-defined]

    def wait_for_holes(self) -> None:
        """Until the cleaner has taken records out of the compacted topic, and rests."""
        deadline, before = time.monotonic() + _CLEANER_SECONDS, -1
        tp = TopicPartition(self.clicks, 0)
        while True:
            offsets, _ = contents(self.source, tp)
            has_holes = len(offsets) < offsets[-1] + 1 - offsets[0]
            if has_holes and len(offsets) == before:
                return
            assert time.monotonic() < deadline, "the cleaner does nothing"
            before = len(offsets)
            time.sleep(1.0)

    def grow(self) -> None:
        self.partitions[self.plain] += 1
        admin = admin_client(self.source.endpoint())
        wish = NewPartitions(self.plain, self.partitions[self.plain])
        for answer in admin.create_partitions([wish]).values():
            answer.result(60)
        wait_for_leaders(admin, {self.plain: self.partitions[self.plain]})

    # the mirror

    def run_and_kill(self, times: int) -> None:
        """Runs that end with -9 in the middle of their lanes."""
        for _ in range(times):
            with subprocess.Popen(
                [sys.executable, "-m", "tests.proofs.translation.copying", json.dumps(self._told)],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=_ROOT,
            ) as process:
                assert process.stdout is not None
                process.stdout.readline()
                time.sleep(self.chance.uniform(0.05, 0.6))
                process.send_signal(signal.SIGKILL)
            self.kills += process.returncode == -signal.SIGKILL

    def run(self) -> None:
        mirror = Mirror(self.flow, self.source, self.target)
        try:
            report = mirror.run(take_over=True)
        finally:
            mirror.close()
        assert (report.outcome, report.lag, report.parked) == ("caught up", 0, []), report.as_dict()

    def maintain(self) -> MaintenanceReport:
        return maintain_map(self.flow, self.target.endpoint(), lambda _: None)

    def beside_maintenance(self, work: Callable[[], None]) -> int:
        """How many of its transactions were committed meanwhile."""
        stopping, done = threading.Event(), list[int]()

        def keep_maintaining() -> None:
            while not stopping.is_set():
                try:
                    done.append(self.maintain().transactions)
                except Superseded:
                    done.append(0)

        beside = threading.Thread(target=keep_maintaining)
        beside.start()
        try:
            work()
        finally:
            stopping.set()
            beside.join()
        return sum(done)

    # the proof

    def load(self) -> FlowMap:
        return load_flow_map(self.flow, self.target.endpoint())

    def check(self) -> Tally:
        tally, found = Tally(), self.load()
        for topic, count in self.partitions.items():
            for number in range(count):
                tp = TopicPartition(topic, number)
                written = self.clicked if topic == self.clicks else None
                check_partition(self.source, self.target, tp, found, tally, written)
        return tally


def play(stage: Stage, *, records: int, kills: int, say: Callable[[str], None]) -> Tally:
    """The whole story; the tally is of its end."""
    stage.write(records // 3)
    stage.wait_for_holes()
    stage.run_and_kill(kills)
    stage.run()
    say(f"{stage.kills} runs killed, the map says {stage.check()}")
    say(f"maintained: {stage.maintain()}")
    stage.grow()
    stage.write(records // 3)
    committed = stage.beside_maintenance(lambda: stage.run_and_kill(kills))
    stage.target.restart()
    stage.run()
    say(f"{stage.kills} runs killed, {committed} transactions of maintenance beside them, target restarted")
    stage.write(records - 2 * (records // 3))
    stage.run_and_kill(kills)
    stage.run()
    before = stage.check()
    say(f"in front of the last maintenance: {before}")
    say(f"maintained: {stage.maintain()}")
    after = stage.check()
    after.errors += before.errors
    return after
