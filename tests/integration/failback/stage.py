"""Two clusters, a flow each way, writers and groups; and the truth about them, by another client."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    IsolationLevel,
    KafkaError,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import OffsetSpec

from causeway.core.failback.divergence import FailbackMode, FailbackPlan
from causeway.core.failover.impact_sheet import Sheet
from causeway.core.failover.request import FailoverRequest, Mode
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.model.flow import Flow
from causeway.core.model.group_filter import FlowGroups
from causeway.core.model.naming import IdentityNaming, PrefixNaming
from causeway.lab.clients import admin_client
from causeway.lab.cluster import LabCluster
from causeway.usecases.failback.complete import CompletedFailback, complete_failback, preview_completion
from causeway.usecases.failback.journal_store import FlowPair
from causeway.usecases.failback.start import FailedBack, Operator, fail_back, preview_failback
from causeway.usecases.failover import execute
from causeway.usecases.failover.rollback import RolledBack, roll_back
from causeway.usecases.session.both_clusters import open_target, state_on
from tests.integration.groups.stage import commit, committed, make_topic
from tests.support.mirroring import Mirror, make_flow
from tests.support.quick import init_transactions

_SECONDS = 60.0
Log = dict[int, list[tuple[int, str]]]
"""By partition: offset and value of what a `read_committed` reader sees."""


def _yes(_shown: object) -> None:
    """Somebody types the flow's name."""


@dataclass
class FailbackStage:
    """`old` is the primary that is lost for a while, `new` the one that steps in."""

    old: LabCluster
    new: LabCluster
    stem: str
    keeps_names: bool
    partitions: int = 2
    settings: dict[str, str] = field(default_factory=dict)
    flows: tuple[Flow, Flow] | None = None
    """Forward and reverse, of some flows.yaml, over the topic of the stem's name; None: the stage's own."""
    after_step: Callable[[], None] = lambda: None
    """Called after each step of a story: what may happen in between."""
    said: list[str] = field(default_factory=list)
    plans: list[FailbackPlan] = field(default_factory=list)
    _written: int = 0

    def __post_init__(self) -> None:
        make_topic(self.old, self.stem, self.partitions, **self.settings)
        if not self.keeps_names:
            make_topic(self.new, self.stem, self.partitions)

    @cached_property
    def forward(self) -> Mirror:
        if self.flows is not None:
            return Mirror(self.flows[0], self.old, self.new)
        name = self.stem.replace("-", "_")
        naming = IdentityNaming("sf") if self.keeps_names else PrefixNaming("sf")
        back = f"{name}_back" if self.keeps_names else ""
        return Mirror(make_flow(name, self.stem, naming=naming, failback=back), self.old, self.new)

    @cached_property
    def reverse(self) -> Mirror:
        if self.flows is not None:
            return Mirror(self.flows[1], self.new, self.old)
        name = self.stem.replace("-", "_")
        naming = IdentityNaming("nyc") if self.keeps_names else PrefixNaming("nyc")
        of = name if self.keeps_names else ""
        flow = make_flow(f"{name}_back", self.stem, source="nyc", target="sf", naming=naming, failback_of=of)
        return Mirror(flow, self.new, self.old)

    def close(self) -> None:
        self.forward.close()
        self.reverse.close()

    @property
    def mirrored(self) -> str:
        """What the old primary's topic is called on the new one."""
        return self.forward.flow.naming.target_topic(self.stem)

    @property
    def led_back(self) -> str:
        """What the topic that the new primary's writers write is called on the old one."""
        return self.reverse.flow.naming.target_topic(self.stem)

    @property
    def rules(self) -> FlowGroups:
        return FlowGroups(include=(f"{self.stem}\\..*",))

    def group(self, name: str) -> str:
        return f"{self.stem}.{name}"

    # traffic

    def write(self, cluster: LabCluster, count: int, dice: random.Random) -> None:
        """Plain, or in transactions of which some are aborted; each value is written once, ever."""
        settings = {**cluster.endpoint().settings, "linger.ms": 2}
        in_transactions = dice.random() < 0.5
        if in_transactions:
            settings["transactional.id"] = f"{self.stem} {dice.random()}"
        producer = Producer(settings)
        if in_transactions:
            init_transactions(producer, _SECONDS)
        for portion in range(0, count, 20):
            is_kept = not in_transactions or dice.random() < 0.7
            if in_transactions:
                producer.begin_transaction()
            for _ in range(portion, min(portion + 20, count)):
                self._written += 1
                value = f"{self._written}" if is_kept else f"never {self._written}"
                producer.produce(self.stem, value.encode(), partition=dice.randrange(self.partitions))
            assert producer.flush(_SECONDS) == 0
            if in_transactions:
                (producer.commit_transaction if is_kept else producer.abort_transaction)(_SECONDS)
        self._wait_until_decided(cluster)

    def write_evenly(self, cluster: LabCluster, count: int) -> None:
        producer = Producer({**cluster.endpoint().settings, "linger.ms": 2})
        for number in range(count):
            producer.produce(self.stem, f"{number}".encode(), partition=number % self.partitions)
        assert producer.flush(_SECONDS) == 0

    def _wait_until_decided(self, cluster: LabCluster) -> None:
        """A producer's commit returns before its markers are in the log."""
        admin = admin_client(cluster.endpoint())
        wanted = {TopicPartition(self.stem, p): OffsetSpec.latest() for p in range(self.partitions)}
        while True:
            ends = [
                {tp: answer.result(30).offset for tp, answer in answers.items()}
                for answers in (
                    admin.list_offsets(wanted, isolation_level=isolation)
                    for isolation in (IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED)
                )
            ]
            if ends[0] == ends[1]:
                return
            time.sleep(0.05)

    def commit(self, cluster: LabCluster, name: str, topic: str, offsets: dict[int, int]) -> None:
        commit(cluster, self.group(name), {(topic, p): offset for p, offset in offsets.items()})

    def stands(self, cluster: LabCluster, name: str, topic: str) -> dict[int, int]:
        held = committed(cluster, self.group(name))
        return {p: offset for (found, p), offset in held.items() if found == topic}

    def forget_on_new(self, names: Iterable[str]) -> None:
        admin = admin_client(self.new.endpoint())
        for answer in admin.delete_consumer_groups([self.group(name) for name in names]).values():
            answer.result(_SECONDS)

    # the steps

    def fail_over(self, mode: Mode = Mode.UNPLANNED) -> execute.FailedOver:
        wish = FailoverRequest(flow=self.forward.flow.name, at_ms=None, mode=mode)
        return execute.fail_over(self.forward.flow, *self._endpoints, wish, self.rules, self._mover)

    def resume(self) -> FailedBack:
        operator = Operator(by="a test", consent=self._note, say=self.said.append)
        return fail_back(self.ways, FailbackMode.RESUME, operator)

    def rebuild(self, *, accepts_loss: bool = False, plan: str = "") -> FailedBack:
        operator = Operator(
            by="a test",
            consent=self._note,
            say=self.said.append,
            expected_plan=plan,
            accepts_loss=accepts_loss,
        )
        return fail_back(self.ways, FailbackMode.REBUILD, operator)

    def look_at_rebuild(self) -> FailbackPlan:
        return preview_failback(self.ways, FailbackMode.REBUILD)

    def come_home(self) -> CompletedFailback:
        return complete_failback(self.ways, self.rules, self._mover)

    def roll_back(self, run: str) -> RolledBack:
        flow, endpoint = self.forward.flow, self.new.endpoint()
        return roll_back(flow, endpoint, run, by="a test", consent=lambda *_: None, say=self.said.append)

    def look_home(self) -> Sheet:
        return preview_completion(self.ways, self.rules)

    def _note(self, plan: FailbackPlan) -> None:
        self.plans.append(plan)

    @property
    def _endpoints(self) -> tuple[ClusterEndpoint, ClusterEndpoint]:
        return self.old.endpoint(), self.new.endpoint()

    @property
    def ways(self) -> FlowPair:
        return FlowPair(self.forward.flow, self.reverse.flow, self.old.endpoint(), self.new.endpoint())

    @property
    def _mover(self) -> execute.Operator:
        return execute.Operator(by="a test", consent=_yes, say=self.said.append, still_seconds=0.2)

    # the truth

    def fences(self) -> tuple[str | None, str | None]:
        """Why the forward and the reverse flow are fenced; None: they aren't."""
        return self._fence(self.forward), self._fence(self.reverse)

    def _fence(self, mirror: Mirror) -> str | None:
        with open_target(mirror.target.endpoint()) as (network, target):
            fence = network.run(lambda: state_on(target, mirror.flow.name)).fence
        return None if fence is None else fence.because

    def log(self, cluster: LabCluster, topic: str) -> Log:
        return {
            p: [(m.offset(), m.value().decode()) for m in messages]
            for p, messages in read(cluster, topic, self.partitions).items()
        }


def read(cluster: LabCluster, topic: str, partitions: int) -> dict[int, list[Message]]:
    """All that a `read_committed` reader sees, partition by partition in order."""
    settings = {
        **cluster.endpoint().settings,
        "group.id": "causeway-test-reader",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 20,
    }
    consumer = Consumer(settings)
    consumer.list_topics(topic, timeout=_SECONDS)  # else it asks for the beginning half a second later
    consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(partitions)])
    found: dict[int, list[Message]] = {p: [] for p in range(partitions)}
    at_end = set[int]()
    try:
        while len(at_end) < partitions:
            message = consumer.poll(_SECONDS)
            assert message is not None
            if not message.error():
                found[message.partition()].append(message)
            elif message.error().code() == KafkaError._PARTITION_EOF:
                at_end.add(message.partition())
    finally:
        consumer.close()
    return found


def values(records: Iterable[tuple[int, str]]) -> list[str]:
    return [value for _, value in records]


def next_value(log: list[tuple[int, str]], at: int) -> str | None:
    """What a reader who stands there reads next; None: nothing yet."""
    return next((value for offset, value in log if offset >= at), None)


async def written_since(*_: object) -> tuple[str, ...]:
    """In the place of `left_behind`: a partition that isn't mirrored to its end."""
    return ("a partition ends at 9 and is mirrored to 8",)
