"""Checkpoints and group offsets between real brokers, read back by Kafka's own Java classes."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from causeway.brokers.transport.connection import Network, Wire
from causeway.brokers.wire.consumer_groups import ConsumerGroups
from causeway.brokers.wire.mm2_topics import last_offset_syncs
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.groups.sync_rules import Outcome
from causeway.core.kernel.errors import FlowFenced
from causeway.core.kernel.identity import TopicPartition
from causeway.core.model.naming import IdentityNaming
from causeway.lab.clients import admin_client
from causeway.lab.cluster import LabCluster
from causeway.usecases.groups.sync import sync_groups
from causeway.usecases.run_lock.fence import fence_flow, lift_fence
from tests.integration.groups.conftest import MakeStage
from tests.integration.groups.jvm import GroupProbe
from tests.integration.groups.stage import (
    GroupStage,
    all_values,
    commit,
    committed,
    consume,
    outcomes,
    row_of,
    words_of,
    write,
    write_in_transactions,
)
from tests.support.committed import committed_places

pytestmark = pytest.mark.integration


class Exact:
    """By the records themselves: where the first one at or after a source offset lies on the target."""

    def __init__(self, stage: GroupStage) -> None:
        self._here = all_values(stage.source, stage.topic)
        self._there = {(p, v): o for p, o, v in all_values(stage.target, stage.mirrored)}

    def end(self, partition: int) -> int:
        return max(o for p, o, _ in self._here if p == partition) + 1

    def place(self, partition: int, source_offset: int) -> int:
        behind = [v for p, o, v in self._here if p == partition and o >= source_offset]
        if behind:
            return self._there[partition, behind[0]]
        return max(o for (p, _), o in self._there.items() if p == partition) + 1


def test_java_reads_the_exact_place_of_every_group(stage: MakeStage, java: GroupProbe) -> None:
    """Also of groups with much lag, over markers and aborted records."""
    dice = random.Random(6)
    scene = stage(partitions=2)
    write_in_transactions(scene.source, scene.topic, range(400), 2, dice)
    scene.mirror.run()
    write_in_transactions(scene.source, scene.topic, range(400, 700), 2, dice)
    scene.mirror.run()
    exactly = Exact(scene)
    ends = {p: exactly.end(p) for p in (0, 1)}
    places = {scene.group(str(n)): {p: dice.randrange(ends[p] + 1) for p in (0, 1)} for n in range(12)}
    places[scene.group("end")] = ends
    places[scene.group("begin")] = {0: 0, 1: 0}
    for group, offsets in places.items():
        scene.commit(group, offsets)
    report = scene.sync()
    assert report.outcomes[Outcome.SYNCED] == 2 * len(places)
    for group, offsets in places.items():
        exact = {(scene.mirrored, p): exactly.place(p, offset) for p, offset in offsets.items()}
        assert committed(scene.target, group) == exact
    for group in list(places)[::5]:
        exact = {(scene.mirrored, p): exactly.place(p, offset) for p, offset in places[group].items()}
        assert java.translated(scene.target, "sf", group) == exact
    assert "sf.checkpoints.internal" in java.checkpoint_topics(scene.target)


def test_nothing_is_written_twice(stage: MakeStage) -> None:
    scene = stage()
    write(scene.source, scene.topic, range(100), 2)
    scene.mirror.run()
    scene.commit(scene.group(), {0: 10, 1: 20})
    first, second = scene.sync(), scene.sync()
    assert (first.result.checkpoints, first.result.commits, first.result.offset_syncs) == (2, 2, 2)
    assert (second.result.checkpoints, second.result.commits, second.result.offset_syncs) == (0, 0, 0)
    assert second.outcomes == first.outcomes == {Outcome.SYNCED: 2}


def test_a_look_writes_nothing(stage: MakeStage) -> None:
    scene = stage()
    write(scene.source, scene.topic, range(20), 2)
    scene.mirror.run()
    scene.commit(scene.group(), {0: 5})
    report = scene.sync(writes=False)
    assert row_of(report, scene.group()).target_next == 5
    assert (report.result.checkpoints, report.result.commits) == (0, 0)
    assert committed(scene.target, scene.group()) == {}


def test_a_group_that_has_moved_on_is_never_pulled_back(stage: MakeStage) -> None:
    """A failover: the group reads on the target, its commits on the source stay where they were."""
    scene = stage(partitions=1)
    group = scene.group()
    write(scene.source, scene.topic, range(50), 1)
    scene.mirror.run()
    consume(scene.source, scene.topic, group, 20, reset="earliest")
    scene.sync()
    consume(scene.target, scene.mirrored, group, 10, reset="error")
    before = scene.there(group)
    for source_offset in (5, 20, 30, 45):
        scene.commit(group, {0: source_offset})
        report = scene.sync(follow_rewinds=True)
        assert row_of(report, group).outcome is Outcome.MOVED_ON
        assert scene.there(group) == before == {0: 30}


def test_who_commits_our_words_beside_a_place_of_its_own_has_moved_on(stage: MakeStage) -> None:
    """Clients hand out metadata with an offset, and commit it again with the next one."""
    scene = stage(partitions=1)
    group = scene.group()
    write(scene.source, scene.topic, range(50), 1)
    scene.mirror.run()
    scene.commit(group, {0: 10})
    scene.sync()
    words = words_of(scene.target, group, (scene.mirrored, 0))
    assert words
    commit(scene.target, group, {(scene.mirrored, 0): 25}, words)
    for source_offset in (20, 40):
        scene.commit(group, {0: source_offset})
        assert row_of(scene.sync(), group).outcome is Outcome.MOVED_ON
        assert scene.there(group) == {0: 25}


def test_a_group_at_work_on_the_target_is_left_alone(stage: MakeStage) -> None:
    from confluent_kafka import Consumer

    scene = stage(partitions=1)
    group = scene.group()
    write(scene.source, scene.topic, range(50), 1)
    scene.mirror.run()
    scene.commit(group, {0: 20})
    consumer = Consumer({**scene.target.endpoint().settings, "group.id": group, "enable.auto.commit": False})
    consumer.subscribe([scene.mirrored])
    try:
        while not consumer.assignment():
            consumer.poll(0.1)
        report = scene.sync()
    finally:
        consumer.close()
    assert row_of(report, group).outcome is Outcome.ACTIVE
    assert committed(scene.target, group) == {}
    assert report.result.checkpoints == 1, "its checkpoint goes on"


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_consumer_that_begins_between_our_look_and_our_commit_keeps_its_place(
    stage: MakeStage, monkeypatch: pytest.MonkeyPatch, protocol: str
) -> None:
    from confluent_kafka import Consumer

    scene = stage(partitions=1)
    group = scene.group()
    write(scene.source, scene.topic, range(50), 1)
    scene.mirror.run()
    scene.commit(group, {0: 20})
    settings = {"group.id": group, "group.protocol": protocol, "enable.auto.commit": False}
    consumer = Consumer({**scene.target.endpoint().settings, **settings})
    ask = ConsumerGroups.commit

    async def too_late(groups: ConsumerGroups, wanted: Any, proof: Any) -> Any:
        consumer.subscribe([scene.mirrored])
        while not consumer.assignment():
            consumer.poll(0.1)
        return await ask(groups, wanted, proof)

    with monkeypatch.context() as race:
        race.setattr(ConsumerGroups, "commit", too_late)
        report = scene.sync()
    consumer.close()
    row = row_of(report, group)
    assert (row.outcome, row.why) == (Outcome.ACTIVE, "a consumer began there just now")
    assert committed(scene.target, group) == {}
    assert row_of(scene.sync(), group).outcome is Outcome.SYNCED, "it has left without a word"


def test_a_group_that_was_wiped_on_the_source_begins_again_there_and_not_here(stage: MakeStage) -> None:
    scene = stage(partitions=1)
    group = scene.group()
    write(scene.source, scene.topic, range(50), 1)
    scene.mirror.run()
    scene.commit(group, {0: 40})
    scene.sync()
    admin = admin_client(scene.source.endpoint())
    for answer in admin.delete_consumer_groups([group]).values():
        answer.result(30)
    assert scene.sync().groups == ()
    scene.commit(group, {0: 3})
    assert row_of(scene.sync(), group).outcome is Outcome.WENT_BACK
    assert scene.there(group) == {0: 40}
    scene.sync(follow_rewinds=True)
    assert scene.there(group) == {0: 3}


@pytest.mark.parametrize("words", ["AgAAAX+", "é" * 4_096, '{"causeway":2}', "\0\n"])
def test_a_groups_own_metadata_holds_up_nobody(stage: MakeStage, words: str) -> None:
    scene = stage(partitions=1)
    write(scene.source, scene.topic, range(10), 1)
    scene.mirror.run()
    scene.commit(scene.group(), {0: 4}, words)
    assert scene.sync().outcomes == {Outcome.SYNCED: 1}
    assert scene.there(scene.group()) == {0: 4}
    assert scene.sync().result.checkpoints == 0, "it is read as it was written"


def test_below_the_log_start_of_the_target_is_its_log_start(stage: MakeStage) -> None:
    from confluent_kafka import TopicPartition as At

    scene = stage(partitions=1)
    group = scene.group()
    write(scene.source, scene.topic, range(50), 1)
    scene.mirror.run()
    admin = admin_client(scene.target.endpoint())
    (answer,) = admin.delete_records([At(scene.mirrored, 0, 30)]).values()
    answer.result(30)
    scene.commit(group, {0: 10})
    scene.sync()
    assert scene.there(group) == {0: 30}


def test_a_fenced_flow_writes_nothing(stage: MakeStage) -> None:
    scene = stage(partitions=1)
    write(scene.source, scene.topic, range(10), 1)
    scene.mirror.run()
    scene.commit(scene.group(), {0: 5})
    fence_flow(scene.mirror.flow, scene.target.endpoint(), by="test", because="a failover")
    with pytest.raises(FlowFenced):
        scene.sync()
    assert scene.sync(writes=False).outcomes == {Outcome.SYNCED: 1}
    lift_fence(scene.mirror.flow, scene.target.endpoint(), by="test", because="the end")
    assert scene.sync().result.commits == 1


def test_a_fence_that_is_raised_meanwhile_ends_it(stage: MakeStage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failover moves groups after its fence: a sync that began before it must not move them too."""
    from causeway.usecases.groups import share
    from causeway.usecases.groups import sync as groups_sync

    monkeypatch.setattr(groups_sync, "_SAY_SECONDS", 0.0)
    monkeypatch.setattr(share, "_GROUPS_AT_ONCE", 1)
    scene = stage(partitions=1)
    write(scene.source, scene.topic, range(10), 1)
    scene.mirror.run()
    for name in ("a", "b"):
        scene.commit(scene.group(name), {0: 5})

    def raise_fence(line: str) -> None:
        if "1 of 2 groups" in line:
            fence_flow(scene.mirror.flow, scene.target.endpoint(), by="test", because="a failover")

    endpoints = (scene.source.endpoint(), scene.target.endpoint())
    with pytest.raises(FlowFenced, match="a failover"):
        sync_groups(scene.mirror.flow, scene.wanted(), *endpoints, raise_fence, writes=True)
    assert [scene.there(scene.group(name)) for name in ("a", "b")] == [{0: 5}, {}]


def test_a_mirror_that_runs_beside_it_makes_no_place_unknown(
    stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Positions move on between two looks; of a group at the end of what was mirrored no map is read."""
    scene = stage(partitions=2)
    write(scene.source, scene.topic, range(20), 2)
    scene.mirror.run()
    scene.commit(scene.group(), {0: 3, 1: 10})
    read = WireTarget.map_runs

    async def copy_beside(target: WireTarget, *which: Any) -> Any:
        runs = await read(target, *which)
        write(scene.source, scene.topic, range(20, 30), 2)
        scene.mirror.run()
        return runs

    with monkeypatch.context() as beside:
        beside.setattr(WireTarget, "map_runs", copy_beside)
        report = scene.sync()
    assert outcomes(report, scene.group()) == {Outcome.SYNCED: 2}
    assert scene.there(scene.group()) == {0: 3, 1: 10}


def test_a_group_whose_transaction_hangs_holds_up_no_other(stage: MakeStage) -> None:
    """Its offset isn't known until the transaction ends, and nothing is guessed."""
    from confluent_kafka import Consumer, Producer
    from confluent_kafka import TopicPartition as At

    scene = stage(partitions=1)
    write(scene.source, scene.topic, range(20), 1)
    scene.mirror.run()
    scene.commit(scene.group("well"), {0: 7})
    scene.commit(scene.group("hangs"), {0: 5})
    settings = scene.source.endpoint().settings
    producer = Producer({**settings, "transactional.id": f"hangs {scene.stem}"})
    consumer = Consumer({**settings, "group.id": scene.group("hangs")})
    producer.init_transactions(30)
    producer.begin_transaction()
    places = [At(scene.topic, 0, 9)]
    producer.send_offsets_to_transaction(places, consumer.consumer_group_metadata(), 30)
    report = scene.sync()
    assert outcomes(report, scene.group("hangs")) == {Outcome.REFUSED: 1}
    assert report.result.refused[scene.group("hangs")] == "UNSTABLE_OFFSET_COMMIT"
    assert scene.there(scene.group("well")) == {0: 7}
    assert scene.there(scene.group("hangs")) == {}
    producer.commit_transaction(30)
    consumer.close()
    scene.sync()
    assert scene.there(scene.group("hangs")) == {0: 9}


def test_offset_syncs_name_a_record_on_both_sides(stage: MakeStage) -> None:
    scene = stage(partitions=2)
    write_in_transactions(scene.source, scene.topic, range(60), 2, random.Random(1))
    scene.mirror.run()
    scene.sync()
    exactly = Exact(scene)
    network = Network()
    wire = Wire(scene.target.endpoint(), network)
    network.run(wire.connect)
    syncs = network.run(lambda: last_offset_syncs(WireTarget(wire), "mm2-offset-syncs.sf.internal"))
    wire.disconnect()
    network.close()
    for partition in (0, 1):
        sync = syncs[TopicPartition(scene.topic, partition)]
        behind = exactly.place(partition, sync.source_offset + 1)
        assert sync.target_offset < behind, "who reads on from here misses nothing"


def test_on_a_target_of_the_old_kind(
    stage: MakeStage, nyc_v1: LabCluster, java: GroupProbe, topic_name: Callable[..., str]
) -> None:
    scene = stage(target=nyc_v1, partitions=1)
    write(scene.source, scene.topic, range(30), 1)
    scene.mirror.run()
    scene.commit(scene.group(), {0: 12})
    scene.sync()
    assert scene.there(scene.group()) == {0: 12}
    assert java.translated(nyc_v1, "sf", scene.group()) == {(scene.mirrored, 0): 12}


def test_no_leader_epoch_of_the_source_lies_beside_an_offset_of_the_target(stage: MakeStage) -> None:
    """A consumer would take its own log for cut."""

    scene = stage(partitions=1)
    group = scene.group()
    write(scene.source, scene.topic, range(20), 1)
    scene.mirror.run()
    consume(scene.source, scene.topic, group, 10, reset="earliest")

    def epoch(cluster: LabCluster) -> int | None:
        (place,) = committed_places(cluster, group)
        found: int | None = place.leader_epoch
        return found

    assert epoch(scene.source) == 0, "the source's consumer wrote one"
    scene.sync()
    assert (scene.there(group), epoch(scene.target)) == ({0: 10}, None)


def test_names_stay_with_identity(stage: MakeStage, java: GroupProbe) -> None:
    import dataclasses

    scene = stage(partitions=1)
    scene.mirror.flow = dataclasses.replace(scene.mirror.flow, naming=IdentityNaming())
    write(scene.source, scene.topic, range(30), 1)
    scene.mirror.run()
    scene.commit(scene.group(), {0: 12})
    scene.sync()
    assert java.translated(scene.target, "sf", scene.group()) == {(scene.topic, 0): 12}
