"""What a run remembers of a mirrored topic that grows: all that it knew before."""

from __future__ import annotations

from typing import Any, cast
from uuid import UUID

from causeway.brokers.transport.topic_metadata import TopicMetadata
from causeway.core.model.flow import Flow
from causeway.core.state.known_pairs import KnownPair
from causeway.core.topics.plan import MirroredTopic, TopicPlan
from causeway.usecases.copy.planning import Landscape, pairs_to_remember

HERE, THERE = UUID(int=1), UUID(int=2)


class AnyFlow:
    failback_of = ""


def _topic(name: str, topic_id: UUID) -> dict[str, TopicMetadata]:
    return {name: TopicMetadata(name, topic_id, is_internal=False, leaders={0: 1, 1: 1, 2: 1}, error=0)}


def _remembered(before: KnownPair) -> dict[str, KnownPair]:
    mirrored = (MirroredTopic("orders", "sf.orders", 3),)
    plan = TopicPlan(mirrored=mirrored, to_create=(), to_grow=(), refused=(), notes=())
    landscape = Landscape(source=_topic("orders", HERE), target=_topic("sf.orders", THERE), topics=plan)
    return pairs_to_remember(cast(Flow, cast(Any, AnyFlow())), landscape, {"sf.orders": before})


def _adopted(**changes: Any) -> KnownPair:
    values: dict[str, Any] = {
        "source_topic": "orders",
        "source_topic_id": HERE,
        "target_topic_id": THERE,
        "partitions": 2,
        "adopted_at": 9,
        "adopted": {0: 9},
        "all_adopted_at": 4,
        "not_begun": frozenset({1}),
        "source_emptied": True,
    }
    return KnownPair(**{**values, **changes})


def test_growth_in_the_middle_of_a_run_forgets_no_adoption() -> None:
    grown = _remembered(_adopted())["sf.orders"]
    assert grown == _adopted(partitions=3)
    assert [grown.adopted_at_of(n) for n in range(3)] == [9, 4, 4]


def test_a_topic_that_was_made_again_is_not_remembered_by_itself() -> None:
    assert _remembered(_adopted(source_topic_id=UUID(int=3))) == {}


def test_what_has_not_grown_is_not_reported_again() -> None:
    assert _remembered(_adopted(partitions=3)) == {}
