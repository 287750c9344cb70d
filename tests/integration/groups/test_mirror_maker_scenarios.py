"""MirrorMaker 2's own scenarios on translation, checkpoints and group sync, under its names.

What its tests allow (repeats below `offset.lag.max`, places that are only lower bounds) isn't allowed here.
"""

from __future__ import annotations

import dataclasses
import json
import random
import re
from pathlib import Path

import pytest
from confluent_kafka import Producer

from causeway.cli.main import main
from causeway.core.groups.sync_rules import Outcome
from causeway.core.kernel.errors import ClusterUnreachable
from causeway.core.kernel.identity import SourceOffset, TargetOffset, TopicPartition
from causeway.core.model.naming import IdentityNaming, PrefixNaming
from causeway.core.records.mm2_formats import Checkpoint, encode_checkpoint
from causeway.lab.clients import admin_client
from causeway.lab.cluster import LabCluster
from causeway.usecases.groups.sync import sync_groups, work_alone
from tests.integration.groups.conftest import MakeStage
from tests.integration.groups.jvm import GroupProbe
from tests.integration.groups.stage import (
    GroupStage,
    Record,
    all_values,
    commit,
    consume,
    make_topic,
    outcomes,
    row_of,
    write,
    write_in_transactions,
)

pytestmark = pytest.mark.integration
PARTITIONS, RECORDS = 10, 100


def begun(scene: GroupStage) -> GroupStage:
    """10 partitions with 10 records each, mirrored: how MirrorMaker 2's suite begins."""
    write(scene.source, scene.topic, range(RECORDS), scene.partitions)
    scene.mirror.run()
    return scene


def read_on_source(scene: GroupStage, group: str, count: int = -1) -> list[Record]:
    return consume(scene.source, scene.topic, group, count, reset="earliest")


def read_on_target(scene: GroupStage, group: str) -> list[Record]:
    return consume(scene.target, scene.mirrored, group, -1, reset="earliest")


def topics(cluster: LabCluster) -> set[str]:
    return set(admin_client(cluster.endpoint()).list_topics(timeout=20).topics)


def numbers(records: list[Record]) -> list[int]:
    return sorted(int(value) for _, _, value in records)


def test_replication(stage: MakeStage, java: GroupProbe) -> None:
    """Checkpoints of all partitions, a failover that repeats and misses nothing, places that only rise."""
    scene = begun(stage(partitions=PARTITIONS))
    group = scene.group()
    read_on_source(scene, group)
    scene.sync()
    first = java.translated(scene.target, "sf", group)
    assert set(first) == {(scene.mirrored, p) for p in range(PARTITIONS)}
    write(scene.source, scene.topic, range(RECORDS, 2 * RECORDS), PARTITIONS)
    scene.mirror.run()
    read_on_source(scene, group, 30)
    scene.sync()
    then = java.translated(scene.target, "sf", group)
    assert all(then[place] >= first[place] for place in first)
    assert len(read_on_target(scene, group)) == 70


def test_replication_with_empty_partition(stage: MakeStage, java: GroupProbe) -> None:
    scene = stage(partitions=2)
    write(scene.source, scene.topic, range(0, 20, 2), 2)
    scene.mirror.run()
    scene.commit(scene.group(), {0: 10, 1: 0})
    scene.sync()
    assert scene.there(scene.group()) == {0: 10, 1: 0}
    assert java.translated(scene.target, "sf", scene.group()) == {
        (scene.mirrored, 0): 10,
        (scene.mirrored, 1): 0,
    }


def test_one_way_replication_with_auto_offset_sync(stage: MakeStage) -> None:
    """MirrorMaker 2's bound is fewer repeats than `offset.lag.max`; ours is none."""
    scene = begun(stage(partitions=PARTITIONS))
    group = scene.group()
    read_on_source(scene, group)
    scene.sync()
    assert read_on_target(scene, group) == []
    write(scene.source, scene.topic, range(RECORDS, RECORDS + 50), PARTITIONS)
    scene.mirror.run()
    assert numbers(read_on_target(scene, group)) == list(range(RECORDS, RECORDS + 50))
    assert f"nyc.{scene.topic}" not in topics(scene.source), "nothing went back"


def test_one_way_replication_with_frequent_offset_syncs(stage: MakeStage) -> None:
    """`offset.lag.max = 0`, with a sync after each small share: no redelivery."""
    scene = stage(partitions=2)
    group, seen = scene.group(), list[int]()
    for first in range(0, 60, 20):
        write(scene.source, scene.topic, range(first, first + 20), 2)
        scene.mirror.run()
        seen += numbers(read_on_source(scene, group, 13))
        scene.sync()
    rest = numbers(read_on_target(scene, group))
    assert sorted(seen + rest) == list(range(60))


def test_replication_without_offset_sync_will_not_create_offset_syncs_topic(stage: MakeStage) -> None:
    """Data flows, checkpoints too; `mm2-offset-syncs` isn't made. Under an alias of the test's own."""
    scene = stage(partitions=1)
    alias = scene.stem.replace("-", "_")
    scene.mirror.flow = dataclasses.replace(scene.mirror.flow, source=alias)
    begun(scene)
    scene.commit(scene.group(), {0: 5})
    report = scene.sync(emit_offset_syncs=False)
    assert report.result.checkpoints == 1
    assert f"{alias}.checkpoints.internal" in topics(scene.target)
    assert f"mm2-offset-syncs.{alias}.internal" not in topics(scene.target)
    scene.sync()
    assert f"mm2-offset-syncs.{alias}.internal" in topics(scene.target)


def test_offset_syncs_topics_on_target(stage: MakeStage) -> None:
    scene = stage(partitions=1)
    alias = scene.stem.replace("-", "_")
    scene.mirror.flow = dataclasses.replace(scene.mirror.flow, source=alias)
    begun(scene)
    scene.commit(scene.group(), {0: 5})
    before = topics(scene.source)
    report = scene.sync()
    assert (report.result.offset_syncs, report.result.checkpoints) == (1, 1)
    assert f"mm2-offset-syncs.{alias}.internal" in topics(scene.target)
    assert topics(scene.source) == before


def test_fire_pending_offset_syncs(stage: MakeStage) -> None:
    """All that there is to say goes out in one run, however many are waiting."""
    scene = begun(stage(partitions=PARTITIONS))
    assert scene.sync().result.offset_syncs == PARTITIONS


def test_promote_delayed_offset_syncs(stage: MakeStage) -> None:
    """One record on, far less than `offset.lag.max`: the next run says it."""
    scene = begun(stage(partitions=2))
    scene.sync()
    write(scene.source, scene.topic, [RECORDS], 2)
    scene.mirror.run()
    assert [scene.sync().result.offset_syncs for _ in range(2)] == [1, 0]


def test_no_checkpoints_if_no_records_are_mirrored(stage: MakeStage, java: GroupProbe) -> None:
    scene = stage(partitions=1)
    group = scene.group()
    write(scene.source, scene.topic, range(10), 1)
    scene.commit(group, {0: 5})
    report = scene.sync()
    assert outcomes(report, group) == {Outcome.NEVER: 1}
    assert java.translated(scene.target, "sf", group) == {}
    scene.mirror.run()
    scene.sync()
    assert java.translated(scene.target, "sf", group) == {(scene.mirrored, 0): 5}


def test_restart_replication(stage: MakeStage) -> None:
    """Each of our runs is a new process' worth: nothing is remembered but what the clusters hold."""
    scene = begun(stage(partitions=2))
    group, before = scene.group(), {0: 0, 1: 0}
    for again in range(3):
        first = RECORDS * (again + 1)
        write(scene.source, scene.topic, range(first, first + RECORDS), 2)
        scene.mirror.run()
        read_on_source(scene, group, 70)
        scene.sync()
        now = scene.there(group)
        assert all(now.get(p, 0) >= before.get(p, 0) for p in before)
        before = now
    assert len(read_on_target(scene, group)) == 4 * RECORDS - 3 * 70


def test_offset_translation_behind_replication_flow(stage: MakeStage, java: GroupProbe) -> None:
    """10,000 records, the group at 90 %, then back at 10 %: the checkpoint advances, then rewinds."""
    scene = stage(partitions=1)
    group, place = scene.group(), (scene.mirrored, 0)
    write(scene.source, scene.topic, range(10_000), 1)
    scene.mirror.run()
    offsets = {int(value): offset for _, offset, value in all_values(scene.target, scene.mirrored)}
    scene.commit(group, {0: 9_000})
    scene.sync()
    assert java.translated(scene.target, "sf", group) == {place: offsets[9_000]}
    scene.commit(group, {0: 1_000})
    report = scene.sync()
    assert java.translated(scene.target, "sf", group) == {place: offsets[1_000]}
    assert row_of(report, group).outcome is Outcome.WENT_BACK, "the group's offset only if the flow says so"
    assert scene.there(group) == {0: offsets[9_000]}
    scene.sync(follow_rewinds=True)
    assert scene.there(group) == {0: offsets[1_000]}


def test_identity_replication(stage: MakeStage) -> None:
    scene = stage(partitions=2)
    scene.mirror.flow = dataclasses.replace(scene.mirror.flow, naming=IdentityNaming())
    begun(scene)
    group = scene.group()
    first = read_on_source(scene, group, 33)
    scene.sync()
    assert numbers([*first, *read_on_target(scene, group)]) == list(range(RECORDS))


def test_replication_with_transactional_source(stage: MakeStage) -> None:
    scene = stage(partitions=2)
    write_in_transactions(scene.source, scene.topic, range(200), 2, random.Random(4))
    scene.mirror.run()
    group = scene.group()
    first = read_on_source(scene, group, 111)
    scene.sync()
    assert numbers([*first, *read_on_target(scene, group)]) == list(range(200))


def test_downstream_topic_renaming(stage: MakeStage, java: GroupProbe) -> None:
    """A checkpoint names the topic as the target calls it."""
    scene = begun(stage(partitions=1))
    scene.commit(scene.group(), {0: 1})
    scene.sync()
    assert set(java.translated(scene.target, "sf", scene.group())) == {(f"sf.{scene.topic}", 0)}


def test_sync_offset(stage: MakeStage) -> None:
    """Forward only: what lies further on the target stays."""
    scene = begun(stage(partitions=2))
    group = scene.group()
    scene.commit(group, {0: 10, 1: 10})
    scene.sync()
    scene.commit(group, {0: 20, 1: 5})
    scene.sync()
    assert scene.there(group) == {0: 20, 1: 10}


def test_sync_offset_for_target_group_with_null_offset_and_metadata(stage: MakeStage) -> None:
    """Sarama leaves partitions without an offset: they get theirs."""
    scene = begun(stage(partitions=2))
    group = scene.group()
    commit(scene.target, group, {(scene.mirrored, 0): 50})
    scene.commit(group, {0: 7, 1: 8})
    scene.sync()
    assert scene.there(group) == {0: 50, 1: 8}


def test_no_checkpoint_for_topic_without_offset_syncs(stage: MakeStage) -> None:
    scene = begun(stage(partitions=1))
    other = f"{scene.topic}-other"
    make_topic(scene.source, other)
    commit(scene.source, scene.group(), {(other, 0): 0, (scene.topic, 0): 3})
    report = scene.sync()
    assert outcomes(report, scene.group()) == {Outcome.SYNCED: 1, Outcome.NOT_IN_FLOW: 1}
    assert report.result.checkpoints == 1


def test_no_checkpoint_for_topic_with_null_offset_and_metadata(stage: MakeStage, java: GroupProbe) -> None:
    """A group that has read one partition only has nothing to say of the other one."""
    scene = begun(stage(partitions=2))
    scene.commit(scene.group(), {1: 4})
    assert scene.sync().outcomes == {Outcome.SYNCED: 1}
    assert java.translated(scene.target, "sf", scene.group()) == {(scene.mirrored, 1): 4}


def test_checkpoints_of_a_share_hold_no_null_offset_either(stage: MakeStage) -> None:
    """Shares ask for their partitions by name, and brokers answer -1 for those without an offset."""
    scene = begun(stage(partitions=4))
    scene.commit(scene.group(), {1: 4})
    ends = scene.source.endpoint(), scene.target.endpoint()
    report = sync_groups(
        scene.mirror.flow,
        scene.wanted(),
        *ends,
        scene.said.append,
        writes=True,
        carry=lambda shares: [work_alone(share, *ends) for share in shares],
    )
    assert (report.outcomes, report.result.checkpoints) == ({Outcome.SYNCED: 1}, 1)


def test_checkpoints_task_restart_uses_existing_checkpoints(stage: MakeStage) -> None:
    scene = begun(stage(partitions=2))
    scene.commit(scene.group(), {0: 4, 1: 5})
    assert scene.sync().result.checkpoints == 2
    assert scene.sync().result.checkpoints == 0
    scene.commit(scene.group(), {0: 6})
    assert scene.sync().result.checkpoints == 1


def test_no_consumer_group(stage: MakeStage) -> None:
    report = begun(stage(partitions=1)).sync()
    assert (report.groups, report.result.checkpoints) == ((), 0)


def test_find_consumer_groups_in_common_scenarios(stage: MakeStage) -> None:
    """Only groups with an offset on a topic of the flow count, by both filters together."""
    scene = begun(stage(partitions=1))
    other = f"{scene.topic}-other"
    make_topic(scene.source, other)
    commit(scene.source, scene.group("both"), {(other, 0): 0, (scene.topic, 0): 3})
    commit(scene.source, scene.group("other"), {(other, 0): 0})
    commit(scene.source, scene.group("left.out"), {(scene.topic, 0): 3})
    report = scene.sync(exclude=(r".*\.left\.out",))
    assert report.groups == (scene.group("both"), scene.group("other"))
    assert scene.group("left.out") in report.excluded
    assert outcomes(report, scene.group("both"))[Outcome.SYNCED] == 1
    assert outcomes(report, scene.group("other")) == {Outcome.NOT_IN_FLOW: 1}


@pytest.mark.parametrize(("source_offset", "expected"), [(99, 99), (100, 100), (101, 101), (5, 5)])
def test_offset_translation(stage: MakeStage, source_offset: int, expected: int) -> None:
    """Exact at a sync, right after it and far before it, where MirrorMaker 2 has +1, -1 or nothing."""
    scene = begun(stage(partitions=1))
    write(scene.source, scene.topic, range(RECORDS, RECORDS + 1), 1)
    scene.mirror.run()
    scene.commit(scene.group(), {0: source_offset})
    scene.sync()
    there = {int(value): offset for _, offset, value in all_values(scene.target, scene.mirrored)}
    exact = there.get(expected, max(there.values()) + 1)
    assert scene.there(scene.group()) == {0: exact}


def test_checkpoint_store_initialized(stage: MakeStage) -> None:
    """Until what was written before is known nothing is written: a topic that isn't there yet is read as
    empty."""
    scene = stage(partitions=1)
    alias = scene.stem.replace("-", "_")
    scene.mirror.flow = dataclasses.replace(scene.mirror.flow, source=alias)
    begun(scene)
    scene.commit(scene.group(), {0: 5})
    assert scene.sync(writes=False).result.checkpoints == 0
    assert f"{alias}.checkpoints.internal" not in topics(scene.target), "a look makes nothing"
    assert [scene.sync().result.checkpoints for _ in range(2)] == [1, 0]


def test_read_checkpoints_topic(stage: MakeStage) -> None:
    """Each place's last word counts; what others wrote there, or wrote badly, is skipped."""
    scene = begun(stage(partitions=2))
    scene.commit(scene.group(), {0: 4, 1: 5})
    scene.sync()
    (key, _), topic = encode_checkpoint(_said(scene, 0, 4, 4)), scene.mirror.flow.checkpoints_topic
    producer, refused = Producer(scene.target.endpoint().settings), list[object]()
    bad = [(key, b""), (key, b"\x00\x01" + bytes(18)), (key, b"\x00\x00"), (b"no key", b"no checkpoint")]
    for each, value in bad:
        producer.produce(topic, value, each, on_delivery=lambda error, _: refused.append(error))
    assert producer.flush(30) == 0
    assert refused == [None] * len(bad), "they are there"
    assert scene.sync().result.checkpoints == 0, "what was said before is still known"
    key, value = encode_checkpoint(_said(scene, 1, 5, 3))
    producer.produce(topic, value, key)
    assert producer.flush(30) == 0
    assert scene.sync().result.checkpoints == 1, "somebody said something else"


def _said(scene: GroupStage, partition: int, source_next: int, target_next: int) -> Checkpoint:
    return Checkpoint(
        group=scene.group(),
        target=TopicPartition(scene.mirrored, partition),
        source_next=SourceOffset(source_next),
        target_next=TargetOffset(target_next),
    )


def test_consumer_group_initialize_timeout(stage: MakeStage) -> None:
    """Groups that can't be listed aren't no groups; the next try does all of it."""
    scene = begun(stage(partitions=1))
    scene.commit(scene.group(), {0: 5})
    away = dataclasses.replace(scene.source.endpoint(), settings={"bootstrap.servers": "127.0.0.1:1"})
    with pytest.raises(ClusterUnreachable):
        sync_groups(
            scene.mirror.flow, scene.wanted(), away, scene.target.endpoint(), scene.said.append, writes=True
        )
    assert scene.there(scene.group()) == {}
    assert scene.sync().outcomes == {Outcome.SYNCED: 1}


def test_cluster_with_emit_offset_disabled(
    stage: MakeStage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """DedicatedMirrorIntegrationTest: by flows.yaml and the command line, as an operator has it."""
    scene = stage(partitions=1)
    alias = scene.stem.replace("-", "_")
    scene.mirror.flow = dataclasses.replace(scene.mirror.flow, source=alias, naming=PrefixNaming(alias))
    begun(scene)
    scene.commit(scene.group(), {0: 5})
    for name, cluster in (("SF", scene.source), ("NYC", scene.target)):
        monkeypatch.setenv(f"AIRFLOW_CONN_KAFKA_{name}", cluster.connection_json())
    file = tmp_path / "flows.yaml"
    file.write_text(
        f"clusters:\n  {alias}: {{connection: kafka_sf}}\n  nyc: {{connection: kafka_nyc}}\nflows:\n"
        f"  {scene.mirror.flow.name}:\n    source: {alias}\n    target: nyc\n    topics: [{scene.topic}]\n"
        f"    groups: [{scene.group()}]\n    sync.group.offsets.enabled: true\n"
        "    emit.offset-syncs.enabled: false\n"
    )

    def causeway(*arguments: str) -> str:
        assert main(["groups", scene.mirror.flow.name, *arguments, "--file", str(file)]) == 0
        return capsys.readouterr().out

    assert "looked only" in causeway()
    told = json.loads(causeway("--sync", "--json"))
    assert (told["checkpoints"], told["offset_syncs"], told["commits"]) == (1, 0, 1)
    (place,) = told["partitions"]
    assert (place["group"], place["outcome"], place["target_offset"]) == (scene.group(), "synced", 5)
    shown = causeway("--group", scene.group())
    assert re.search(rf"{scene.topic}-0 +5 +{alias}.{scene.topic}-0 +5 +5 +synced", shown), shown
    assert f"mm2-offset-syncs.{alias}.internal" not in topics(scene.target)
