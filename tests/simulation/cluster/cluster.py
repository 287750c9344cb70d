"""A simulated cluster: nodes, partitions with leaders, one transaction coordinator, one group coordinator.

What happens to it (crashes, freezes, elections clean and unclean, moves) happens here; what it answers to a
request is in broker.py. The logs of the coordinators are never lost: only data partitions have unclean
elections.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from random import Random
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from causeway.core.kernel.identity import TopicPartition
from tests.simulation.cluster.broker import handle
from tests.simulation.cluster.coordinator import OFFSETS, Coordinator, Transactional
from tests.simulation.cluster.loop import Loop, Process
from tests.simulation.cluster.partition_log import PartitionLog
from tests.simulation.cluster.wire import SimConnection, Weather

Respond = Callable[[SimpleNamespace], None]


@dataclass(slots=True)
class Topic:
    name: str
    topic_id: UUID
    partitions: list[TopicPartition]
    cleanup_policy: str = "delete"


@dataclass(slots=True)
class GroupOffsets:
    """The group coordinator: offsets, and what open transactions would make of them."""

    committed: dict[tuple[str, TopicPartition], tuple[int, str]] = field(default_factory=dict)
    pending: dict[int, dict[tuple[str, TopicPartition], tuple[int, str]]] = field(default_factory=dict)
    """By producer id."""
    epochs: dict[int, int] = field(default_factory=dict)
    joined: set[tuple[int, int]] = field(default_factory=set)
    """(producer id, epoch) that the transaction coordinator knows to be writing here."""


@dataclass(slots=True)
class Past:
    """What a node that is cut off from all others takes for true, and tells whoever asks it."""

    logs: dict[TopicPartition, PartitionLog]
    """Of the partitions that it led."""
    leaders: dict[TopicPartition, int]
    transaction_node: int
    group_node: int
    groups: GroupOffsets
    transactions: dict[str, Transactional]
    unanswered: list[Callable[[], None]] = field(default_factory=list)
    """What it would need the others for."""


class SimNode:
    def __init__(self, cluster: SimCluster, number: int) -> None:
        self.cluster, self.number = cluster, number
        self.is_up, self.is_frozen = True, False
        self.past: Past | None = None
        self.lacks: set[str] = set()
        """Topics that its metadata doesn't know yet."""
        self.connections: list[SimConnection] = []
        self._missed: list[Callable[[], None]] = []
        self.life = 0

    def __str__(self) -> str:
        return f"{self.cluster.name}:{self.number}"

    def receive(self, request: Any, connection: int, respond: Respond) -> None:
        if not self.is_up:
            return
        if self.is_frozen:
            self._missed.append(lambda: self.receive(request, connection, respond))
            return
        life = self.life

        def answer(reply: SimpleNamespace) -> None:
            if self.life != life:
                return
            if self.is_frozen:
                self._missed.append(lambda: answer(reply))
            else:
                respond(reply)

        handle(self, request, connection, answer)

    @property
    def is_in_touch(self) -> bool:
        return self.is_up and self.past is None

    def log(self, tp: TopicPartition) -> PartitionLog | None:
        """If this node leads the partition, as far as it knows."""
        if self.past is not None:
            return self.past.logs.get(tp)
        return self.cluster.logs[tp] if self.cluster.leaders.get(tp) == self.number else None

    def freeze(self) -> None:
        self.is_frozen = True

    def thaw(self) -> None:
        self.is_frozen = False
        missed, self._missed = self._missed, []
        for act in missed:
            act()

    def lose_touch(self) -> None:
        """Cut off from the other nodes, not from its clients: it is deposed and doesn't know it."""
        cluster = self.cluster
        led = [tp for tp, leader in cluster.leaders.items() if leader == self.number]
        self.past = Past(
            {tp: cluster.logs[tp].as_it_is() for tp in led},
            dict(cluster.leaders),
            cluster.transaction_node,
            cluster.group_node,
            deepcopy(cluster.groups),
            deepcopy(cluster.coordinator.known),
        )
        cluster.on_loss(self.number)

    def find_touch(self) -> None:
        past, self.past = self.past, None
        if past is not None:
            self.cluster.on_return(self.number)
            for answer in past.unanswered:
                answer()

    def crash(self) -> None:
        self.is_up, self.is_frozen, self.past = False, False, None
        self.life += 1
        self._missed.clear()
        for connection in list(self.connections):
            connection.close("the broker died")
        self.cluster.on_loss(self.number)

    def restart(self) -> None:
        self.is_up = True
        self.cluster.on_return(self.number)


class SimCluster:
    def __init__(
        self, loop: Loop, name: str, *, nodes: int = 1, is_v2: bool = True, random: Random | None = None
    ) -> None:
        self.loop, self.name, self.is_v2 = loop, name, is_v2
        self.random = random or loop.random
        """Decides what happens to it; how requests fare is decided by the loop's."""
        self.nodes = [SimNode(self, number) for number in range(nodes)]
        self.cluster_id = f"simulated-{name}"
        self.weather = Weather()
        self.is_stormy = False
        self.topics: dict[str, Topic] = {}
        self.logs: dict[TopicPartition, PartitionLog] = {}
        self.leaders: dict[TopicPartition, int] = {}
        self.coordinator = Coordinator(self)
        self.transaction_node = self.group_node = 0
        self.groups = GroupOffsets()
        self.most_epochs = 32_766
        self.marker_delay = 0.005
        self.replication_delay = 0.002
        self.refuses_for_replicas = 0.0
        self.refused_lookups = 0.0
        """Of the questions for the first record of a time or later."""
        self.most_batches_of_a_fetch = 1_000
        self.remote_reads: dict[TopicPartition, float] = {}
        """Tiered partitions: how many seconds a read of them takes."""
        self.unanswered: dict[int, Callable[[int], None]] = {}
        """What a coordinator has still to answer: after a move the answer is NOT_COORDINATOR."""
        self.on_change: Callable[[TopicPartition], None] = lambda _: None
        self.on_append: Callable[[TopicPartition, Any, int], None] = lambda *_: None
        self.on_send: Callable[[Process, Any, int, int], None] = lambda *_: None
        self.on_answer: Callable[[Process, Any, Any], None] = lambda *_: None
        self.on_complete: Callable[[], None] = lambda: None
        self.on_prepare: Callable[[list[TopicPartition], bool], None] = lambda *_: None
        self.on_cut: Callable[[TopicPartition, int], None] = lambda *_: None
        self.unclean: set[TopicPartition] = set()
        self._waiting: dict[TopicPartition, list[tuple[int, int, Callable[[bool], None]]]] = {}
        self._producer_ids = 1_000
        self._connections = self._numbers = 0

    # making

    def create_topic(self, name: str, partitions: int) -> Topic:
        topic_id = UUID(int=self.random.getrandbits(128) | 1)
        topic = Topic(name, topic_id, [TopicPartition(name, p) for p in range(partitions)])
        self.topics[name] = topic
        for tp in topic.partitions:
            self.logs[tp] = PartitionLog(tp, topic_id, is_v2=self.is_v2)
            self.leaders[tp] = self.random.randrange(len(self.nodes))
        return topic

    def grow_topic(self, name: str) -> TopicPartition:
        topic = self.topics[name]
        tp = TopicPartition(name, len(topic.partitions))
        topic.partitions.append(tp)
        self.logs[tp] = PartitionLog(tp, topic.topic_id, is_v2=self.is_v2)
        up = [node.number for node in self.nodes if node.is_in_touch]
        self.leaders[tp] = self.random.choice(up) if up else -1
        return tp

    def next_producer_id(self) -> int:
        self._producer_ids += 1
        return self._producer_ids

    def next_connection(self) -> int:
        self._connections += 1
        return self._connections

    def next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    # writing

    def appended(self, tp: TopicPartition, up_to: int, then: Callable[[bool], None]) -> None:
        """Calls back when everything before `up_to` is replicated, or when another node leads."""
        log = self.logs[tp]
        self._waiting.setdefault(tp, []).append((up_to, log.leader_epoch, then))
        epoch = log.leader_epoch
        self.loop.after(
            self.random.uniform(0.0001, self.replication_delay),
            lambda: self._replicated(tp, up_to, epoch),
        )

    def _replicated(self, tp: TopicPartition, up_to: int, epoch: int) -> None:
        log = self.logs[tp]
        if log.leader_epoch != epoch or self.leaders[tp] < 0:
            return
        log.replicate(min(up_to, log.end))
        waiting = self._waiting.pop(tp, [])
        left = [w for w in waiting if w[0] > log.high_watermark]
        if left:
            self._waiting[tp] = left
        for each in waiting:
            if each[0] <= log.high_watermark:
                each[2](True)
        self.on_change(tp)

    def append_directly(self, tp: TopicPartition, data: bytes) -> int:
        """By somebody on the spot: a producer of the source, a foreign writer."""
        log = self.logs[tp]
        from causeway.core.records.batches import parse_head

        base = log.append(data, parse_head(memoryview(data)))
        self.appended(tp, log.end, lambda _: None)
        return base

    def mark_directly(self, tp: TopicPartition, producer_id: int, epoch: int, *, commit: bool) -> None:
        log = self.logs[tp]
        log.append_marker(producer_id, epoch, commit=commit)
        self.appended(tp, log.end, lambda _: None)

    def write_marker(
        self, tp: TopicPartition, producer_id: int, epoch: int, then: Callable[[bool], None], *, commit: bool
    ) -> None:
        if tp == OFFSETS:
            node = self.nodes[self.group_node]
            if not node.is_up or node.is_frozen:
                then(False)
                return
            self._end_offsets(producer_id, epoch, commit=commit)
            then(True)
            return
        leader = self.leaders[tp]
        if leader < 0 or not self.nodes[leader].is_up or self.nodes[leader].is_frozen:
            then(False)
            return
        log = self.logs[tp]
        if log.append_marker(producer_id, epoch, commit=commit) is None:
            then(True)
        else:
            self.loop.note(lambda: f"marker {'commit' if commit else 'abort'} {tp} at {log.end - 1}")
            self.appended(tp, log.end, then)

    def _end_offsets(self, producer_id: int, epoch: int, *, commit: bool) -> None:
        groups = self.groups
        if epoch < groups.epochs.get(producer_id, -1):
            return
        groups.epochs[producer_id] = epoch
        groups.joined = {j for j in groups.joined if j[0] != producer_id}
        pending = groups.pending.pop(producer_id, {})
        if commit:
            groups.committed.update(pending)
            for _, tp in pending:
                self.on_change(tp)

    # what happens to it

    def elect(self, tp: TopicPartition, *, unclean: bool = False) -> None:
        """Another leader; what wasn't replicated may be gone, and uncleanly even what was."""
        log, random = self.logs[tp], self.random
        up = [node.number for node in self.nodes if node.is_in_touch]
        self.leaders[tp] = random.choice(up) if up else -1
        for _, _, then in self._waiting.pop(tp, []):
            then(False)
        if not up:
            return
        least = log.replicated
        if unclean:
            markers = [b.base for b in log.batches[-12:] if b.commits is not None and b.base >= log.start]
            reach = max(log.start, log.end - random.choice((1, 3, 10, 40)))
            least = random.choice([reach, *markers])  # markers are what hurts most
            self.unclean.add(tp)
        before = log.end
        log.lead_anew(random.choice((least, least, random.randint(least, log.end))))
        log.forget_how_far_replicated(random.random())
        self.loop.note(
            lambda: (
                f"{'unclean ' if unclean else ''}election {self.name} {tp} epoch {log.leader_epoch}: "
                f"end {before} -> {log.end}, led by {self.leaders[tp]}"
            )
        )
        if log.end < before:
            self.on_cut(tp, log.end)
        epoch, end = log.leader_epoch, log.end
        self.loop.after(random.uniform(0.001, 0.2), lambda: self._replicated(tp, end, epoch))
        self.on_change(tp)

    def move_coordinators(self) -> None:
        up = [node.number for node in self.nodes if node.is_in_touch]
        if not up:
            return
        self.transaction_node, self.group_node = (self.random.choice(up) for _ in range(2))
        self.coordinator.move()
        waiting, self.unanswered = self.unanswered, {}
        for give_up in waiting.values():
            give_up(16)

    def on_loss(self, number: int) -> None:
        self.loop.note(lambda: f"{self.name}:{number} is lost to the others")
        for tp, leader in self.leaders.items():
            if leader == number:
                self.elect(tp)
        if number in (self.transaction_node, self.group_node):
            self.move_coordinators()

    def on_return(self, number: int) -> None:
        self.loop.note(lambda: f"{self.name}:{number} is back")
        if any(n.is_in_touch and n.number != number for n in self.nodes):
            return
        for tp, leader in self.leaders.items():
            if leader < 0:
                self.elect(tp)
        self.move_coordinators()
