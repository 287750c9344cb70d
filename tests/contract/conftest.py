"""A target cluster with a topic of its own per test: simulated or real, with transactions v2 or v1."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest
from confluent_kafka.admin import NewTopic

from causeway.brokers.transport.connection import Network, Wire
from causeway.brokers.wire.lane_transaction import LaneTransaction
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.ports import AppendAnswer, LogEnd
from causeway.core.copy.producer import ProducerState
from causeway.core.kernel.identity import TopicPartition
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.records.compression import Codec
from causeway.core.records.records import Record, encode_batch
from causeway.core.state.position import Position
from causeway.lab.clients import wait_for_leaders
from tests.simulation.cluster.cluster import SimCluster
from tests.simulation.cluster.loop import Loop, Process, VirtualNetwork
from tests.simulation.cluster.wire import SimWire
from tests.support import builders

TIMEOUT_MS = 20_000
FIRST_MS = 1_700_000_000_000


@dataclass
class Bench:
    """One topic `t` of two partitions, and as many clients as a test likes."""

    network: Any
    new_wire: Callable[[], Wire]
    is_v2: bool
    topic: str
    topic_id: UUID
    lane: str
    group: str

    @property
    def here(self) -> TopicPartition:
        return TopicPartition(self.topic, 0)

    @property
    def there(self) -> TopicPartition:
        return TopicPartition(self.topic, 1)

    def run(self, work: Callable[[], Awaitable[Any]]) -> Any:
        return self.network.run(work)

    async def client(self) -> WireTarget:
        target = WireTarget(self.new_wire())
        await target.wire.connect()
        return target

    async def claim(self) -> tuple[WireTarget, LaneTransaction]:
        """A client of its own, as another worker has it."""
        target = await self.client()
        owner = await target.claim(self.lane, timeout_ms=TIMEOUT_MS)
        assert isinstance(owner, LaneTransaction)
        return target, owner

    def as_before(self, target: WireTarget, producer: ProducerState) -> LaneTransaction:
        """Somebody who still believes in this epoch."""
        held = ProducerState(producer.producer_id, producer.epoch)
        return LaneTransaction(target.wire, self.lane, TIMEOUT_MS, held)

    async def append(
        self, owner: LaneTransaction, tp: TopicPartition, count: int, *, at: int | None = None
    ) -> AppendAnswer:
        """The answer for a batch of so many records; repeated while the last transaction completes."""
        sequence = owner.producer.take_sequence(tp, count) if at is None else at
        batch = data(owner.producer, count, sequence)
        for _ in range(500):
            answer = (await owner.append({tp: batch}))[tp]
            if getattr(answer, "code", 0) != 51:
                return answer
            await self.network.sleep(0.01)
        raise AssertionError("the last transaction doesn't complete")

    async def settled(self, target: WireTarget, tp: TopicPartition) -> tuple[int, int]:
        """Last stable offset and end, once they are the same: a marker takes a moment."""
        for _ in range(500):
            stable, end = (await target.last_stables([tp]))[tp], (await self.end(target, tp)).offset
            if stable == end:
                break
            await self.network.sleep(0.01)
        assert isinstance(stable, int)
        return stable, end

    async def end(self, target: WireTarget, tp: TopicPartition) -> LogEnd:
        end = (await target.log_ends([tp]))[tp]
        assert isinstance(end, LogEnd)
        return end

    def position(self, source_next: int, target_next: int) -> Position:
        return builders.position(source_next, target_next, target_topic_id=self.topic_id, time_ms=2)


def data(producer: ProducerState, count: int, sequence: int) -> bytes:
    return encode_batch(
        [Record(i, FIRST_MS + i, b"k", b"v%d" % i) for i in range(count)],
        codec=Codec.NONE,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        base_sequence=sequence,
    )


@pytest.fixture
def partitions() -> int:
    """Of the bench's topic; a module that wants more has a fixture of its own."""
    return 2


@pytest.fixture(params=["simulated", "simulated_v1", "real", "real_v1"])
def bench(request: pytest.FixtureRequest, topic_name: Callable[..., str], partitions: int) -> Iterator[Bench]:
    kind = request.param
    is_v2 = not kind.endswith("v1")
    if kind.startswith("simulated"):
        yield _simulated(partitions, is_v2=is_v2)
        return
    cluster = request.getfixturevalue("nyc" if is_v2 else "nyc_v1")
    admin = request.getfixturevalue("admin_of")(cluster)
    name = topic_name("contract")
    existing = admin.list_topics(timeout=20).topics
    wanted = [NewTopic(name, partitions, 1)]
    if FLOWS_TOPIC not in existing:  # as the product makes it: other tests find it there
        wanted.append(NewTopic(FLOWS_TOPIC, 1, 1, config={"cleanup.policy": "compact"}))
    for made in admin.create_topics(wanted).values():
        made.result()
    wait_for_leaders(admin, {name: partitions, FLOWS_TOPIC: 1})
    network, wires = Network(), list[Wire]()

    def new_wire() -> Wire:
        wires.append(Wire(cluster.endpoint(), network))
        return wires[-1]

    first = new_wire()
    network.run(first.connect)

    async def known() -> UUID:
        for _ in range(200):
            found = (await first.topics([name]))[name]
            if not found.error and len(found.leaders) == partitions and min(found.leaders.values()) >= 0:
                break
            await network.sleep(0.05)
        return found.topic_id

    topic_id = network.run(known)
    made = Bench(network, new_wire, is_v2, name, topic_id, f"causeway.{name}.0", f"causeway.{name}")
    yield made
    made.run(made.claim)  # what the test left open is aborted now, not in the middle of another test
    for wire in wires:
        wire.disconnect()
    network.close()


def _simulated(partitions: int, *, is_v2: bool) -> Bench:
    loop = Loop(1)
    cluster = SimCluster(loop, "nyc", is_v2=is_v2)
    topic = cluster.create_topic("t", partitions)
    cluster.create_topic(FLOWS_TOPIC, 1)
    network = VirtualNetwork(Process(loop, "test"))
    return Bench(
        network,
        lambda: SimWire(cluster, network, "nyc"),
        is_v2,
        "t",
        topic.topic_id,
        "causeway.t.0",
        "causeway.t",
    )
