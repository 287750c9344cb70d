"""The lab keeps its promises, on real brokers."""

from __future__ import annotations

import json
import os
import shlex
import signal
import socket
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import NewTopic, TopicMetadata

from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import BadInput
from causeway.lab import lab, processes
from causeway.lab.access import Right
from causeway.lab.asked import Asked
from causeway.lab.clients import admin_client, producer, wait_for_leaders
from causeway.lab.cluster import LabCluster
from causeway.lab.errors import BrokerDied, LabTrouble
from causeway.lab.places import HOME_VARIABLE, jars_directory, lab_directory, project_root

pytestmark = pytest.mark.integration
LabClusterFactory = Callable[..., LabCluster]


def create_topic(endpoint: ClusterEndpoint, topic: str, *, partitions: int = 1) -> None:
    client = admin_client(endpoint)
    client.create_topics([NewTopic(topic, partitions)])[topic].result(30)
    wait_for_leaders(client, {topic: partitions})


def topics_of(endpoint: ClusterEndpoint) -> dict[str, TopicMetadata]:
    topics: dict[str, TopicMetadata] = admin_client(endpoint).list_topics(timeout=30).topics
    return topics


def write(endpoint: ClusterEndpoint, topic: str, values: list[bytes]) -> None:
    refused: list[KafkaError] = []
    client = producer(endpoint, message_timeout_ms=30_000)
    for value in values:
        client.produce(topic, value, on_delivery=lambda error, _: refused.append(error) if error else None)
    assert client.flush(30) == 0
    assert refused == []


def read_all(endpoint: ClusterEndpoint, topic: str) -> list[bytes]:
    """What is in partition 0, up to its end as it is now."""
    consumer = Consumer({**endpoint.settings, "group.id": "unused", "enable.auto.commit": False})
    place = TopicPartition(topic, 0, 0)
    _, end = consumer.get_watermark_offsets(place, timeout=30)
    consumer.assign([place])
    values: list[bytes] = []
    while len(values) < end:
        for message in consumer.consume(end - len(values), timeout=30) or pytest.fail("nothing more came"):
            assert message.error() is None
            values.append(message.value())
    consumer.close()
    return values


@pytest.fixture(scope="module")
def alone(lab_clusters: LabClusterFactory) -> LabCluster:
    """Whoever mistreats it leaves it running."""
    return lab_clusters("alone")


class TestOneNode:
    def test_a_broker_killed_with_9_comes_back_with_its_data_on_its_port(self, alone: LabCluster) -> None:
        cluster = alone
        address, first_pid = cluster.bootstrap_servers, cluster.pid()
        create_topic(cluster.endpoint(), "kept")
        write(cluster.endpoint(), "kept", [b"one", b"two"])
        cluster.kill()
        assert not cluster.is_running()
        with pytest.raises(KafkaException):
            admin_client(cluster.endpoint()).list_topics(timeout=1)
        cluster.start()
        assert cluster.bootstrap_servers == address
        assert cluster.pid() != first_pid
        write(cluster.endpoint(), "kept", [b"three"])
        assert read_all(cluster.endpoint(), "kept") == [b"one", b"two", b"three"]

    def test_a_restart_keeps_data_and_takes_new_settings(self, lab_cluster: LabClusterFactory) -> None:
        cluster = lab_cluster("restarted")
        create_topic(cluster.endpoint(), "kept")
        write(cluster.endpoint(), "kept", [b"one"])
        cluster.restart()
        assert read_all(cluster.endpoint(), "kept") == [b"one"]
        cluster.stop()
        again = lab_cluster("restarted", home=cluster.home, broker_settings={"num.partitions": "7"})
        assert again.cluster_id == cluster.cluster_id
        create_topic(again.endpoint(), "by-default", partitions=-1)
        assert len(topics_of(again.endpoint())["by-default"].partitions) == 7

    def test_a_paused_broker_answers_nobody_until_it_is_resumed(self, alone: LabCluster) -> None:
        cluster = alone
        cluster.pause()
        assert cluster.is_running()
        with pytest.raises(KafkaException):
            admin_client(cluster.endpoint()).list_topics(timeout=1)
        cluster.resume()
        assert admin_client(cluster.endpoint()).list_topics(timeout=30).brokers

    def test_start_is_idempotent(self, sf: LabCluster) -> None:
        before = sf.pid()
        sf.start()
        assert sf.pid() == before

    def test_a_broker_that_cannot_start_shows_the_end_of_its_log(
        self, lab_cluster: LabClusterFactory
    ) -> None:
        cluster = lab_cluster("wrong", broker_settings={"num.network.threads": "many"}, start=False)
        with pytest.raises(BrokerDied, match=r"lab broker wrong/1: .*num\.network\.threads") as death:
            cluster.start()
        assert "scala:" not in death.value.remedy
        assert not cluster.is_running()

    def test_a_broker_whose_port_was_taken_says_so(self, lab_cluster: LabClusterFactory) -> None:
        cluster = lab_cluster("squeezed", start=False)
        with socket.socket() as squatter:
            squatter.bind(("127.0.0.1", int(cluster.bootstrap_servers.rpartition(":")[2])))
            squatter.listen()
            with pytest.raises(BrokerDied, match=r"lab broker squeezed/1: it ended while .*already in use"):
                cluster.start()

    def test_it_does_not_create_topics_by_itself(
        self, sf: LabCluster, topic_name: Callable[..., str]
    ) -> None:
        admin_client(sf.endpoint()).list_topics(topic := topic_name(), timeout=10)
        assert topic not in topics_of(sf.endpoint())

    def test_an_older_broker_starts_and_keeps_records(
        self, nyc_v1: LabCluster, topic_name: Callable[..., str]
    ) -> None:
        create_topic(nyc_v1.endpoint(), topic := topic_name())
        write(nyc_v1.endpoint(), topic, [b"old"])
        assert read_all(nyc_v1.endpoint(), topic) == [b"old"]
        assert "Kafka version: 3.9.2" in nyc_v1.log_path().read_text()

    def test_brokers_die_with_a_starter_that_is_killed_with_9(self, tmp_path: Path) -> None:
        starter = (
            "import time; from pathlib import Path; from causeway.lab.cluster import *\n"
            f"cluster = LabCluster(ClusterSpec(name='orphan'), Path({str(tmp_path)!r}))\n"
            "cluster.launch(); print(cluster.pid(), flush=True); time.sleep(600)"
        )
        with subprocess.Popen([sys.executable, "-c", starter], stdout=subprocess.PIPE, text=True) as parent:
            assert parent.stdout is not None
            line = next(line for line in parent.stdout if line.strip().isdigit())
            broker = processes.identify(int(line))
            assert broker is not None
            parent.kill()
        assert processes.wait_until_gone(broker, timeout_seconds=30)


@pytest.fixture(scope="module")
def three(lab_clusters: LabClusterFactory) -> LabCluster:
    return lab_clusters("guarded_three", nodes=3, security="SASL_SSL")


class TestThreeNodes:
    def test_they_talk_to_each_other_over_tls(self, three: LabCluster) -> None:
        create_topic(three.endpoint(), "replicated-once")
        write(three.endpoint(), "replicated-once", [b"x"])
        assert read_all(three.endpoint(), "replicated-once") == [b"x"]

    def test_it_survives_the_loss_of_one_and_takes_it_back(self, three: LabCluster) -> None:
        cluster = three
        create_topic(cluster.endpoint(), "replicated", partitions=3)
        partitions = topics_of(cluster.endpoint())["replicated"].partitions
        assert {len(partition.replicas) for partition in partitions.values()} == {3}
        write(cluster.endpoint(), "replicated", [b"before"] * 30)
        cluster.kill(2)
        assert not cluster.is_running()
        assert not cluster.is_running(2)
        assert cluster.is_running(3)
        write(cluster.endpoint(), "replicated", [b"meanwhile"] * 30)
        cluster.start_node(2)
        assert cluster.is_running()
        assert set(admin_client(cluster.endpoint()).list_topics(timeout=10).brokers) == {1, 2, 3}


@pytest.fixture(scope="module")
def guarded(lab_clusters: LabClusterFactory) -> LabCluster:
    return lab_clusters("guarded", security="SASL_SSL", users=("mirror",))


_SLOW = {KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN}


def first_refusal(endpoint: ClusterEndpoint) -> int:
    """Why librdkafka does not get in. A broker that takes its time has not refused anybody."""
    codes: list[int] = []
    came = threading.Event()

    def on_error(error: KafkaError) -> None:
        if error.code() not in _SLOW:
            codes.append(error.code())
            came.set()

    consumer = Consumer({**endpoint.settings, "group.id": "unused", "error_cb": on_error, "log_level": 0})
    while not came.is_set():
        consumer.poll(0.1)
    consumer.close()
    return codes[0]


def with_setting(endpoint: ClusterEndpoint, **settings: str) -> ClusterEndpoint:
    changes = {name.replace("_", "."): value for name, value in settings.items()}
    return ClusterEndpoint(endpoint.alias, endpoint.settings | changes)


class TestSaslSsl:
    def test_the_right_password_opens_and_the_wrong_one_does_not(self, guarded: LabCluster) -> None:
        assert admin_client(guarded.endpoint("mirror")).list_topics(timeout=10).brokers
        wrong = with_setting(guarded.endpoint("mirror"), sasl_password="guess")
        assert first_refusal(wrong) == KafkaError._AUTHENTICATION

    def test_a_client_that_trusts_another_authority_is_not_served(
        self, guarded: LabCluster, lab_cluster: LabClusterFactory
    ) -> None:
        other = lab_cluster("other", security="SASL_SSL", start=False)
        wrong_authority = other.endpoint().settings["ssl.ca.location"]
        astray = with_setting(guarded.endpoint(), ssl_ca_location=wrong_authority)
        assert first_refusal(astray) == KafkaError._SSL

    def test_a_user_may_what_was_granted_and_no_longer_when_revoked(
        self, guarded: LabCluster, topic_name: Callable[..., str]
    ) -> None:
        create_topic(guarded.endpoint(), topic := topic_name())
        right = Right("topic", topic, "read")

        def sees() -> bool:
            return topic in topics_of(guarded.endpoint("mirror"))

        assert not sees()
        guarded.grant("mirror", right)
        assert sees()
        assert read_all(guarded.endpoint("mirror"), topic) == []
        guarded.revoke("mirror", right)
        assert not sees()
        with pytest.raises(LabTrouble, match="has no such right"):
            guarded.revoke("mirror", right)

    def test_a_right_on_the_cluster_is_a_right_like_any_other(self, guarded: LabCluster) -> None:
        user = "creator"
        guarded.add_user(user)
        with pytest.raises(KafkaException, match="AUTHORIZATION_FAILED"):
            create_topic(guarded.endpoint(user), "not-yet")
        guarded.grant(user, Right.on_cluster("create"))
        client = admin_client(guarded.endpoint(user))  # may create and nothing else: not even look
        client.create_topics([NewTopic("now", 1)])["now"].result(30)

    @pytest.mark.parametrize("resource", ["topic", "group", "transactional-id"])
    def test_every_kind_of_right_can_be_given_and_taken(self, guarded: LabCluster, resource: Any) -> None:
        right = Right(resource, "causeway.", "describe", pattern="prefixed")
        guarded.grant("mirror", right)
        guarded.revoke("mirror", right)  # which fails where there is none
        with pytest.raises(LabTrouble, match="has no such right"):
            guarded.revoke("mirror", right)

    def test_users_keep_their_passwords_over_kill_and_restart(self, guarded: LabCluster) -> None:
        guarded.add_user("later")
        guarded.kill()
        guarded.start()
        for user in ("admin", "mirror", "later"):
            assert admin_client(LabCluster.open(guarded.home).endpoint(user)).list_topics(timeout=10).brokers

    def test_no_password_shows_in_a_process_list_or_a_log(self, guarded: LabCluster) -> None:
        shown = Path(f"/proc/{guarded.pid()}/cmdline").read_bytes() + guarded.log_path().read_bytes()
        for user in ("admin", "mirror"):
            assert guarded.endpoint(user).settings["sasl.password"].encode() not in shown

    def test_the_connection_holds_what_a_client_needs(self, guarded: LabCluster) -> None:
        connection = json.loads(guarded.connection_json("mirror"))
        assert connection["conn_type"] == "kafka"
        assert connection["extra"] == guarded.endpoint("mirror").settings


@pytest.fixture
def lab_root(tmp_path: Path) -> Iterator[Path]:
    """A project of its own, with the jars of this one."""
    (tmp_path / ".causeway").mkdir()
    (tmp_path / ".causeway" / "jars").symlink_to(jars_directory(project_root(), "x").parent)
    yield tmp_path
    lab.down(tmp_path, say=lambda line: None)


def call_lab(root: Path, expression: str) -> str:
    """In a process of its own, that ends: as the command line does it."""
    code = f"from causeway.lab import lab; print({expression})"
    environment = os.environ | {HOME_VARIABLE: str(root)}
    command = [sys.executable, "-c", code]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout


class TestUpAndDown:
    def test_up_stays_after_its_process_and_down_of_another_one_ends_it(
        self, sf: LabCluster, lab_root: Path
    ) -> None:
        call_lab(lab_root, "lab.up()")
        clusters = lab.status(lab_root).clusters
        assert [(cluster.name, cluster.is_running) for cluster in clusters] == [("nyc", True), ("sf", True)]
        found = [processes.identify(pid) for cluster in clusters for pid in cluster.pids.values()]
        brokers = [process for process in found if process]
        assert len(brokers) == 2

        assert "sf is up already" in call_lab(lab_root, "lab.up()")
        for other in (Asked(kafka_version="3.9.2"), Asked(security="SASL_SSL"), Asked(nodes=3)):
            with pytest.raises(BadInput, match=r"cluster sf is up with .*, and it stays as it is; "):
                lab.up(lab_root, say=lambda line: None, **asdict(other))
        with pytest.raises(BadInput, match="SF: differs from sf by capital letters only"):
            lab.up(lab_root, ("SF",), say=lambda line: None)
        assert [cluster.pids for cluster in lab.status(lab_root).clusters] == [each.pids for each in clusters]

        said = call_lab(lab_root, "lab.down()")
        assert all(str(broker.pid) in said for broker in brokers)
        assert not any(processes.is_alive(broker) for broker in brokers)
        assert lab.status(lab_root).clusters == ()
        assert not lab.connections_path(lab_root).exists()

    def test_a_shell_gets_the_connections_from_their_file(self, lab_root: Path) -> None:
        status = lab.up(lab_root, ("oslo",), security="SASL_SSL", say=lambda line: None)
        assert stat.S_IMODE(status.connections.stat().st_mode) == 0o600
        script = f"set -a; . {shlex.quote(str(status.connections))}; printenv AIRFLOW_CONN_KAFKA_OSLO"
        printed = subprocess.run(["sh", "-c", script], check=True, capture_output=True, text=True).stdout
        settings = json.loads(printed)["extra"]
        assert admin_client(ClusterEndpoint("oslo", settings)).list_topics(timeout=10).brokers

    def test_up_after_a_kill_starts_only_what_died(self, lab_root: Path) -> None:
        before = {each.name: each for each in lab.up(lab_root, say=lambda line: None).clusters}
        victim = processes.identify(before["sf"].pids[1])
        assert victim is not None
        processes.send(victim, signal.SIGKILL)
        assert processes.wait_until_gone(victim, timeout_seconds=30)
        assert {each.name: each.is_running for each in lab.status(lab_root).clusters} == {
            "nyc": True,
            "sf": False,
        }
        after = {each.name: each for each in lab.up(lab_root, say=lambda line: None).clusters}
        assert after["nyc"].pids == before["nyc"].pids
        assert after["sf"].pids != before["sf"].pids
        assert after["sf"].bootstrap_servers == before["sf"].bootstrap_servers

    def test_an_up_that_fails_leaves_nothing_running(self, lab_root: Path) -> None:
        lab.up(lab_root, say=lambda line: None)
        lab.down(lab_root, say=lambda line: None)
        record = lab_directory(lab_root) / "nyc" / "cluster.json"
        content = json.loads(record.read_text())
        content["ports"]["1"]["controller"] = content["ports"]["1"]["client"]
        record.write_text(json.dumps(content))
        with pytest.raises(LabTrouble):
            lab.up(lab_root, say=lambda line: None)
        assert [cluster.pids for cluster in lab.status(lab_root).clusters] == [{}, {}]
