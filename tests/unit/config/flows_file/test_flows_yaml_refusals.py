"""A mistake in flows.yaml is one ConfigError, of one line: file, line, field, rule, fix."""

from __future__ import annotations

from pathlib import Path

import pytest

from causeway.config.flows_file.document import LARGEST_BYTES
from causeway.config.flows_file.load import load_flows
from causeway.core.kernel.errors import ConfigError

CLUSTERS = """\
clusters:
  sf: {connection: kafka_sf}
  nyc: {connection: kafka_nyc}
  par_is: {connection: kafka_paris}
"""
FLOW = f"""{CLUSTERS}\
flows:
  a:
    source: sf
    target: nyc
"""
"""Ends with line 8: what is added to it begins at line 9."""


def refused(tmp_path: Path, content: str | bytes) -> ConfigError:
    path = tmp_path / "flows.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigError) as caught:
        load_flows(path, shown_as="flows.yaml")
    assert type(caught.value) is ConfigError
    message = str(caught.value)
    assert message.isprintable(), "one line, whatever the file holds"
    assert len(message) < 1000
    assert caught.value.exit_code == 2
    assert caught.value.rule
    assert caught.value.remedy
    return caught.value


ONE_KEY = [
    # (key and value, the rule, the fix); the field is flows.a.<key>, at line 9
    ("topcs: [orders]", "is no key of a flow", "did you mean topics?"),
    ("Lanes: 3", "is no key of a flow", "did you mean lanes?"),
    ("topics.blacklist: [x]", "is MirrorMaker 2's", "topics.exclude"),
    ("replication.policy.class: x.IdentityReplicationPolicy", "is MirrorMaker 2's", "replication.policy:"),
    ("emit.checkpoints.interval.seconds: 60", "is MirrorMaker 2's", "after each copy"),
    ("sync.topic.acls.interval.seconds: 600", "is MirrorMaker 2's", "each run of the DAG"),
    ("use.defaults.from: both", "must be target or source", "one of these"),
    ("bootstrap.servers: 'host:9092'", "is MirrorMaker 2's", "Airflow connection"),
    ("on: 1", "is no key of a flow", "known:"),
    ("topics: orders", "must be a list", "[orders"),
    ("topics: {orders: 1}", "must be a list", "[orders"),
    ("topics: []", "must not be empty", "leave the key out"),
    ("topics:", "must be a list; there is nothing here", "[orders"),
    ("on_refused: skip", "must be park, raise_limit or quarantine", "write one"),
    ("lanes: 0", "must be 1 or more", "larger"),
    ("lanes: 1001", "must be 1000 or less", "smaller"),
    ("lanes: -1", "must be 1 or more", "larger"),
    ("lanes: '16'", "must be a whole number", "without quotes"),
    ("lanes: 16.0", "must be a whole number", "without quotes"),
    ("lanes: 1_000", "must be a whole number", "without quotes"),
    ("lanes: 010", "must be a whole number", "without quotes"),
    ("lanes: 0x10", "must be a whole number", "without quotes"),
    ("lanes: true", "must be a whole number", "without quotes"),
    ("lanes: 1e400", "must be a whole number", "without quotes"),
    (f"lanes: {'9' * 5000}", "must be a whole number", "without quotes"),
    ("lanes: [[[1]]]", "must be a whole number", "without quotes"),
    ("run_for: 10", "must be a duration", "write 30s or 10m"),
    ("run_for: 10 m", "must be a duration", "write 30s or 10m"),
    ("run_for: 10M", "'M' isn't one of these units", "write 10m"),
    ("run_for: -5m", "must be a duration", "write 30s or 10m"),
    ("run_for: 1.5h", "must be a duration", "write 30s or 10m"),
    ("run_for: 0s", "must be 1 s or more", "larger"),
    ("run_for: 25h", "must be 86400 s or less", "smaller"),
    ("run_for: 12:30", "must be a duration", "write 30s or 10m"),
    ("retry_delay: soon", "must be a duration", "write 30s or 10m"),
    ("transaction.max.bytes: 10mb", "'mb' isn't one of these units", "write 10MiB"),
    ("transaction.max.bytes: 16 MiB", "must be a size", "write 16MiB"),
    ("transaction.max.bytes: 16777216", "must be a size", "write 16MiB"),
    ("transaction.max.bytes: 1B", "must be 65536 bytes or more", "larger"),
    ("transaction.max.bytes: 2GiB", "bytes or less", "smaller"),
    ("transaction.max.time: 31s", "must be 30 s or less", "smaller"),
    ("transaction.max.time: 5", "must be a duration", "write 30s or 10m"),
    ("start: yesterday", "must be earliest, latest or a timestamp with a zone", "2026-01-31T12:00:00Z"),
    ("start: 2026-03-04", "must be earliest, latest or a timestamp with a zone", "2026-01-31T12:00:00Z"),
    (
        "start: 2026-03-04T05:06:07",
        "must name its zone",
        "write 2026-03-04T05:06:07Z if it is UTC, or 2026-03-04T05:06:07+02:00",
    ),
    ("start: 2026-02-30T00:00:00Z", "is no moment of the calendar", "2026-01-31T12:00:00Z"),
    ("start: 2026-01-01T25:00:00Z", "is no moment of the calendar", "2026-01-31T12:00:00Z"),
    ("start: 2026-06-30T23:59:60Z", "is no moment of the calendar", "2026-01-31T12:00:00Z"),
    ("start: 1969-12-31T23:59:59Z", "must not be before 1970", "earliest"),
    ("start: 1767225600", "bare digits are ambiguous", "2026-01-01T00:00:00Z if these are seconds"),
    ("start: 1767225600000", "bare digits are ambiguous", "2026-01-01T00:00:00Z if these are milliseconds"),
    ("start:", "must be earliest, latest or a timestamp", "2026-01-31"),
    ("schedule: '@continous'", "must be a preset or a cron line", "did you mean @continuous?"),
    ("schedule: '* * * *'", "a cron line has 5 fields", "every five minutes"),
    ("schedule: '0 0 31 2 *'", "never comes: none of these months has a day 31", "write 29 or less"),
    ("schedule: '0 0 31 2 1,*'", "never comes: none of these months has a day 31", "write 29 or less"),
    ("schedule: '60 * * * *'", "the minute must be 0 to 59", "0-59"),
    ("schedule: '* 24 * * *'", "the hour must be 0 to 23", "0-23"),
    ("schedule: '* * 0 * *'", "the day of the month must be 1 to 31", "1-31"),
    ("schedule: '* * * jam *'", "the month must be 1 to 12", "1-12"),
    ("schedule: '*/0 * * * *'", "the step of the minute must be 1 to 59", "*/5"),
    ("schedule: '9-5 * * * *'", "must not run backwards", "0-59"),
    ("schedule: 5", "must be text", "quotes"),
    ("follow: yes", "must be true or false", "without quotes"),
    ("sync.group.offsets.enabled: no", "must be true or false", "without quotes"),
    ("sync.group.offsets.enabled: 1", "must be true or false", "without quotes"),
    ("replication.policy: Identity", "must be prefix, identity or rules", "one of these"),
    ("replication.policy.separator: ''", "must be made of ., _ and - only", "dot"),
    ("replication.policy.separator: '/'", "must be made of ., _ and - only", "dot"),
    ("replication.policy.separator: '...........'", "must not be longer than 10", "shorter"),
    ("replication.factor: 0", "must be 1 to 32767, or -1", "write -1"),
    ("replication.factor: -2", "must be 1 to 32767, or -1", "write -1"),
    ("replication.factor: 40000", "must be 1 to 32767, or -1", "write -1"),
    ("replication.factor: '3'", "must be a whole number or source", "write -1"),
    ("replication.policy: rules", "needs replication.policy.rules", "orders-(.*)"),
    ("replication.policy.rules: orders", "must be a list", ""),
    ("pool: ''", "must not be empty", "leave the key out"),
    ("pool: 7", "must be text", "quotes"),
    ("retries: 101", "must be 100 or less", "smaller"),
    ("retries: -1", "must be 0 or more", "larger"),
    (f"pool: {'p' * 300}", "must not be longer than 250", "shorter"),
]


@pytest.mark.parametrize(("line", "rule", "remedy"), ONE_KEY, ids=lambda text: text[:40])
def test_a_wrong_key_or_value_is_named_with_its_line_and_rule(
    tmp_path: Path, line: str, rule: str, remedy: str
) -> None:
    error = refused(tmp_path, f"{FLOW}    {line}\n")
    key = line.partition(":")[0]
    assert error.what == f"flows.yaml:9: flows.a.{key}"
    assert rule in error.rule
    assert remedy in error.remedy


PATTERNS = [
    ("'*.orders'", "at position 0, * has nothing to repeat", r'".*\.orders"'),
    ("'(orders'", "at position 0, this ( is never closed", "close it"),
    ("'orders)'", "at position 6, this ) closes nothing", "remove it"),
    ("'[a-'", "this [ is never closed", "escape it"),
    ("'[z-a]'", "at position 1, the range runs backwards", "[a-z]"),
    ("'a{3,1}'", "the count runs backwards", "write {1,3}"),
    ("'a**'", "* repeats a repetition", "( )"),
    (r"'a\'", "a \\ escapes nothing", "write \\\\"),
    (r"'\bx'", "\\b isn't known", "\\d"),
    ("'(?!x).*'", "look-around", "excludes"),
    (r"'(a)\1'", "\\1 isn't known", "known:"),
    ("'(a{1000}){1000}'", "more than an automaton of 2000 states can", "smaller counts"),
    ("'((a{0}){9999}){9999}'", "more than an automaton of 2000 states can", "smaller counts"),
    (f"'{'(' * 21}a{')' * 21}'", "nested more than 20 deep", "several patterns"),
    (f"'{'a' * 1001}'", "must not be longer than 1000 characters", "several patterns"),
    ("''", "an empty pattern matches nothing", "remove it"),
    ("5", "must be text", "quotes"),
    ("", "must be text; there is nothing here", "quotes"),
]


@pytest.mark.parametrize(("pattern", "rule", "remedy"), PATTERNS, ids=lambda text: text[:30])
@pytest.mark.parametrize("key", ["topics", "topics.exclude", "groups", "config.properties.exclude"])
def test_a_pattern_is_refused_with_position_and_remedy(
    tmp_path: Path, key: str, pattern: str, rule: str, remedy: str
) -> None:
    error = refused(tmp_path, f"{FLOW}    {key}:\n      - fine\n      - {pattern}\n")
    assert error.what == f"flows.yaml:11: flows.a.{key}[1]"
    assert rule in error.rule
    assert remedy in error.remedy


@pytest.mark.parametrize("topic", ["__consumer_offsets", "heartbeats.internal", "connect-offsets-internal"])
def test_an_internal_topic_asked_for_by_name_is_refused(tmp_path: Path, topic: str) -> None:
    error = refused(tmp_path, f"{FLOW}    topics: [{topic}]\n")
    assert error.what == "flows.yaml:9: flows.a.topics[0]"
    assert error.value == topic
    assert "never cross" in error.rule


WHOLE = [
    ("", "flows.yaml:1", "the file is empty"),
    ("# only a comment\n", "flows.yaml:1", "the file is empty"),
    ("- a\n- b\n", "flows.yaml:1", "must hold keys and values"),
    ("just text\n", "flows.yaml:1", "must hold keys and values"),
    (f"{CLUSTERS}", "flows.yaml:1: flows", "is required"),
    ("flows: {}\n", "flows.yaml:1: clusters", "is required"),
    (f"{CLUSTERS}flows: {{}}\n", "flows.yaml:5: flows", "must not be empty"),
    (f"{CLUSTERS}flows:\n", "flows.yaml:5: flows", "must hold keys and values; there is nothing here"),
    (
        f"{CLUSTERS}flows:\n  a:\n",
        "flows.yaml:6: flows.a",
        "must hold keys and values; there is nothing here",
    ),
    (f"{CLUSTERS}flows:\n  a: {{source: sf}}\n", "flows.yaml:6: flows.a.target", "is required"),
    (f"{FLOW}extra: 1\n", "flows.yaml:9: extra", "is no key of this file"),
    (f"{FLOW}flow:\n  b: 1\n", "flows.yaml:9: flow", "is no key of this file"),
    (f"{FLOW}    lanes: 1\n    lanes: 2\n", "flows.yaml:10: flows.a.lanes", "already there, at line 9"),
    (f"{FLOW}  a: {{}}\n", "flows.yaml:9: flows.a", "already there, at line 6"),
    (f"{FLOW}    lanes: 1\n\tpool: x\n", "flows.yaml:10", "not tabs"),
    (f"{FLOW}    lanes:\t[\n", "flows.yaml:9: lanes", "isn't YAML"),
    (f"{FLOW}    topics: [a, b\n", "flows.yaml:10", "isn't YAML"),
    (f"{FLOW}    pool: 'open\n", "flows.yaml:10", "isn't YAML"),
    (f"{FLOW}    topics: [*.orders]\n", "flows.yaml:9: topics", "isn't YAML"),
    (f"{FLOW}    topics: [*]\n", "flows.yaml:9: topics", "isn't YAML"),
    (f"{FLOW}    topics: [*orders]\n", "flows.yaml:9", "aliases are not accepted"),
    (f"{FLOW}    topics: &all [x]\n", "flows.yaml:9", "aliases are not accepted"),
    (f"{FLOW}    <<: *a\n", "flows.yaml:9", "aliases are not accepted"),
    (f"{FLOW}    pool: !!python/object/apply:os.system ['true']\n", "flows.yaml:9", "tags are not accepted"),
    (f"{FLOW}    pool: !!str x\n", "flows.yaml:9", "tags are not accepted"),
    (f"{FLOW}    pool: {'[' * 3000}\n", "flows.yaml:9", "nested more than 12 deep"),
    (f"{FLOW}    [a, b]: 1\n", "flows.yaml:9", "a key must be a word"),
    (f"{FLOW}---\nclusters: {{}}\n", "flows.yaml:9", "isn't YAML"),
    (f"{FLOW}    pool: a\x07b\n", "flows.yaml:9", "control character"),
    (FLOW.encode() + b"    pool: caf\xe9\n", "flows.yaml:9", "must be UTF-8"),
    (FLOW.encode("utf-16"), "flows.yaml:1", "must be UTF-8"),
    (b"#" * (LARGEST_BYTES + 1), "flows.yaml", "must not be larger than 1 MiB"),
]


@pytest.mark.parametrize(("content", "place", "rule"), WHOLE, ids=lambda text: repr(text[-40:]))
def test_a_file_that_is_not_the_yaml_we_take_is_refused(
    tmp_path: Path, content: str | bytes, place: str, rule: str
) -> None:
    error = refused(tmp_path, content)
    assert error.what == place
    assert rule in error.rule


def test_an_alias_bomb_is_refused_at_its_first_anchor(tmp_path: Path) -> None:
    rows = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    error = refused(tmp_path, "a0: &a0 [x]\n" + "\n".join(rows))
    assert (error.what, error.value) == ("flows.yaml:1", "&...")


CLUSTER_LINES = [
    ("sf: {connection: kafka-sf}", "clusters.sf.connection", "must be an Airflow connection id"),
    ("sf: {connection: ''}", "clusters.sf.connection", "must be an Airflow connection id"),
    ("sf: {connection: ../../etc}", "clusters.sf.connection", "must be an Airflow connection id"),
    ("sf: {}", "clusters.sf.connection", "is required"),
    ("sf: kafka_sf", "clusters.sf", "must hold keys and values"),
    ("sf: {connection: kafka_sf, insecure: yes}", "clusters.sf.insecure", "must be true or false"),
    (
        "sf: {connection: kafka_sf, bootstrap.servers: 'h:1'}",
        "clusters.sf.bootstrap.servers",
        "MirrorMaker 2's",
    ),
    ("sf: {connection: kafka_sf, conection: x}", "clusters.sf.conection", "is no key of a cluster"),
    ("s.f: {connection: kafka_sf}", "clusters.s.f", "must be 1 to 60 of letters, digits, _ and -"),
    ("'': {connection: kafka_sf}", "clusters.", "must be 1 to 60 of letters"),
    (f"{'a' * 61}: {{connection: kafka_sf}}", f"clusters.{'a' * 61}", "must be 1 to 60 of letters"),
    ("śf: {connection: kafka_sf}", "clusters.śf", "must be 1 to 60 of letters"),
    ("'a\\nb': {connection: kafka_sf}", "clusters.a\\nb", "must be 1 to 60 of letters"),
]


@pytest.mark.parametrize(("line", "field", "rule"), CLUSTER_LINES, ids=lambda text: text[:40])
def test_a_cluster_that_is_not_a_reference_is_refused(
    tmp_path: Path, line: str, field: str, rule: str
) -> None:
    error = refused(tmp_path, f"clusters:\n  {line}\nflows:\n  a: {{source: sf, target: sf}}\n")
    assert error.what == f"flows.yaml:2: {field}"
    assert rule in error.rule


SECRETS = [
    "clusters:\n  sf:\n    connection: kafka_sf\n    sasl.password: hunter2-canary\n",
    "clusters:\n  sf:\n    connection: x\n    extra: {sasl.jaas.config: 'hunter2-canary'}\n",
    "clusters:\n  sf:\n    connection: x\n    ssl.key.pem: hunter2-canary\n",
    "clusters:\n  sf:\n    x: 1\n    connection: 'kafka://user:hunter2-canary@host:9092'\n",
    "clusters:\n  sf:\n    x: 1\n    connection: 'sasl.password=hunter2-canary'\n",
    "clusters:\n  sf:\n    x: 1\n    y: '-----BEGIN PRIVATE KEY----- hunter2-canary'\n",
    "flows:\n  a:\n    x: 1\n    client_secret: hunter2-canary\n",
]


@pytest.mark.parametrize("content", SECRETS)
def test_a_secret_in_the_file_is_refused_and_never_repeated(tmp_path: Path, content: str) -> None:
    error = refused(tmp_path, content)
    assert error.what.startswith(("flows.yaml:4: ", "flows.yaml:3: "))
    assert "a secret must not be written in this file" in error.rule
    assert "Airflow connection" in error.remedy
    assert "canary" not in str(error)
    assert "canary" not in repr(error.as_dict())


TWO_FIELDS = [
    ("a: {source: sff, target: nyc}", "6: flows.a.source", "must be an alias under clusters"),
    ("a: {source: sf, target: sf}", "6: flows.a.target", "is the source too"),
    (
        "a: {source: sf, target: twin}",
        "6: flows.a.target",
        "has the same connection as the source (kafka_sf)",
    ),
    (
        "a: {source: sf, target: SF}",
        "7: flows.a.target",
        "has a connection that differs from the source's (kafka_sf) by capital letters only",
    ),
    (
        "a: {source: sf, target: nyc, replication.policy: identity, replication.policy.separator: '-'}",
        "6: flows.a.replication.policy.separator",
        "does nothing with identity naming",
    ),
    (
        "a: {source: sf, target: nyc, replication.policy.rules: [{from: a, to: b}]}",
        "6: flows.a.replication.policy.rules",
        "does nothing with replication.policy: prefix",
    ),
    (
        "a: {source: sf, target: nyc, replication.policy: rules, "
        "replication.policy.rules: [{from: a, to: a}, {from: '(b)', to: $1.$2}]}",
        "6: flows.a.replication.policy.rules[1].to",
        "speaks of group 2, and (b) has 1",
    ),
    (
        "a: {source: sf, target: nyc, replication.policy: rules, "
        "replication.policy.rules: [{from: a, to: a/b}]}",
        "6: flows.a.replication.policy.rules[0].to",
        "holds what no topic's name may",
    ),
    (
        "a: {source: par_is, target: nyc, replication.policy.separator: _}",
        "6: flows.a.replication.policy.separator",
        "is part of the alias par_is",
    ),
    (
        "a: {source: sf, target: nyc, follow: true, schedule: '@daily'}",
        "6: flows.a.follow",
        "schedule says @daily",
    ),
    (
        "a: {source: sf, target: nyc, topics: [x], emit.heartbeats.enabled: true}\n"
        "  b: {source: sf, target: nyc, topics: [y], heartbeats.replication.enabled: true}",
        "7: flows.b.heartbeats.replication.enabled",
        "a carries the heartbeats of sf to nyc already",
    ),
    (
        "a: {source: sf, target: nyc, follow_rewinds: true}",
        "6: flows.a.follow_rewinds",
        "does nothing without sync.group.offsets.enabled",
    ),
    ("a-b: {source: sf, target: nyc}", "6: flows.a-b", "a flow's name must be"),
    (
        "a: {source: sf, target: nyc, replication.policy: identity}\n"
        "  b: {source: nyc, target: sf, replication.policy: identity}",
        "6: flows.a.replication.policy",
        "a -> b -> a is a cycle",
    ),
    (
        "a: {source: sf, target: nyc, replication.policy: identity, topics: [x, y]}\n"
        "  b: {source: nyc, target: sf, replication.policy: identity, topics: ['y.*']}",
        "6: flows.a.replication.policy",
        "a -> b -> a is a cycle",
    ),
    (
        "a: {source: sf, target: nyc, replication.policy: identity}\n"
        "  b: {source: nyc, target: par_is, replication.policy: identity}\n"
        "  c: {source: par_is, target: sf, replication.policy: identity}",
        "6: flows.a.replication.policy",
        "a -> b -> c -> a is a cycle",
    ),
    (
        "a: {source: sf, target: nyc}\n  b: {source: nyc, target: sf, replication.policy: identity}",
        "6: flows.a.replication.policy",
        "a -> b -> a is a cycle",
    ),
    (
        "a: {source: sf, target: nyc}\n  b: {source: nyc, target: sf, replication.policy.separator: '-'}",
        "6: flows.a.replication.policy",
        "a -> b -> a is a cycle",
    ),
    (
        "a: {source: sf, target: nyc, replication.policy: rules, topics: [orders], "
        "replication.policy.rules: [{from: orders, to: ledger}]}\n"
        "  b: {source: nyc, target: sf, replication.policy: rules, "
        "replication.policy.rules: [{from: ledger, to: orders}]}",
        "6: flows.a.replication.policy",
        "a -> b -> a is a cycle",
    ),
    (
        "a: {source: sf, target: nyc, replication.policy: identity}\n"
        "  b: {source: nyc, target: sf, replication.policy: identity, failback_of: c}",
        "7: flows.b.failback_of",
        "must be another flow of this file that is no failback itself",
    ),
    (
        "a: {source: sf, target: nyc, replication.policy: identity, failback_of: b}\n"
        "  b: {source: nyc, target: sf, replication.policy: identity, failback_of: a}",
        "6: flows.a.failback_of",
        "must be another flow of this file that is no failback itself",
    ),
    (
        "a: {source: sf, target: nyc, replication.policy: identity}\n"
        "  b: {source: nyc, target: par_is, replication.policy: identity, failback_of: a}",
        "7: flows.b.failback_of",
        "leads from sf to nyc, and this flow doesn't mirror it back",
    ),
    (
        "a: {source: sf, target: nyc}\n"
        "  b: {source: nyc, target: sf, replication.policy: identity, failback_of: a}",
        "7: flows.b.failback_of",
        "is for flows that keep names, and a has replication.policy: prefix",
    ),
    (
        "a: {source: sf, target: nyc, replication.policy: identity}\n"
        "  b: {source: nyc, target: sf, failback_of: a}",
        "7: flows.b.failback_of",
        "is for flows that keep names, and b has replication.policy: prefix",
    ),
    (
        "a: {source: sf, target: nyc, replication.policy: identity}\n"
        "  b: {source: nyc, target: sf, replication.policy: identity, failback_of: a}\n"
        "  c: {source: nyc, target: sf, replication.policy: identity, failback_of: a}",
        "8: flows.c.failback_of",
        "has a failback already: b",
    ),
    (
        "a: {source: sf, target: nyc, replication.policy: identity}\n"
        "  b: {source: nyc, target: sf, replication.policy: identity, failback_of: a, start: latest}",
        "7: flows.b.start",
        "of a failback is what a says",
    ),
    (
        "a: {source: sf, target: nyc, replication.policy: identity}\n"
        "  b: {source: nyc, target: sf, replication.policy: identity, failback_of: a}\n"
        "  c: {source: sf, target: par_is, replication.policy: identity}\n"
        "  d: {source: par_is, target: nyc, replication.policy: identity}",
        "7: flows.b.replication.policy",
        "b -> c -> d -> b is a cycle",
    ),
]


@pytest.mark.parametrize(("flows", "place", "rule"), TWO_FIELDS, ids=lambda text: text[:40])
def test_fields_that_contradict_each_other_are_refused(
    tmp_path: Path, flows: str, place: str, rule: str
) -> None:
    clusters = CLUSTERS.replace("clusters:\n", "clusters:\n  twin: {connection: kafka_sf}\n").replace(
        "  par_is: {connection: kafka_paris}\n", "  SF: {connection: KAFKA_SF}\n" if "SF" in flows else ""
    )
    if "par_is" in flows:
        clusters = CLUSTERS
    error = refused(tmp_path, f"{clusters}flows:\n  {flows}\n")
    assert error.what == f"flows.yaml:{place}"
    assert rule in error.rule


def test_the_first_mistake_of_the_file_is_reported_and_the_others_are_counted(tmp_path: Path) -> None:
    error = refused(tmp_path, f"{FLOW}    retries: x\n    lanes: 0\n    topcs: [a]\n")
    assert error.what == "flows.yaml:9: flows.a.retries"
    assert error.remedy.endswith("2 more in this file (line 10, line 11)")


def test_a_missing_file_says_how_to_name_one(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"flows\.yaml: can't be read: No such file.*--file"):
        load_flows(tmp_path / "flows.yaml")
    with pytest.raises(ConfigError, match=r"isn't a regular file"):
        load_flows(tmp_path)


def test_what_is_settled_can_not_be_proved_beside_a_quarantine(tmp_path: Path) -> None:
    error = refused(tmp_path, f"{FLOW}    settle: true\n    on_refused: quarantine\n")
    assert str(error).startswith("flows.yaml:9: flows.a.settle")
    assert "quarantine" in error.rule
