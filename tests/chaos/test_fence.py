"""After the fence nothing is added: not by a worker that was frozen anywhere in the protocol and wakes up
late, not by one with an old number of lanes, not by the next run; and a lift lets the copy end exactly."""

from __future__ import annotations

import os
import pickle
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
from confluent_kafka.admin import NewTopic

from causeway.brokers.target_log import WireTarget
from causeway.brokers.wire import Network, Wire
from causeway.core.errors import FlowFenced
from causeway.core.flow import CopyLimits, Flow, Start
from causeway.core.identity import TopicPartition
from causeway.core.naming import PrefixNaming
from causeway.core.topic_filter import TopicFilter
from causeway.flows.fence import fence_flow, lift_fence
from causeway.lab.clients import admin_client, producer
from causeway.lab.cluster import LabCluster
from tests.chaos.frozen_copy import FrozenJob, run_inline
from tests.chaos.processes import Started, start, wait_until
from tests.chaos.readers import Digests, read_all

pytestmark = [pytest.mark.integration, pytest.mark.chaos]

PARTITIONS = 4
RECORDS = 12_000
_ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["nyc", "nyc_v1"])
def target(request: pytest.FixtureRequest) -> LabCluster:
    found: LabCluster = request.getfixturevalue(request.param)
    return found


@dataclass(frozen=True, slots=True)
class Content:
    """All that could be added to: ends of data and map, what readers without isolation see, positions."""

    ends: dict[TopicPartition, object]
    records: dict[str, Digests]
    positions: dict[TopicPartition, object]

    def assert_same(self, later: Content) -> None:
        assert later.ends == self.ends
        assert later.positions == self.positions
        assert later.records.keys() == self.records.keys()
        for place, seen in self.records.items():
            assert np.array_equal(seen, later.records[place]), f"{place} has other records"


class Stage:
    def __init__(self, source: LabCluster, target: LabCluster, topic: str, folder: Path, lanes: int) -> None:
        self.source, self.target, self.folder, self.topic = source, target, folder, topic
        self._looks = 0
        self.processes: list[Started] = []
        self.flow = Flow(
            name=f"flow-{topic}",
            source="sf",
            target="nyc",
            topics=TopicFilter((topic,), ()),
            naming=PrefixNaming("sf", "."),
            start=Start("earliest"),
            lanes=lanes,
            replication_factor=None,
            config_properties_exclude=(),
            limits=CopyLimits(transaction_bytes=1 << 16, fetch_bytes=1 << 16),
        )

    def fill(self) -> None:
        admin = admin_client(self.source.endpoint())
        admin.create_topics([NewTopic(self.topic, PARTITIONS)])[self.topic].result(30)
        client = producer(self.source.endpoint(), batch_size=8192)
        for number in range(RECORDS):
            client.produce(self.topic, b"%010d" % number * 10, b"k", partition=number % PARTITIONS)
            client.poll(0)
        assert client.flush(60) == 0

    def start_and_freeze(self, step: str, nth: int) -> Started:
        job = self.folder / "job.pickle"
        content = FrozenJob(
            flow=self.flow, source=self.source.endpoint(), target=self.target.endpoint(), step=step, nth=nth
        )
        job.write_bytes(pickle.dumps(content))
        command = [sys.executable, "-m", "tests.chaos.frozen_copy", str(job)]
        paths = f"{_ROOT}:{os.environ.get('PYTHONPATH', '')}"
        environment = {**os.environ, "PYTHONPATH": paths}
        child = start("frozen", command, self.folder / "frozen.log", environment)
        self.processes.append(child)
        wait_until(lambda: _is_stopped(child) or child.exit_code is not None, "the worker freezes")
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


@pytest.fixture
def stage(
    sf: LabCluster, target: LabCluster, topic_name: Callable[..., str], tmp_path: Path
) -> Iterator[Callable[[int], Stage]]:
    made: list[Stage] = []

    def make(lanes: int) -> Stage:
        made.append(Stage(sf, target, topic_name("fenced"), tmp_path, lanes))
        made[-1].fill()
        return made[-1]

    yield make
    for each in made:
        for process in each.processes:
            process.kill_all()


@pytest.mark.parametrize(
    ("step", "nth"),
    [
        pytest.param("append", 4, id="in the middle of appending"),
        pytest.param("claim", 1, id="between look and claim"),
        pytest.param("positions", 3, id="between data and positions"),
        pytest.param("end", 3, id="in front of the commit"),
    ],
)
def test_a_frozen_worker_adds_nothing_behind_the_fence(
    stage: Callable[[int], Stage], step: str, nth: int
) -> None:
    at = stage(2)
    frozen = at.start_and_freeze(step, nth)
    outcome = fence_flow(at.flow, at.target.endpoint(), by="the test", because="nyc takes over")
    assert (outcome.fenced, outcome.changed, outcome.lanes_claimed) == (True, True, 2)
    before = at.look()
    wake(frozen)
    assert frozen.exit_code == 4, frozen.output()
    assert "fenced by the test" in frozen.output()
    assert "nyc takes over" in frozen.output()
    before.assert_same(at.look())
    the_next_run_is_refused(at)
    before.assert_same(at.look())
    lift_fence(at.flow, at.target.endpoint(), by="the test", because="it was a drill")
    report = run_inline(at.flow, at.source.endpoint(), at.target.endpoint(), "after the lift")
    assert (report.outcome, report.lag) == ("caught up", 0)
    at.assert_complete()


def test_the_fence_reaches_lanes_that_the_flow_no_longer_has(stage: Callable[[int], Stage]) -> None:
    at = stage(16)
    frozen = at.start_and_freeze("append", 4)
    fewer = replace(at.flow, lanes=2)
    outcome = fence_flow(fewer, at.target.endpoint(), by="the test", because="two lanes are enough")
    assert outcome.lanes_claimed == 16
    before = at.look()
    # Lifted at once: nothing but the claims holds the frozen worker's old lane now.
    lift_fence(fewer, at.target.endpoint(), by="the test", because="lanes are changed")
    wake(frozen)
    assert frozen.exit_code == 4, frozen.output()
    before.assert_same(at.look())
    run_inline(fewer, at.source.endpoint(), at.target.endpoint(), "with two lanes")
    at.assert_complete()


def the_next_run_is_refused(at: Stage) -> None:
    with pytest.raises(FlowFenced) as refusal:
        run_inline(at.flow, at.source.endpoint(), at.target.endpoint(), "the next run")
    assert refusal.value.exit_code == 4
    assert "fenced by the test since " in str(refusal.value)
    assert "nyc takes over" in str(refusal.value)


def wake(frozen: Started) -> None:
    frozen.send(signal.SIGCONT)
    wait_until(lambda: frozen.exit_code is not None, "the woken worker ends")


def _is_stopped(process: Started) -> bool:
    try:
        stat = Path(f"/proc/{process.pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] == "T"
