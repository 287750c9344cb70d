"""What MirrorMaker 2's own integration tests show of topics, settings, filters, naming and restarts.

Each test has the name of theirs (MirrorConnectorsIntegrationBaseTest and its kin, of Kafka 4); `primary` and
`backup` are `sf` and `nyc`. Groups and offsets are other tests' matter.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from causeway.brokers.admin.topics import ClusterAdmin
from causeway.cli.main import main
from causeway.config.flows_file.model import DEFAULT_CONFIG_EXCLUDE
from causeway.core.kernel.errors import CausewayError, FlowFenced
from causeway.core.model.flow import Flow, Start, Upkeep
from causeway.core.model.naming import IdentityNaming, NamingRule, PrefixNaming, RuleNaming
from causeway.core.model.topic_filter import TopicFilter
from causeway.core.topics.heartbeats import Heartbeat, Upstream, encode_heartbeat
from causeway.lab.cluster import LabCluster
from causeway.usecases.run_lock.fence import fence_flow
from causeway.usecases.session.both_clusters import open_target
from causeway.usecases.upkeep.heartbeats import see_upstreams, write_heartbeat
from causeway.usecases.upkeep.sync import Synced, read_drift, sync_flow
from tests.support.inline_flow import (
    create_topic,
    delete_topic,
    everything,
    grow_topic,
    topic_ends,
    write,
)
from tests.support.mirroring import Mirror, make_flow

pytestmark = pytest.mark.integration

TopicName = Callable[..., str]
RECORDS = 20
KEPT_UP = Upkeep(sync_settings=True)
Run = Callable[..., Mirror]


@pytest.fixture
def mirror(sf: LabCluster, nyc: LabCluster, topic_name: TopicName) -> Iterator[Run]:
    """A flow of the test's own, from sf to nyc if nothing else is given; settings are kept up."""
    made: list[Mirror] = []

    def make(*topics: str, source: LabCluster = sf, target: LabCluster = nyc, **changes: Any) -> Mirror:
        wishes = {"upkeep": KEPT_UP, "config_properties_exclude": DEFAULT_CONFIG_EXCLUDE, **changes}
        flow = make_flow(topic_name("flow").replace("-", "_"), *topics, **wishes)
        made.append(Mirror(flow, source, target))
        return made[-1]

    yield make
    for each in made:
        each.close()


def sync(mirror: Mirror, *, dry_run: bool = False) -> Synced:
    return sync_flow(mirror.flow, mirror.source.endpoint(), mirror.target.endpoint(), dry_run=dry_run)


def setting(cluster: LabCluster, topic: str, name: str) -> str | None:
    found = ClusterAdmin(cluster.endpoint()).topic_settings([topic], with_defaults=True)[topic]
    assert not isinstance(found, CausewayError), found
    return next(each.value for each in found if each.name == name)


def alter(cluster: LabCluster, topic: str, **settings: str | None) -> None:
    changes = {name.replace("_", "."): value for name, value in settings.items()}
    assert ClusterAdmin(cluster.endpoint()).alter_settings({topic: changes}) == {}


def ends(cluster: LabCluster, topic: str) -> dict[int, int]:
    """By partition; committed transactions have a marker each, so these aren't counts."""
    return {p: end for (name, p), (_, end) in topic_ends(cluster).items() if name == topic}


def assert_equal(mirror: Mirror, records: int) -> None:
    proof = mirror.verify()
    assert proof.exit_code == 0, list(map(str, proof.unequal))
    assert proof.records_equal == records


def test_replication(sf: LabCluster, nyc: LabCluster, mirror: Run, topic_name: TopicName) -> None:
    """Active/active: records and settings both ways, nothing comes back, topics made later are found."""
    first, later = topic_name("first"), topic_name("later")
    names = f"(.*\\.)?(first|later){first[5:-2]}.*"
    east = mirror(names)
    west = mirror(names, source=nyc, target=sf, naming=PrefixNaming("nyc"))
    west.flow = replace(west.flow, source="nyc", target="sf")
    for cluster in (sf, nyc):
        create_topic(cluster, first, 3, cleanup_policy="compact")
        write(cluster, first, RECORDS)
    for _ in range(2):  # the second time all four topics are there, on both sides
        for each in (east, west):
            each.run()
    assert_equal(east, RECORDS)
    assert_equal(west, RECORDS)
    assert setting(nyc, f"sf.{first}", "cleanup.policy") == "compact"
    assert setting(sf, f"nyc.{first}", "cleanup.policy") == "compact"
    create_topic(sf, later)
    write(sf, later, RECORDS)
    east.run()
    west.run()
    assert_equal(east, 2 * RECORDS)
    mine = {name for cluster in (sf, nyc) for name, _ in topic_ends(cluster) if first[5:-2] in name}
    expected = {first, later, f"sf.{first}", f"nyc.{first}", f"sf.{later}"}
    assert {name for name in mine if "flow" not in name} == expected


def test_create_and_test_new_topic_with_config_filter(
    sf: LabCluster, nyc: LabCluster, mirror: Run, topic_name: TopicName
) -> None:
    topic = topic_name()
    create_topic(sf, topic, delete_retention_ms="1000", retention_bytes="1000")
    east = mirror(topic, config_properties_exclude=(r"delete\.retention\.ms",))
    east.run()
    for _ in range(2):
        assert setting(nyc, f"sf.{topic}", "retention.bytes") == "1000"
        assert setting(nyc, f"sf.{topic}", "delete.retention.ms") != "1000"
        sync(east)


def test_replication_with_empty_partition(sf: LabCluster, mirror: Run, topic_name: TopicName) -> None:
    topic = topic_name()
    create_topic(sf, topic, 3)
    for partition in (0, 1):
        write(sf, topic, RECORDS, partition)
    east = mirror(topic)
    east.run()
    assert_equal(east, 2 * RECORDS)
    assert set(ends(east.target, f"sf.{topic}")) == {0, 1, 2}
    assert ends(east.target, f"sf.{topic}")[2] == 0
    write(sf, topic, RECORDS, 2)
    east.run()
    assert_equal(east, 3 * RECORDS)


def test_one_way_replication(sf: LabCluster, nyc: LabCluster, mirror: Run, topic_name: TopicName) -> None:
    """The part of testOneWayReplicationWithAutoOffsetSync that is about topics."""
    first, second = topic_name("first"), topic_name("second")
    east = mirror(f"{first}|{second}")
    create_topic(sf, first)
    write(sf, first, RECORDS)
    before = everything(sf)
    east.run()
    assert everything(sf) == before, "a flow only reads its source"
    create_topic(sf, second)
    write(sf, second, RECORDS)
    east.run()
    assert_equal(east, 2 * RECORDS)
    assert not [name for name, _ in topic_ends(sf) if name in (f"nyc.{first}", f"sf.{first}")]


def test_restart_replication(sf: LabCluster, mirror: Run, topic_name: TopicName) -> None:
    topic = topic_name()
    create_topic(sf, topic, 2)
    east = mirror(topic)
    for _ in range(3):
        for partition in range(2):
            write(sf, topic, RECORDS, partition)
        assert east.run().records == 2 * RECORDS
    assert_equal(east, 6 * RECORDS)


def test_replicate_from_latest(sf: LabCluster, mirror: Run, topic_name: TopicName) -> None:
    topic = topic_name()
    create_topic(sf, topic)
    write(sf, topic, RECORDS)
    east = mirror(topic, start=Start("latest"))
    assert east.run().records == 0
    write(sf, topic, RECORDS)
    assert east.run().records == RECORDS


def test_partitions_are_added_before_their_data(
    sf: LabCluster, nyc: LabCluster, mirror: Run, topic_name: TopicName
) -> None:
    """testCreatePartitionsUseProvidedForwardingAdmin; all records of a new partition, also with `latest`."""
    topic = topic_name()
    create_topic(sf, topic)
    east = mirror(topic, start=Start("latest"))
    east.run()
    grow_topic(sf, topic, 3)
    for partition in range(3):
        write(sf, topic, RECORDS, partition)
    assert east.run().records == 3 * RECORDS
    assert len(ends(nyc, f"sf.{topic}")) == 3


def test_identity_replication(sf: LabCluster, nyc: LabCluster, mirror: Run, topic_name: TopicName) -> None:
    """IdentityReplicationIntegrationTest: names stay, one way."""
    topic = topic_name()
    create_topic(sf, topic, 2, cleanup_policy="compact")
    write(sf, topic, RECORDS)
    east = mirror(topic, naming=IdentityNaming("sf"))
    east.run()
    assert_equal(east, RECORDS)
    assert setting(nyc, topic, "cleanup.policy") == "compact"
    alter(sf, topic, retention_ms="123456")
    assert [each.setting for each in sync(east).settings] == ["retention.ms"]
    assert setting(nyc, topic, "retention.ms") == "123456"


def test_replication_with_mapping_rules(
    sf: LabCluster, nyc: LabCluster, mirror: Run, topic_name: TopicName
) -> None:
    """What MirrorMaker 2 needs a Java class for; two sources of one name are refused, the others cross."""
    stem = topic_name("orders")
    for name in (f"{stem}-a", f"{stem}-b", f"{stem}_x", f"{stem}_y"):
        create_topic(sf, name)
        write(sf, name, RECORDS)
    rules = (NamingRule(f"{stem}-(.*)", f"eu.{stem}-$1"), NamingRule(f"({stem})_.", "all.$1"))
    east = mirror(f"{stem}.*", naming=RuleNaming(rules, "sf"))
    report = east.run()
    assert report.records == 2 * RECORDS
    assert [each["topic"] for each in report.refused_topics] == [f"{stem}_x", f"{stem}_y"]
    assert_equal(east, 2 * RECORDS)
    assert ends(nyc, f"eu.{stem}-a").keys() == ends(nyc, f"eu.{stem}-b").keys() == {0}
    assert not ends(nyc, f"all.{stem}")


class TestSettings:
    """testSyncTopicConfigs, testReplicateTargetDefault, testReplicateSourceDefault."""

    @pytest.fixture
    def topic(self, sf: LabCluster, topic_name: TopicName) -> str:
        topic = topic_name()
        create_topic(sf, topic, delete_retention_ms="2000", retention_bytes="1000")
        return topic

    def excluding(self, mirror: Run, topic: str, upkeep: Upkeep = KEPT_UP) -> Mirror:
        east = mirror(topic, config_properties_exclude=(r"delete\.retention\.ms",), upkeep=upkeep)
        east.run()
        return east

    def test_sync_topic_configs(self, nyc: LabCluster, mirror: Run, topic: str) -> None:
        """Altered by hand: what is included is put back, what is excluded stays."""
        east, there = self.excluding(mirror, topic), f"sf.{topic}"
        alter(nyc, there, delete_retention_ms="2500", retention_bytes="2000")
        before = everything(nyc)
        drift = read_drift(east.flow, east.source.endpoint(), nyc.endpoint())
        assert [(d.setting, d.source_value, d.target_value, d.change) for d in drift.settings.drifts] == [
            ("delete.retention.ms", "2000", "2500", "leave"),
            ("retention.bytes", "1000", "2000", "set"),
        ]
        assert sync(east, dry_run=True).settings == drift.settings.changes
        assert setting(nyc, there, "retention.bytes") == "2000", "neither drift nor a dry run writes"
        assert everything(nyc) == before
        sync(east)
        assert setting(nyc, there, "retention.bytes") == "1000"
        assert setting(nyc, there, "delete.retention.ms") == "2500"
        assert sync(east).settings == (), "nothing is left to do"

    def test_replicate_target_default(self, sf: LabCluster, nyc: LabCluster, mirror: Run, topic: str) -> None:
        east, there = self.excluding(mirror, topic), f"sf.{topic}"
        alter(sf, topic, retention_bytes=None)
        alter(nyc, there, delete_retention_ms="2500")
        (change,) = sync(east).settings
        assert (change.setting, change.change) == ("retention.bytes", "delete")
        assert setting(nyc, there, "retention.bytes") == "-1"
        assert setting(nyc, there, "delete.retention.ms") == "2500"

    def test_replicate_source_default(self, nyc: LabCluster, mirror: Run, topic: str) -> None:
        east = self.excluding(mirror, topic, Upkeep(sync_settings=True, use_defaults_from="source"))
        there = f"sf.{topic}"
        alter(nyc, there, segment_ms="100000", delete_retention_ms="2500")
        (change,) = sync(east).settings
        assert (change.setting, change.change) == ("segment.ms", "set")
        assert setting(nyc, there, "segment.ms") == "604800000"
        assert setting(nyc, there, "delete.retention.ms") == "2500"

    def test_what_the_flow_has_not_begun_with_is_not_touched(
        self, sf: LabCluster, nyc: LabCluster, mirror: Run, topic: str
    ) -> None:
        """Somebody's topic of the same name, under identity naming."""
        create_topic(nyc, topic, retention_bytes="5000")
        east = mirror(topic, naming=IdentityNaming("sf"))
        found = sync(east)
        assert found.settings == ()
        assert {each.why for each in found.drift.settings.drifts} == {"the flow hasn't begun with this topic"}
        assert setting(nyc, topic, "retention.bytes") == "5000"

    def test_a_source_that_was_recreated_says_nothing_of_its_mirror(
        self, sf: LabCluster, nyc: LabCluster, mirror: Run, topic: str
    ) -> None:
        """Under its name is another topic now: its settings would delete records that are nowhere else."""
        east = self.excluding(mirror, topic)
        delete_topic(sf, topic)
        create_topic(sf, topic, retention_bytes="1", retention_ms="1")
        for found in (read_drift(east.flow, sf.endpoint(), nyc.endpoint()), sync(east).drift):
            whys = {each.setting: (each.change, each.why) for each in found.settings.drifts}
            assert whys["retention.ms"] == ("leave", f"{topic} was recreated since the flow began with it")
            assert not found.would_change
        assert setting(nyc, f"sf.{topic}", "retention.bytes") == "1000"

    def test_a_mirror_that_was_recreated_is_somebodys(self, nyc: LabCluster, mirror: Run, topic: str) -> None:
        east = self.excluding(mirror, topic)
        delete_topic(nyc, f"sf.{topic}")
        create_topic(nyc, f"sf.{topic}", retention_bytes="5000")
        found = sync(east)
        assert found.settings == ()
        assert "it was recreated since the flow began with it" in {e.why for e in found.drift.settings.drifts}
        assert setting(nyc, f"sf.{topic}", "retention.bytes") == "5000"

    def test_one_value_that_the_target_refuses_holds_no_other_one_back(
        self, sf: LabCluster, nyc: LabCluster, mirror: Run, topic: str
    ) -> None:
        """Here for a limit that somebody set on the mirror, and that flows.yaml leaves alone."""
        east = mirror(topic, config_properties_exclude=(r"max\.compaction\.lag\.ms",))
        east.run()
        alter(nyc, f"sf.{topic}", max_compaction_lag_ms="1000")
        alter(sf, topic, min_compaction_lag_ms="5000", retention_bytes="3000", segment_ms="70000")
        for dry_run in (True, False):
            done = sync(east, dry_run=dry_run)
            assert {each.setting for each in done.settings} == {"retention.bytes", "segment.ms"}
            (refused,) = done.refused
            assert f"sf.{topic}" in str(refused)
            assert "min.compaction.lag.ms" in str(refused)
        assert setting(nyc, f"sf.{topic}", "retention.bytes") == "3000"
        assert setting(nyc, f"sf.{topic}", "min.compaction.lag.ms") == "0"
        (left,) = sync(east).drift.settings.changes
        assert left.setting == "min.compaction.lag.ms"

    def test_switched_off_it_is_reported_and_left(self, nyc: LabCluster, mirror: Run, topic: str) -> None:
        east = self.excluding(mirror, topic, Upkeep())
        alter(nyc, f"sf.{topic}", retention_bytes="2000")
        assert sync(east).settings == ()
        assert setting(nyc, f"sf.{topic}", "retention.bytes") == "2000"

    def test_a_fenced_flow_changes_nothing(self, nyc: LabCluster, mirror: Run, topic: str) -> None:
        """After a failover the mirror is its users' topic."""
        east = self.excluding(mirror, topic)
        alter(nyc, f"sf.{topic}", retention_bytes="2000")
        fence_flow(east.flow, nyc.endpoint(), by="test", because="failed over")
        with pytest.raises(FlowFenced):
            sync(east)
        assert read_drift(east.flow, east.source.endpoint(), nyc.endpoint()).would_change
        assert setting(nyc, f"sf.{topic}", "retention.bytes") == "2000"


def test_the_verbs_tell_and_do_it(
    sf: LabCluster,
    nyc: LabCluster,
    mirror: Run,
    topic_name: TopicName,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    topic = topic_name()
    create_topic(sf, topic, retention_bytes="1000")
    east = mirror(topic)
    east.run()
    alter(nyc, f"sf.{topic}", retention_bytes="2000")
    for alias, cluster in (("sf", sf), ("nyc", nyc)):
        extra = {"conn_type": "kafka", "extra": dict(cluster.endpoint().settings)}
        monkeypatch.setenv(f"AIRFLOW_CONN_KAFKA_{alias.upper()}", json.dumps(extra))
    name, file = east.flow.name, tmp_path / "flows.yaml"
    file.write_text(
        "clusters:\n  sf: {connection: kafka_sf}\n  nyc: {connection: kafka_nyc}\nflows:\n"
        f"  {name}: {{source: sf, target: nyc, topics: [{topic}]}}\n"
    )

    def causeway(*arguments: str) -> tuple[int, Any]:
        code = main([*arguments, "--file", str(file), "--json"])
        return code, json.loads(capsys.readouterr().out or "null")

    code, told = causeway("drift", name)
    assert (code, told["would_change"], told["acls"]) == (1, True, None)
    assert [(each["setting"], each["change"]) for each in told["settings"]] == [("retention.bytes", "set")]
    assert causeway("sync", name, "--dry-run")[0] == 0
    assert setting(nyc, f"sf.{topic}", "retention.bytes") == "2000"
    code, told = causeway("sync", name)
    assert (code, [each["setting"] for each in told["settings"]]) == (0, ["retention.bytes"])
    assert setting(nyc, f"sf.{topic}", "retention.bytes") == "1000"
    code, told = causeway("drift", name)
    assert (code, told["settings"]) == (0, [])
    assert causeway("upstreams", "nyc")[1]["cluster"] == "nyc"
    assert causeway("upstreams", "nowhere")[0] == 2
    assert causeway("heartbeat", name)[0] == 2, "flows.yaml doesn't ask for heartbeats"


def test_heartbeats_travel_through_any_number_of_clusters(
    sf: LabCluster, nyc: LabCluster, nyc_v1: LabCluster, mirror: Run, topic_name: TopicName
) -> None:
    """MirrorClient's replicationHops and upstreamClusters, on a circle of three; nothing goes round."""
    token = topic_name("x").split("-")[1]
    a, b, c = f"a{token}", f"b{token}", f"c{token}"
    clusters = {a: sf, b: nyc, c: nyc_v1}
    circle: list[Flow] = []
    written: dict[str, int] = {}
    for here, there in ((a, b), (b, c), (c, a)):
        east = mirror(source=clusters[here], target=clusters[there], naming=PrefixNaming(here))
        east.flow = replace(
            east.flow,
            source=here,
            target=there,
            topics=TopicFilter(()),
            upkeep=Upkeep(emit_heartbeats=True, mirror_heartbeats=True),
        )
        circle.append(east.flow)
        written[here] = write_heartbeat(east.flow, clusters[here].endpoint()).at_ms
    for _ in range(2):
        for each in (run for run in mirrors_of(circle, clusters)):
            each.run()
            each.close()
    seen = {each.upstream for each in see_upstreams(sf.endpoint(), ["."]) if token in each.upstream.topic}
    assert seen == {Upstream(c, 1, f"{c}.heartbeats"), Upstream(b, 2, f"{c}.{b}.heartbeats")}
    told = {each.upstream.alias: each.last_ms for each in see_upstreams(nyc.endpoint(), ["."])}
    assert {alias: told[alias] for alias in (a, c)} == {alias: written[alias] for alias in (a, c)}, (
        "the heartbeat's own time, not that of the mirror's markers"
    )
    assert not [name for name, _ in topic_ends(sf) if name.startswith(f"{c}.{b}.{a}.")]


def test_upstreams_passes_over_what_is_no_heartbeat(nyc: LabCluster, topic_name: TopicName) -> None:
    """What others write to such topics, and topics that are called so; a clock that was set back."""
    alias, other = topic_name("a"), topic_name("billing")
    for topic in (f"{alias}.heartbeats", f"{other}.heartbeats"):
        create_topic(nyc, topic, cleanup_policy="compact")

    def heartbeat(source: str, at_ms: int) -> tuple[bytes, bytes]:
        return encode_heartbeat(Heartbeat(source, "nyc", at_ms))

    key, value = heartbeat(alias, 9)
    foreign = [
        (b"k", b'{"alive": true}'),
        (key, value[:-1]),
        (key, b"\0\1" + value[2:]),
        (key, b"\0\0" + b"\x7f" * 8),
    ]
    ours = [heartbeat(alias, 4_000_000_000_000), heartbeat("elsewhere", 1_000), heartbeat(alias, 2_000)]
    with open_target(nyc.endpoint()) as (network, target):
        network.run(lambda: target.append_many(f"{alias}.heartbeats", [*foreign, *ours, *foreign]))
        network.run(lambda: target.append_many(f"{other}.heartbeats", foreign))
    seen = {each.upstream.alias: each for each in see_upstreams(nyc.endpoint(), ["."])}
    assert seen[alias].last_ms == 2_000, "the last one that was written, whatever clock it was"
    assert seen[other].last_ms is None


def mirrors_of(circle: list[Flow], clusters: dict[str, LabCluster]) -> list[Mirror]:
    return [Mirror(flow, clusters[flow.source], clusters[flow.target]) for flow in circle]
