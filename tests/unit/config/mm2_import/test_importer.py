"""MirrorMaker 2's file: every key has a ruling, what is written is right, mistakes have a line."""

from __future__ import annotations

import json

import pytest

from causeway.config.flows_file.deployment import Deployment
from causeway.config.flows_file.document import parse_document
from causeway.config.flows_file.load import deployment_from
from causeway.config.mm2_import.importer import Mm2Import, import_mm2
from causeway.config.mm2_import.keys import Fate, ruling_of_common_key
from causeway.config.mm2_import.properties_file import parse_properties
from causeway.config.mm2_import.yaml_text import connections_env, flows_yaml
from causeway.core.kernel.errors import ConfigError
from causeway.core.model.flow import Flow, Start
from causeway.core.model.group_filter import FlowGroups
from causeway.core.model.naming import IdentityNaming, PrefixNaming

LEAST = """\
clusters = A, us-west
A.bootstrap.servers = a:9092
us-west.bootstrap.servers = w:9092
A->us-west.enabled = true
"""
SASL = "org.apache.kafka.common.security.scram.ScramLoginModule required"

# What MirrorMaker 2's own classes name (4.3.1), and what older files still say.
OWN_KEYS = (
    "clusters",
    "enabled",
    "topics",
    "topics.exclude",
    "topics.blacklist",
    "groups",
    "groups.exclude",
    "groups.blacklist",
    "config.properties.exclude",
    "config.properties.blacklist",
    "use.defaults.from",
    "replication.policy.class",
    "replication.policy.separator",
    "replication.policy.internal.topic.separator.enabled",
    "replication.factor",
    "sync.topic.configs.enabled",
    "sync.topic.configs.interval.seconds",
    "sync.topic.acls.enabled",
    "sync.topic.acls.interval.seconds",
    "sync.group.offsets.enabled",
    "sync.group.offsets.interval.seconds",
    "emit.checkpoints.enabled",
    "emit.checkpoints.interval.seconds",
    "emit.heartbeats.enabled",
    "emit.heartbeats.interval.seconds",
    "heartbeats.replication.enabled",
    "emit.offset-syncs.enabled",
    "offset-syncs.topic.location",
    "offset-syncs.topic.replication.factor",
    "checkpoints.topic.replication.factor",
    "heartbeats.topic.replication.factor",
    "refresh.topics.enabled",
    "refresh.topics.interval.seconds",
    "refresh.groups.enabled",
    "refresh.groups.interval.seconds",
    "offset.lag.max",
    "consumer.poll.timeout.ms",
    "admin.timeout.ms",
    "forwarding.admin.class",
    "topic.filter.class",
    "group.filter.class",
    "config.property.filter.class",
    "metric.reporters",
    "metric.names.formats",
    "source.cluster.alias",
    "target.cluster.alias",
    "task.assigned.partitions",
    "task.assigned.groups",
    "name",
    "connector.class",
    "tasks.max",
    "transforms",
    "transforms.x.type",
    "predicates",
    "predicates.y.type",
    "errors.tolerance",
    "errors.log.enable",
    "exactly.once.support",
    "transaction.boundary",
    "offsets.storage.topic",
    "config.providers",
    "config.providers.file.class",
    "dedicated.mode.enable.internal.rest",
    "security.protocol",
    "sasl.mechanism",
    "sasl.jaas.config",
    "ssl.truststore.location",
    "bootstrap.servers",
    "group.id",
    "offset.storage.topic",
    "offset.storage.replication.factor",
    "status.storage.topic",
    "config.storage.topic",
    "offset.flush.interval.ms",
    "key.converter",
    "value.converter",
    "header.converter",
    "listeners",
    "exactly.once.source.support",
    "topic.creation.default.partitions",
)


def imported(text: str) -> Mm2Import:
    return import_mm2(parse_properties(text.encode("latin-1"), "mm2.properties"))


def flow_of(text: str) -> tuple[Deployment, Flow, FlowGroups]:
    deployment = deployment_from(parse_document(flows_yaml(imported(text)).encode(), "flows.yaml"))
    (name,) = deployment.flows
    return deployment, deployment.flows[name], deployment.groups[name]


def fate_of(text: str, key: str) -> Fate:
    (found,) = {each.fate for each in imported(text).fates if each.key == key}
    return found


@pytest.mark.parametrize("key", OWN_KEYS)
def test_every_key_of_mirror_maker_has_a_ruling_that_says_why(key: str) -> None:
    if key in ("security.protocol", "sasl.mechanism", "sasl.jaas.config", "ssl.truststore.location"):
        return  # the connection's: below
    if key in ("clusters", "bootstrap.servers"):
        return
    ruling = ruling_of_common_key(key)
    assert ruling is not None
    assert ruling.why or ruling.fate is Fate.TAKEN


def test_the_least_file_becomes_a_flow_with_mirror_makers_defaults() -> None:
    deployment, flow, groups = flow_of(LEAST)
    assert {a: c.connection_id for a, c in deployment.clusters.items()} == {
        "A": "kafka_a",
        "us-west": "kafka_us_west",
    }
    assert (flow.name, flow.source, flow.target) == ("a_to_us_west", "A", "us-west")
    assert flow.naming == PrefixNaming("A", ".")
    assert flow.topics.matches("anything")
    assert groups.selects("anybody")
    assert flow.start == Start("earliest")
    assert deployment.schedules[flow.name].schedule == "@continuous"


def test_what_a_flow_says_goes_before_what_all_say() -> None:
    _, flow, groups = flow_of(
        LEAST
        + "topics = all\ngroups.exclude = x-.* , y\nA->us-west.topics = orders, payments-.*\n"
        + "replication.factor = 3\nsync.group.offsets.enabled = TRUE\nemit.checkpoints.enabled=false\n"
        + "use.defaults.from = source\nsync.topic.configs.enabled : false\n"
        + "config.properties.exclude = retention\\\\.ms\n"
        + "A->us-west.consumer.auto.offset.reset = earliest\nA.consumer.auto.offset.reset = latest\n"
    )
    assert flow.topics.include == ("orders", "payments-.*")
    assert groups.exclude == ("x-.*", "y")
    assert (groups.sync_offsets, groups.emit_checkpoints) == (True, False)
    assert (flow.replication_factor, flow.start) == (3, Start("latest"))
    assert (flow.upkeep.use_defaults_from, flow.upkeep.sync_settings) == ("source", False)
    assert flow.config_properties_exclude == (r"retention\.ms",)


def test_naming_and_where_mirror_maker_keeps_its_position() -> None:
    text = LEAST + "replication.policy.separator = _\noffset-syncs.topic.location = target\n"
    found = imported(text).flows[0]
    assert flow_of(text)[1].naming == PrefixNaming("A", "_")
    assert (found.places.syncs_topic, found.places.syncs_on_source) == ("mm2-offset-syncs_A_internal", False)
    assert (found.places.offsets_topic, found.places.group) == ("mm2-offsets.A.internal", "A-mm2")
    identity = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"
    assert flow_of(LEAST + identity)[1].naming == IdentityNaming("A")
    own = LEAST + "us-west.group.id = g\noffset.storage.topic = o\nA->us-west.name = c\n"
    places = imported(own + "A.consumer.isolation.level = read_committed\n").flows[0].places
    assert (places.group, places.offsets_topic, places.connector, places.is_isolated) == ("g", "o", "c", True)
    assert places.syncs_topic == "mm2-offset-syncs.us-west.internal"


def test_heartbeats_are_written_by_mirror_makers_flow_back() -> None:
    assert flow_of(LEAST + "us-west->A.emit.heartbeats.enabled = true\n")[1].upkeep.emit_heartbeats
    assert not flow_of(LEAST + "A->us-west.emit.heartbeats.enabled = true\n")[1].upkeep.emit_heartbeats


def test_both_directions_with_prefixes_are_two_flows() -> None:
    found = imported(LEAST + "us-west->A.enabled = true\n")
    assert [flow.name for flow in found.flows] == ["a_to_us_west", "us_west_to_a"]
    flows_yaml(found)


def test_connections_are_taken_over_in_the_words_of_both_clients() -> None:
    found = imported(
        LEAST
        + "security.protocol = SASL_SSL\nsasl.mechanism = PLAIN\n"
        + f'sasl.jaas.config = {SASL} username="u" password="it\'s";\n'
        + f'A.sasl.jaas.config = {SASL} username=a \\\n    password="p\\\\"q";\n'
        + "ssl.truststore.type = PEM\nssl.truststore.location = /etc/ca.pem\n"
        + "ssl.endpoint.identification.algorithm =\n"
    )
    a, west = found.clusters
    assert a.extra == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "a",
        "sasl.password": 'p"q',
        "ssl.ca.location": "/etc/ca.pem",
        "ssl.endpoint.identification.algorithm": "none",
        "bootstrap.servers": "a:9092",
    }
    assert west.extra["sasl.password"] == "it's"
    name, _, value = connections_env(found).splitlines()[2].partition("=")
    assert name == "AIRFLOW_CONN_KAFKA_US_WEST"
    assert json.loads(value[1:-1])["extra"]["sasl.password"] == "it's"
    assert value.count("'") == 2, "a shell reads it as one word"


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("ssl.truststore.location = /x.jks", "Java keystore"),
        ("A.sasl.mechanism = GSSAPI", "PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"),
        ("A.sasl.jaas.config = com.sun.Krb5LoginModule required useKeyTab=true;", "PlainLoginModule"),
        ("A.sasl.jaas.config = ${file:/secrets:jaas}", "isn't resolved here"),
        (f'A.sasl.jaas.config = {SASL} username="u" password="${{file:/secrets:pw}}";', "sasl.password"),
        ("A.bootstrap.servers = ${env:SERVERS}", "bootstrap.servers"),
        ("A.consumer.sasl.mechanism = PLAIN", "one connection"),
        ("transforms = route", "changed on their way"),
        ("A->us-west.transforms = route", "changed on their way"),
        ("topic.filter.class = com.example.Mine", "filter of your own"),
        ("errors.tolerance = all", "parks"),
        ("config.providers = file", "aren't resolved"),
        ("A->us-west.target.cluster.bootstrap.servers = x:1", "one connection"),
    ],
)
def test_what_is_not_taken_over_is_named_with_what_it_means(line: str, word: str) -> None:
    text = LEAST.replace("A.bootstrap.servers = a:9092\n", "") if "bootstrap.servers = $" in line else LEAST
    key = line.partition(" = ")[0]
    rows = [each for each in imported(f"{text}{line}\n").fates if each.key == key]
    assert [each.fate for each in rows] == [Fate.NOT_TAKEN]
    assert word in rows[0].why


def test_values_that_say_what_holds_anyhow_are_harmless() -> None:
    assert fate_of(LEAST + "errors.tolerance = none\n", "errors.tolerance") is Fate.HARMLESS
    own = "topic.filter.class = org.apache.kafka.connect.mirror.DefaultTopicFilter\n"
    assert fate_of(LEAST + own, "topic.filter.class") is Fate.HARMLESS


def test_a_line_that_is_there_again_is_reported() -> None:
    found = imported(LEAST + "topics = a\ntopics = b\n")
    assert [(f.line, f.why) for f in found.fates if f.key == "topics"] == [
        (5, "line 6 says it again, and the last one counts"),
        (6, "topics of flow a_to_us_west"),
    ]


REFUSALS = [
    ("", "mm2.properties", "no line `clusters"),
    ("clusters = A\n", "mm2.properties:1: clusters", "two aliases or more"),
    ("clusters = a.b, C\n", "mm2.properties:1: clusters", "two aliases or more"),
    ("clusters = ${env:C}\n", "mm2.properties:1: clusters", "reference to a config provider"),
    ("clusters = A, B\nA.bootstrap.servers = a:1\n", "mm2.properties", "how to reach cluster B"),
    (LEAST.replace("true", "false"), "mm2.properties", "no flow is enabled"),
    (LEAST.replace("true", "yes"), "mm2.properties:4: A->us-west.enabled", "must be true or false"),
    (LEAST + "A->B.topics = x\n", "mm2.properties:5: ***.topics", "a cluster that `clusters` doesn't"),
    (LEAST + "A->us-west.topcis = x\n", "mm2.properties:5: A->us-west.topcis", "no key of MirrorMaker 2"),
    (LEAST + "tpics = x\n", "mm2.properties:5: tpics", "no key of MirrorMaker 2"),
    (LEAST + "A.topics = x\n", "mm2.properties:5: A.topics", "of flows only"),
    (LEAST + "topics = *.x\n", "mm2.properties:5: topics", "has nothing to repeat"),
    (LEAST + "topics = a, b.internal\n", "mm2.properties:5: topics", "internal topic"),
    (LEAST + "topics =\n", "mm2.properties:5: topics", "matches nothing"),
    (LEAST + "topics = ${file:/x:y}\n", "mm2.properties:5: topics", "isn't resolved here"),
    (LEAST + "groups = (?!x).*\n", "mm2.properties:5: groups", "look-around"),
    (LEAST + "replication.factor = two\n", "mm2.properties:5: replication.factor", "32767"),
    (LEAST + "replication.policy.class = com.X\n", "mm2.properties:5: replication.policy.class", "your own"),
    (LEAST + "A.consumer.auto.offset.reset = none\n", "mm2.properties:5: A.consumer.auto.offset", "earliest"),
    (LEAST + "sync.topic.acls.enabled = on\n", "mm2.properties:5: sync.topic.acls.enabled", "true or false"),
    (LEAST + "nonsense\n", "mm2.properties:5", "isn't `key = value`"),
    (LEAST + "= x\n", "mm2.properties:5", "isn't `key = value`"),
    (LEAST + "topics = \\u12\n", "mm2.properties:5", "four hexadecimal digits"),
]


@pytest.mark.parametrize(("text", "place", "rule"), REFUSALS, ids=[rule[:30] for _, _, rule in REFUSALS])
def test_a_mistake_is_one_line_with_its_place(text: str, place: str, rule: str) -> None:
    with pytest.raises(ConfigError) as refused:
        imported(text)
    assert refused.value.what.startswith(place)
    assert rule in refused.value.rule
    assert refused.value.remedy
    assert "\n" not in str(refused.value)


def test_the_nearest_key_is_reported() -> None:
    with pytest.raises(ConfigError, match=r"did you mean topics\.exclude\?"):
        imported(LEAST + "topics.exlude = x\n")


def test_what_flows_yaml_would_refuse_is_reported_of_the_file() -> None:
    identity = "replication.policy.class = org.apache.kafka.connect.mirror.IdentityReplicationPolicy\n"
    found = imported(LEAST + identity + "us-west->A.enabled = true\n")
    with pytest.raises(ConfigError, match=r"^mm2\.properties, as flows\.yaml: flows\.a_to_us_west"):
        flows_yaml(found)


def test_no_secret_is_in_flows_yaml_nor_in_what_is_reported() -> None:
    canary = "hunter2-canary"
    found = imported(
        LEAST
        + "sasl.mechanism = PLAIN\nsecurity.protocol = SASL_SSL\n"
        + f'sasl.jaas.config = {SASL} username="u" password="{canary}";\n'
        + f"ssl.key.password = {canary}\nssl.truststore.password = {canary}\n"
        + f"A.ssl.keystore.password = {canary}\n"
        + f"A.consumer.sasl.jaas.config = {canary}\nA.sasl.oauthbearer.x = {canary}\n"
    )
    assert canary not in flows_yaml(found) + repr(found) + str(found)
    assert canary in connections_env(found)
    with pytest.raises(ConfigError) as refused:
        imported(LEAST + f"A->us-west.sasl.jaas.confg = {canary}\n")
    assert canary not in str(refused.value) + repr(refused.value.as_dict())
