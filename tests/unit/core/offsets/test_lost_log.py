"""Whether the flows topic has lost a flow: what positions and map prove, and what is found again by them."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from causeway.core.kernel.identity import Generation, SourceOffset, TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.model.naming import IdentityNaming, NamingPolicy, NamingRule, PrefixNaming, RuleNaming
from causeway.core.model.topic_filter import TopicFilter
from causeway.core.offsets.lost_log import (
    could_mirror,
    floor_above,
    lost_fault,
    lost_since,
    newest_of,
    of_flow,
    pairs_found,
)
from causeway.core.offsets.map_entries import MapOf
from causeway.core.state.flow_state import FlowState
from causeway.core.state.position import ForeignPosition, Position
from tests.support import builders

ORDERS, MORE = TopicPartition("sf.orders", 0), TopicPartition("sf.orders", 2)
RULES = RuleNaming((NamingRule("(.*)-raw", "$1"), NamingRule(".*", "$0")), "sf")


PREFIX = PrefixNaming("sf")


def flow(naming: NamingPolicy = PREFIX) -> Flow:
    return builders.flow(topics=TopicFilter(("orders", "pay.*")), naming=naming)


def position(generation: int) -> Position:
    return builders.position(9, 10, generation=Generation(generation))


@pytest.mark.parametrize(
    ("turn", "held", "mapped", "is_lost"),
    [
        (-1, None, None, False),  # never there
        (-1, 57, None, True),
        (-1, None, 57, True),  # committed offsets expire
        (57, 57, 57, False),
        (60, 57, 57, False),
        (12, 57, None, True),  # made again, and a run of an older Causeway began
        (57, 57, 58, True),  # its end was cut off
        (0, 0, 0, False),
    ],
)
def test_what_has_run_in_a_newer_turn_than_the_topic_knows_was_lost(
    turn: int, held: int | None, mapped: int | None, is_lost: bool
) -> None:
    newest = newest_of(
        {} if held is None else {ORDERS: position(held), MORE: ForeignPosition(3, "x")},
        {} if mapped is None else {ORDERS: mapped},
    )
    found = lost_since(FlowState(generation=Generation(turn)), newest)
    assert (found is not None) is is_lost


def test_the_remedy_is_named() -> None:
    newest = newest_of({ORDERS: position(57)}, {})
    assert newest is not None
    fault = lost_fault(flow(), newest)
    assert "the position of sf.orders-0 is of generation 57" in str(fault)
    assert '`causeway recover f --because "..."`' in fault.remedy


def test_of_a_shared_map_only_what_the_flow_could_have_written_is_its() -> None:
    mapped = {ORDERS: 5, TopicPartition("sf.payments", 0): 9, TopicPartition("sf.other", 0): 70}
    pair = builders.known_pair(source_topic="payments")
    assert of_flow(flow(), mapped, ()) == {ORDERS: 5, TopicPartition("sf.payments", 0): 9}
    assert of_flow(flow(), mapped, [FlowState(pairs={"sf.payments": pair})]) == {ORDERS: 5}


@pytest.mark.parametrize(
    ("naming", "target", "source"),
    [
        (PrefixNaming("sf"), "sf.orders", "orders"),
        (IdentityNaming("sf"), "orders", "orders"),
        (IdentityNaming("sf"), "sf.heartbeats", "heartbeats"),
        (RULES, "orders", None),  # of orders-raw, too: the name doesn't tell
    ],
)
def test_pairs_are_found_again_by_their_positions(
    naming: NamingPolicy, target: str, source: str | None
) -> None:
    held = {TopicPartition(target, 0): position(5), TopicPartition(target, 2): position(57)}
    newer = {TopicPartition(target, 2): replace(position(57), target_topic_id=UUID(int=3))}
    found = pairs_found(flow(naming), held | newer, {})
    assert could_mirror(flow(naming), target) is (source != "heartbeats")
    if source is None:
        assert found == {}
        return
    assert found == {
        target: builders.known_pair(
            3, source_topic=source, target_topic_id=UUID(int=3), not_begun=frozenset({1})
        )
    }


@pytest.mark.parametrize(
    ("newest", "floor"),
    [
        (0, 1_000_000_000),
        (57, 1_000_000_000),
        (999_999_999, 1_000_000_000),
        (1_000_000_000, 2_000_000_000),
        (1_000_000_057, 2_000_000_000),
    ],
)
def test_turns_go_on_far_above_all_that_is_known(newest: int, floor: int) -> None:
    """A run that committed nothing has left no evidence, and its lanes may live."""
    assert floor_above(newest) == floor


def test_partitions_without_a_position_had_begun_if_the_map_tells_of_them() -> None:
    """Else the start rule would be asked again, and pass over records or copy them twice."""
    held = {ORDERS: position(57)}
    place = replace(position(40), source_next=SourceOffset(5), is_placed=True)
    another = replace(place, source_topic_id=UUID(int=9))
    mapped = {
        TopicPartition("sf.orders", 3): MapOf([], place),
        TopicPartition("sf.orders", 2): MapOf([]),
        TopicPartition("sf.orders", 1): MapOf([], another),
        TopicPartition("sf.payments", 0): MapOf([], place),
    }
    assert pairs_found(flow(), held, mapped) == {
        "sf.orders": builders.known_pair(4, not_begun=frozenset({1, 2}))
    }
