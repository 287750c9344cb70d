"""What is wrong is one line: the thing, its value, the rule, the fix; and nothing is written.

"Nothing" is everything that a flow could write: topics, both ends of every log, the groups' offsets on both
clusters, the files of the deployment. What concerns one partition parks that partition: the others go on.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from causeway.core.copy.report import RunReport
from causeway.core.kernel.errors import AuthenticationFailed, BadInput, CausewayError, ClusterUnreachable
from causeway.core.state.parked import ParkReason
from causeway.lab.certificates import ensure_certificates
from causeway.lab.clients import admin_client
from causeway.lab.cluster import LabCluster
from causeway.lab.ports import free_ports
from tests.integration.copy.spark_flow import BIN, environment, finished, flows_file, submit_command
from tests.support.inline_flow import (
    InlineFlow,
    create_topic,
    delete_records,
    delete_topic,
    everything,
    mirror_of,
    named,
    topic_ends,
    write,
)
from tests.support.quick import quick_producer
from tests.support.reading import values_of

pytestmark = pytest.mark.integration
LabClusterFactory = Callable[..., LabCluster]
RECORDS = 40


class Stage:
    """A flow of two topics with a few records each, run as the clusters' super user."""

    def __init__(self, source: LabCluster, target: LabCluster, name: str) -> None:
        self.source, self.target = source, target
        self.topic, self.other = f"bad-{name}", f"good-{name}"
        self.mirror, self.other_mirror = f"sf.{self.topic}", f"sf.{self.other}"
        self.flow = mirror_of(f"flow_{name}", self.topic, self.other)
        self.runs = InlineFlow(self.flow, named(source, "sf"), named(target, "nyc"))
        for topic in (self.topic, self.other):
            create_topic(source, topic)
            write(source, topic, RECORDS)

    def run_first(self) -> None:
        assert self.runs.run().records == 2 * RECORDS
        self.write_more()

    def write_more(self) -> None:
        for topic in (self.topic, self.other):
            write(self.source, topic, RECORDS)

    def ends(self, topic: str) -> tuple[int, int] | None:
        return topic_ends(self.target).get((topic, 0))

    def assert_parks(self, reason: ParkReason, *words: str) -> str:
        """Run: `topic` is parked for this reason and nothing is added to it; `other` goes on."""
        before, others = self.ends(self.mirror), self.visible(self.other_mirror)
        report = self.runs.run()
        line = parked_line(report, self.topic)
        assert line.startswith(f"{reason}: "), line
        assert_says(line, *words)
        assert self.ends(self.mirror) == before
        assert len(self.visible(self.other_mirror)) > len(others)
        assert self.runs.run().leaves_something_out, "it stays parked"
        assert self.ends(self.mirror) == before
        return line

    def visible(self, topic: str) -> list[bytes]:
        return values_of(self.target, topic)


def parked_line(report: RunReport, topic: str) -> str:
    assert report.leaves_something_out
    (parked,) = [p for p in report.parked if p.source == f"{topic}-0"]
    assert parked.parked is not None
    return "{reason}: {facts}; {remedy}".format(**parked.parked)


def assert_says(line: str, *words: str) -> None:
    assert "\n" not in line
    assert [word for word in words if word not in line] == [], line


@pytest.fixture
def stage(sf: LabCluster, nyc: LabCluster) -> Stage:
    return Stage(sf, nyc, uuid.uuid4().hex[:8])


@pytest.fixture(scope="module")
def guarded(lab_clusters: LabClusterFactory) -> tuple[LabCluster, LabCluster]:
    return lab_clusters("sf_tls", security="SASL_SSL"), lab_clusters("nyc_tls", security="SASL_SSL")


def assert_refused(runs: InlineFlow, kind: type[CausewayError], exit_code: int, *words: str) -> None:
    with pytest.raises(kind) as refusal:
        runs.run()
    assert refusal.value.exit_code == exit_code
    assert refusal.value.remedy, "there is a way out"
    assert_says(str(refusal.value), *words)


# Clusters that can't be used


@pytest.mark.parametrize("side", ["source", "target"])
def test_an_unreachable_cluster(stage: Stage, side: str) -> None:
    (port,) = free_ports(1)
    nobody = named(stage.source, "sf" if side == "source" else "nyc", bootstrap_servers=f"127.0.0.1:{port}")
    before = everything(stage.source, stage.target)
    setattr(stage.runs, side, nobody)
    assert_refused(stage.runs, ClusterUnreachable, 3, nobody.alias, f"127.0.0.1:{port}", "bootstrap.servers")
    assert everything(stage.source, stage.target) == before


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("wrong", ["password", "user", "authority", "protocol"])
def test_a_door_that_does_not_open(
    guarded: tuple[LabCluster, LabCluster], tmp_path: Path, side: str, wrong: str
) -> None:
    cluster = guarded[0] if side == "source" else guarded[1]
    alias = "sf" if side == "source" else "nyc"
    stranger = ensure_certificates(tmp_path / "stranger", "stranger").authority
    settings, words = {
        "password": ({"sasl_password": "wrong-canary-5b1d"}, ("User:admin", "sasl.password")),
        "user": ({"sasl_username": "nobody"}, ("User:nobody", "sasl.username")),
        "authority": ({"ssl_ca_location": str(stranger)}, ("certificate", "ssl.ca.location", str(stranger))),
        "protocol": ({"security_protocol": "PLAINTEXT"}, ("security.protocol = PLAINTEXT", "TLS")),
    }[wrong]
    runs = InlineFlow(mirror_of("doors", "orders"), named(guarded[0], "sf"), named(guarded[1], "nyc"))
    setattr(runs, side, named(cluster, alias, **settings))
    before = everything(*guarded)
    with pytest.raises(AuthenticationFailed) as refusal:
        runs.run()
    assert refusal.value.exit_code == 3
    assert_says(str(refusal.value), alias, cluster.bootstrap_servers, *words)
    assert "canary" not in str(refusal.value)
    assert everything(*guarded) == before


def test_one_cluster_under_two_names(stage: Stage) -> None:
    before = everything(stage.source, stage.target)
    stage.runs.target = named(stage.source, "nyc")
    assert_refused(stage.runs, BadInput, 2, "sf", "nyc", stage.source.cluster_id, "one and the same cluster")
    assert everything(stage.source, stage.target) == before


def test_an_alias_that_points_at_another_cluster_than_before(
    stage: Stage, guarded: tuple[LabCluster, LabCluster]
) -> None:
    stage.run_first()
    elsewhere = guarded[0]
    before = everything(stage.source, stage.target, elsewhere)
    stage.runs.source = named(elsewhere, "sf")
    known, found = stage.source.cluster_id, elsewhere.cluster_id
    assert_refused(stage.runs, BadInput, 2, "cluster sf", known, found, "new flow name")
    assert everything(stage.source, stage.target, elsewhere) == before


# Topics that can't be mirrored as they are


def test_a_target_topic_with_fewer_partitions(stage: Stage) -> None:
    wide = f"wide-{stage.topic}"
    create_topic(stage.source, wide, 3)
    write(stage.source, wide, RECORDS, partition=2)
    create_topic(stage.target, f"sf.{wide}", 2)
    before = topic_ends(stage.target)
    runs = stage.runs.over(stage.topic, wide)
    report = runs.run()
    (refused,) = report.refused_topics
    line = f"{refused['topic']}: {refused['reason']}; {refused['remedy']}"
    assert_says(line, wide, f"sf.{wide}", "has 2 partitions", "has 3", "give it 3 partitions")
    assert report.leaves_something_out
    assert [said for said in runs.said if wide in said and "2 partitions" in said]
    after = topic_ends(stage.target)
    assert {tp: ends for tp, ends in after.items() if wide in tp[0]} == {
        tp: ends for tp, ends in before.items() if wide in tp[0]
    }
    assert stage.visible(stage.mirror) == values_of(stage.source, stage.topic)


def test_a_target_topic_that_holds_foreign_data(stage: Stage) -> None:
    create_topic(stage.target, stage.mirror)
    write(stage.target, stage.mirror, 3)
    stage.assert_parks(ParkReason.FOREIGN_DATA, stage.mirror, "offset 0", stage.flow.name, "causeway adopt")
    assert len(stage.visible(stage.mirror)) == 3


def test_somebody_writes_into_a_mirror_between_two_rounds(stage: Stage) -> None:
    stage.run_first()
    foreign_at = stage.ends(stage.mirror)
    assert foreign_at is not None
    stage.runs.before_round = lambda number: write(stage.target, stage.mirror, 1) if number == 0 else None
    report = stage.runs.run()
    stage.runs.before_round = lambda _: None
    line = parked_line(report, stage.topic)
    assert line.startswith(f"{ParkReason.FOREIGN_WRITER}: ")
    assert_says(line, stage.mirror, f"offset {foreign_at[1]}", "WRITE", "causeway reconcile")
    stage.write_more()
    stage.assert_parks(ParkReason.FOREIGN_WRITER, f"offset {foreign_at[1]}")
    assert len(stage.visible(stage.mirror)) == RECORDS + 1


def test_somebody_writes_into_a_mirror_in_the_middle_of_a_lane(stage: Stage) -> None:
    """Between two transactions of one lane: its records stay, and nothing that readers see comes after."""
    stage.flow = replace(
        stage.flow, limits=replace(stage.flow.limits, transaction_bytes=2_000, fetch_bytes=1 << 16)
    )
    stage.runs.flow = stage.flow
    stage.runs.run()
    for _ in range(60):
        write(stage.source, stage.topic, 100)
    began, ended = stage.ends(stage.mirror), threading.Event()
    assert began is not None

    def disturb() -> None:
        client = quick_producer(stage.target.endpoint(), linger_ms=0)
        while not ended.is_set() and (stage.ends(stage.mirror) or began)[1] < began[1] + 200:
            ended.wait(0.01)
        client.produce(stage.mirror, b"foreign")
        client.flush(30)

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        report = stage.runs.run()
    finally:
        ended.set()
        thread.join()
    if not report.leaves_something_out:  # it came after the last transaction: the next run finds it
        stage.write_more()
        report = stage.runs.run()
    line = parked_line(report, stage.topic)
    assert line.startswith(f"{ParkReason.FOREIGN_WRITER}: ")
    seen = stage.visible(stage.mirror)
    assert seen[-1] == b"foreign"
    assert seen[:-1] == values_of(stage.source, stage.topic)[: len(seen) - 1]
    before = stage.ends(stage.mirror)
    assert parked_line(stage.runs.run(), stage.topic) == line
    assert stage.ends(stage.mirror) == before


# Histories that broke


def test_a_mirror_that_was_deleted_is_never_made_again_in_silence(stage: Stage) -> None:
    stage.run_first()
    delete_topic(stage.target, stage.mirror)
    stage.assert_parks(ParkReason.TARGET_RECREATED, stage.mirror, stage.flow.name, "causeway restart-topic")
    assert stage.ends(stage.mirror) is None


def test_a_mirror_that_was_recreated(stage: Stage) -> None:
    stage.run_first()
    delete_topic(stage.target, stage.mirror)
    create_topic(stage.target, stage.mirror)
    stage.assert_parks(ParkReason.TARGET_RECREATED, stage.mirror, "had id", "causeway restart-topic")
    assert stage.visible(stage.mirror) == []


def test_a_source_topic_that_was_recreated_and_grew_past_its_position(stage: Stage) -> None:
    stage.run_first()
    delete_topic(stage.source, stage.topic)
    create_topic(stage.source, stage.topic)
    write(stage.source, stage.topic, 3 * RECORDS)
    stage.assert_parks(ParkReason.SOURCE_RECREATED, stage.topic, "had id", "causeway restart-topic")


def test_a_committed_offset_that_is_not_ours(stage: Stage) -> None:
    stage.run_first()
    forged = ConsumerGroupTopicPartitions(stage.flow.group, [TopicPartition(stage.mirror, 0, 7)])
    admin = admin_client(stage.target.endpoint())
    for answer in admin.alter_consumer_group_offsets([forged]).values():
        answer.result(30)
    stage.assert_parks(ParkReason.FOREIGN_POSITION, stage.flow.group, "offset 7", stage.mirror, "metadata")


def test_retention_that_passed_the_position(stage: Stage) -> None:
    stage.run_first()
    delete_records(stage.source, stage.topic, before=RECORDS + 25)
    line = stage.assert_parks(ParkReason.SOURCE_GAP, f"{stage.topic}-0", "causeway accept-gap")
    assert_says(line, f"offsets {RECORDS} to {RECORDS + 24} of {stage.topic}-0 are gone")


# Through the command line


GOOD_FILE = """\
clusters:
  sf: {connection: kafka_sf}
  nyc: {connection: kafka_nyc}
flows:
  sf_to_nyc:
    source: sf
    target: nyc
    topics: [orders]
"""


@pytest.mark.parametrize(
    ("flow", "wrong", "right", "words"),
    [
        ("sf_to_nyk", "", "", ("sf_to_nyk", "sf_to_nyc")),
        ("sf_to_nyc", "    topics:", "    topicz:", ("flows.yaml:8: ", "topicz", "topics")),
        ("sf_to_nyc", "topics: [orders]", "topics: 7", ("flows.yaml:8: ", "topics", "7")),
        ("sf_to_nyc", "source: sf", "source: la", ("flows.yaml:6: ", "la", "sf")),
    ],
    ids=["unknown flow", "unknown key", "wrong type", "unknown cluster"],
)
@pytest.mark.parametrize("door", ["causeway", "spark job"])
def test_what_a_person_wrote_is_wrong(
    tmp_path: Path, stage: Stage, door: str, flow: str, wrong: str, right: str, words: tuple[str, ...]
) -> None:
    file = tmp_path / "flows.yaml"
    file.write_text(GOOD_FILE.replace(wrong, right) if wrong else GOOD_FILE)
    connections = {"sf": stage.source.connection_json(), "nyc": stage.target.connection_json()}
    job = Path(__file__).resolve().parents[3] / "spark_jobs" / "copy_flow.py"
    command = (
        [str(BIN / "causeway"), "run", flow, "--file", str(file), "--until-caught-up"]
        if door == "causeway"
        else [str(BIN / "python"), str(job), flow, "--file", str(file)]
    )
    files, before = listing(tmp_path), everything(stage.source, stage.target)
    done = finished(command, environment(connections, tmp_path), tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    (line,) = [each for each in (done.stdout + done.stderr).splitlines() if each.strip()]
    assert_says(line, "causeway: error: ", *words)
    assert listing(tmp_path) == files
    assert everything(stage.source, stage.target) == before


def listing(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.spark
def test_what_was_left_out_is_the_exit_code_of_the_spark_job(stage: Stage, tmp_path: Path) -> None:
    create_topic(stage.target, stage.mirror)
    write(stage.target, stage.mirror, 3)
    file = flows_file(tmp_path, stage.flow.name, stage.topic, stage.other)
    connections = {"sf": stage.source.connection_json(), "nyc": stage.target.connection_json()}
    report = tmp_path / "report.json"
    command = submit_command(stage.flow.name, file, "--report", str(report))
    done = finished(command, environment(connections, tmp_path), tmp_path)
    assert done.returncode == 5, done.stdout + done.stderr
    assert "caught up but for 1 parked partition: " in done.stdout.splitlines()[-1]
    (parked,) = json.loads(report.read_text())["parked"]
    assert parked["reason"] == ParkReason.FOREIGN_DATA
    assert len(stage.visible(stage.mirror)) == 3
