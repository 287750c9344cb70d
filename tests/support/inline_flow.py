"""A flow run in this process, without Spark, and snapshots that prove that nothing was written.

The lanes run one after the other on a LaneWorker, as Spark's executors run them.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import NewPartitions, NewTopic, OffsetSpec

from causeway.core.copy.lane_task import LaneResult, LaneTask
from causeway.core.copy.report import RunReport
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.model.flow import CopyLimits, Flow
from causeway.core.model.topic_filter import TopicFilter
from causeway.core.verify.report import VerifyReport
from causeway.lab.clients import admin_client, wait_for_leaders
from causeway.lab.cluster import LabCluster
from causeway.usecases.copy.blocking_driver import copy_flow
from causeway.usecases.copy.run import RunOptions
from causeway.usecases.copy.worker import LaneWorker
from causeway.usecases.run_lock.ownership import RunOwner
from causeway.usecases.verify.flow import verify_mirror
from tests.support import builders
from tests.support.committed import committed_places
from tests.support.quick import quick_producer

_SECONDS = 30.0
_LOOK_SECONDS = 0.1
_LOOKS = 400
"""Until what another test left open is aborted: its 20 seconds, and the broker's ten to notice."""


def mirror_of(name: str, *topics: str, lanes: int = 2) -> Flow:
    return builders.flow(
        name, topics=TopicFilter(topics), lanes=lanes, limits=CopyLimits(transaction_timeout_ms=20_000)
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
        options = RunOptions(holder=RunOwner(name="test", run_id=run_id), run_for_seconds=run_for)
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


def own_flow(source: LabCluster, target: LabCluster, stem: str) -> InlineFlow:
    """From sf to nyc, of one topic; nobody else's."""
    name = uuid.uuid4().hex[:8]
    return InlineFlow(
        mirror_of(f"{stem}_{name}", f"{stem}-{name}"), named(source, "sf"), named(target, "nyc")
    )


def topic_of(runs: InlineFlow) -> str:
    """The one that `own_flow` has."""
    return runs.flow.name.replace("_", "-")


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
    client = quick_producer(cluster.endpoint())
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
    partitions = _partitions(cluster, lambda topic: not topic.startswith("__"))
    first = _offsets(cluster, partitions, OffsetSpec.earliest())
    end = _offsets(cluster, partitions, OffsetSpec.latest())
    return {place: (first[place], end[place]) for place in first}


def group_offsets(cluster: LabCluster) -> dict[str, dict[tuple[str, int], int]]:
    admin = admin_client(cluster.endpoint())
    groups = [group.group_id for group in admin.list_consumer_groups().result(_SECONDS).valid]
    return {
        group: {(tp.topic, tp.partition): tp.offset for tp in committed_places(cluster, group)}
        for group in groups
    }


def everything(*clusters: LabCluster) -> list[object]:
    """All that a flow could have written: topics, ends of logs, positions of groups.

    Without groups that hold no position: a broker forgets such a group when it comes to it.
    """
    return [(_ends_at_rest(cluster), _that_hold_some(group_offsets(cluster))) for cluster in clusters]


def _that_hold_some(groups: dict[str, dict[tuple[str, int], int]]) -> dict[str, dict[tuple[str, int], int]]:
    return {group: places for group, places in groups.items() if places}


def _ends_at_rest(cluster: LabCluster) -> Ends:
    """Once no transaction is open and two looks agree: a marker that is still to come changes an end."""
    seen = topic_ends(cluster)
    for _ in range(_LOOKS):
        time.sleep(_LOOK_SECONDS)
        before, seen = seen, topic_ends(cluster)
        if seen == before and not _is_transaction_open(cluster):
            break
    return seen


def _is_transaction_open(cluster: LabCluster) -> bool:
    """Also one that only commits offsets."""
    partitions = _partitions(cluster, lambda topic: topic != "__transaction_state")
    stable = _offsets(cluster, partitions, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)
    return stable != _offsets(cluster, partitions, OffsetSpec.latest())


def _partitions(cluster: LabCluster, chooses: Callable[[str], bool]) -> list[TopicPartition]:
    admin = admin_client(cluster.endpoint())
    return [
        TopicPartition(name, number)
        for name, topic in admin.list_topics(timeout=_SECONDS).topics.items()
        if chooses(name)
        for number in topic.partitions
    ]


def _offsets(
    cluster: LabCluster,
    partitions: Sequence[TopicPartition],
    spec: OffsetSpec,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> dict[tuple[str, int], int]:
    if not partitions:
        return {}
    admin = admin_client(cluster.endpoint())
    answers = admin.list_offsets(dict.fromkeys(partitions, spec), isolation_level=isolation)
    return {(tp.topic, tp.partition): a.result(_SECONDS).offset for tp, a in answers.items()}
