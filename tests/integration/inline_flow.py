"""A flow run in this process, without Spark, and snapshots that prove that nothing was written.

The lanes run one after the other on a LaneWorker, as Spark's executors run them.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from confluent_kafka import ConsumerGroupTopicPartitions, IsolationLevel, TopicPartition
from confluent_kafka.admin import NewPartitions, NewTopic, OffsetSpec

from causeway.core.comparison import VerifyReport
from causeway.core.endpoint import ClusterEndpoint
from causeway.core.flow import CopyLimits, Flow, Start
from causeway.core.lane_task import LaneResult, LaneTask
from causeway.core.naming import PrefixNaming
from causeway.core.report import RunReport
from causeway.core.topic_filter import TopicFilter
from causeway.flows.copy import RunOptions, copy_flow
from causeway.flows.lane_worker import LaneWorker
from causeway.flows.ownership import Holder
from causeway.flows.verify_mirror import verify_mirror
from causeway.lab.clients import admin_client, producer, wait_for_leaders
from causeway.lab.cluster import LabCluster

_SECONDS = 30.0
_MARKER_SECONDS, _LOOKS = 0.1, 50


def mirror_of(name: str, *topics: str, lanes: int = 2) -> Flow:
    return Flow(
        name=name,
        source="sf",
        target="nyc",
        topics=TopicFilter(topics),
        naming=PrefixNaming("sf"),
        start=Start("earliest"),
        lanes=lanes,
        replication_factor=None,
        config_properties_exclude=(),
        limits=CopyLimits(transaction_timeout_ms=20_000),
    )


@dataclass(slots=True)
class InlineFlow:
    """One flow between two lab clusters, run as this user of each."""

    flow: Flow
    source: ClusterEndpoint
    target: ClusterEndpoint
    said: list[str] = field(default_factory=list)
    before_round: Callable[[int], None] = lambda _: None
    """Called with the number of the round, before its lanes run."""
    after_round: Callable[[], None] = lambda: None

    def run(self, *, run_for: float | None = None) -> RunReport:
        self.said.clear()
        worker = LaneWorker(self.source, self.target)
        rounds = iter(range(10_000))

        def carry(tasks: Sequence[LaneTask]) -> list[LaneResult]:
            self.before_round(next(rounds))
            results = [worker.run(task) for task in tasks]
            self.after_round()
            return results

        run_id = uuid.uuid4().hex
        options = RunOptions(holder=Holder(name="test", run_id=run_id), run_for_seconds=run_for)
        try:
            return copy_flow(self.flow, self.source, self.target, carry, options, self.said.append)
        finally:
            worker.close()

    def verify(self) -> VerifyReport:
        return verify_mirror(self.flow, self.source, self.target, on_progress=lambda _: None)

    def over(self, *topics: str) -> InlineFlow:
        """The same flow with other topics in its list."""
        flow = replace(self.flow, topics=TopicFilter(topics))
        return InlineFlow(flow, self.source, self.target, before_round=self.before_round)


def named(cluster: LabCluster, alias: str, user: str | None = None, **changed: str) -> ClusterEndpoint:
    """The cluster under the alias that the flow knows, with some settings changed: `sasl_password="x"`."""
    settings = cluster.endpoint(user).settings
    return ClusterEndpoint(alias, settings | {key.replace("_", "."): value for key, value in changed.items()})


def create_topic(cluster: LabCluster, topic: str, partitions: int = 1, **settings: str) -> None:
    admin = admin_client(cluster.endpoint())
    config = {name.replace("_", "."): value for name, value in settings.items()}
    for answer in admin.create_topics([NewTopic(topic, partitions, config=config)]).values():
        answer.result(_SECONDS)
    wait_for_leaders(admin, {topic: partitions})


def grow_topic(cluster: LabCluster, topic: str, partitions: int) -> None:
    admin = admin_client(cluster.endpoint())
    for answer in admin.create_partitions([NewPartitions(topic, partitions)]).values():
        answer.result(_SECONDS)
    wait_for_leaders(admin, {topic: partitions})


def delete_topic(cluster: LabCluster, topic: str) -> None:
    admin = admin_client(cluster.endpoint())
    for answer in admin.delete_topics([topic]).values():
        answer.result(_SECONDS)
    while topic in admin.list_topics(timeout=_SECONDS).topics:
        pass


def delete_records(cluster: LabCluster, topic: str, before: int) -> None:
    admin = admin_client(cluster.endpoint())
    for answer in admin.delete_records([TopicPartition(topic, 0, before)]).values():
        answer.result(_SECONDS)


def write(cluster: LabCluster, topic: str, count: int, partition: int = 0) -> None:
    """As many records, with keys."""
    client = producer(cluster.endpoint())
    refused: list[object] = []
    for number in range(count):
        client.produce(
            topic,
            f"value {number}".encode(),
            f"key {number % 7}".encode(),
            partition=partition,
            on_delivery=lambda error, _: refused.append(error) if error else None,
        )
    assert client.flush(_SECONDS) == 0
    assert not refused, refused


Ends = dict[tuple[str, int], tuple[int, int]]


def topic_ends(cluster: LabCluster) -> Ends:
    """First and end offset of every partition, Kafka's own topics left out."""
    admin = admin_client(cluster.endpoint())
    partitions = [
        TopicPartition(name, number)
        for name, topic in admin.list_topics(timeout=_SECONDS).topics.items()
        if not name.startswith("__")
        for number in topic.partitions
    ]
    found: list[dict[tuple[str, int], int]] = []
    for spec in (OffsetSpec.earliest(), OffsetSpec.latest()):
        answers = (
            admin.list_offsets(
                dict.fromkeys(partitions, spec), isolation_level=IsolationLevel.READ_UNCOMMITTED
            )
            if partitions
            else {}
        )
        found.append({(tp.topic, tp.partition): a.result(_SECONDS).offset for tp, a in answers.items()})
    return {place: (found[0][place], found[1][place]) for place in found[0]}


def group_offsets(cluster: LabCluster) -> dict[str, dict[tuple[str, int], int]]:
    """Without the metadata, which confluent-kafka can't read back: it takes bytes behind its end."""
    admin = admin_client(cluster.endpoint())
    groups = [group.group_id for group in admin.list_consumer_groups().result(_SECONDS).valid]
    offsets = {}
    for group in groups:
        (answer,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
        offsets[group] = {
            (tp.topic, tp.partition): tp.offset for tp in answer.result(_SECONDS).topic_partitions
        }
    return offsets


def everything(*clusters: LabCluster) -> list[object]:
    """All that a flow could have written: topics, ends of logs, positions of groups."""
    return [(_ends_at_rest(cluster), group_offsets(cluster)) for cluster in clusters]


def _ends_at_rest(cluster: LabCluster) -> Ends:
    """Markers of what was committed just now are still on their way: looked at until two looks agree."""
    seen = topic_ends(cluster)
    for _ in range(_LOOKS):
        time.sleep(_MARKER_SECONDS)
        before, seen = seen, topic_ends(cluster)
        if seen == before:
            break
    return seen
