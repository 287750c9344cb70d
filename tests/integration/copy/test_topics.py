"""Topics on two real clusters: created, grown, refused; and the true reason when one is out of reach."""

from __future__ import annotations

import dataclasses
import socket
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from causeway.brokers.admin.leaders import partitions_of, silent_ones
from causeway.brokers.admin.topics import ClusterAdmin, probe
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import (
    AuthenticationFailed,
    CausewayError,
    ClusterUnreachable,
    ConfigError,
    NotAuthorized,
)
from causeway.core.model.flow import Flow
from causeway.core.model.topic_filter import TopicFilter
from causeway.core.topics.carried_settings import SettingSource
from causeway.core.topics.plan import Growth, NewTopicPlan
from causeway.lab.access import Right
from causeway.lab.cluster import LabCluster
from causeway.usecases.copy.prepare_topics import TopicOutcome, prepare_topics
from tests.support import builders

pytestmark = pytest.mark.integration
TopicName = Callable[..., str]
LabClusterFactory = Callable[..., LabCluster]


def flow(*topics: str, replication_factor: int | None = None) -> Flow:
    return builders.flow(
        "sf_to_nyc",
        topics=TopicFilter(topics),
        replication_factor=replication_factor,
        config_properties_exclude=(r"min\.insync\.replicas", r"message\.timestamp\.type"),
    )


@pytest.fixture(scope="module")
def source(sf: LabCluster) -> ClusterAdmin:
    return ClusterAdmin(sf.endpoint())


@pytest.fixture(scope="module")
def target(nyc: LabCluster) -> ClusterAdmin:
    return ClusterAdmin(nyc.endpoint())


@pytest.fixture(scope="module")
def guarded(lab_clusters: LabClusterFactory) -> LabCluster:
    return lab_clusters("guarded", security="SASL_SSL", users=("bob",))


def partitions(admin: ClusterAdmin) -> dict[str, int]:
    return {topic.name: topic.partitions for topic in admin.topics()}


def create(admin: ClusterAdmin, name: str, count: int = 1, **settings: str) -> None:
    plan = NewTopicPlan(name, count, tuple((k.replace("_", "."), v) for k, v in settings.items()))
    assert admin.create_topics([plan]) == {}
    admin.wait_for_leaders({name: count})


def set_by_topic(admin: ClusterAdmin, topic: str) -> dict[str, str | None]:
    settings = admin.topic_settings([topic])[topic]
    assert not isinstance(settings, CausewayError)
    return {s.name: s.value for s in settings if s.source is SettingSource.TOPIC}


class TestPrepare:
    def test_a_missing_topic_is_created_with_partitions_and_settings(
        self, source: ClusterAdmin, target: ClusterAdmin, topic_name: TopicName
    ) -> None:
        orders = topic_name("orders")
        create(source, orders, 3, retention_ms="123456", cleanup_policy="compact", min_insync_replicas="1")
        outcome = prepare_topics(flow(orders), source, target, frozenset())
        assert [new.name for new in outcome.created] == [f"sf.{orders}"]
        assert [pair.target for pair in outcome.mirrored] == [f"sf.{orders}"]
        assert partitions(target)[f"sf.{orders}"] == 3
        assert set_by_topic(target, f"sf.{orders}") == {"retention.ms": "123456", "cleanup.policy": "compact"}

    def test_each_of_many_new_partitions_can_be_written_at_once(
        self, source: ClusterAdmin, target: ClusterAdmin, topic_name: TopicName, nyc_admin: AdminClient
    ) -> None:
        orders = topic_name("orders")
        create(source, orders, 200)
        prepare_topics(flow(orders), source, target, frozenset())
        assert silent_ones(nyc_admin, partitions_of({f"sf.{orders}": 200})) == set()

    def test_a_second_run_changes_nothing(
        self, source: ClusterAdmin, target: ClusterAdmin, topic_name: TopicName
    ) -> None:
        orders = topic_name("orders")
        create(source, orders, 2)
        first = prepare_topics(flow(orders), source, target, frozenset())
        second = prepare_topics(flow(orders), source, target, frozenset())
        assert (second.created, second.grown, second.refused) == ((), (), ())
        assert second.mirrored == first.mirrored

    def test_a_dry_run_writes_nothing_and_tells_the_same(
        self, source: ClusterAdmin, target: ClusterAdmin, topic_name: TopicName
    ) -> None:
        orders = topic_name("orders")
        create(source, orders, 2)
        before = partitions(target)
        dry = prepare_topics(flow(orders), source, target, frozenset(), dry_run=True)
        assert partitions(target) == before
        wet = prepare_topics(flow(orders), source, target, frozenset())
        assert dataclasses.replace(dry, is_dry_run=False) == wet

    def test_a_known_target_follows_its_growing_source_and_a_foreign_one_does_not(
        self,
        source: ClusterAdmin,
        target: ClusterAdmin,
        topic_name: TopicName,
        sf_admin: AdminClient,
    ) -> None:
        orders = topic_name("orders")
        create(source, orders, 2)
        prepare_topics(flow(orders), source, target, frozenset())
        sf_admin.create_partitions([NewPartitions(orders, 5)])[orders].result(30)
        source.wait_for_leaders({orders: 5})
        stranger = prepare_topics(flow(orders), source, target, frozenset())
        assert [each.topic for each in stranger.refused] == [orders]
        assert partitions(target)[f"sf.{orders}"] == 2
        ours = prepare_topics(flow(orders), source, target, frozenset({f"sf.{orders}"}))
        assert ours.grown == (Growth(f"sf.{orders}", 2, 5),)
        assert partitions(target)[f"sf.{orders}"] == 5

    @pytest.mark.parametrize("dry_run", [True, False])
    def test_what_the_broker_refuses_is_refused_by_topic_with_the_brokers_reason(
        self, source: ClusterAdmin, target: ClusterAdmin, topic_name: TopicName, dry_run: bool
    ) -> None:
        orders = topic_name("orders")
        create(source, orders)
        outcome = prepare_topics(
            flow(orders, replication_factor=3), source, target, frozenset(), dry_run=dry_run
        )
        assert (outcome.mirrored, outcome.created) == ((), ())
        assert outcome.refused[0].topic == orders
        assert "replication factor" in outcome.refused[0].reason.lower()
        assert f"sf.{orders}" not in partitions(target)

    def test_the_sources_replication_factor_is_asked_for_and_made(
        self, source: ClusterAdmin, target: ClusterAdmin, topic_name: TopicName
    ) -> None:
        orders = topic_name("orders")
        create(source, orders)
        followed = dataclasses.replace(flow(orders), replication_factor="source")
        (made,) = prepare_topics(followed, source, target, frozenset()).created
        assert made.replication_factor == 1
        assert target.number_of_brokers() == 1

    def test_one_bad_topic_does_not_stop_the_others(
        self, source: ClusterAdmin, target: ClusterAdmin, topic_name: TopicName
    ) -> None:
        good, long, narrow = topic_name("good"), topic_name("x" * 238), topic_name("narrow")
        create(source, good)
        create(source, long)
        create(source, narrow, 2)
        create(target, f"sf.{narrow}", 1)
        outcome = prepare_topics(flow(good, long, narrow), source, target, frozenset())
        assert [pair.source for pair in outcome.mirrored] == [good]
        assert sorted(each.topic for each in outcome.refused) == sorted([long, narrow])
        assert partitions(target)[f"sf.{narrow}"] == 1

    @pytest.mark.parametrize("dry_run", [True, False])
    def test_settings_that_the_target_does_not_know_are_left_out(
        self, nyc_v1: LabCluster, target: ClusterAdmin, topic_name: TopicName, dry_run: bool
    ) -> None:
        old, orders = ClusterAdmin(nyc_v1.endpoint()), topic_name("orders")
        settings = {
            "message.downconversion.enable": "false",
            "message.format.version": "3.0-IV1",
            "retention.ms": "7200000",
        }
        assert old.create_topics([NewTopicPlan(orders, 1, tuple(settings.items()))]) == {}
        old.wait_for_leaders({orders: 1})
        outcome = prepare_topics(flow(orders), old, target, frozenset(), dry_run=dry_run)
        assert outcome.refused == ()
        (made,) = outcome.created
        assert made.settings == (("retention.ms", "7200000"),)
        assert sorted(made.left_out) == ["message.downconversion.enable", "message.format.version"]
        assert (f"sf.{orders}" in partitions(target)) is not dry_run

    def test_a_topic_that_somebody_made_meanwhile_is_fine_if_it_is_equal(
        self, target: ClusterAdmin, topic_name: TopicName
    ) -> None:
        name = topic_name()
        create(target, name, 2)
        assert target.create_topics([NewTopicPlan(name, 2)]) == {}
        assert "must have 3" in str(target.create_topics([NewTopicPlan(name, 3)])[name])
        assert target.create_partitions([Growth(name, 1, 2)]) == {}

    def test_no_match_is_a_note(
        self, source: ClusterAdmin, target: ClusterAdmin, topic_name: TopicName
    ) -> None:
        outcome: TopicOutcome = prepare_topics(flow(topic_name("nothing")), source, target, frozenset())
        assert outcome.mirrored == ()
        assert "nothing to mirror" in outcome.notes[0]


def test_cluster_ids_tell_the_clusters_apart(
    sf: LabCluster, source: ClusterAdmin, target: ClusterAdmin
) -> None:
    assert source.cluster_id() == sf.cluster_id == source.facts().cluster_id
    assert target.cluster_id() != source.cluster_id()


class TestProbe:
    """Each way not to get in has its own error and names the culprit; none waits long or shows a secret."""

    @pytest.fixture
    def deaf_port(self) -> Iterator[int]:
        """A port that takes connections and never says a word."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            yield server.getsockname()[1]

    def refusal(self, endpoint: ClusterEndpoint, **changes: str) -> CausewayError:
        settings = {**endpoint.settings, **{k.replace("_", "."): v for k, v in changes.items()}}
        changed = ClusterEndpoint(endpoint.alias, settings)
        with pytest.raises(CausewayError) as caught:
            probe(changed, timeout_seconds=2)
        for secret in changed.secrets | endpoint.secrets:
            assert secret not in str(caught.value)
        return caught.value

    def test_an_open_door(self, guarded: LabCluster) -> None:
        facts = probe(guarded.endpoint())
        assert facts.cluster_id == guarded.cluster_id
        assert [f"{node.host}:{node.port}" for node in facts.brokers] == [guarded.bootstrap_servers]

    def test_one_living_bootstrap_server_is_enough(self, sf: LabCluster) -> None:
        settings = {"bootstrap.servers": f"127.0.0.1:1,nowhere.invalid:9092,{sf.bootstrap_servers}"}
        assert probe(ClusterEndpoint("sf", settings)).cluster_id == sf.cluster_id

    def test_nobody_there(self, sf: LabCluster) -> None:
        error = self.refusal(sf.endpoint(), bootstrap_servers="127.0.0.1:1")
        assert type(error) is ClusterUnreachable
        assert "127.0.0.1:1" in error.rule
        assert "refused" in error.rule

    def test_a_host_that_does_not_exist(self, sf: LabCluster) -> None:
        error = self.refusal(sf.endpoint(), bootstrap_servers="nowhere.invalid:9092")
        assert type(error) is ClusterUnreachable
        assert "resolve" in error.rule

    def test_a_peer_that_says_nothing(self, sf: LabCluster, deaf_port: int) -> None:
        error = self.refusal(sf.endpoint(), bootstrap_servers=f"127.0.0.1:{deaf_port}")
        assert type(error) is ClusterUnreachable
        assert f"127.0.0.1:{deaf_port} takes connections and then says nothing" in error.rule

    @pytest.mark.parametrize(
        "servers", ["", "host:70000", "host:0", "http://host:9092/x", "a:1,,b:2", "::1:9092"]
    )
    def test_bootstrap_servers_that_can_not_be(self, sf: LabCluster, servers: str) -> None:
        assert type(self.refusal(sf.endpoint(), bootstrap_servers=servers)) is ConfigError

    def test_a_wrong_password_and_an_unknown_user(self, guarded: LabCluster) -> None:
        wrong = self.refusal(guarded.endpoint(), sasl_password="not-the-password")
        assert type(wrong) is AuthenticationFailed
        assert "User:admin" in wrong.rule
        assert "sasl.password" in wrong.remedy
        assert "User:eve" in self.refusal(guarded.endpoint(), sasl_username="eve").rule

    def test_a_mechanism_that_is_not_offered(self, guarded: LabCluster) -> None:
        error = self.refusal(guarded.endpoint(), sasl_mechanism="SCRAM-SHA-256")
        assert type(error) is AuthenticationFailed
        assert "SCRAM-SHA-512" in error.rule

    def test_a_ca_that_did_not_sign(self, guarded: LabCluster, lab_clusters: LabClusterFactory) -> None:
        other = lab_clusters("other_ca", security="SASL_SSL").endpoint().settings["ssl.ca.location"]
        error = self.refusal(guarded.endpoint(), ssl_ca_location=other)
        assert type(error) is AuthenticationFailed
        assert "doesn't hold" in error.rule
        assert other in error.remedy

    def test_a_ca_file_that_is_not_there(self, guarded: LabCluster) -> None:
        error = self.refusal(guarded.endpoint(), ssl_ca_location="/nowhere/ca.pem")
        assert type(error) is ConfigError
        assert "/nowhere/ca.pem" in error.rule

    def test_a_plain_client_at_a_tls_port_reads_so(self, guarded: LabCluster) -> None:
        for protocol in ("PLAINTEXT", "SASL_PLAINTEXT"):
            error = self.refusal(guarded.endpoint(), security_protocol=protocol)
            assert type(error) is AuthenticationFailed
            assert "speaks TLS" in error.rule

    def test_a_tls_client_at_a_plain_port_reads_so(self, sf: LabCluster) -> None:
        error = self.refusal(sf.endpoint(), security_protocol="SSL")
        assert type(error) is AuthenticationFailed
        assert "doesn't speak TLS" in error.rule

    def test_an_unknown_setting(self, sf: LabCluster) -> None:
        error = self.refusal(sf.endpoint(), nonsense_key="1")
        assert type(error) is ConfigError
        assert "nonsense.key" in error.rule

    def test_an_advertised_listener_out_of_reach(self, lab_cluster: LabClusterFactory) -> None:
        lost = lab_cluster("lost", broker_settings={"advertised.listeners": "CLIENT://nowhere.invalid:9092"})
        error = self.refusal(lost.endpoint())
        assert type(error) is ClusterUnreachable
        assert "its broker 1 advertises nowhere.invalid:9092" in error.rule

    def test_a_missing_right_to_create_is_named_with_its_grant(self, guarded: LabCluster) -> None:
        guarded.grant("bob", Right("topic", "*", "describe"))
        error = ClusterAdmin(guarded.endpoint("bob")).create_topics([NewTopicPlan("orders", 1)])["orders"]
        assert type(error) is NotAuthorized
        assert (
            error.remedy == "kafka-acls.sh --add --allow-principal User:bob --operation Create --topic orders"
        )

    def test_a_missing_right_to_describe_settings_is_named_with_its_grant(self, guarded: LabCluster) -> None:
        create(ClusterAdmin(guarded.endpoint()), "trades")
        error = ClusterAdmin(guarded.endpoint("bob")).topic_settings(["trades"])["trades"]
        assert type(error) is NotAuthorized
        assert "--operation DescribeConfigs --topic trades" in error.remedy
