"""What flows.yaml means when it is right: MirrorMaker 2's defaults, our units, read-only values."""

from __future__ import annotations

import dataclasses
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from causeway.config.flows_file.deployment import Deployment, FlowSchedule
from causeway.config.flows_file.load import load_flows
from causeway.core.kernel.acl_vocabulary import Operation
from causeway.core.kernel.errors import UnknownName
from causeway.core.model.flow import CopyLimits, Start, Upkeep
from causeway.core.model.group_filter import FlowGroups
from causeway.core.model.naming import IdentityNaming, NamingRule, PrefixNaming, RuleNaming
from causeway.core.permissions.flow import needed_rights

SHIPPED = Path(__file__).parents[4] / "include" / "flows.yaml"
LEAST = """\
clusters:
  sf: {connection: kafka_sf}
  nyc: {connection: kafka_nyc, insecure: true}
flows:
  a: {source: sf, target: nyc}
"""


def loaded(tmp_path: Path, content: str) -> Deployment:
    path = tmp_path / "flows.yaml"
    path.write_text(content)
    return load_flows(path)


def with_key(tmp_path: Path, line: str) -> Deployment:
    return loaded(tmp_path, LEAST.replace("target: nyc}", f"target: nyc, {line}}}"))


def test_the_shipped_file_is_the_demo() -> None:
    deployment = load_flows(SHIPPED)
    flow, schedule = deployment.flows["sf_to_nyc"], deployment.schedules["sf_to_nyc"]
    assert list(deployment.flows) == ["sf_to_nyc"]
    assert (flow.source, flow.target, flow.lanes) == ("sf", "nyc", 16)
    assert flow.naming == PrefixNaming("sf", ".")
    assert [
        t
        for t in ("orders", "payments-eu", "events-lz4", "ledger", "quiet", "clicks")
        if flow.topics.matches(t)
    ]
    assert not flow.topics.matches("payments")
    assert (schedule.schedule, schedule.run_for_seconds) == ("@continuous", 600.0)
    assert deployment.clusters["sf"].connection_id == "kafka_sf"


def test_the_shipped_file_shows_the_defaults_that_the_code_has(tmp_path: Path) -> None:
    """The commented lines of the file are what holds without them."""
    lines = SHIPPED.read_text().splitlines()
    shown = [line.split("#", 2)[1] for line in lines if line.startswith("    # ") and "[...]" not in line]
    keys = [text for text in shown if text.split(":")[0].strip() in COMMENTED]
    assert len(keys) == len(COMMENTED)
    block = "\n".join(f"    {text.strip()}" for text in keys)
    spelled = loaded(
        tmp_path,
        LEAST.replace("a: {source: sf, target: nyc}", f"a:\n    source: sf\n    target: nyc\n{block}"),
    )
    assert spelled == dataclasses.replace(loaded(tmp_path, LEAST), file=spelled.file)


COMMENTED = {
    "topics.exclude",
    "replication.policy.separator",
    "replication.factor",
    "transaction.max.bytes",
    "transaction.max.time",
    "on_refused",
    "settle",
    "sync.topic.configs.enabled",
    "use.defaults.from",
    "sync.topic.acls.enabled",
    "emit.heartbeats.enabled",
    "groups",
    "groups.exclude",
    "follow_rewinds",
    "emit.checkpoints.enabled",
    "emit.offset-syncs.enabled",
    "sync.group.offsets.enabled",
}


def test_what_is_left_out_has_mirror_makers_defaults_or_ours(tmp_path: Path) -> None:
    deployment = loaded(tmp_path, LEAST)
    flow = deployment.flow("a")
    assert flow.topics.include == (".*",)
    assert flow.topics.exclude == (r".*[\-\.]internal", r".*\.replica", r"__.*")
    assert flow.start == Start("earliest")
    assert flow.lanes == 16
    assert flow.replication_factor is None
    assert flow.limits == CopyLimits()
    assert not flow.settle
    assert flow.upkeep == Upkeep(sync_settings=True, use_defaults_from="target")
    assert len(flow.config_properties_exclude) == 6
    assert r"min\.insync\.replicas" in flow.config_properties_exclude
    assert deployment.groups["a"] == FlowGroups(
        include=(".*",),
        exclude=("console-consumer-.*", "connect-.*", "__.*"),
        sync_offsets=False,
        follow_rewinds=False,
        emit_checkpoints=True,
        emit_offset_syncs=True,
    )
    assert deployment.schedules["a"] == FlowSchedule(
        schedule=None, run_for_seconds=None, pool="default_pool", retries=2, retry_delay_seconds=30.0
    )
    assert not deployment.clusters["sf"].insecure
    assert deployment.clusters["nyc"].insecure


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("earliest", Start("earliest")),
        ("latest", Start("latest")),
        ("2026-01-01T00:00:00Z", Start("timestamp", 1767225600000)),
        ("2026-01-01T02:00:00+02:00", Start("timestamp", 1767225600000)),
        ("2025-12-31T19:00:00.25-05:00", Start("timestamp", 1767225600250)),
        ("1970-01-01T00:00:00.0019Z", Start("timestamp", 1)),
        ("'2026-01-01 00:00:00z'", Start("timestamp", 1767225600000)),
    ],
)
def test_start_is_a_moment_with_its_zone(tmp_path: Path, text: str, start: Start) -> None:
    assert with_key(tmp_path, f"start: {text}").flow("a").start == start


def test_settling_is_set_per_flow_and_costs_a_look_at_the_mirrors_settings(tmp_path: Path) -> None:
    settling, other = with_key(tmp_path, "settle: true").flow("a"), loaded(tmp_path, LEAST).flow("a")
    assert (settling.settle, other.settle) == (True, False)
    (more,) = set(needed_rights(settling, ["orders"])) - set(needed_rights(other, ["orders"]))
    assert (more.side, more.operation, more.name) == ("target", Operation.DESCRIBE_CONFIGS, "sf.")


@pytest.mark.parametrize(
    ("keys", "upkeep"),
    [
        ("sync.topic.configs.enabled: false", Upkeep()),
        ("use.defaults.from: source", Upkeep(sync_settings=True, use_defaults_from="source")),
        ("sync.topic.acls.enabled: true", Upkeep(sync_settings=True, sync_acls=True)),
        (
            "emit.heartbeats.enabled: true",
            Upkeep(sync_settings=True, emit_heartbeats=True, mirror_heartbeats=True),
        ),
        ("heartbeats.replication.enabled: true", Upkeep(sync_settings=True, mirror_heartbeats=True)),
        (
            "emit.heartbeats.enabled: true, heartbeats.replication.enabled: false",
            Upkeep(sync_settings=True, emit_heartbeats=True),
        ),
    ],
)
def test_what_is_kept_up_is_set_per_flow(tmp_path: Path, keys: str, upkeep: Upkeep) -> None:
    assert with_key(tmp_path, keys).flow("a").upkeep == upkeep


@pytest.mark.parametrize(
    ("text", "seconds"), [("30s", 30.0), ("10m", 600.0), ("2h", 7200.0), ("1d", 86400.0), ("1500ms", 1.5)]
)
def test_durations_have_units(tmp_path: Path, text: str, seconds: float) -> None:
    assert with_key(tmp_path, f"run_for: {text}").schedules["a"].run_for_seconds == seconds


@pytest.mark.parametrize(
    ("text", "size"), [("64KiB", 65536), ("16MiB", 1 << 24), ("1GiB", 1 << 30), ("70000B", 70000)]
)
def test_sizes_have_units_and_a_fetch_is_no_larger_than_a_transaction(
    tmp_path: Path, text: str, size: int
) -> None:
    limits = with_key(tmp_path, f"transaction.max.bytes: {text}").flow("a").limits
    assert limits.transaction_bytes == size
    assert limits.fetch_bytes == min(size, 1 << 24)


@pytest.mark.parametrize(
    "text",
    [
        "@continuous",
        "@hourly",
        "*/5 * * * *",
        "0 9-17/2 1,15 jan-jun mon",
        "59 23 31 12 7",
        "0 0 31 2 */2",
        "0 0 31 2 0-6",
    ],
)
def test_schedules_are_presets_or_cron_lines(tmp_path: Path, text: str) -> None:
    assert with_key(tmp_path, f"schedule: '{text}'").schedules["a"].schedule == text


def test_follow_is_the_continuous_schedule(tmp_path: Path) -> None:
    assert with_key(tmp_path, "follow: true").schedules["a"].schedule == "@continuous"
    assert (
        with_key(tmp_path, "follow: true, schedule: '@continuous'").schedules["a"].schedule == "@continuous"
    )
    assert with_key(tmp_path, "follow: false").schedules["a"].schedule is None


def test_naming_follows_the_policy(tmp_path: Path) -> None:
    assert with_key(tmp_path, "replication.policy: identity").flow("a").naming == IdentityNaming("sf")
    dashed = with_key(tmp_path, "replication.policy.separator: '-'").flow("a").naming
    assert dashed.target_topic("orders") == "sf-orders"
    rules = 'replication.policy: rules, replication.policy.rules: [{from: "orders-(.*)", to: "eu.orders-$1"}]'
    assert with_key(tmp_path, rules).flow("a").naming == RuleNaming(
        (NamingRule("orders-(.*)", "eu.orders-$1"),), "sf"
    )


@pytest.mark.parametrize(("number", "kept"), [(-1, None), (1, 1), (3, 3), ("source", "source")])
def test_replication_factor_minus_one_is_the_targets_own(
    tmp_path: Path, number: object, kept: object
) -> None:
    assert with_key(tmp_path, f"replication.factor: {number}").flow("a").replication_factor == kept


def test_words_that_yaml_1_1_would_turn_into_something_else_stay_words(tmp_path: Path) -> None:
    topics = (
        with_key(tmp_path, "topics: [no, on, 0x1f, 1_0, 12:30, 1e3, 2026-01-01, 'true']").flow("a").topics
    )
    assert topics.include == ("no", "on", "0x1f", "1_0", "12:30", "1e3", "2026-01-01", "true")


def test_identity_flows_both_ways_may_share_no_topic(tmp_path: Path) -> None:
    both = """\
  a: {source: sf, target: nyc, replication.policy: identity, topics: [orders, ledger]}
  b: {source: nyc, target: sf, replication.policy: identity, topics: ["payments-.*"]}
"""
    deployment = loaded(tmp_path, LEAST.replace("  a: {source: sf, target: nyc}\n", both))
    assert list(deployment.flows) == ["a", "b"]


def test_prefix_flows_both_ways_are_no_cycle(tmp_path: Path) -> None:
    deployment = loaded(tmp_path, LEAST + "  b: {source: nyc, target: sf}\n")
    assert deployment.flow("b").naming == PrefixNaming("nyc", ".")


@pytest.mark.parametrize(
    "flows",
    [
        "  b: {source: nyc, target: ldn}\n  c: {source: ldn, target: sf}\n",
        "  b: {source: nyc, target: sf, replication.policy: identity, topics: [ledger, 'a\\.b']}\n",
        "  b: {source: nyc, target: ldn, replication.policy: identity}\n  c: {source: ldn, target: nyc, "
        "replication.policy: rules, topics: [x], replication.policy.rules: [{from: x, to: only.$0}]}\n",
    ],
    ids=["prefixes all the way round", "one lists names that don't come back", "a rule leads elsewhere"],
)
def test_circles_that_end_are_accepted(tmp_path: Path, flows: str) -> None:
    three = LEAST.replace("flows:\n", "  ldn: {connection: kafka_ldn}\nflows:\n")
    assert "b" in loaded(tmp_path, three + flows).flows


def test_a_failback_is_no_circle_and_has_the_topics_of_its_flow(tmp_path: Path) -> None:
    both = """\
  a: {source: sf, target: nyc, replication.policy: identity, topics: [orders, "x.*"], topics.exclude: [xy]}
  b: {source: nyc, target: sf, replication.policy: identity, failback_of: a}
"""
    deployment = loaded(tmp_path, LEAST.replace("  a: {source: sf, target: nyc}\n", both))
    there, back = deployment.flow("a"), deployment.flow("b")
    assert (there.failback_of, there.failback, there.opposite) == ("", "b", "b")
    assert (back.failback_of, back.failback, back.opposite) == ("a", "", "a")
    assert back.topics == there.topics


def test_an_unknown_flow_has_a_nearest_name(tmp_path: Path) -> None:
    deployment = loaded(tmp_path, LEAST.replace("  a:", "  sf_to_nyc:"))
    with pytest.raises(
        UnknownName, match=r"flow = sf_to_ny: .*no such flow; did you mean sf_to_nyc\? known: sf_to_nyc"
    ):
        deployment.flow("sf_to_ny")
    with pytest.raises(UnknownName, match=r"flow = zzz: .*; known: sf_to_nyc"):
        deployment.flow("zzz")


@pytest.mark.parametrize(
    ("source", "target", "name"), [("sf", "nyc", "nyc_to_sf"), ("nyc", "sf", "sf_to_nyc")]
)
def test_the_name_of_the_wrong_direction_is_answered_with_the_right_one(
    tmp_path: Path, source: str, target: str, name: str
) -> None:
    file = tmp_path / "flows.yaml"
    file.write_text(
        "clusters: {sf: {connection: kafka_sf}, nyc: {connection: kafka_nyc}}\n"
        f"flows: {{{source}_to_{target}: {{source: {source}, target: {target}, topics: [orders]}}}}\n"
    )
    right = f"{source}_to_{target}"
    with pytest.raises(UnknownName, match=rf"did you mean {right}\? it leads from {source} to {target}"):
        load_flows(file).flow(name)


def test_nobody_can_change_a_deployment(tmp_path: Path) -> None:
    deployment = loaded(tmp_path, LEAST)
    with pytest.raises(dataclasses.FrozenInstanceError):
        deployment.file = "x"  # type: ignore[misc]
    for mapping in (deployment.flows, deployment.schedules, deployment.clusters, deployment.groups):
        with pytest.raises(TypeError):
            mapping["a"] = None  # type: ignore[index]


def test_a_flow_travels_to_an_executor(tmp_path: Path) -> None:
    flow = loaded(tmp_path, LEAST).flow("a")
    flow.topics.matches("orders")
    assert pickle.loads(pickle.dumps(flow)) == flow


def test_reading_flows_yaml_imports_neither_airflow_nor_a_client() -> None:
    """dags/ reads it whenever Airflow parses; what is imported there costs every parse."""
    code = f"""
import sys
from causeway.config.flows_file.load import load_flows
load_flows({str(SHIPPED)!r})
heavy = ("airflow", "kafka", "confluent_kafka", "pyspark", "pendulum", "cramjam", "google_crc32c", "asyncio")
print(sorted(name for name in sys.modules if name in heavy))
"""
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"


def test_clusters_may_differ_by_capital_letters_only(tmp_path: Path) -> None:
    """Kafka tells such names apart, and so does Airflow's database."""
    path = tmp_path / "flows.yaml"
    path.write_text(
        "clusters:\n  dc: {connection: kafka_dc}\n  DC: {connection: KAFKA_DC}\n  x: {connection: kafka_x}\n"
        "flows:\n  a: {source: dc, target: x, topics: [t]}\n  b: {source: DC, target: x, topics: [u]}\n"
    )
    assert list(load_flows(path).clusters) == ["dc", "DC", "x"]
