"""What may be settled, one condition a test: anything odd leaves the transaction to the claim."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from unittest.mock import patch

import pytest

from causeway.brokers.wire.lane_transaction import LaneTransaction
from causeway.brokers.wire.log_reader import WireLogReader
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.lane_task import Assignment, LaneResult, LaneTask, PartitionRow
from causeway.core.copy.ports import OpenTransaction, OutcomeUnknown
from causeway.core.kernel.identity import Generation, Pair, SourceOffset, TargetOffset, TopicPartition
from causeway.core.model.flow import CopyLimits
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.records.compression import Codec
from causeway.core.records.records import Record, encode_batch
from causeway.core.state.parked import ParkReason
from causeway.core.state.position import Position
from causeway.usecases.copy.lane.inspect import PartitionState
from causeway.usecases.copy.lane.run import run_lane
from causeway.usecases.copy.lane.settle import Settling
from causeway.usecases.copy.lane.tail import TailCheck
from tests.simulation.cases.small_stage import Stage
from tests.simulation.cluster.cluster import SimCluster
from tests.simulation.cluster.loop import START_MS, Loop, Process, VirtualNetwork
from tests.simulation.cluster.wire import SimWire

_LANE = "causeway.f.0"
_PARTITIONS = 2


@dataclass
class Scene:
    """Three records on each source partition, and a lane that died after it had appended them."""

    is_v2: bool = True
    loop: Loop = field(default_factory=lambda: Loop(1))

    def __post_init__(self) -> None:
        self.source = SimCluster(self.loop, "sf")
        self.target = SimCluster(self.loop, "nyc", is_v2=self.is_v2)
        here, there = (
            self.source.create_topic("orders", _PARTITIONS),
            self.target.create_topic("sf", _PARTITIONS),
        )
        self.target.create_topic(FLOWS_TOPIC, 1)
        self.network = VirtualNetwork(Process(self.loop, "worker"))
        self.reader = WireLogReader(SimWire(self.source, self.network, "sf"))
        self.writer = WireTarget(SimWire(self.target, self.network, "nyc"))
        self.seen: dict[TopicPartition, PartitionState] = {}
        for ours, theirs in zip(here.partitions, there.partitions, strict=True):
            self.source.append_directly(ours, batch(b"record"))
            pair = Pair(
                source=ours, target=theirs, source_topic_id=here.topic_id, target_topic_id=there.topic_id
            )
            self.seen[theirs] = ground(pair)

    def settled(self, *, appended: bytes = b"record", then: Callable[[Scene], None] = lambda _: None) -> bool:
        """Whether the dead lane's transaction is committed."""
        return bool(self.network.run(lambda: self._settle(appended, then)))

    async def _settle(self, appended: bytes, then: Callable[[Scene], None]) -> bool:
        await self.reader.wire.connect()
        await self.writer.wire.connect()
        owner = await self.writer.claim(_LANE, timeout_ms=60_000)
        assert isinstance(owner, LaneTransaction)
        producer = owner.producer
        await owner.append({tp: batch(appended, producer.producer_id, producer.epoch) for tp in self.seen})
        then(self)
        task = lane_task([ground.assignment for ground in self.seen.values()])
        rows = {tp: PartitionRow(source=tp, target=tp) for tp in self.seen}
        settling = Settling(task, self.reader, self.writer, self.network, rows)
        await settling.settle(self.seen)
        if await self.writer.open_transaction(_LANE) is not None:
            return False
        await self.network.sleep(1)
        return all(log.last_stable == log.end for log in self.target.logs.values())


def batch(value: bytes, producer_id: int = -1, epoch: int = -1) -> bytes:
    return encode_batch(
        [Record(i, START_MS + i, b"k", b"%s %d" % (value, i)) for i in range(3)],
        codec=Codec.NONE,
        producer_id=producer_id,
        producer_epoch=epoch,
        base_sequence=-1 if producer_id < 0 else 0,
        transactional=producer_id >= 0,
    )


def ground(pair: Pair) -> PartitionState:
    position = Position(
        source_next=SourceOffset(0),
        target_next=TargetOffset(0),
        source_topic_id=pair.source_topic_id,
        target_topic_id=pair.target_topic_id,
        source_epoch=-1,
        target_epoch=0,
        generation=Generation(0),
        producer_id=1_001,
        time_ms=START_MS,
    )
    return PartitionState(
        assignment=Assignment(pair=pair, end=SourceOffset(3), start=None, known=True),
        position=position,
        source_next=SourceOffset(0),
        source_epoch=-1,
        target_next=TargetOffset(0),
        target_end=3,
        target_epoch=0,
        log_start=0,
        leader_epoch=0,
    )


def lane_task(assignments: list[Assignment]) -> LaneTask:
    return LaneTask(
        flow="f",
        group="causeway.f",
        lane=0,
        transactional_id=_LANE,
        generation=Generation(0),
        map_topic="map",
        map_partitions=1,
        limits=CopyLimits(),
        assignments=tuple(assignments),
        settles=True,
    )


def test_what_is_equal_is_settled() -> None:
    assert Scene().settled()


def test_other_records_arent_though_they_are_as_many() -> None:
    assert not Scene().settled(appended=b"other ")


def test_transactions_of_version_1_arent() -> None:
    assert not Scene(is_v2=False).settled()


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
@pytest.mark.parametrize("side", ["source", "target"])
def test_compacted_topics_arent(side: str, policy: str) -> None:
    scene = Scene()
    for topic in getattr(scene, side).topics.values():
        topic.cleanup_policy = policy
    assert not scene.settled()


def test_a_transaction_with_a_partition_that_nobody_looked_at_isnt() -> None:
    def forget(scene: Scene) -> None:
        del scene.seen[TopicPartition("sf", 1)]

    assert not Scene().settled(then=forget)


@pytest.mark.parametrize("producer", [(-1, -1, -1), (77, 0, 0)], ids=["plain", "in a transaction"])
def test_a_record_of_somebody_else_after_it_prevents_it(producer: tuple[int, int, int]) -> None:
    def intrude(scene: Scene) -> None:
        data = batch(b"record", *producer[:2])
        scene.target.append_directly(TopicPartition("sf", 0), data)
        scene.source.append_directly(TopicPartition("orders", 0), data)  # even if it were the next one

    assert not Scene().settled(then=intrude)


def test_what_an_older_transaction_of_the_same_producer_left_open_prevents_it() -> None:
    """Its marker was lost: the next one would decide over it, too."""

    def lose_a_marker(scene: Scene) -> None:
        scene.target.groups.epochs.clear()
        log = scene.target.logs[TopicPartition("sf", 0)]
        older = log.batches[0].head
        data = batch(b"record", older.producer_id, older.producer_epoch + 1)
        scene.target.append_directly(TopicPartition("sf", 0), data)
        scene.source.append_directly(TopicPartition("orders", 0), data)

    assert not Scene().settled(then=lose_a_marker)


def test_without_a_position_or_with_a_lost_tail_nothing_is() -> None:
    def forget(scene: Scene) -> None:
        next(iter(scene.seen.values())).position = None

    def lose(scene: Scene) -> None:
        next(iter(scene.seen.values())).recopied_from = 0

    assert not Scene().settled(then=forget)
    assert not Scene().settled(then=lose)


class Trimmed:
    """A mirror whose worker dies with records open on the target; then the target's retention takes all."""

    def __init__(self) -> None:
        self.at = Stage()
        self.network, self.reader, self.target = self.at.worker("worker")
        self.generation = self.at.begin(self.network, self.target)
        assert self.run().rows[0].parked is None  # nothing to copy: only a first position
        self.at.source.append_directly(self.at.pair.source, batch(b"v"))
        self.network.run(self._die)

    def run(self) -> LaneResult:
        task = self.at.task(self.generation, known=True, settles=True)
        return self.network.run(lambda: run_lane(task, self.reader, self.target, self.network))

    async def _die(self) -> None:
        owner = await self.target.claim(_LANE, timeout_ms=60_000)
        await owner.append({self.at.mirror: batch(b"v", owner.producer.producer_id, owner.producer.epoch)})

    def trim(self) -> None:
        self.at.settle()
        log = self.at.target.logs[self.at.mirror]
        assert log.last_stable == log.end, "nothing is open any more"
        log.retain_from(log.end)


def test_what_was_settled_and_trimmed_before_any_position_is_not_copied_again() -> None:
    """Retention took what a successor had settled before its own claim, and died: readers have seen it,
    and nothing is left to compare."""
    scene = Trimmed()
    with patch.object(WireTarget, "claim", side_effect=OutcomeUnknown("it died")):
        assert scene.run().outcome == "doubt"
    scene.trim()
    parked = scene.run().rows[0].parked
    assert parked is not None
    assert parked.reason is ParkReason.TARGET_TAIL_UNPROVED


async def ended_meanwhile(self: WireTarget, transactional_id: str, transaction: OpenTransaction) -> bool:
    """It times out between the note and the commit: the commit is refused."""
    await self.claim(transactional_id, timeout_ms=60_000)
    return await _settle(self, transactional_id, transaction)


_settle = WireTarget.settle


def test_what_was_noted_and_not_settled_is_nobodys_loss_once_its_tail_was_read() -> None:
    """A successor notes how far it settles, is refused, reads that nothing is visible there, and dies before
    it appends. The note would stand forever, and retention would make it a loss."""
    scene = Trimmed()
    with (
        patch.object(WireTarget, "settle", ended_meanwhile),
        patch.object(LaneTransaction, "append", side_effect=OutcomeUnknown("it died")),
    ):
        assert scene.run().outcome == "doubt"
    scene.trim()
    row = scene.run().rows[0]
    assert (row.parked, row.later, row.records) == (None, "", 3)


def test_a_note_stays_for_as_long_as_nobody_has_read_the_tail() -> None:
    """The refusal alone doesn't tell who ended the transaction, and how."""
    scene = Trimmed()
    with (
        patch.object(WireTarget, "settle", ended_meanwhile),
        patch.object(TailCheck, "settle_ends", side_effect=OutcomeUnknown("it died")),
    ):
        assert scene.run().outcome == "doubt"
    scene.trim()
    parked = scene.run().rows[0].parked
    assert parked is not None
    assert parked.reason is ParkReason.TARGET_TAIL_UNPROVED


def test_the_note_of_what_was_settled_stays_until_a_position_has_passed_it() -> None:
    """The tail was read, proved, and its position isn't committed yet."""
    scene = Trimmed()
    with patch.object(LaneTransaction, "commit_positions", side_effect=OutcomeUnknown("it died")):
        assert scene.run().outcome == "doubt"
    scene.trim()
    parked = scene.run().rows[0].parked
    assert parked is not None
    assert parked.reason is ParkReason.TARGET_TAIL_UNPROVED


def test_what_was_aborted_and_trimmed_is_nobodys_loss() -> None:
    """Nothing was settled there, and no note says so: the mirror goes on, and nothing is reported."""
    scene = Trimmed()
    scene.network.run(lambda: scene.target.claim(_LANE, timeout_ms=60_000))  # which aborts
    scene.trim()
    row = scene.run().rows[0]
    assert (row.parked, row.later, row.records) == (None, "", 3)
