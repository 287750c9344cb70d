"""Which of two flows in opposite directions may be open, and what a lane has to heed of the other one."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from causeway.core.kernel.identity import Generation, Pair, TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.state.fences import COMMAND, Fence
from causeway.core.state.flow_state import FlowState
from causeway.core.state.known_pairs import KnownPair
from causeway.core.state.reverse_flow import ReverseFlow, ReverseLimit, ReverseWrites, must_wait_for
from tests.support.mirroring import make_flow

HERE, THERE, ELDER = UUID(int=1), UUID(int=2), UUID(int=3)
FORWARD = make_flow("a", "orders", failback="b")
BACK = make_flow("b", "orders", failback_of="a")
NEVER = FlowState()
OPEN = FlowState(generation=Generation(5))
FENCE = Fence(generation=6, by="ops", because="x", since_ms=0, token="s")
FENCED = FlowState(generation=Generation(6), fences={"s": FENCE})
COMMANDS = replace(FENCE, generation=5, token="t", owner=COMMAND)
AT_WORK = replace(FENCED, fences={"s": FENCE, "t": COMMANDS})
SOME_TOPICS = replace(FENCED, fences={"s": replace(FENCE, topics=frozenset({"orders"}))})


@pytest.mark.parametrize(
    ("flow", "other", "held"),
    [
        (FORWARD, NEVER, ""),
        (FORWARD, OPEN, "b leads the other way under the same names, and isn't fenced"),
        (FORWARD, SOME_TOPICS, "b leads the other way under the same names, and isn't fenced"),
        (FORWARD, FENCED, ""),
        (FORWARD, AT_WORK, "a command is at work on b, which leads the other way"),
        (BACK, NEVER, "a leads the other way under the same names, and isn't fenced"),
        (BACK, OPEN, "a leads the other way under the same names, and isn't fenced"),
        (BACK, FENCED, ""),
        (BACK, AT_WORK, "a command is at work on a, which leads the other way"),
    ],
)
def test_one_of_two_is_closed(flow: Flow, other: FlowState, held: str) -> None:
    assert must_wait_for(flow, other) == held


def pair(topic: str = "orders", partition: int = 0, source_id: UUID = HERE, target_id: UUID = THERE) -> Pair:
    place = TopicPartition(topic, partition)
    return Pair(source=place, target=place, source_topic_id=source_id, target_topic_id=target_id)


WROTE = ReverseFlow(
    flow="b",
    pairs={
        "orders": KnownPair(
            source_topic="orders", source_topic_id=THERE, target_topic_id=HERE, partitions=2, adopted_at=3
        )
    },
    wrote_to={TopicPartition("orders", 0): ReverseWrites(next=40, topic_id=HERE, from_topic_id=THERE)},
)


@pytest.mark.parametrize(
    ("one", "heeds"),
    [
        (pair(), ReverseLimit(flow="b", wrote_to=40)),
        (pair(partition=1), ReverseLimit(flow="b")),
        (pair(partition=2), None),
        (pair("other"), None),
        (pair(source_id=ELDER), None),
        (pair(target_id=ELDER), ReverseLimit(flow="b")),
    ],
    ids=["wrote", "adopted only", "grown since", "another topic", "made again here", "made again there"],
)
def test_what_a_flow_heeds_where_its_failback_has_written(one: Pair, heeds: ReverseLimit | None) -> None:
    assert WROTE.of(FORWARD, one) == heeds


def test_a_failback_heeds_the_other_one_everywhere() -> None:
    assert ReverseFlow(flow="a").of(BACK, pair("never seen")) == ReverseLimit(flow="a")
