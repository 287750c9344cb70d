"""Two unclean elections of the target: what an abort had hidden comes back, and its copy is lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pytest

from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.lane_task import LaneResult
from causeway.core.copy.ports import Appended, OutcomeUnknown
from causeway.core.kernel.identity import Generation, TargetOffset, TopicPartition
from causeway.core.offsets.map_format import encode_place
from causeway.core.records.batches import parse_head
from causeway.core.records.compression import Codec
from causeway.core.records.records import Record, decode_records, encode_batch
from causeway.core.state.parked import ParkReason
from causeway.core.state.position import Position
from causeway.usecases.copy.lane import tail
from causeway.usecases.copy.lane.copying import LaneCopy
from causeway.usecases.copy.lane.inspect import PartitionState
from causeway.usecases.copy.lane.run import run_lane
from tests.simulation.cases.small_stage import GROUP, Stage
from tests.simulation.cluster.loop import VirtualNetwork

_end = LaneCopy._end


async def dies(self: LaneCopy, *what: Any) -> None:
    """A lane that commits its position, first, and no data."""
    if not self.transactions:
        return await _end(self, *what)
    raise OutcomeUnknown("its connection broke")


def shown(at: Stage) -> int:
    """Records that a reader with isolation sees."""
    batches = [memoryview(stored.data) for stored in at.target.logs[at.mirror].visible()]
    return sum(len(decode_records(batch, parse_head(batch))) for batch in batches)


@pytest.mark.parametrize("is_asked", [True, False], ids=["as it is", "the rule taken out"])
def test_what_shows_again_is_not_copied_a_third_time(is_asked: bool) -> None:
    at = Stage()
    at.write()
    at.write()
    network, reader, target = at.worker("worker")
    generation = at.begin(network, target)
    assert network.run(lambda: run_lane(at.task(generation), reader, target, network)).outcome == "done"
    at.settle()
    assert shown(at) == 2
    log = at.target.logs[at.mirror]
    first = log.batches[0].head

    log.lead_anew(log.batches[-1].base)  # its marker is lost, and what ends it instead is an abort
    at.target.mark_directly(at.mirror, first.producer_id, first.producer_epoch, commit=False)
    at.settle()
    aborted_at = log.batches[-1].base
    for _ in range(2):  # the first finds out who leads now
        network.run(lambda: run_lane(at.task(generation, known=True), reader, target, network))
    at.settle()
    assert shown(at) == 2, "copied again"

    log.lead_anew(aborted_at)  # the abort is lost, and so is the copy; this time it is a commit that ends it
    at.target.mark_directly(at.mirror, first.producer_id, first.producer_epoch, commit=True)
    at.settle()
    assert shown(at) == 2
    as_it_was = tail._tail_start if is_asked else lambda ground: int(ground.target_next)
    with patch.object(tail, "_tail_start", as_it_was):
        for _ in range(2):
            result = network.run(lambda: run_lane(at.task(generation, known=True), reader, target, network))
    at.settle()
    (row,) = result.rows
    if is_asked:
        assert row.parked is not None
        assert row.parked.reason is ParkReason.TARGET_TAIL_UNPROVED
        assert "brought them back" in row.parked.facts
    assert shown(at) == (2 if is_asked else 4)


def test_what_an_adoption_took_as_it_was_does_not_show_again() -> None:
    """The target loses all that was mirrored since: what others wrote before the adoption is still shown."""
    at = Stage()
    at.write()
    batch = encode_batch(
        [Record(0, 1_000, b"k", b"of others")],
        codec=Codec.NONE,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        transactional=False,
    )
    at.target.append_directly(at.mirror, batch)
    at.settle()
    network, reader, target = at.worker("worker")
    adopted_at = at.begin(network, target)
    position = replace(
        at.position(0), target_next=TargetOffset(1), generation=Generation(adopted_at), is_placed=True
    )
    _set_by_hand(network, target, at.mirror, position)
    generation = at.begin(network, target)
    task = at.task(generation, known=True)
    task = replace(task, assignments=tuple(replace(a, adopted_at=adopted_at) for a in task.assignments))
    assert network.run(lambda: run_lane(task, reader, target, network)).outcome == "done"
    at.settle()
    assert shown(at) == 2

    at.target.logs[at.mirror].lead_anew(1)
    for _ in range(2):
        result = network.run(lambda: run_lane(task, reader, target, network))
    at.settle()
    (row,) = result.rows
    assert row.parked is None
    assert shown(at) == 2


def _set_by_hand(
    network: VirtualNetwork, target: WireTarget, mirror: TopicPartition, position: Position
) -> None:
    """As `usecases/repair/set_positions.py` does, on a stage without its clusters."""

    async def commit() -> None:
        owner = await target.claim("causeway.f.0", timeout_ms=60_000)
        place = TopicPartition("map", 0)
        batch = encode_batch(
            [Record(0, 1_000, *encode_place(mirror, position))],
            codec=Codec.NONE,
            producer_id=owner.producer.producer_id,
            producer_epoch=owner.producer.epoch,
            base_sequence=owner.producer.take_sequence(place, 1),
        )
        assert isinstance((await owner.append({place: batch}))[place], Appended)
        await owner.commit_positions(GROUP, {mirror: position})
        await owner.end(commit=True)

    network.run(commit)


@pytest.mark.parametrize("is_asked", [True, False], ids=["as it is", "the rule taken out"])
def test_what_hangs_is_closed_only_under_the_leader_that_was_looked_at(is_asked: bool) -> None:
    """An aborted attempt hangs again once an unclean election has lost its marker and all after it. The rule
    above backs up this one, and is taken out with it."""

    async def after_an_election(self: tail.TailCheck, grounds: dict[TopicPartition, PartitionState]) -> None:
        log.lead_anew(abort_at)
        await settle_ends(self, grounds)

    async def nothing(*_: object) -> bool:
        return False

    at = Stage()
    at.write()
    network, reader, target = at.worker("worker")
    generation = at.begin(network, target)

    def run(*, known: bool = True) -> LaneResult:
        result = network.run(lambda: run_lane(at.task(generation, known=known), reader, target, network))
        at.settle()
        return result

    with patch.object(LaneCopy, "_end", dies):
        assert run(known=False).outcome == "doubt"
    log, settle_ends = at.target.logs[at.mirror], tail.TailCheck.settle_ends
    run()
    (abort_at,) = [batch.base for batch in log.batches if batch.commits is False]
    assert shown(at) == 1

    rule = tail.TailCheck._drop_newly_led if is_asked else nothing
    start = tail._tail_start if is_asked else lambda ground: int(ground.target_next)
    with patch.object(tail.TailCheck, "_drop_newly_led", rule), patch.object(tail, "_tail_start", start):
        with patch.object(tail.TailCheck, "settle_ends", after_an_election):
            run()
        for _ in range(3):
            run()
    assert shown(at) == (1 if is_asked else 2)


def test_an_attempt_before_a_position_without_records_is_no_lost_record() -> None:
    """The log is cut to an aborted attempt: from there it is copied again, and the lane dies once more."""
    at = Stage()
    at.write()
    network, reader, target = at.worker("worker")
    generation = at.begin(network, target)

    def run(*, known: bool = True) -> LaneResult:
        result = network.run(lambda: run_lane(at.task(generation, known=known), reader, target, network))
        at.settle()
        return result

    with patch.object(LaneCopy, "_end", dies):
        assert run(known=False).outcome == "doubt"
    run()
    log = at.target.logs[at.mirror]
    log.lead_anew(next(batch.base for batch in log.batches if batch.commits is False))
    with patch.object(LaneCopy, "_end", dies):
        while run().outcome != "doubt":  # the first ones find out who leads now
            pass
    log.lead_anew(log.end)
    for _ in range(3):
        (row,) = run().rows
    assert row.parked is None
    assert shown(at) == 1
