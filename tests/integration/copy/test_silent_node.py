"""One node of three is out of reach: it concerns the partitions that it leads, and the others go on.

Its partitions have one replica, and the cluster goes on naming it as their leader, as it does with a listener
that a firewall hides: nothing but the silence tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic
from kafka.protocol.admin import CreateTopicsRequest

from causeway.brokers.admin import topics as admin_topics
from causeway.brokers.admin.probe import probe
from causeway.brokers.transport.connection import Network, Wire
from causeway.brokers.wire.log_reader import WireLogReader
from causeway.core.copy.ports import FetchAnswer, FetchFrom, Refused, Unreachable
from causeway.core.copy.report import RunReport
from causeway.core.doctor.finding import Result
from causeway.core.failover.request import FailoverRequest
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import ClusterUnreachable
from causeway.core.kernel.estimate import Bound
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.model.flow import CopyLimits
from causeway.core.model.group_filter import FlowGroups
from causeway.lab.clients import admin_client, wait_for_leaders
from causeway.lab.cluster import LabCluster
from causeway.render.flow_status import standing
from causeway.usecases.copy import run as copy_run
from causeway.usecases.copy.blocking_driver import copy_flow
from causeway.usecases.copy.run import RunOptions
from causeway.usecases.copy.worker import LaneWorker
from causeway.usecases.doctor.examine import examine
from causeway.usecases.failover.execute import preview_failover
from causeway.usecases.inspect.flow_status import inspect_flow
from causeway.usecases.run_lock.ownership import RunOwner
from causeway.usecases.verify.flow import verify_mirror
from tests.integration.failover.reader import read_all
from tests.integration.groups.stage import commit
from tests.support.mirroring import make_flow

pytestmark = pytest.mark.integration
LabClusterFactory = Callable[..., LabCluster]
NODES, SILENT = 3, 3
_SECONDS = 60.0
_IMPATIENT = {"socket.connection.setup.timeout.ms": "2000", "socket.timeout.ms": "4000"}


@dataclass
class Stage:
    """A flow over one topic, whose partition n is on node n + 1 alone."""

    source: LabCluster
    target: LabCluster
    topic: str
    said: list[str] = field(default_factory=list)
    reports: list[RunReport] = field(default_factory=list)
    written: dict[int, list[bytes]] = field(default_factory=lambda: {p: [] for p in range(NODES)})

    def __post_init__(self) -> None:
        self.flow = make_flow(self.topic.replace("-", "_"), self.topic, lanes=1, limits=CopyLimits())
        admin = admin_client(self.source.endpoint())
        alone = [[node] for node in self.source.node_numbers]
        made = NewTopic(self.topic, NODES, replica_assignment=alone, config={"min.insync.replicas": "1"})
        for answer in admin.create_topics([made]).values():
            answer.result(_SECONDS)
        wait_for_leaders(admin, {self.topic: NODES})

    @property
    def of_silent(self) -> TopicPartition:
        return TopicPartition(self.topic, SILENT - 1)

    def write(self, count: int, partitions: tuple[int, ...] = (0, 1, 2)) -> None:
        producer = Producer({**self.source.endpoint().settings, "linger.ms": 5})
        for p in partitions:
            for _ in range(count):
                self.written[p].append(b"%d:%d" % (p, len(self.written[p])))
                producer.produce(self.topic, self.written[p][-1], partition=p)
        assert producer.flush(_SECONDS) == 0

    def seen(self) -> dict[int, list[bytes]]:
        """By partition, in order."""
        mirrored = self.flow.naming.target_topic(self.topic)
        found = read_all(self.target, [mirrored], NODES)
        return {p: [each.value for each in found[mirrored, p]] for p in range(NODES)}

    def run(self, run_for_seconds: float | None = None) -> RunReport:
        source, target = impatient(self.source), impatient(self.target)
        worker = LaneWorker(source, target)
        options = RunOptions(
            holder=RunOwner(name="a test", run_id=f"{len(self.reports)}"), run_for_seconds=run_for_seconds
        )
        try:
            return copy_flow(
                self.flow,
                source,
                target,
                lambda tasks: [worker.run(task) for task in tasks],
                options,
                self.said.append,
                on_report=self.reports.append,
            )
        finally:
            worker.close()


def impatient(cluster: LabCluster) -> ClusterEndpoint:
    endpoint = cluster.endpoint()
    return replace(endpoint, settings={**endpoint.settings, **_IMPATIENT})


@pytest.fixture(scope="module")
def three(lab_clusters: LabClusterFactory) -> LabCluster:
    """A node that doesn't answer any more keeps what it leads. It starts last, so it isn't the active
    controller: whoever creates a topic meanwhile would wait for that one."""
    settings = {"broker.session.timeout.ms": "600000"}
    made = lab_clusters("three", start=False, nodes=NODES, broker_settings=settings)
    made.launch([node for node in range(1, NODES + 1) if node != SILENT])
    made.wait_until_ready()
    made.start()
    return made


@pytest.fixture
def stage(
    three: LabCluster, nyc: LabCluster, topic_name: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Stage]:
    monkeypatch.setattr(copy_run, "_PATIENCE_SECONDS", 3.0)
    made = Stage(three, nyc, topic_name("silent"))
    made.write(100)
    made.run()
    made.said.clear()
    assert made.seen() == made.written
    yield made
    if three.is_running(SILENT):
        three.resume(SILENT)


def test_the_others_cross_and_the_run_says_who_waits_for_whom(stage: Stage) -> None:
    stage.write(100)
    stage.source.pause(SILENT)
    with pytest.raises(ClusterUnreachable) as ended:
        stage.run()
    reached = {p: values if p != SILENT - 1 else values[:100] for p, values in stage.written.items()}
    assert stage.seen() == reached
    report = stage.reports[-1]
    assert report.parked == []
    waits = {str(tp): p.later for tp, p in report.partitions.items() if p.later}
    assert list(waits) == [str(stage.of_silent)], waits
    assert f"node {SILENT} " in waits[str(stage.of_silent)]
    assert f"node {SILENT} " in str(ended.value)
    assert "1 partition waits" in str(ended.value)
    assert report.as_dict()["waiting"] == 1

    stage.source.resume(SILENT)
    stage.run()
    assert stage.seen() == stage.written
    assert stage.reports[-1].as_dict()["waiting"] == 0


def test_a_run_for_a_time_follows_the_others_and_takes_the_node_in_when_it_is_back(stage: Stage) -> None:
    stage.source.pause(SILENT)
    stage.write(100, (0, 1))
    report = stage.run(run_for_seconds=12)
    assert report.outcome == "time over"
    assert stage.seen() == stage.written
    assert f"node {SILENT} " in report.partitions[stage.of_silent].later
    stage.source.resume(SILENT)
    stage.write(100)
    stage.run()
    assert stage.seen() == stage.written


def test_the_first_look_at_the_cluster_is_answered_by_another(stage: Stage) -> None:
    """Each broker names another one as the controller, and librdkafka waits for that one."""
    stage.source.pause(SILENT)
    for _ in range(8):
        assert probe(stage.source.endpoint()).cluster_id == stage.source.cluster_id


def test_its_silence_is_waited_for_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: dict[Wire, list[str]] = {}
    send_on = Wire.send_on

    async def counted(self: Wire, connection: Any, request: Any) -> Any:
        try:
            return await send_on(self, connection, request)
        except Unreachable:
            waited.setdefault(self, []).append(type(request).__name__)
            raise

    monkeypatch.setattr(Wire, "send_on", counted)
    stage.source.pause(SILENT)
    stage.write(100, (0, 1))
    report = stage.run(run_for_seconds=15)
    assert report.rounds > 0
    assert stage.seen() == stage.written
    assert waited
    assert all(len(in_vain) == 1 for in_vain in waited.values()), waited


def test_status_and_sheet_know_what_they_know_and_name_the_node(stage: Stage) -> None:
    groups = FlowGroups(include=(f"{stage.topic}\\..*",), sync_offsets=True)
    commit(stage.source, f"{stage.topic}.g", {(stage.topic, p): 40 for p in range(NODES)})
    stage.write(10, (0, 1))
    stage.source.pause(SILENT)
    source, target = impatient(stage.source), impatient(stage.target)

    view = inspect_flow(stage.flow, source, target)
    assert {str(f.pair.source): f.lag for f in view.plan.partitions} == {
        f"{stage.topic}-0": 10,
        f"{stage.topic}-1": 10,
    }
    assert f"node {SILENT} " in view.plan.later[stage.of_silent]
    known = view.unseen[stage.of_silent]
    assert known.position is not None
    assert (known.position.source_next, known.last_record_ms is not None) == (100, True)
    shown = standing(view)
    (row,) = (line.split() for line in shown.text.splitlines() if line.startswith(f"{stage.of_silent} "))
    assert row[2:6] == ["waits", "100", "unknown", "unknown"]
    assert (shown.exit_code, "lag at least 20; 1 waiting" in shown.text) == (0, True)

    sheet = preview_failover(
        stage.flow, source, target, FailoverRequest(flow=stage.flow.name, at_ms=None), groups
    )
    lost = {loss.source.partition: loss.records for loss in sheet.losses}
    assert [str(lost[p]) for p in (0, 1)] == ["10", "10"]
    assert lost[SILENT - 1].bound is Bound.UNKNOWN
    assert f"node {SILENT} " in lost[SILENT - 1].because
    assert sheet.lost.bound is Bound.AT_LEAST
    assert sheet.source_silent == ""


def test_doctor_and_verify_name_the_node(stage: Stage) -> None:
    stage.source.pause(SILENT)
    source, target = impatient(stage.source), impatient(stage.target)
    findings = examine(stage.flow, [], source, target, read_only=True, say=lambda _: None).findings
    failed = [each for each in findings if each.result is Result.FAILED]
    assert [(each.check, each.where) for each in failed] == [("connection", "three")]
    assert f"node {SILENT} " in failed[0].finding
    with pytest.raises(ClusterUnreachable, match=f"1 partition waits: .*node {SILENT} "):
        verify_mirror(stage.flow, source, target, on_progress=lambda _: None)


def test_a_broker_that_was_away_does_not_know_a_new_topic_and_is_not_believed(three: LabCluster) -> None:
    """What a lane asks just after a creation or a move may reach a leader that hasn't heard of it yet."""
    network = Network()
    reader = WireLogReader(Wire(three.endpoint(), network))

    async def ask_too_early(name: str) -> tuple[FetchAnswer, bool]:
        wire = reader.wire
        await wire.connect()
        await wire.topics(None, node=SILENT)  # a connection that stands
        three.pause(SILENT)
        try:
            topic_id = await _create(wire, name)
            tp = TopicPartition(name, 0)
            asked = reader.fetch({tp: FetchFrom(topic_id, 0)}, max_bytes=1, max_wait_ms=0)
            await network.sleep(0.2)  # it is on its way
        finally:
            three.resume(SILENT)
        answer = (await asked)[tp]
        return answer, await reader.is_gone(name, topic_id)

    told = [network.run(partial(ask_too_early, f"too-early-{number}")) for number in range(3)]
    reader.wire.disconnect()
    network.close()
    assert Code.UNKNOWN_TOPIC_ID in {a.code for a, _ in told if isinstance(a, Refused)}, told
    assert not any(is_gone for _, is_gone in told)


async def _create(wire: Wire, name: str) -> UUID:
    """Led by the silent node, which the controllers take to be alive."""
    topic = CreateTopicsRequest.CreatableTopic
    place = topic.CreatableReplicaAssignment(partition_index=0, broker_ids=[SILENT])
    made = topic(name=name, num_partitions=-1, replication_factor=-1, assignments=[place], configs=[])
    for _ in range(100):
        await wire.send(CreateTopicsRequest(topics=[made], timeout_ms=3_000, validate_only=False), 1)
        found = (await wire.topics([name], node=1))[name]
        if not found.error and found.leaders == {0: SILENT}:
            return found.topic_id
        await wire.network.sleep(0.1)
    raise AssertionError(found)


def test_nobody_is_at_home_any_more(
    three: LabCluster, nyc: LabCluster, topic_name: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Last: the cluster's controllers take its place for taken, and it can't come back in this test."""
    monkeypatch.setattr(copy_run, "_PATIENCE_SECONDS", 3.0)
    monkeypatch.setattr(admin_topics, "REQUEST_SECONDS", 3.0)
    stage = Stage(three, nyc, topic_name("refused"))
    stage.write(100)
    three.kill(SILENT)
    why = "waiting for controller"
    while "waiting for controller" in why:  # the dead node was named as it: another client hears another name
        with pytest.raises(ClusterUnreachable) as ended:
            stage.run()
        why = str(ended.value)
    assert f"node {SILENT} " in why
    assert stage.seen() == {**stage.written, SILENT - 1: []}
    assert stage.reports[-1].parked == []
