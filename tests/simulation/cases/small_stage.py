"""One record to copy, a target of two nodes: small enough to say what happens step by step."""

from __future__ import annotations

from causeway.brokers.wire.log_reader import WireLogReader
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.lane_task import Assignment, LaneTask, LastOwner
from causeway.core.kernel.identity import Generation, Pair, SourceOffset, TargetOffset, TopicPartition
from causeway.core.model.flow import CopyLimits
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.records.compression import Codec
from causeway.core.records.records import Record, encode_batch
from causeway.core.state.flow_records import run_record
from causeway.core.state.position import Position
from causeway.core.state.start_ledger import StartAt
from tests.simulation.cluster.cluster import SimCluster
from tests.simulation.cluster.loop import Loop, Process, VirtualNetwork
from tests.simulation.cluster.wire import SimWire

GROUP = "causeway.f"

BEGINNING = StartAt(offset=SourceOffset(0), epoch=-1, generation=0)


class Stage:
    """Node 1 leads everything, until a test says otherwise."""

    def __init__(self, seed: int = 3, *, source_nodes: int = 1, partitions: int = 1) -> None:
        self.loop = Loop(seed)
        self.source = SimCluster(self.loop, "sf", nodes=source_nodes)
        self.target = SimCluster(self.loop, "nyc", nodes=2)
        here = self.source.create_topic("orders", partitions)
        there = self.target.create_topic("sf.orders", partitions)
        self.target.create_topic(FLOWS_TOPIC, 1)
        self.target.create_topic("map", 1)
        self.mirror, self.flows = there.partitions[0], TopicPartition(FLOWS_TOPIC, 0)
        self.target.leaders = dict.fromkeys(self.target.leaders, 1)
        self.target.transaction_node = self.target.group_node = 1
        self.pairs = [
            Pair(
                source=source,
                target=target,
                source_topic_id=here.topic_id,
                target_topic_id=there.topic_id,
            )
            for source, target in zip(here.partitions, there.partitions, strict=True)
        ]
        self.pair = self.pairs[0]

    def write(self) -> None:
        """A record on each partition of the source."""
        batch = encode_batch(
            [Record(0, 1_000, b"k", b"v")],
            codec=Codec.NONE,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            transactional=False,
        )
        for pair in self.pairs:
            self.source.append_directly(pair.source, batch)
        self.settle()

    def settle(self, seconds: float = 1.0) -> None:
        self.loop.run(lambda: False, deadline=self.loop.now + seconds)

    def depose_node_0(self) -> None:
        self.target.nodes[0].lose_touch()

    def worker(self, name: str) -> tuple[VirtualNetwork, WireLogReader, WireTarget]:
        network = VirtualNetwork(Process(self.loop, name))
        reader = WireLogReader(SimWire(self.source, network, "sf"))
        target = WireTarget(SimWire(self.target, network, "nyc"))

        async def connect() -> None:
            await reader.wire.connect()
            await target.wire.connect()

        network.run(connect)
        return network, reader, target

    def task(
        self,
        generation: int,
        last_owner: LastOwner | None = None,
        *,
        known: bool = False,
        settles: bool = False,
    ) -> LaneTask:
        ends = {pair: SourceOffset(self.source.logs[pair.source].end) for pair in self.pairs}
        return LaneTask(
            flow="f",
            group=GROUP,
            lane=0,
            transactional_id="causeway.f.0",
            generation=Generation(generation),
            map_topic="map",
            map_partitions=1,
            limits=CopyLimits(),
            assignments=tuple(
                Assignment(pair=p, end=ends[p], start=BEGINNING, known=known) for p in self.pairs
            ),
            last_owner=last_owner,
            settles=settles,
        )

    def begin(self, network: VirtualNetwork, target: WireTarget) -> int:
        """A run's own record; its generation."""
        state = network.run(lambda: target.flow_state("f"))
        key, value = run_record("f", state, holder="run", run_id="1", lanes=1, at_ms=0)
        return int(network.run(lambda: target.append_plain(FLOWS_TOPIC, key, value)))

    def position(self, source_next: int) -> Position:
        return Position(
            source_next=SourceOffset(source_next),
            target_next=TargetOffset(0),
            source_topic_id=self.pair.source_topic_id,
            target_topic_id=self.pair.target_topic_id,
            source_epoch=0,
            target_epoch=0,
            generation=Generation(0),
            producer_id=1,
            time_ms=0,
        )
