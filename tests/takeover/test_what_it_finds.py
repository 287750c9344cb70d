"""What MirrorMaker 2 may leave behind, written by hand in its formats: found, or refused with its reason."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import NewTopic

from causeway.brokers.admin import ClusterAdmin
from causeway.core.identity import TopicPartition
from causeway.core.mirror_maker_records import OffsetSync, encode_offset_sync
from causeway.flows.takeover import run as takeover
from causeway.lab.clients import admin_client, wait_for_leaders
from causeway.lab.cluster import LabCluster
from tests.mirroring import end_offsets
from tests.takeover.conftest import MakeStage
from tests.takeover.stage import TakeoverStage

pytestmark = pytest.mark.integration
PARKED, HELD = 5, 4
OFFSETS, SYNCS = "mm2-offsets.sf.internal", "mm2-offset-syncs.nyc.internal"
LETTERS = "abcdefgh"


class History:
    """One topic; what its partitions hold on both sides, and what MirrorMaker 2 would have said of them."""

    def __init__(self, scene: TakeoverStage) -> None:
        self.scene, self.topic = scene, scene.topics[0]
        admin = admin_client(scene.target.endpoint())
        make(scene.target, {f"sf.{self.topic}": scene.partitions})
        for cluster, topic in ((scene.source, self.topic), (scene.target, f"sf.{self.topic}")):
            for_good = {topic: {"retention.ms": "-1"}}  # the letters are old
            assert ClusterAdmin(cluster.endpoint()).alter_settings(for_good) == {}
        if OFFSETS not in admin.list_topics(timeout=20).topics:
            make(scene.target, {OFFSETS: 25}, cleanup_policy="compact")  # as MirrorMaker wants to find it
        if SYNCS not in admin_client(scene.source.endpoint()).list_topics(timeout=20).topics:
            make(scene.source, {SYNCS: 1}, cleanup_policy="compact")
        self._partition = -1

    def add(
        self,
        source: str,
        target: str,
        committed: int | None,
        syncs: Sequence[tuple[int, int]] = (),
    ) -> None:
        self._partition += 1
        write(self.scene.source, self.topic, self._partition, source)
        write(self.scene.target, f"sf.{self.topic}", self._partition, target)
        tp = TopicPartition(self.topic, self._partition)
        if committed is not None:
            place = {"cluster": "sf", "partition": tp.partition, "topic": tp.topic}
            key = json.dumps(["MirrorSourceConnector", place], separators=(",", ":"))
            produce(self.scene.target, OFFSETS, [(key.encode(), json.dumps({"offset": committed}).encode())])
        told = [OffsetSync(source=tp, source_offset=u, target_offset=d) for u, d in syncs]  # type: ignore[arg-type]
        produce(self.scene.source, SYNCS, map(encode_offset_sync, told))


def make(cluster: LabCluster, topics: dict[str, int], cleanup_policy: str = "delete") -> None:
    admin = admin_client(cluster.endpoint())
    config = {"cleanup.policy": cleanup_policy}
    new = [NewTopic(name, n, config=config) for name, n in topics.items()]
    for answer in admin.create_topics(new).values():
        answer.result(60)
    wait_for_leaders(admin, topics)


def write(cluster: LabCluster, topic: str, partition: int, letters: str) -> None:
    """A record is its letter: key, value and time."""
    client = Producer(cluster.endpoint().settings)
    for letter in letters:
        at_ms = 1_700_000_000_000 + ord(letter)
        client.produce(topic, letter * 3, letter, partition=partition, timestamp=at_ms)
    assert client.flush(60) == 0


def produce(cluster: LabCluster, topic: str, records: Iterable[tuple[bytes, bytes]]) -> None:
    client = Producer(cluster.endpoint().settings)
    for key, value in records:
        client.produce(topic, value, key, partition=0)
    assert client.flush(60) == 0


FOUND = [
    # source, target, committed, syncs; outcome, where it goes on, what is said
    (LETTERS, "abcd", 1, [(0, 0)], ("adopted", 4, "written up to 3, behind the last commit")),
    (LETTERS, "abcdbcde", 0, [(0, 0)], ("adopted", 5, "3 are there twice")),
    (LETTERS, "abcdefcd", 1, [(0, 0), (2, 6)], ("adopted", 6, "2 are there twice")),
    (LETTERS, "abcdefab", None, [(0, 0), (0, 6)], ("adopted", 6, "2 are there twice")),
    (LETTERS, "abcdefbcd", 2, [(0, 0), (1, 6)], ("adopted", 6, "3 are there twice")),
    (LETTERS, "abcdefbcd", 2, [(1, 6)], ("refused", None, "may be at target offset 4 already")),
    ("abcbbcde", "abcb", 2, [(0, 0), (2, 2)], ("adopted", 4, "by offset syncs")),
    (LETTERS, "abcd", 2, [], ("adopted", 4, "by records")),
    (LETTERS, "abc", None, [], ("adopted", 3, "by both beginnings")),
    (LETTERS, "ab", 3, [(0, 0)], ("adopted", 2, "2 that were committed are not there: copied again")),
    ("aaaaaaaa", "aaaaa", 2, [(0, 0), (2, 2)], ("adopted", 5, "by offset syncs")),
    (LETTERS, "", None, [], ("begins", 0, "")),
    (LETTERS, "abcx", 1, [(0, 0)], ("refused", None, "isn't source offset 3, and is nowhere in front of it")),
    (LETTERS, "abef", 1, [(0, 0), (4, 2)], ("refused", None, "went from 1 to 4")),
    ("aaaaaaaa", "aaaa", 0, [], ("refused", None, "are 4 times on the target")),
    (LETTERS, "", 3, [], ("refused", None, "the target shows no record")),
]


def test_each_partition_is_found_or_refused_with_its_reason(stage: MakeStage) -> None:
    scene = stage("found", partitions=len(FOUND) + 1)
    scene.write_flows()
    history = History(scene)
    for source, target, committed, syncs, _ in FOUND:
        history.add(source, target, committed, syncs)
    history.add(LETTERS, "a", 0, [(0, 0)])
    hanging = open_transaction(scene, len(FOUND))

    code, told, said = scene.adopt()
    assert code == PARKED, said
    rows = told["flows"][0]["partitions"]
    for row, (*_, expected) in zip(rows, FOUND, strict=False):
        outcome, source_next, why = expected
        assert (row["outcome"], row["source_offset"]) == (outcome, source_next), row
        assert why in row["why"], row
        if outcome == "refused":
            assert (
                f"`causeway adopt sf_to_nyc {scene.topics[0]} {row['source'].rpartition('-')[2]} OFFSET`"
                in row["why"]
            )
    assert "a transaction is open on the target from offset 1 on" in rows[-1]["why"]
    hanging.abort_transaction(60)

    with scene.mirror() as mirror:
        report = mirror.run()
    refused = {row["source"] for row in rows if row["outcome"] == "refused"}
    assert {each.source for each in report.parked} == refused, "loud until somebody decides"
    for row, (source, target, *_) in zip(rows, FOUND, strict=False):
        if row["outcome"] != "refused":
            at = TopicPartition(*split(row["target"]))
            shown = "".join((content[1] or b"").decode() for _, content in scene.targets(at))
            assert shown == target + source[row["source_offset"] :], row
    code, told, _ = scene.adopt()
    again = told["flows"][0]["partitions"]
    assert code == PARKED
    assert again[-1]["outcome"] == "adopted", "its transaction has ended"
    assert {row["outcome"] for row in again[:-1]} == {"stands", "refused"}


def split(name: str) -> tuple[str, int]:
    topic, _, partition = name.rpartition("-")
    return topic, int(partition)


def open_transaction(scene: TakeoverStage, partition: int) -> Producer:
    client = Producer({**scene.target.endpoint().settings, "transactional.id": f"hangs on {scene.topics[0]}"})
    client.init_transactions(60)
    client.begin_transaction()
    client.produce(f"sf.{scene.topics[0]}", b"open", partition=partition)
    assert client.flush(60) == 0
    return client


def test_who_works_there_is_not_pushed_aside(stage: MakeStage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A member of MirrorMaker's group; a mirror that grows while it is compared, and at the last moment."""
    scene = stage("held", partitions=1)
    scene.write_flows()
    History(scene).add(LETTERS, "abcd", 1, [(0, 0)])
    member = Consumer({**scene.target.endpoint().settings, "group.id": "sf-mm2"})
    member.subscribe([f"sf.{scene.topics[0]}"])
    while not member.assignment():
        member.poll(0.1)
    before = end_offsets(scene.target)
    code, _, said = scene.adopt(patient=False)
    assert (code, "has a worker that is at work" in said) == (HELD, True)
    member.close()
    assert scene.adopt("--dry-run")[0] == 0

    def grow(*_: object) -> None:
        write(scene.target, f"sf.{scene.topics[0]}", 0, "e")

    real = takeover._Work.watch

    def grow_and_watch(*given: Any) -> None:
        grow()
        real(*given)

    with monkeypatch.context() as living:
        living.setattr(takeover._Work, "watch", grow_and_watch)
        code, _, said = scene.adopt(patient=False)
    assert (code, "MirrorMaker 2 still writes" in said) == (HELD, True)
    with monkeypatch.context() as living:
        living.setattr(takeover._Work, "watch", grow)
        code, _, said = scene.adopt(patient=False)
    assert (code, "somebody writes there" in said) == (HELD, True)
    code, told, said = scene.adopt()
    assert code == 0, said
    (row,) = told["flows"][0]["partitions"]
    assert (row["source_offset"], row["repeated"]) == (5, 1)
    assert end_offsets(scene.target)[f"sf.{scene.topics[0]}", 0] == (0, 6)
    assert before[f"sf.{scene.topics[0]}", 0] == (0, 4)
