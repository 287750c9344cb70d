"""A node that doesn't answer concerns the partitions that it leads, and costs its time-out once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import TypeVar

import pytest

from causeway.brokers.wire.log_reader import WireLogReader
from causeway.core.copy.ports import Fetched, FetchFrom, LogEnd, Refused, Unreachable
from causeway.core.copy.round_plan import RoundPlan
from causeway.core.kernel.identity import Generation, TopicPartition
from causeway.core.kernel.kafka_errors import NODE_UNREACHABLE, error_name, is_retriable
from causeway.core.state.flow_state import FlowState
from causeway.usecases.copy.lane.run import run_lane
from causeway.usecases.copy.planning import plan_round, survey_topics
from causeway.usecases.copy.round_facts import Memory
from tests.simulation.cases import small_stage
from tests.simulation.cluster.cluster import SimCluster
from tests.simulation.cluster.loop import Loop, Process, VirtualNetwork
from tests.simulation.cluster.wire import REQUEST_TIMEOUT_SECONDS, SimWire
from tests.support.mirroring import make_flow

PARTITIONS = 100
QUICK_SECONDS = 1.0


T = TypeVar("T")


class Stage:
    """Two nodes; the second one leads the last partition."""

    def __init__(self) -> None:
        self.loop = Loop(7)
        self.cluster = SimCluster(self.loop, "sf", nodes=2)
        self.topic = self.cluster.create_topic("orders", PARTITIONS)
        self.cluster.leaders = {tp: int(tp == self.last) for tp in self.topic.partitions}
        self.network = VirtualNetwork(Process(self.loop, "reader"))
        self.reader = WireLogReader(SimWire(self.cluster, self.network, "sf"))
        self.network.run(self.reader.wire.connect)
        self.network.run(lambda: self.reader.log_ends(self.topic.partitions))

    @property
    def last(self) -> TopicPartition:
        return self.topic.partitions[-1]

    def took(self, work: Callable[[], Awaitable[T]]) -> tuple[T, float]:
        before = self.loop.now
        return self.network.run(work), self.loop.now - before


def silence(at: Stage, node: int, how: str) -> None:
    if how == "frozen":
        at.cluster.nodes[node].freeze()
    else:
        at.cluster.nodes[node].is_up = False  # no other one has noticed yet


Answers = Mapping[TopicPartition, object]
QUESTIONS: dict[str, Callable[[Stage], Awaitable[Answers]]] = {
    "log ends": lambda at: at.reader.log_ends(at.topic.partitions),
    "log starts": lambda at: at.reader.log_starts(at.topic.partitions),
    "epoch ends": lambda at: at.reader.epoch_ends(dict.fromkeys(at.topic.partitions, 0)),
    "fetch": lambda at: at.reader.fetch(
        {tp: FetchFrom(at.topic.topic_id, 0) for tp in at.topic.partitions}, max_bytes=1, max_wait_ms=0
    ),
}


@pytest.mark.parametrize("how", ["frozen", "down"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_the_others_answer(question: str, how: str) -> None:
    at = Stage()
    silence(at, 1, how)
    found, _ = at.took(lambda: QUESTIONS[question](at))
    refused = found[at.last]
    others = [answer for tp, answer in found.items() if tp != at.last]
    assert len(others) == PARTITIONS - 1
    assert not [answer for answer in others if isinstance(answer, Refused)]
    assert isinstance(refused, Refused)
    assert refused.code == NODE_UNREACHABLE
    assert str(refused) == "NODE_UNREACHABLE (node 1 at sf:1 doesn't answer)"


def test_its_silence_is_waited_for_once_and_its_return_is_noticed() -> None:
    at = Stage()
    silence(at, 1, "frozen")
    _, first = at.took(lambda: at.reader.log_ends(at.topic.partitions))
    assert first >= REQUEST_TIMEOUT_SECONDS
    for question in QUESTIONS.values():
        found, took = at.took(partial(question, at))
        assert isinstance(found[at.last], Refused)
        assert took < QUICK_SECONDS
    for _ in range(20):  # nor does anybody ask it what any node could say
        _, took = at.took(lambda: at.reader.wire.topics(None))
        assert took < QUICK_SECONDS
    at.cluster.nodes[1].thaw()
    at.loop.run(lambda: False, deadline=at.loop.now + 1)
    found, took = at.took(lambda: at.reader.log_ends(at.topic.partitions))
    assert isinstance(found[at.last], LogEnd)
    assert took < QUICK_SECONDS


@pytest.mark.parametrize("how", ["frozen", "down"])
def test_it_is_the_cluster_if_nobody_answers(how: str) -> None:
    at = Stage()
    silence(at, 0, how)
    silence(at, 1, how)
    with pytest.raises(Unreachable):
        at.network.run(lambda: at.reader.log_ends(at.topic.partitions))


@pytest.mark.parametrize("how", ["frozen", "down"])
def test_it_is_not_the_cluster_if_nobody_who_was_asked_answers(how: str) -> None:
    at = Stage()
    silence(at, 1, how)
    found = at.network.run(lambda: at.reader.log_ends([at.last]))
    assert isinstance(found[at.last], Refused)


def test_its_partitions_are_found_where_they_have_moved_to() -> None:
    at = Stage()
    silence(at, 1, "frozen")
    at.network.run(lambda: at.reader.log_ends(at.topic.partitions))
    at.cluster.leaders[at.last] = 0
    found = at.network.run(
        lambda: at.reader.fetch({at.last: FetchFrom(at.topic.topic_id, 0)}, max_bytes=1, max_wait_ms=0)
    )
    assert isinstance(found[at.last], Fetched)


@pytest.mark.parametrize("question", ["OffsetForLeaderEpochRequest", "FetchRequest"])
def test_in_a_lane_the_others_go_on(question: str) -> None:
    """Whatever the lane was about to ask when the node fell silent."""
    at = small_stage.Stage(source_nodes=2, partitions=4)
    last = at.pairs[-1].source
    at.source.leaders = {tp: int(tp == last) for tp in at.source.leaders}
    at.write()
    network, reader, target = at.worker("worker")
    generation = at.begin(network, target)
    result = network.run(lambda: run_lane(at.task(generation), reader, target, network))
    assert [row.records for row in result.rows] == [1] * 4
    at.write()

    def freeze(_: Process, request: object, *__: int) -> None:
        if type(request).__name__ == question:
            at.source.nodes[1].freeze()

    at.source.on_send = freeze
    result = network.run(lambda: run_lane(at.task(generation, known=True), reader, target, network))
    assert result.outcome == "done", result.why
    *others, silent = result.rows
    assert [(row.records, row.later, row.parked) for row in others] == [(1, "", None)] * 3
    assert (silent.records, silent.parked) == (0, None)
    assert "node 1 at sf:1 doesn't answer" in silent.later
    at.source.on_send = lambda *_: None
    at.source.nodes[1].thaw()
    at.settle()
    result = network.run(lambda: run_lane(at.task(generation, known=True), reader, target, network))
    assert [row.records for row in result.rows] == [0, 0, 0, 1]


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_plan_leaves_its_partitions_out_on_either_side(side: str) -> None:
    at = small_stage.Stage(source_nodes=2, partitions=3)
    cluster, silent = (
        (at.source, at.pairs[-1].source) if side == "source" else (at.target, at.pairs[-1].target)
    )
    cluster.leaders = {tp: int(tp == silent) for tp in cluster.leaders}
    at.target.transaction_node = at.target.group_node = 0
    at.write()
    flow = make_flow("f", "orders", lanes=1)
    network, reader, target = at.worker("driver")
    network.run(lambda: target.log_ends([pair.target for pair in at.pairs]))
    cluster.nodes[1].freeze()

    async def look() -> RoundPlan:
        landscape = await survey_topics(flow, reader, target, FlowState())
        return await plan_round(Memory(flow, FlowState(), {}, None), Generation(0), reader, target, landscape)

    plan = network.run(look)
    assert plan.parked == {}
    assert plan.later.keys() == {at.pairs[-1].source}
    assert f"node 1 at {cluster.name}:1 doesn't answer" in plan.later[at.pairs[-1].source]
    assert {a.pair for task in plan.tasks for a in task.assignments} == set(at.pairs[:-1])


def test_the_code_is_ours_and_passes() -> None:
    assert error_name(NODE_UNREACHABLE) == "NODE_UNREACHABLE"
    assert is_retriable(NODE_UNREACHABLE)
