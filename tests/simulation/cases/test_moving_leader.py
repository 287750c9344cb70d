"""A leader that moves says nothing of a partition's past, and nothing is committed over its move."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest

from causeway.core.copy.lane_task import PartitionRow
from causeway.core.kernel.identity import TopicPartition
from causeway.core.records.batches import parse_head
from causeway.core.records.compression import Codec
from causeway.core.records.records import Record, encode_batch
from causeway.usecases.copy.lane.copying import LaneCopy
from causeway.usecases.copy.lane.inspect import LaneInspection, PartitionState
from causeway.usecases.copy.lane.partition_stream import PartitionStream
from causeway.usecases.copy.lane.run import run_lane
from tests.simulation.cases.small_stage import Stage
from tests.simulation.cluster.loop import Process


def test_without_position_a_leader_that_moves_is_waited_for() -> None:
    at = Stage()
    network, reader, target = at.worker("worker")
    task = at.task(0, known=True)
    rows = {at.mirror: PartitionRow(source=at.pair.source, target=at.mirror)}

    async def look() -> dict[TopicPartition, PartitionState]:
        await target.log_ends([at.mirror])  # now it is known who leads
        at.target.leaders[at.mirror] = 0
        return await LaneInspection(task, reader, target, rows).look(task.assignments, stable=True)

    assert network.run(look) == {}
    assert rows[at.mirror].parked is None
    assert "NOT_LEADER_OR_FOLLOWER" in rows[at.mirror].later
    again = network.run(
        lambda: LaneInspection(task, reader, target, rows).look(task.assignments, stable=True)
    )
    assert at.mirror in again


async def believe(self: LaneCopy, touched: list[PartitionStream]) -> None:
    for stream in touched:
        stream.target_epoch = stream.leader_epoch


@pytest.mark.parametrize("asks_who_leads", [True, False], ids=["as it is", "the rule taken out"])
def test_a_leader_that_moves_in_the_middle_of_a_transaction_aborts_it(asks_who_leads: bool) -> None:
    at = Stage()
    at.write()
    network, reader, target = at.worker("worker")
    generation = at.begin(network, target)

    def move_once(tp: TopicPartition, *_: object) -> None:
        if tp == at.mirror:
            at.target.on_append = lambda *_: None
            at.loop.after(at.target.replication_delay, lambda: at.target.logs[tp].lead_anew(1))

    at.target.on_append = move_once
    with patch.object(LaneCopy, "_prove_ends", LaneCopy._prove_ends if asks_who_leads else believe):
        first = network.run(lambda: run_lane(at.task(generation), reader, target, network))
    at.settle()
    ends = [batch.commits for batch in at.target.logs[at.mirror].batches if batch.commits is not None]
    assert (first.outcome, ends) == (("doubt", [False]) if asks_who_leads else ("done", [True]))
    if asks_who_leads:
        assert "changed in the middle of a transaction" in first.why
        assert network.run(lambda: run_lane(at.task(generation), reader, target, network)).outcome == "done"
    at.settle()
    assert len(list(at.target.logs[at.mirror].visible())) == 1


def test_what_others_aborted_on_a_fresh_partition_is_no_lost_record_of_ours() -> None:
    at = Stage()
    network, reader, target = at.worker("worker")
    batch = encode_batch(
        [Record(0, 1_000, b"k", b"theirs")],
        codec=Codec.NONE,
        producer_id=77,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    at.target.append_directly(at.mirror, batch)
    at.settle()
    generation, ends_told = at.begin(network, target), []

    def abort_when_the_end_is_told(_: Process, request: Any, reply: Any) -> None:
        if type(request).__name__ == "ListOffsetsRequest" and reply.topics[0].name == at.mirror.topic:
            ends_told.append(reply.topics[0].partitions[0].offset)
            if len(ends_told) == 4:  # start and end, before the claim and after it
                at.target.mark_directly(at.mirror, 77, 0, commit=False)

    at.target.on_answer = abort_when_the_end_is_told
    network.run(lambda: run_lane(at.task(generation), reader, target, network))  # only a position
    assert ends_told[:4] == [0, 1, 0, 1]
    at.target.elect(at.mirror)
    at.settle()
    at.write()
    for _ in range(2):  # the first finds out who leads now
        result = network.run(lambda: run_lane(at.task(generation, known=True), reader, target, network))
        assert (result.outcome, result.rows[0].parked) == ("done", None)
    at.settle()
    (copied,) = at.target.logs[at.mirror].visible()
    assert parse_head(memoryview(copied.data)).record_count == 1
