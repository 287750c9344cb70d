"""A node that was deposed and doesn't know it, because it is cut off from the other nodes and not from us.

Nobody who asks it gets a lie, only what was true: what has to be true now is proved by writing first.
"""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

import pytest

from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.lane_task import LastOwner, Outcome
from causeway.core.copy.ports import OutcomeUnknown, Owner, Unreachable
from causeway.core.copy.producer import ProducerEpoch
from causeway.core.kernel.identity import SourceOffset
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.state.flow_records import claimed_record
from causeway.core.state.position import ForeignPosition, Position
from causeway.usecases.copy.lane import run as lane_run
from causeway.usecases.copy.lane.run import run_lane
from causeway.usecases.copy.lane.stale_leader import DEPOSED
from causeway.usecases.run_lock.ownership import write_fence
from tests.simulation.cases.small_stage import GROUP, Stage
from tests.simulation.cluster.partition_log import PartitionLog
from tests.simulation.cluster.wire import Weather
from tests.simulation.scenario import scenario_of
from tests.simulation.world import World


async def believe(self: lane_run._Lane, _: Owner) -> tuple[Outcome, str] | None:
    return await self._may_not_run()


@pytest.mark.parametrize("knows_last_owner", [False, True])
@pytest.mark.parametrize("proves_its_turn", [True, False], ids=["as it is", "the rule taken out"])
def test_a_fence_that_a_deposed_leader_does_not_know_of_is_seen(
    proves_its_turn: bool, knows_last_owner: bool
) -> None:
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
    last = LastOwner(producer=ProducerEpoch(owner.producer_id, owner.epoch), positions={})
    task = at.task(generation, last if knows_last_owner else None)
    with patch.object(
        lane_run._Lane,
        "_may_not_run_by_proof",
        lane_run._Lane._may_not_run_by_proof if proves_its_turn else believe,
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


def test_who_follows_its_own_last_owner_writes_nothing_to_prove_it() -> None:
    """Else lanes that follow a source would write gigabytes a day for that."""
    at = Stage()
    at.write()
    network, reader, target = at.worker("worker")
    generation, marks = at.begin(network, target), []
    at.target.on_answer = lambda _, request, __: (
        marks.append(1) if type(request).__name__ == "OffsetCommitRequest" else None
    )

    def run(last_owner: LastOwner | None) -> tuple[LastOwner, tuple[int, int]]:
        at.write()
        marks.clear()
        end = at.target.logs[at.flows].end
        result = network.run(lambda: run_lane(at.task(generation, last_owner), reader, target, network))
        assert result.outcome == "done"
        assert result.last_owner is not None
        return result.last_owner, (at.target.logs[at.flows].end - end, len(marks))

    first, written = run(None)
    assert written == (1, 1)
    second, written = run(first)
    assert written == (0, 0)
    network.run(lambda: target.claim("causeway.f.0", timeout_ms=60_000))  # somebody else's, in between
    third, written = run(second)
    assert written == (1, 1)
    position = third.positions[at.mirror]
    elsewhere = replace(
        third, positions={at.mirror: replace(position, source_next=SourceOffset(position.source_next - 1))}
    )
    _, written = run(elsewhere)  # what is read isn't what was left: then it is asked again, marked
    assert written == (0, 1)


def test_what_was_appended_is_read_or_nothing_is_reported() -> None:
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
    at.target.nodes[1].is_up = False  # nobody can be asked who knows better
    with pytest.raises(Unreachable):
        network.run(lambda: target.flow_state("f"))
    at.target.nodes[1].is_up = True
    read = []
    at.target.on_answer = lambda _, request, __: read.append(type(request).__name__)
    network.run(lambda: target.flow_state("f"))
    assert read[-1] == "FetchRequest"


def test_a_broker_that_does_not_know_the_topic_does_not_make_it_a_new_one() -> None:
    at = Stage()
    network, _, target = at.worker("worker")
    generation = at.begin(network, target)
    before = network.run(lambda: target.flow_state("f"))
    whole, topic = at.target.logs[at.flows], at.target.topics[FLOWS_TOPIC]
    at.target.logs[at.flows] = PartitionLog(at.flows, whole.topic_id, is_v2=True)
    del at.target.topics[FLOWS_TOPIC]
    with pytest.raises(Unreachable):
        network.run(lambda: target.flow_state("f"))
    at.target.topics[FLOWS_TOPIC], at.target.logs[at.flows] = topic, whole
    assert network.run(lambda: target.flow_state("f")) == before
    assert before.generation == generation


def test_what_was_seen_of_a_topic_that_was_recreated_is_forgotten() -> None:
    at = Stage()
    network, _, target = at.worker("worker")
    at.begin(network, target)
    at.target.create_topic(FLOWS_TOPIC, 1)
    at.target.leaders[at.flows] = 1
    assert network.run(lambda: target.flow_state("f")).run is None


@pytest.mark.parametrize("more", [0, 1, 40], ids=["as long", "longer", "much longer"])
def test_a_fence_of_a_topic_that_was_recreated_counts_however_long_it_is(more: int) -> None:
    """A recovery fences the flow in the new topic, and whoever has read the old one must not go on by it."""
    at = Stage()
    network, _, target = at.worker("worker")
    at.begin(network, target)
    network.run(lambda: target.flow_state("f"))
    length = at.target.logs[at.flows].end
    at.target.create_topic(FLOWS_TOPIC, 1)
    at.target.leaders[at.flows] = 1
    elsewhere, _, theirs = at.worker("who recovers")
    flow = World(scenario_of(0)).flow_now()
    elsewhere.run(lambda: write_fence(theirs, elsewhere, flow, by="ops", because="failover"))
    while at.target.logs[at.flows].end < length + more:
        elsewhere.run(lambda: theirs.append_plain(FLOWS_TOPIC, *claimed_record("f", lane=0, generation=0)))
    seen = network.run(lambda: target.flow_state("f"))
    assert seen.fence is not None
    assert seen.run is None


def test_what_is_cached_is_not_read_again() -> None:
    at = Stage()
    network, _, target = at.worker("worker")
    at.begin(network, target)
    network.run(lambda: target.flow_state("f"))
    asked = []
    at.target.on_answer = lambda _, request, __: asked.append(type(request).__name__)
    network.run(lambda: target.flow_state("f"))
    assert asked == ["ListOffsetsRequest", "MetadataRequest"]


def test_positions_are_those_of_the_coordinator_that_is_one() -> None:
    at = Stage()
    at.write()
    at.target.group_node = 0
    network, _, target = at.worker("worker")
    owner = network.run(lambda: target.claim("causeway.f.0", timeout_ms=60_000))

    def positions(asked: WireTarget, *, marked: bool) -> Position | ForeignPosition | None:
        asking = lambda: asked.positions(GROUP, [at.mirror], stable=True, marked=marked)  # noqa: E731
        return network.run(asking)[at.mirror]

    async def commit(through: Owner, number: int) -> None:
        await through.commit_positions(GROUP, {at.mirror: at.position(number)})
        await through.end(commit=True)

    network.run(lambda: commit(owner, 5))
    at.settle()
    assert positions(target, marked=True) == at.position(5)
    at.depose_node_0()
    at.target.nodes[0].is_up = False
    elsewhere, _, theirs = at.worker("another worker")
    owner = elsewhere.run(lambda: theirs.claim("causeway.f.0", timeout_ms=60_000))
    elsewhere.run(lambda: commit(owner, 9))
    at.settle()
    at.target.nodes[0].is_up = True
    assert positions(target, marked=False) == at.position(5)  # the deposed one tells what it has
    at.loop.after(3, at.target.nodes[0].find_touch)
    assert positions(target, marked=True) == at.position(9)


def test_a_coordinator_that_stays_deposed_is_given_up_soon() -> None:
    at = Stage()
    at.target.group_node = 0
    network, _, target = at.worker("worker")
    network.run(lambda: target.positions(GROUP, [at.mirror], stable=True, marked=True))
    at.depose_node_0()
    at.target.nodes[1].is_up = False  # nobody can be asked who knows better
    before = at.loop.now
    with pytest.raises((OutcomeUnknown, Unreachable)):
        network.run(lambda: target.positions(GROUP, [at.mirror], stable=True, marked=True))
    assert at.loop.now - before < 30


def test_lanes_that_prove_their_positions_at_the_same_moment_do_not_hold_each_other_up() -> None:
    """All lanes of a round begin together, and a target may be far away."""
    at = Stage()
    at.target.weather = Weather(least=0.02, most=0.02)
    marks = []
    at.target.on_answer = lambda _, request, __: (
        marks.append(1) if type(request).__name__ == "OffsetCommitRequest" else None
    )
    lanes = [at.worker(f"lane {number}") for number in range(32)]
    began = at.loop.now
    asked = [
        network.call_soon_with_future(
            lambda t=target: t.positions(GROUP, [at.mirror], stable=True, marked=True)
        )
        for network, _, target in lanes
    ]
    assert at.loop.run(lambda: all(each.is_done for each in asked), deadline=began + 5)
    assert [each.exception for each in asked] == [None] * 32
    assert len(marks) < 4 * 32


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_leader_of_before_the_position_is_not_taken_for_a_log_that_lost_its_tail(side: str) -> None:
    at = Stage()
    at.write()
    network, reader, target = at.worker("worker")
    generation = at.begin(network, target)
    for cluster, tp in ((at.source, at.pair.source), (at.target, at.mirror)):
        cluster.logs[tp].lead_anew(cluster.logs[tp].end)
    at.write()
    first = network.run(lambda: run_lane(at.task(generation), reader, target, network))
    assert (first.outcome, first.rows[0].records) == ("done", 2)
    at.settle()
    cluster, tp = (at.source, at.pair.source) if side == "source" else (at.target, at.mirror)
    whole = cluster.logs[tp]
    cluster.logs[tp] = deposed = PartitionLog(tp, whole.topic_id, is_v2=True)
    task = at.task(generation, known=True)
    late = network.run(lambda: run_lane(task, reader, target, network))
    assert deposed.end == 0
    assert (late.rows[0].parked, late.rows[0].later) == (None, f"{tp}: {DEPOSED}")
    cluster.logs[tp] = whole
    at.write()
    again = network.run(lambda: run_lane(at.task(generation, known=True), reader, target, network))
    assert (again.outcome, again.rows[0].records, again.rows[0].later) == ("done", 1, "")
