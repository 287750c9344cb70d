"""A node that was deposed and doesn't know it, because it is cut off from the other nodes and not from us.

Nobody who asks it is told a lie, only what was true: what has to be true now is proved by writing first.
"""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import pytest

from causeway.core.flow_state import claimed_record
from causeway.core.naming import FLOWS_TOPIC
from causeway.core.ports import Doubt, LogEnd, Unreachable
from causeway.core.producer import ProducerEpoch
from causeway.flows.lane import run as lane_run
from causeway.flows.lane.run import run_lane
from causeway.flows.lane.survey import _refuse_deposed
from causeway.flows.ownership import write_fence
from tests.simulation.partition_log import PartitionLog
from tests.simulation.scenario import scenario_of
from tests.simulation.small_stage import GROUP, Stage
from tests.simulation.world import World


async def believe(self, _):
    return await self._may_not_run()


@pytest.mark.parametrize("knows_last_owner", [False, True])
@pytest.mark.parametrize("proves_its_turn", [True, False], ids=["as it is", "the rule taken out"])
def test_a_fence_that_a_deposed_leader_does_not_know_of_is_seen(proves_its_turn, knows_last_owner):
    at = Stage()
    at.write()
    at.target.leaders[at.flows] = 0
    network, reader, target = at.worker("late worker")
    flow = World(scenario_of(0)).flow_now()
    generation = at.begin(network, target)
    network.run(lambda: target.flow_state("f"))
    owner = network.run(lambda: target.claim("causeway.f.0", timeout_ms=60_000)).producer
    at.depose_node_0()
    at.target.nodes[0].is_up = False  # for a moment, so that who raises the fence asks the other node
    elsewhere, _, theirs = at.worker("who fences")
    elsewhere.run(lambda: write_fence(theirs, elsewhere, flow, by="ops", because="failover"))
    elsewhere.run(lambda: theirs.claim("causeway.f.0", timeout_ms=60_000))
    at.target.nodes[0].is_up = True
    task = at.task(generation, ProducerEpoch(owner.producer_id, owner.epoch) if knows_last_owner else None)
    with patch.object(
        lane_run._Lane,
        "_may_surely_not_run",
        lane_run._Lane._may_surely_not_run if proves_its_turn else believe,
    ):
        result = network.run(lambda: run_lane(task, reader, target, network))
    if proves_its_turn:
        assert result.outcome == "doubt", result.why  # it can't append to the leader that it takes for one
        assert at.target.logs[at.mirror].end == 0
        at.target.nodes[0].find_touch()
        target.wire.disconnect()
        network.run(target.wire.connect)
        again = network.run(lambda: run_lane(task, reader, target, network))
        assert (again.outcome, again.why) == ("fenced", "fenced by ops: failover")
    assert (at.target.logs[at.mirror].end == 0) is proves_its_turn


def test_who_follows_its_own_last_owner_needs_no_record_of_its_turn():
    at = Stage()
    at.write()
    network, reader, target = at.worker("worker")
    generation = at.begin(network, target)
    first = network.run(lambda: run_lane(at.task(generation), reader, target, network))
    assert (first.outcome, at.target.logs[at.flows].end) == ("done", generation + 2)
    again = at.task(generation, first.last_owner)
    second = network.run(lambda: run_lane(again, reader, target, network))
    assert (second.outcome, at.target.logs[at.flows].end) == ("done", generation + 2)
    network.run(lambda: target.claim("causeway.f.0", timeout_ms=60_000))  # somebody else's, in between
    late = at.task(generation, second.last_owner)
    third = network.run(lambda: run_lane(late, reader, target, network))
    assert (third.outcome, at.target.logs[at.flows].end) == ("done", generation + 3)


def test_what_was_appended_is_read_or_nothing_is_told():
    at = Stage()
    at.write()
    network, _, target = at.worker("worker")
    network.run(lambda: target.append_plain(FLOWS_TOPIC, *claimed_record("f", lane=0, generation=0)))
    at.target.leaders[at.flows] = 0
    whole, at.target.logs[at.flows] = (
        at.target.logs[at.flows],
        PartitionLog(at.flows, at.target.logs[at.flows].topic_id, is_v2=True),
    )
    at.depose_node_0()  # what it has is an empty log
    at.target.logs[at.flows] = whole
    target.wire._leaders[at.flows] = 0
    with pytest.raises(Unreachable):
        network.run(lambda: target.flow_state("f"))


def test_positions_are_those_of_the_coordinator_that_is_one():
    at = Stage()
    at.write()
    at.target.group_node = 0
    network, _, target = at.worker("worker")
    owner = network.run(lambda: target.claim("causeway.f.0", timeout_ms=60_000))

    def positions(asked, *, stable):
        return network.run(lambda: asked.positions(GROUP, [at.mirror], stable=stable))[at.mirror]

    async def commit(through, number):
        await through.commit_positions(GROUP, {at.mirror: at.position(number)})
        await through.end(commit=True)

    network.run(lambda: commit(owner, 5))
    at.settle()
    assert positions(target, stable=True) == at.position(5)
    at.depose_node_0()
    at.target.nodes[0].is_up = False
    elsewhere, _, theirs = at.worker("another worker")
    owner = elsewhere.run(lambda: theirs.claim("causeway.f.0", timeout_ms=60_000))
    elsewhere.run(lambda: commit(owner, 9))
    at.settle()
    at.target.nodes[0].is_up = True
    assert positions(target, stable=False) == at.position(5)  # the deposed one tells what it has
    at.loop.after(3, at.target.nodes[0].find_touch)
    assert positions(target, stable=True) == at.position(9)


def test_a_leader_of_before_the_position_is_not_taken_for_a_log_that_lost_its_tail():

    at = Stage()
    at.write()
    position = replace(at.position(5), target_epoch=4)
    _refuse_deposed(at.mirror, position, LogEnd(0, 4))
    with pytest.raises(Doubt, match="was written in leader epoch 4, the leader that answers was elected"):
        _refuse_deposed(at.mirror, position, LogEnd(0, 3))
