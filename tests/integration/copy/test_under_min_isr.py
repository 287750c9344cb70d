"""A target of three nodes that wants two replicas in sync, and one partition that has one: it takes nothing.

Neither a batch nor the marker that ends a transaction, so a lane that had touched it waits for the marker.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field

import pytest
from confluent_kafka import Producer, TopicCollection
from confluent_kafka.admin import NewTopic

from causeway.brokers.wire import lane_claim
from causeway.core.copy.lane_task import LaneResult, LaneTask
from causeway.core.copy.lanes import lane_of
from causeway.core.copy.report import RunReport
from causeway.core.kernel.errors import ClusterUnreachable, FlowFenced
from causeway.core.kernel.identity import TopicPartition
from causeway.core.model.flow import CopyLimits
from causeway.lab.clients import admin_client, wait_for_leaders
from causeway.lab.cluster import LabCluster
from causeway.usecases.copy import run as copy_run
from causeway.usecases.copy.blocking_driver import copy_flow
from causeway.usecases.copy.run import RunOptions
from causeway.usecases.copy.worker import LaneWorker
from causeway.usecases.run_lock import fence
from causeway.usecases.run_lock.fence import fence_flow, lift_fence
from causeway.usecases.run_lock.ownership import RunOwner
from tests.integration.failover.reader import read_all
from tests.support.mirroring import make_flow

pytestmark = pytest.mark.integration
LabClusterFactory = Callable[..., LabCluster]
InVain = Callable[..., AbstractContextManager[pytest.ExceptionInfo[ClusterUnreachable]]]
PARTITIONS, STOPPED = 3, 3
UNDER = 1
"""Its second replica is on the node that stops; the others' aren't."""
_SECONDS = 60.0


@dataclass
class Stage:
    source: LabCluster
    target: LabCluster
    topic: str
    lanes: int
    before_round: Callable[[], None] = lambda: None
    said: list[str] = field(default_factory=list)
    reports: list[RunReport] = field(default_factory=list)
    written: dict[int, list[bytes]] = field(default_factory=lambda: {p: [] for p in range(PARTITIONS)})

    def __post_init__(self) -> None:
        name = self.topic.replace("-", "_")
        self.flow = make_flow(
            name, self.topic, lanes=self.lanes, limits=CopyLimits(transaction_timeout_ms=20_000)
        )
        self.mirror = self.flow.naming.target_topic(self.topic)
        here = NewTopic(self.topic, PARTITIONS)
        replicas = [[1, STOPPED] if p == UNDER else [1, 2] for p in range(PARTITIONS)]
        there = NewTopic(self.mirror, PARTITIONS, replica_assignment=replicas)
        for cluster, made in ((self.source, here), (self.target, there)):
            admin = admin_client(cluster.endpoint())
            for answer in admin.create_topics([made]).values():
                answer.result(_SECONDS)
            wait_for_leaders(admin, {made.topic: PARTITIONS})
        self.worker = LaneWorker(self.source.endpoint(), self.target.endpoint())

    @property
    def under(self) -> TopicPartition:
        return TopicPartition(self.mirror, UNDER)

    @property
    def source_under(self) -> str:
        return f"{self.topic}-{UNDER}"

    def stop_the_node(self) -> None:
        if self.target.is_running(STOPPED):
            self.target.stop_node(STOPPED)
            self.wait_for_in_sync(1)

    def write(self, count: int) -> None:
        producer = Producer({**self.source.endpoint().settings, "linger.ms": 5})
        for p in range(PARTITIONS):
            for _ in range(count):
                self.written[p].append(b"%d:%d" % (p, len(self.written[p])))
                producer.produce(self.topic, self.written[p][-1], partition=p)
        assert producer.flush(_SECONDS) == 0

    def seen(self) -> dict[int, list[bytes]]:
        found = read_all(self.target, [self.mirror], PARTITIONS)
        return {p: [each.value for each in found[self.mirror, p]] for p in range(PARTITIONS)}

    def run(self, run_for_seconds: float | None = None) -> RunReport:
        options = RunOptions(
            holder=RunOwner(name="a test", run_id=f"{len(self.reports)}"), run_for_seconds=run_for_seconds
        )

        def carry(tasks: Sequence[LaneTask]) -> list[LaneResult]:
            self.before_round()
            return [self.worker.run(task) for task in tasks]

        return copy_flow(
            self.flow,
            self.source.endpoint(),
            self.target.endpoint(),
            carry,
            options,
            self.said.append,
            on_report=self.reports.append,
        )

    def in_sync(self, partition: int) -> int:
        admin = admin_client(self.target.endpoint())
        found = admin.describe_topics(TopicCollection([self.mirror]))[self.mirror].result(_SECONDS)
        return len(found.partitions[partition].isr)

    def wait_for_in_sync(self, count: int) -> None:
        deadline = time.monotonic() + _SECONDS
        while self.in_sync(UNDER) != count:
            assert time.monotonic() < deadline, f"{self.in_sync(UNDER)} in sync"
            time.sleep(0.1)


@pytest.fixture(scope="module")
def three(lab_clusters: LabClusterFactory) -> LabCluster:
    return lab_clusters("nyc_three", nodes=3)


def shares_its_lane(topic: str, lanes: int) -> bool:
    """Lanes go by names: alone in its lane, the partition would be put off and that lane never claimed."""
    of = [lane_of(TopicPartition(f"sf.{topic}", p), lanes) for p in range(PARTITIONS)]
    return of.count(of[UNDER]) > 1


@pytest.fixture(params=[1, 3])
def stage(
    request: pytest.FixtureRequest,
    sf: LabCluster,
    three: LabCluster,
    topic_name: Callable[..., str],
) -> Iterator[Stage]:
    names = (topic_name("under") for _ in itertools.count())
    made = Stage(
        sf, three, next(filter(lambda name: shares_its_lane(name, request.param), names)), request.param
    )
    made.write(100)
    made.run()
    assert made.seen() == made.written
    made.said.clear()
    yield made
    made.worker.close()
    if not three.is_running(STOPPED):
        three.start_node(STOPPED)


@pytest.fixture
def in_vain(monkeypatch: pytest.MonkeyPatch) -> InVain:
    """What a cluster doesn't allow now gives up soon, though not before a lane's second doubt."""

    @contextmanager
    def gives_up(match: str | None = None) -> Iterator[pytest.ExceptionInfo[ClusterUnreachable]]:
        with monkeypatch.context() as hasty:
            hasty.setattr(copy_run, "_PATIENCE_SECONDS", 6.0)
            hasty.setattr(lane_claim, "_COMPLETION_SECONDS", 1.0)
            with pytest.raises(ClusterUnreachable, match=match) as ended:
                yield ended

    return gives_up


def test_a_partition_that_takes_nothing_is_left_alone_and_the_others_of_its_lane_go_on(
    stage: Stage, in_vain: InVain
) -> None:
    stage.stop_the_node()
    stage.write(100)
    with in_vain() as ended:
        stage.run()
    why = f"{stage.under} takes nothing: 1 of its 2 replicas in sync, and its min.insync.replicas is 2"
    assert f"1 partition waits: {why}" in str(ended.value)
    assert stage.seen() == {p: v if p != UNDER else v[:100] for p, v in stage.written.items()}
    report = stage.reports[-1]
    assert report.parked == []
    assert {str(tp): p.later for tp, p in report.partitions.items() if p.later} == {stage.source_under: why}

    fence_flow(stage.flow, stage.target.endpoint(), by="a test", because="nothing is open, nothing waits")
    lift_fence(stage.flow, stage.target.endpoint(), by="a test", because="done")
    stage.target.start_node(STOPPED)
    stage.wait_for_in_sync(2)
    stage.run()
    assert stage.seen() == stage.written


def test_a_lane_that_is_caught_in_the_middle_waits_for_its_end_and_says_where(
    stage: Stage, in_vain: InVain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node goes after the plan was made: the lane's transaction touches what takes nothing any more."""
    monkeypatch.setattr(fence, "_TRIES", 1)
    stage.write(100)
    stage.before_round = stage.stop_the_node
    with in_vain():
        stage.run()
    stage.before_round = lambda: None
    caught = lane_of(stage.under, stage.lanes)
    free = {p for p in range(PARTITIONS) if lane_of(TopicPartition(stage.mirror, p), stage.lanes) != caught}
    seen = stage.seen()
    for p in range(PARTITIONS):
        assert seen[p] == stage.written[p][:100] if p == UNDER else stage.written[p], p
    stage.write(100)
    with in_vain() as ended:
        stage.run()
    waits = f"causeway.{stage.flow.name}.{caught}: the coordinator doesn't complete the last transaction"
    written_nowhere = f"its end isn't written yet on {stage.under};"
    assert waits in " ".join([*stage.said, str(ended.value)])
    assert written_nowhere in " ".join([*stage.said, str(ended.value)])
    assert {p: stage.seen()[p] for p in free} == {p: stage.written[p] for p in free}
    assert stage.reports[-1].parked == []

    endpoint = stage.target.endpoint()
    with in_vain(written_nowhere):
        fence_flow(stage.flow, endpoint, by="a test", because="meanwhile")
    with pytest.raises(FlowFenced):  # it stands, and no new run begins; only what is on its way isn't sure
        stage.run()
    stage.target.start_node(STOPPED)
    stage.wait_for_in_sync(2)
    assert fence_flow(stage.flow, endpoint, by="a test", because="meanwhile").lanes_claimed == stage.lanes
    lift_fence(stage.flow, endpoint, by="a test", because="done")
    stage.run()
    assert stage.seen() == stage.written
