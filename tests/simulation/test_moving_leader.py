"""A leader that moves says nothing of a partition's past."""

from __future__ import annotations

from causeway.brokers.log_reader import WireLogReader
from causeway.brokers.target_log import WireTarget
from causeway.core.flow import CopyLimits
from causeway.core.identity import Generation, Pair, SourceOffset
from causeway.core.lane_task import Assignment, LaneTask, PartitionRow
from causeway.flows.lane.survey import Survey
from tests.simulation.cluster import SimCluster
from tests.simulation.loop import Loop, Process, VirtualNetwork
from tests.simulation.wire import SimWire


def test_without_position_a_leader_that_moves_is_waited_for():
    loop = Loop(1)
    source, target = SimCluster(loop, "sf"), SimCluster(loop, "nyc", nodes=2)
    here, there = source.create_topic("orders", 1), target.create_topic("sf.orders", 1)
    target.create_topic("map", 1)
    network = VirtualNetwork(Process(loop, "worker"))
    reader, writer = (
        WireLogReader(SimWire(source, network, "sf")),
        WireTarget(SimWire(target, network, "nyc")),
    )
    tp = there.partitions[0]
    pair = Pair(
        source=here.partitions[0], target=tp, source_topic_id=here.topic_id, target_topic_id=there.topic_id
    )
    assignment = Assignment(pair=pair, end=SourceOffset(0), start=None, known=True)
    task = LaneTask(
        flow="f",
        group="causeway.f",
        lane=0,
        transactional_id="causeway.f.0",
        generation=Generation(0),
        map_topic="map",
        map_partitions=1,
        limits=CopyLimits(),
        assignments=(assignment,),
    )
    rows = {tp: PartitionRow(source=pair.source, target=tp)}

    async def look():
        for wire in (reader.wire, writer.wire):
            await wire.connect()
        await writer.log_ends([tp])  # now it is known who leads
        target.leaders[tp] = 1 - target.leaders[tp]
        return await Survey(task, reader, writer, rows).look([assignment], stable=True)

    assert network.run(look) == {}
    assert rows[tp].parked is None
    assert "NOT_LEADER_OR_FOLLOWER" in rows[tp].later
    assert tp in network.run(lambda: Survey(task, reader, writer, rows).look([assignment], stable=True))
