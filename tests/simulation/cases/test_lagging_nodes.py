"""A node whose metadata lags: just after a creation, a move of a leader or a restart it doesn't know a topic.

That is no word on the topic as long as another node knows it. Gone is what no node knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from uuid import UUID

import pytest

from causeway.brokers.transport.lagging_nodes import agreed_topic
from causeway.brokers.transport.topic_metadata import TopicMetadata
from causeway.brokers.wire.log_reader import WireLogReader
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.lane_task import PartitionRow
from causeway.core.copy.ports import Unreachable
from causeway.core.copy.round_plan import RoundPlan
from causeway.core.failover.request import FailoverRequest
from causeway.core.groups.sync_rules import Committed
from causeway.core.journal.journal import FailoverRun, Shift, Status
from causeway.core.kernel.identity import Generation, TargetOffset, TopicPartition
from causeway.core.state.flow_state import FlowState
from causeway.core.state.known_pairs import KnownPair
from causeway.core.state.parked import ParkReason
from causeway.usecases.copy.lane.run import run_lane
from causeway.usecases.copy.planning import plan_round, survey_topics
from causeway.usecases.copy.round_facts import Memory
from causeway.usecases.failover import rollback
from causeway.usecases.session.source_may_be_gone import FlowSession
from tests.simulation.cases.small_stage import Stage
from tests.simulation.cluster.cluster import SimCluster
from tests.simulation.cluster.loop import VirtualNetwork
from tests.support.mirroring import make_flow

LOOKS = 20
"""Each asks a node that the loop picks."""


Worker = tuple[VirtualNetwork, WireLogReader, WireTarget]


def run_once(at: Stage, worker: Worker, *, known: bool = False) -> PartitionRow:
    network, reader, target = worker
    generation = at.begin(network, target)
    result = network.run(lambda: run_lane(at.task(generation, known=known), reader, target, network))
    assert result.outcome == "done", result.why
    return result.rows[0]


def mirrored(at: Stage) -> int:
    """Records of committed transactions."""
    log = at.target.logs[at.mirror]
    return sum(batch.head.record_count for batch in log.batches if batch.commits is None)


def leader_lacks(cluster: SimCluster, topic: str) -> set[str]:
    lacks = cluster.nodes[cluster.leaders[cluster.topics[topic].partitions[0]]].lacks
    lacks.add(topic)
    return lacks


def test_a_source_whose_leader_lags_waits_and_goes_on() -> None:
    at = Stage(source_nodes=2)
    at.write()
    lacks = leader_lacks(at.source, "orders")
    worker = at.worker("worker")
    row = run_once(at, worker)
    assert row.parked is None
    assert "is out of date" in row.later or "LEADER_NOT_AVAILABLE" in row.later, (
        "whichever node is asked first"
    )
    lacks.clear()
    row = run_once(at, worker, known=True)
    assert (row.parked, row.later, row.records) == (None, "", 1)


@pytest.mark.parametrize("is_known_again", [True, False], ids=["made anew", "deleted"])
def test_a_source_that_no_node_knows_any_more_is_parked(is_known_again: bool) -> None:
    at = Stage(source_nodes=2)
    at.write()
    if is_known_again:
        at.source.topics["orders"].topic_id = UUID(int=99)
    else:
        for node in at.source.nodes:
            node.lacks.add("orders")
    _, reader, _ = worker = at.worker("worker")
    reader.wire._leaders[at.pair.source] = at.source.leaders[at.pair.source]  # as it was seen before
    row = run_once(at, worker)
    assert row.parked is not None, row
    assert row.parked.reason is ParkReason.SOURCE_RECREATED


def test_a_target_whose_leader_lags_waits_and_goes_on() -> None:
    at = Stage()
    at.write()
    worker = at.worker("worker")
    run_once(at, worker)
    assert mirrored(at) == 1
    at.write()
    lacks = leader_lacks(at.target, "sf.orders")
    row = run_once(at, worker, known=True)
    assert row.parked is None
    assert "UNKNOWN_TOPIC_ID" in row.later
    lacks.clear()
    row = run_once(at, worker, known=True)
    assert (row.parked, row.later, row.records) == (None, "", 1)
    assert mirrored(at) == 2


def test_who_acts_on_a_topic_waits_until_the_nodes_agree() -> None:
    at = Stage(source_nodes=2)
    network, reader, _ = at.worker("a command")

    def agreed() -> TopicMetadata:
        return network.run(lambda: agreed_topic(reader.wire, "orders"))

    assert agreed().topic_id == at.pair.source_topic_id
    at.source.nodes[1].lacks.add("orders")
    with pytest.raises(Unreachable, match="don't agree"):
        agreed()
    at.source.nodes[0].lacks.add("orders")
    assert agreed().error


def test_a_rollback_leaves_no_topic_out_because_one_node_lags() -> None:
    at = Stage()
    network, _, target = at.worker("a rollback")
    before = Committed(1, "")
    run = FailoverRun(
        run="r",
        flow="f",
        wish=FailoverRequest(flow="f", at_ms=None),
        plan_hash="p",
        by="amy",
        begun_ms=0,
        status=Status.DONE,
        shifts={"billing": {at.mirror: Shift(before=before, after=TargetOffset(2))}},
    )

    def left() -> Mapping[str, Mapping[TopicPartition, Committed]]:
        sides = FlowSession(network, target, None)  # type: ignore[arg-type]  # virtual time stands in
        return network.run(lambda: rollback._remaining(run, sides)).to_commit

    wanted = {"billing": {at.mirror: before}}
    at.target.nodes[0].lacks.add("sf.orders")
    for _ in range(LOOKS):
        with suppress(Unreachable):  # it waits until they agree
            assert left() == wanted
    at.target.nodes[1].lacks.add("sf.orders")
    assert left() == {}, "no node knows it"
    for node in at.target.nodes:
        node.lacks.clear()
    assert left() == wanted


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_plan_does_not_take_a_node_that_lags_at_its_word(side: str) -> None:
    at = Stage(source_nodes=2)
    at.write()
    flow = make_flow("f", "orders")
    cluster, topic = (at.source, "orders") if side == "source" else (at.target, "sf.orders")
    cluster.nodes[0].lacks.add(topic)
    network, reader, target = at.worker("driver")
    known = {
        "sf.orders": KnownPair(
            source_topic="orders",
            source_topic_id=at.pair.source_topic_id,
            target_topic_id=at.pair.target_topic_id,
            partitions=1,
            adopted_at=-1,
        )
    }
    state = FlowState(pairs=known)

    async def look() -> RoundPlan:
        landscape = await survey_topics(flow, reader, target, state)
        return await plan_round(
            Memory(flow, FlowState(), known, None), Generation(0), reader, target, landscape
        )

    for _ in range(LOOKS):
        plan = network.run(look)
        assert plan.parked == {}
        assert [facts.pair for facts in plan.partitions] == [at.pair]
    cluster.nodes[1].lacks.add(topic)
    assert network.run(look).parked.keys() == {at.pair.source}
