"""One topic on its way between two real clusters, and processes that fall asleep while they copy it."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from confluent_kafka.admin import NewTopic

from causeway.brokers.transport.connection import Network, Wire
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.lane_task import LaneTask
from causeway.core.kernel.identity import TopicPartition
from causeway.core.model.flow import CopyLimits
from causeway.core.model.topic_filter import TopicFilter
from causeway.lab.clients import admin_client, wait_for_leaders
from causeway.lab.cluster import LabCluster
from tests.proofs.chaos.parts.frozen_copy import FrozenJob
from tests.proofs.chaos.parts.processes import Started, start, wait_until
from tests.proofs.chaos.parts.readers import Digests, read_all
from tests.support import builders
from tests.support.quick import quick_producer

PARTITIONS = 4
RECORDS = 12_000
_ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True)
class Content:
    """All that could be added to: ends of data and map, what readers without isolation see, positions."""

    ends: Mapping[TopicPartition, object]
    records: dict[str, Digests]
    positions: Mapping[TopicPartition, object]

    def assert_same(self, later: Content) -> None:
        assert later.ends == self.ends
        assert later.positions == self.positions
        assert later.records.keys() == self.records.keys()
        for place, seen in self.records.items():
            assert np.array_equal(seen, later.records[place]), f"{place} has other records"


class Stage:
    def __init__(self, source: LabCluster, target: LabCluster, topic: str, folder: Path, lanes: int) -> None:
        self.source, self.target, self.folder, self.topic = source, target, folder, topic
        self._looks = self._jobs = 0
        self.processes: list[Started] = []
        self.flow = builders.flow(
            f"flow-{topic}",
            topics=TopicFilter((topic,), ()),
            lanes=lanes,
            limits=CopyLimits(transaction_bytes=1 << 16, fetch_bytes=1 << 16),
        )

    def fill(self) -> None:
        admin = admin_client(self.source.endpoint())
        admin.create_topics([NewTopic(self.topic, PARTITIONS)])[self.topic].result(30)
        wait_for_leaders(admin, {self.topic: PARTITIONS})
        client = quick_producer(self.source.endpoint(), batch_size=8192)
        for number in range(RECORDS):
            client.produce(self.topic, b"%010d" % number * 10, b"k", partition=number % PARTITIONS)
            client.poll(0)
        assert client.flush(60) == 0

    def start_and_freeze(self, step: str, nth: int, task: LaneTask | None = None) -> Started:
        """Back when it sleeps, before the nth request of that step."""
        self._jobs += 1
        job = self.folder / f"job-{self._jobs}.pickle"
        content = FrozenJob(
            flow=self.flow,
            source=self.source.endpoint(),
            target=self.target.endpoint(),
            step=step,
            nth=nth,
            task=task,
        )
        job.write_bytes(pickle.dumps(content))
        command = [sys.executable, "-m", "tests.proofs.chaos.parts.frozen_copy", str(job)]
        paths = f"{_ROOT}:{os.environ.get('PYTHONPATH', '')}"
        environment = {**os.environ, "PYTHONPATH": paths}
        child = start("frozen", command, job.with_suffix(".log"), environment)
        self.processes.append(child)
        wait_until(lambda: child.is_stopped() or child.exit_code is not None, "the worker freezes")
        assert child.exit_code is None, child.output()
        return child

    def look(self) -> Content:
        self._looks += 1
        network = Network()
        target = WireTarget(Wire(self.target.endpoint(), network))
        try:
            network.run(target.wire.connect)
            topics = network.run(lambda: target.wire.topics([f"sf.{self.topic}", self.flow.map_topic]))
            places = [TopicPartition(name, p) for name, t in topics.items() for p in t.leaders]
            data = [tp for tp in places if tp.topic == f"sf.{self.topic}"]
            return Content(
                network.run(lambda: target.log_ends(places)),
                self._read(self.target, f"sf.{self.topic}", "read_uncommitted"),
                network.run(lambda: target.positions(self.flow.group, data, stable=True)),
            )
        finally:
            target.wire.disconnect()
            network.close()

    def assert_complete(self) -> None:
        source = self._read(self.source, self.topic, "read_committed")
        mirror = self._read(self.target, f"sf.{self.topic}", "read_committed")
        assert sum(map(len, source.values())) == RECORDS
        for place, wanted in source.items():
            assert np.array_equal(wanted, mirror[f"sf.{place}"]), place

    def _read(self, cluster: LabCluster, topic: str, isolation: str) -> dict[str, Digests]:
        self._looks += 1
        name = f"look-{self._looks}"
        return read_all(name, cluster.bootstrap_servers, isolation, self.folder, {topic: PARTITIONS})


def wake(frozen: Started) -> None:
    frozen.send(signal.SIGCONT)
    wait_until(lambda: frozen.exit_code is not None, "the woken worker ends")
