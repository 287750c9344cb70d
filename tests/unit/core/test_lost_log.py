"""Whether the flows topic has lost a flow: what positions and map prove, and what is found again by them."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from causeway.core.flow import CopyLimits, Flow, Start
from causeway.core.flow_state import FlowState
from causeway.core.identity import Generation, SourceOffset, TargetOffset, TopicPartition
from causeway.core.known_pairs import KnownPair
from causeway.core.lost_log import (
    could_mirror,
    floor_above,
    lost_fault,
    lost_since,
    newest_of,
    of_flow,
    pairs_found,
)
from causeway.core.map_entries import MapOf
from causeway.core.naming import IdentityNaming, NamingPolicy, NamingRule, PrefixNaming, RuleNaming
from causeway.core.position import ForeignPosition, Position
from causeway.core.topic_filter import TopicFilter

ORDERS, MORE = TopicPartition("sf.orders", 0), TopicPartition("sf.orders", 2)
RULES = RuleNaming((NamingRule("(.*)-raw", "$1"), NamingRule(".*", "$0")), "sf")


PREFIX = PrefixNaming("sf")


def flow(naming: NamingPolicy = PREFIX) -> Flow:
    return Flow(
        name="f",
        source="sf",
        target="nyc",
        topics=TopicFilter(("orders", "pay.*")),
        naming=naming,
        start=Start("earliest"),
        lanes=2,
        replication_factor=None,
        config_properties_exclude=(),
        limits=CopyLimits(),
    )


def position(generation: int) -> Position:
    return Position(
        source_next=SourceOffset(9),
        target_next=TargetOffset(10),
        source_topic_id=UUID(int=1),
        target_topic_id=UUID(int=2),
        source_epoch=0,
        target_epoch=0,
        generation=Generation(generation),
        producer_id=7,
        time_ms=1,
    )


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


def test_the_way_out_is_named() -> None:
    newest = newest_of({ORDERS: position(57)}, {})
    assert newest is not None
    fault = lost_fault(flow(), newest)
    assert "the position of sf.orders-0 is of generation 57" in str(fault)
    assert '`causeway recover f --because "..."`' in fault.remedy


def test_of_a_shared_map_only_what_the_flow_could_have_written_is_its() -> None:
    mapped = {ORDERS: 5, TopicPartition("sf.payments", 0): 9, TopicPartition("sf.other", 0): 70}
    pair = KnownPair(
        source_topic="payments", source_topic_id=UUID(int=1), target_topic_id=UUID(int=2), partitions=1
    )
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
        target: KnownPair(
            source_topic=source,
            source_topic_id=UUID(int=1),
            target_topic_id=UUID(int=3),
            partitions=3,
            not_begun=frozenset({1}),
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
        "sf.orders": KnownPair(
            source_topic="orders",
            source_topic_id=UUID(int=1),
            target_topic_id=UUID(int=2),
            partitions=4,
            not_begun=frozenset({1, 2}),
        )
    }
