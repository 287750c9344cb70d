"""`causeway doctor` on real brokers: green where all is well; what is wrong is named; nothing is left."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import NewTopic

from causeway.brokers.admin.scratch import Scratch
from causeway.core.doctor.finding import Diagnosis, Result
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.model.naming import IdentityNaming
from causeway.core.model.topic_filter import TopicFilter
from causeway.lab.clients import admin_client
from causeway.lab.cluster import LabCluster
from causeway.usecases.doctor.rehearsal import Rehearsal
from tests.integration.copy.spark_flow import BIN, environment, finished, flows_file
from tests.integration.doctor.examined import assert_no_scratch_left, examined, of, red
from tests.support.inline_flow import (
    InlineFlow,
    create_topic,
    delete_topic,
    everything,
    mirror_of,
    named,
    write,
)

pytestmark = pytest.mark.integration
LabClusterFactory = Callable[..., LabCluster]
Names = Callable[..., str]
REHEARSED = [
    "transaction: data, map and position committed together and read back",
    "fence: a claim ends the older owner; what it had open is aborted",
    "late batch: batches and positions of the beaten owner are refused",
]


def flow_name(topic_name: Names) -> str:
    return topic_name("f").replace("-", "_")


def test_two_healthy_clusters_pass_before_and_after_the_first_run(
    sf: LabCluster, nyc: LabCluster, topic_name: Names
) -> None:
    topic = topic_name("orders")
    create_topic(sf, topic, 2)
    write(sf, topic, 20)
    flow = mirror_of(flow_name(topic_name), topic)
    runs = InlineFlow(flow, named(sf, "sf"), named(nyc, "nyc"))
    for is_known in (False, True):
        before = everything(sf, nyc)
        diagnosis = examined(flow, runs.source, runs.target)
        assert red(diagnosis) == []
        assert diagnosis.exit_code == 0
        assert [each.finding for each in of(diagnosis, "rehearsal")] == REHEARSED
        assert ("as the flow remembers them" in of(diagnosis, "identity")[0].finding) is is_known
        assert everything(sf, nyc) == before
        runs.run()
    assert runs.verify().exit_code == 0, "the flow itself is untouched by it"


def test_read_only_writes_nothing_and_says_so(sf: LabCluster, nyc: LabCluster, topic_name: Names) -> None:
    topic = topic_name("orders")
    create_topic(sf, topic)
    flow = mirror_of(flow_name(topic_name), topic)
    diagnosis = examined(flow, named(sf, "sf"), named(nyc, "nyc"), read_only=True)
    assert red(diagnosis) == [
        f"WARN rehearsal nyc: skipped: read-only -> causeway doctor {flow.name}, without --read-only"
    ]
    assert diagnosis.exit_code == 0


def test_a_target_of_the_old_kind_passes_by_its_verification(
    sf: LabCluster, nyc_v1: LabCluster, topic_name: Names
) -> None:
    topic = topic_name("orders")
    create_topic(sf, topic)
    flow = mirror_of(flow_name(topic_name), topic)
    diagnosis = examined(flow, named(sf, "sf"), named(nyc_v1, "nyc"))
    assert red(diagnosis) == []
    (transactions,) = of(diagnosis, "transactions")
    assert transactions.finding == "v1, and transaction.partition.verification.enable is true"
    assert [each.finding for each in of(diagnosis, "rehearsal")] == REHEARSED
    assert_no_scratch_left(nyc_v1)


def test_without_verification_the_rehearsal_itself_sees_the_late_batch_get_in(
    sf: LabCluster, lab_cluster: LabClusterFactory, topic_name: Names
) -> None:
    """The setting is named, and the deed is seen: two checks that know nothing of each other."""
    settings = {"transaction.partition.verification.enable": "false"}
    target = lab_cluster("nyc_unverified", kafka_version="3.9.2", broker_settings=settings)
    topic = topic_name("orders")
    create_topic(sf, topic)
    diagnosis = examined(mirror_of(flow_name(topic_name), topic), named(sf, "sf"), named(target, "nyc"))
    assert diagnosis.exit_code == 3
    setting, deed = red(diagnosis)
    assert setting.startswith("FAILED transactions nyc: v1, and transaction.partition.verification.enable is")
    assert deed.startswith(
        "FAILED rehearsal nyc: late batch: a beaten owner's batch to a partition that it had"
    )
    assert_no_scratch_left(target)


def test_ctrl_c_in_the_middle_leaves_nothing(
    sf: LabCluster, nyc: LabCluster, topic_name: Names, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    async def interrupted(self: Rehearsal) -> None:
        listed = admin_client(nyc.endpoint()).list_topics(timeout=20).topics
        seen.extend(name for name in listed if name.startswith("causeway-doctor."))
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Rehearsal, "_fence", interrupted)
    topic = topic_name("orders")
    create_topic(sf, topic)
    # A suite that a shell started in the background ignores SIGINT.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            examined(mirror_of(flow_name(topic_name), topic), named(sf, "sf"), named(nyc, "nyc"))
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(seen) == 1, "it was interrupted while the scratch topic was there"
    assert_no_scratch_left(nyc)


def test_a_scratch_topic_that_a_killed_doctor_left_is_reported(
    sf: LabCluster, nyc: LabCluster, topic_name: Names
) -> None:
    topic, left = topic_name("orders"), Scratch("0123456789ab").topic
    create_topic(sf, topic)
    create_topic(nyc, left)
    try:
        diagnosis = examined(
            mirror_of(flow_name(topic_name), topic), named(sf, "sf"), named(nyc, "nyc"), read_only=True
        )
    finally:
        delete_topic(nyc, left)
    (finding,) = of(diagnosis, "leftovers")
    assert (finding.result, left in finding.finding, left in finding.remedy) == (Result.WARN, True, True)


def test_one_cluster_under_two_names_is_refused_and_not_written(sf: LabCluster, topic_name: Names) -> None:
    """What is called the target may be somebody's source: not even the scratch topic is made there."""
    topic = topic_name("orders")
    create_topic(sf, topic)
    before = everything(sf)
    diagnosis = examined(mirror_of(flow_name(topic_name), topic), named(sf, "sf"), named(sf, "nyc"))
    assert diagnosis.exit_code == 2
    assert (
        f"FAILED identity {diagnosis.flow}: sf and nyc are one and the same cluster ({sf.cluster_id})"
        in "\n".join(red(diagnosis))
    )
    (skipped,) = of(diagnosis, "rehearsal")
    assert skipped.finding == "skipped: it isn't sure that this is the target"
    assert everything(sf) == before


def test_other_clusters_than_those_that_the_flow_began_with(
    sf: LabCluster, nyc: LabCluster, nyc_v1: LabCluster, topic_name: Names
) -> None:
    topic = topic_name("orders")
    create_topic(sf, topic)
    flow = mirror_of(flow_name(topic_name), topic)
    InlineFlow(flow, named(sf, "sf"), named(nyc, "nyc")).run()
    diagnosis = examined(flow, named(nyc_v1, "sf"), named(nyc, "nyc"))
    (identity,) = of(diagnosis, "identity")
    assert identity.finding == (
        f"sf is cluster {nyc_v1.cluster_id}; the flow began with {sf.cluster_id} under that name"
    )
    assert diagnosis.exit_code == 2


def test_a_cluster_that_is_down_is_a_finding_and_the_other_one_is_still_examined(
    nyc: LabCluster, topic_name: Names
) -> None:
    nowhere = ClusterEndpoint("sf", {"bootstrap.servers": "127.0.0.1:9", "security.protocol": "PLAINTEXT"})
    diagnosis = examined(mirror_of(flow_name(topic_name), "orders"), nowhere, named(nyc, "nyc"))
    assert diagnosis.exit_code == 3
    connection, skipped = red(diagnosis)
    assert connection.startswith("FAILED connection sf: cluster sf (127.0.0.1:9): ")
    assert skipped.startswith("WARN rehearsal nyc: skipped")
    assert of(diagnosis, "versions")[0].where == "nyc"


BAD = {
    "offsets.retention.minutes": "60",
    "transactional.id.expiration.ms": "3600000",
    "transaction.max.timeout.ms": "10000",
    "auto.create.topics.enable": "true",
    "unclean.leader.election.enable": "true",
    "message.max.bytes": "100000",
    "compression.type": "gzip",
    "log.message.timestamp.type": "LogAppendTime",
    "log.message.timestamp.after.max.ms": "60000",
    "log.message.timestamp.before.max.ms": "3600000",
    "log.retention.hours": "1",
    "log.cleanup.policy": "compact,delete",
}


@pytest.fixture(scope="module")
def badly_set(sf: LabCluster, lab_clusters: LabClusterFactory) -> Iterator[Diagnosis]:
    """A target with every setting wrong, before the first run: what new mirrors *would* get counts."""
    target = lab_clusters("nyc_bad", broker_settings=BAD)
    create_topic(sf, "orders-for-bad")
    create_topic(sf, "clicks-for-bad", max_message_bytes="200000")
    flow = mirror_of("into_bad", "orders-for-bad", "clicks-for-bad")
    yield examined(flow, named(sf, "sf"), named(target, "nyc"))
    assert_no_scratch_left(target)
    target.stop()


@pytest.mark.parametrize(
    "line",
    [
        "FAILED settings nyc: offsets.retention.minutes is 60: positions of idle partitions are renewed",
        "WARN settings nyc: transactional.id.expiration.ms is 3,600,000: the claim of a lane that rests",
        "FAILED settings nyc: transaction.max.timeout.ms is 10,000: a lane asks for 20,000",
        "WARN settings nyc: auto.create.topics.enable is true",
        "WARN settings nyc: unclean.leader.election.enable is true",
        "WARN topics into_bad: message size: orders-for-bad takes batches of 1,048,588 B, "
        "sf.orders-for-bad of 100,000 B",
        "WARN topics into_bad: compression: sf.clicks-for-bad has compression.type gzip",
        "FAILED topics into_bad: timestamps: sf.clicks-for-bad stamps each record with its own time",
        "WARN topics into_bad: records from the future: clicks-for-bad takes records 1 h ahead of its clock, "
        "sf.clicks-for-bad refuses those 1 min ahead",
        "WARN topics into_bad: old records: clicks-for-bad keeps records for 7 d, "
        "sf.clicks-for-bad refuses those older than 1 h",
        "WARN topics into_bad: retention: clicks-for-bad keeps records for 7 d, sf.clicks-for-bad for 1 h",
        "WARN topics into_bad: cleanup: clicks-for-bad has cleanup.policy delete, "
        "sf.clicks-for-bad compact,delete",
        "FAILED rehearsal nyc: transaction: InitProducerId for causeway-doctor.",
    ],
)
def test_each_wrong_broker_setting_is_named(badly_set: Diagnosis, line: str) -> None:
    assert any(each.startswith(line) for each in red(badly_set)), "\n".join(red(badly_set))


def test_nothing_else_is_red_there(badly_set: Diagnosis) -> None:
    assert len(red(badly_set)) == 13
    assert badly_set.exit_code == 3


@pytest.mark.parametrize(
    ("setting", "value", "line"),
    [
        ("max.message.bytes", "5000", "WARN topics F: message size: "),
        ("message.timestamp.type", "LogAppendTime", "FAILED topics F: timestamps: "),
        ("message.timestamp.after.max.ms", "1000", "WARN topics F: records from the future: "),
        ("message.timestamp.before.max.ms", "1000", "WARN topics F: old records: "),
        ("retention.ms", "3600000", "WARN topics F: retention: "),
        ("retention.bytes", "1000", "WARN topics F: retention: "),
        ("compression.type", "zstd", "WARN topics F: compression: "),
        ("cleanup.policy", "compact", "WARN topics F: cleanup: "),
        ("min.insync.replicas", "2", "FAILED topics F: replicas in sync: "),
    ],
)
def test_each_wrong_setting_of_a_mirror_is_named_with_the_command(
    sf: LabCluster,
    nyc: LabCluster,
    topic_name: Names,
    setting: str,
    value: str,
    line: str,
) -> None:
    topic = topic_name("orders")
    create_topic(sf, topic)
    flow = mirror_of(flow_name(topic_name), topic)
    settings: dict[str, Any] = {setting: value}
    create_topic(nyc, f"sf.{topic}", **settings)
    diagnosis = examined(flow, named(sf, "sf"), named(nyc, "nyc"), read_only=True)
    found = [each for each in red(diagnosis) if " rehearsal " not in each]
    assert len(found) == 1, found
    assert found[0].startswith(line.replace(" F: ", f" {flow.name}: "))
    assert f"kafka-configs.sh --alter --entity-type topics --entity-name sf.{topic} --add-config " in found[0]


def test_a_source_that_forgets_within_a_day_is_reported(
    sf: LabCluster, nyc: LabCluster, topic_name: Names
) -> None:
    topic = topic_name("orders")
    create_topic(sf, topic, retention_ms="3600000")
    flow = mirror_of(flow_name(topic_name), topic)
    (line,) = red(examined(flow, named(sf, "sf"), named(nyc, "nyc")))
    assert line.startswith(f"WARN topics {flow.name}: retention of the source: {topic} keeps records for 1 h")


def test_a_healthy_target_of_three_brokers_passes(
    sf: LabCluster, lab_cluster: LabClusterFactory, topic_name: Names
) -> None:
    target = lab_cluster("nyc_three_well", nodes=3)
    topic = topic_name("orders")
    create_topic(sf, topic)
    diagnosis = examined(mirror_of(flow_name(topic_name), topic), named(sf, "sf"), named(target, "nyc"))
    assert red(diagnosis) == []
    assert [each.finding for each in of(diagnosis, "rehearsal")] == REHEARSED
    assert_no_scratch_left(target)


def test_replication_that_loses_positions_with_one_disk(
    sf: LabCluster, lab_cluster: LabClusterFactory, topic_name: Names
) -> None:
    settings = {
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "2",
        "default.replication.factor": "1",
        "min.insync.replicas": "1",
    }
    target = lab_cluster("nyc_three", nodes=3, broker_settings=settings)
    topic = topic_name("orders")
    create_topic(sf, topic)
    flow = mirror_of(flow_name(topic_name), topic)
    lines = red(examined(flow, named(sf, "sf"), named(target, "nyc")))
    for start in (
        "WARN replication nyc: __consumer_offsets ",
        "WARN replication nyc: __transaction_state ",
        "FAILED replication nyc: transaction.state.log.min.isr is 2, with 1 replica: no transaction",
        "WARN replication nyc: new topics get 1 replica",
    ):
        assert any(line.startswith(start) for line in lines), "\n".join(lines)
    assert_no_scratch_left(target)
    too_many = replace(flow, replication_factor=5)
    lines = red(examined(too_many, named(sf, "sf"), named(target, "nyc"), read_only=True))
    assert any("and the cluster has 3 brokers: they can't be made" in line for line in lines)
    assert any(line.startswith(f"FAILED creation {flow.name}: ") for line in lines)
    wide = topic_name("wide")
    admin = admin_client(target.endpoint())
    admin.create_topics([NewTopic(wide, 1, 3)])[wide].result(30)
    back = replace(flow, topics=TopicFilter((wide,)), source="nyc", target="sf", replication_factor="source")
    lines = red(examined(back, named(target, "nyc"), named(sf, "sf"), read_only=True))
    assert any(f"has 1 broker: no mirror of {wide} can be made" in line for line in lines), "\n".join(lines)


def test_names_that_can_not_be_and_flows_that_clash(
    sf: LabCluster, nyc: LabCluster, topic_name: Names
) -> None:
    long, dotted = topic_name("x").ljust(247, "y"), topic_name("a.b")
    create_topic(sf, long)
    create_topic(sf, dotted)
    create_topic(nyc, f"sf.{dotted}".replace("a.b", "a_b"))
    flow = mirror_of(flow_name(topic_name), long, dotted.replace(".", "[.]"))
    other = mirror_of("another", dotted.replace(".", "[.]"))
    lines = red(examined(flow, named(sf, "sf"), named(nyc, "nyc"), read_only=True))
    assert any(
        line.startswith(f"FAILED names {flow.name}: {long}: ") and "250 characters" in line for line in lines
    )
    assert any("only by '.' and '_'" in line for line in lines)
    plain = replace(flow, topics=other.topics, naming=IdentityNaming())
    rival = replace(plain, name="rival")
    diagnosis = examined(plain, named(sf, "sf"), named(nyc, "nyc"), others=[plain, rival], read_only=True)
    (clash,) = of(diagnosis, "clashes")
    assert (clash.result, clash.finding) == (Result.FAILED, f"rival writes {dotted} on nyc too")
    assert diagnosis.exit_code == 2


def test_the_command_prints_a_table_or_json_and_ends_with_the_code(
    sf: LabCluster, nyc: LabCluster, topic_name: Names, tmp_path: Path
) -> None:
    topic = topic_name("orders")
    create_topic(sf, topic)
    name = flow_name(topic_name)
    file = flows_file(tmp_path, name, topic)
    connections = {"sf": sf.connection_json(), "nyc": nyc.connection_json()}
    command = [str(BIN / "python"), "-m", "causeway.cli.main", "doctor", name, "--file", str(file)]
    environ = environment(connections, tmp_path) | {"PYTHONPATH": str(Path(__file__).parents[3] / "include")}
    done = finished(command, environ, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["RESULT", "CHECK", "WHERE", "FINDING"]
    assert lines[-1].startswith(f"{name}: ")
    assert lines[-1].endswith(" PASSED, 0 WARN, 0 FAILED")
    done = finished(
        [*command, "--json"], environ | {"AIRFLOW_CONN_KAFKA_NYC": sf.connection_json()}, tmp_path
    )
    assert done.returncode == 2, done.stdout + done.stderr
    printed = json.loads(done.stdout)
    assert (printed["healthy"], printed["failed"]) == (False, 1)
    (failed,) = [each for each in printed["checks"] if each["result"] == "FAILED"]
    assert (failed["check"], failed["where"]) == ("identity", name)
