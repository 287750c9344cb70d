"""A mirror with consumer groups, on clusters that tests share: groups have names that no other test has."""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import NewTopic

from causeway.brokers.transport.connection import Network, Wire
from causeway.brokers.wire.consumer_groups import ConsumerGroups
from causeway.core.copy.ports import Refused
from causeway.core.groups.report import GroupsReport
from causeway.core.groups.sync_rules import Committed, Outcome, Verdict
from causeway.core.kernel.identity import TopicPartition as Place
from causeway.core.model.group_filter import FlowGroups
from causeway.lab.clients import admin_client, wait_for_leaders
from causeway.lab.cluster import LabCluster
from causeway.usecases.groups.sync import sync_groups
from tests.support.committed import committed_by_wire, committed_places
from tests.support.mirroring import Mirror, make_flow
from tests.support.quick import init_transactions

_SECONDS = 60.0
Offsets = dict[tuple[str, int], int]
Record = tuple[int, int, str]
"""Partition, offset, value."""


@dataclass
class GroupStage:
    """One flow over one topic `stem`; its groups' names begin with the stem."""

    source: LabCluster
    target: LabCluster
    stem: str
    partitions: int = 2
    rules: FlowGroups = field(default_factory=FlowGroups)
    mirror: Mirror = field(init=False)
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        flow = make_flow(self.stem.replace("-", "_"), self.topic)
        self.mirror = Mirror(flow, self.source, self.target)
        make_topic(self.source, self.topic, self.partitions)

    @property
    def topic(self) -> str:
        return self.stem

    @property
    def mirrored(self) -> str:
        return self.mirror.flow.naming.target_topic(self.topic)

    def group(self, name: str = "g") -> str:
        return f"{self.stem}.{name}"

    def close(self) -> None:
        self.mirror.close()

    def sync(self, *, writes: bool = True, **rules: object) -> GroupsReport:
        return sync_groups(
            self.mirror.flow,
            self.wanted(**rules),
            self.source.endpoint(),
            self.target.endpoint(),
            self.said.append,
            writes=writes,
        )

    def wanted(self, **rules: object) -> FlowGroups:
        chosen: dict[str, object] = {
            "include": (self.stem.replace(".", r"\.") + r"\..*",),
            "sync_offsets": True,
            **rules,
        }
        return FlowGroups(**chosen)  # type: ignore[arg-type]

    def commit(self, group: str, offsets: Mapping[int, int], metadata: str = "") -> None:
        """On the source, in the group's name."""
        commit(self.source, group, {(self.topic, p): offset for p, offset in offsets.items()}, metadata)

    def there(self, group: str) -> dict[int, int]:
        """What the target holds, by partition."""
        return {
            p: offset
            for (topic, p), offset in committed(self.target, group).items()
            if topic == self.mirrored
        }


def make_topic(cluster: LabCluster, name: str, partitions: int = 1, **settings: str) -> None:
    admin = admin_client(cluster.endpoint())
    config = {key.replace("_", "."): value for key, value in settings.items()}
    for answer in admin.create_topics([NewTopic(name, partitions, config=config)]).values():
        answer.result(_SECONDS)
    wait_for_leaders(admin, {name: partitions})


def write(cluster: LabCluster, topic: str, values: Iterable[int], partitions: int) -> None:
    """Value n into partition n % partitions."""
    producer = Producer({**cluster.endpoint().settings, "linger.ms": 5})
    for n in values:
        producer.produce(topic, f"{n}".encode(), f"key {n}".encode(), partition=n % partitions)
    assert producer.flush(_SECONDS) == 0


def write_in_transactions(
    cluster: LabCluster, topic: str, values: range, partitions: int, dice: random.Random
) -> None:
    """Small transactions, some of them aborted: values that nobody may see begin with `no`."""
    settings = {**cluster.endpoint().settings, "linger.ms": 2, "transactional.id": f"writer of {topic}"}
    producer = Producer(settings)
    init_transactions(producer, _SECONDS)
    at = values.start
    while at < values.stop:
        some = range(at, min(at + dice.randrange(1, 40), values.stop))
        for is_kept in (False, True) if dice.random() < 0.3 else (True,):
            producer.begin_transaction()
            for n in some:
                value = f"{n}" if is_kept else f"no {n}"
                producer.produce(topic, value.encode(), f"key {n}".encode(), partition=n % partitions)
            producer.flush(_SECONDS)
            if is_kept:
                producer.commit_transaction(_SECONDS)
            else:
                producer.abort_transaction(_SECONDS)
        at = some.stop


def commit(
    cluster: LabCluster, group: str, offsets: Mapping[tuple[str, int], int], metadata: str = ""
) -> None:
    """Without a member, as an administrator does."""
    commit_all(cluster, {group: offsets}, metadata)


def commit_all(
    cluster: LabCluster, groups: Mapping[str, Mapping[tuple[str, int], int]], metadata: str = ""
) -> None:
    """As `commit`, many groups over one connection."""
    network = Network()
    wire = Wire(cluster.endpoint(), network)
    wanted = {
        group: {Place(*place): Committed(offset, metadata) for place, offset in offsets.items()}
        for group, offsets in groups.items()
    }

    async def work() -> dict[str, dict[Place, int] | Refused]:
        await wire.connect()
        return await ConsumerGroups(wire).commit(wanted)

    try:
        for group, codes in network.run(work).items():
            assert not isinstance(codes, Refused), (group, codes)
            assert not any(codes.values()), (group, codes)
    finally:
        wire.disconnect()
        network.close()


def committed(cluster: LabCluster, group: str) -> Offsets:
    """By another client than the product's."""
    places = committed_places(cluster, group)
    return {(tp.topic, tp.partition): tp.offset for tp in places if tp.offset >= 0}


def words_of(cluster: LabCluster, group: str, place: tuple[str, int]) -> str:
    """A commit's metadata, by the wire: confluent-kafka reads on into memory after its end."""
    return committed_by_wire(cluster, group)[Place(*place)].metadata


def consume(cluster: LabCluster, topic: str, group: str, count: int, *, reset: str) -> list[Record]:
    """As a member of the group, by librdkafka: so many records (-1: to the end), which are then committed."""
    settings = {
        **cluster.endpoint().settings,
        "group.id": group,
        "enable.auto.commit": False,
        "auto.offset.reset": reset,
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 20,
    }
    consumer = Consumer(settings)
    partitions = len(consumer.list_topics(topic, timeout=20).topics[topic].partitions)
    records: list[Record] = []
    nexts: dict[int, TopicPartition] = {}
    at_end: set[int] = set()
    deadline = time.monotonic() + _SECONDS
    consumer.subscribe([topic])
    try:
        while len(records) != count and not (count < 0 and len(at_end) == partitions):
            assert time.monotonic() < deadline, f"{group} has {len(records)} of {count} records of {topic}"
            message = consumer.poll(0.1)
            if message is None:
                continue
            if message.error() is None:
                p, offset, epoch = message.partition(), message.offset(), message.leader_epoch()
                records.append((p, offset, message.value().decode()))
                nexts[p] = TopicPartition(topic, p, offset + 1, leader_epoch=epoch)
                at_end.discard(p)
            elif message.error().code() == -191:  # the end of a partition, for now
                at_end.add(message.partition())
            else:
                raise AssertionError(message.error())
        if records:
            consumer.commit(offsets=list(nexts.values()), asynchronous=False)
    finally:
        consumer.close()
    return records


def all_values(cluster: LabCluster, topic: str) -> list[Record]:
    """Every record that a `read_committed` reader sees, without a group."""
    name = f"reader of {topic} {time.monotonic_ns()}"
    consumer = Consumer(
        {
            **cluster.endpoint().settings,
            "group.id": name,
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 20,
        }
    )
    partitions = consumer.list_topics(topic, timeout=20).topics[topic].partitions
    consumer.assign([TopicPartition(topic, p, 0) for p in partitions])
    records, ends = list[Record](), 0
    try:
        while ends < len(partitions):
            message = consumer.poll(20)
            assert message is not None
            if message.error():
                ends += 1
            else:
                records.append((message.partition(), message.offset(), message.value().decode()))
    finally:
        consumer.close()
    return records


def row_of(report: GroupsReport, group: str, partition: int = 0) -> Verdict:
    (row,) = [r for r in report.result.rows if r.group == group and r.source.partition == partition]
    return row


def outcomes(report: GroupsReport, group: str) -> dict[Outcome, int]:
    return dict(report.of_group(group))
