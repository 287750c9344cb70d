"""What MirrorMaker 2 may leave behind, written by hand in its formats."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from confluent_kafka import Producer
from confluent_kafka.admin import NewTopic

from causeway.brokers.admin.topics import ClusterAdmin
from causeway.core.kernel.identity import TopicPartition
from causeway.core.records.mm2_formats import OffsetSync, encode_offset_sync
from causeway.lab.clients import admin_client, wait_for_leaders
from causeway.lab.cluster import LabCluster
from tests.integration.takeover.stage import TakeoverStage

OFFSETS, SYNCS = "mm2-offsets.sf.internal", "mm2-offset-syncs.nyc.internal"
LETTERS = "abcdefgh"


class History:
    """One topic; what its partitions hold on both sides, and what MirrorMaker 2 would have written of
    them."""

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


def open_transaction(scene: TakeoverStage, partition: int) -> Producer:
    client = Producer({**scene.target.endpoint().settings, "transactional.id": f"hangs on {scene.topics[0]}"})
    client.init_transactions(60)
    client.begin_transaction()
    client.produce(f"sf.{scene.topics[0]}", b"open", partition=partition)
    assert client.flush(60) == 0
    return client
