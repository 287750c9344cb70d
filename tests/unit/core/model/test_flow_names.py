"""What a flow's names become on the target: positions, transactions, topics."""

from __future__ import annotations

import dataclasses

import pytest

from causeway.core.kernel.errors import UnknownName
from causeway.core.model.flow import Upkeep
from causeway.core.model.naming import (
    IdentityNaming,
    NamingPolicy,
    NamingRule,
    PrefixNaming,
    RuleNaming,
    checkpoints_topic,
    is_internal,
    is_legal,
    offset_syncs_topic,
)
from causeway.core.model.topic_filter import TopicFilter
from tests.support import builders

FLOW = builders.flow("sf_to_nyc")


def test_names_on_the_target_are_functions_of_the_flow_alone() -> None:
    assert FLOW.group == "causeway.sf_to_nyc"
    assert FLOW.transactional_id(3) == "causeway.sf_to_nyc.3"
    assert FLOW.map_topic == "causeway-offset-map.sf.internal"
    assert is_internal(FLOW.map_topic)


def test_prefixes_name_the_source_and_reveal_cycles_of_any_length() -> None:
    naming = PrefixNaming("sf")
    assert naming.target_topic("orders") == "sf.orders"
    assert naming.comes_from("nyc.orders", "nyc")
    assert naming.comes_from("par.nyc.orders", "nyc")
    assert not naming.comes_from("nyc", "nyc"), "a topic that is called like a cluster comes from nowhere"
    assert not naming.comes_from("sf.nyc", "nyc")
    assert PrefixNaming("sf", "-").target_topic("orders") == "sf-orders"


def test_a_prefix_ends_at_the_flows_own_separator() -> None:
    """Another character in a name is part of the name: `nyc.orders` was perhaps called so from the start."""
    naming = PrefixNaming("sf", "-")
    assert naming.comes_from("nyc-orders", "nyc")
    assert naming.comes_from("par-nyc-orders", "nyc")
    assert not naming.comes_from("nyc.orders", "nyc")
    assert not PrefixNaming("sf").comes_from("nyc-orders", "nyc")


def test_identity_keeps_names_and_sees_no_cycle() -> None:
    assert IdentityNaming().target_topic("orders") == "orders"
    assert not IdentityNaming().comes_from("nyc.orders", "nyc")


@pytest.mark.parametrize("naming", [IdentityNaming("sf"), RuleNaming((NamingRule("x", "y"),), "sf")])
def test_heartbeats_have_their_way_in_their_name_whatever_the_policy(naming: NamingPolicy) -> None:
    """As MirrorMaker 2's identity policy: it is how a circle is seen, and the number of hops."""
    assert naming.target_topic("heartbeats") == "sf.heartbeats"
    assert naming.target_topic("par.heartbeats") == "sf.par.heartbeats"
    assert naming.comes_from("par.nyc.heartbeats", "nyc")
    assert not naming.comes_from("par.heartbeats", "nyc")


def test_heartbeats_cross_whatever_the_filter_says_if_the_flow_carries_them() -> None:
    nothing = dataclasses.replace(FLOW, topics=TopicFilter(("orders",), (".*",)))
    carrying = dataclasses.replace(nothing, upkeep=Upkeep(mirror_heartbeats=True))
    for name in ("heartbeats", "par.heartbeats"):
        assert carrying.mirrors_heartbeats(name)
        assert not nothing.mirrors_heartbeats(name)
    assert not carrying.mirrors_heartbeats("par-heartbeats")
    dashed = dataclasses.replace(carrying, naming=PrefixNaming("sf", "-"))
    assert dashed.mirrors_heartbeats("par-heartbeats")


@pytest.mark.parametrize(
    ("pattern", "to", "topic", "name"),
    [
        ("orders-(.*)", "eu.orders-$1", "orders-2026", "eu.orders-2026"),
        ("orders-(.*)", "eu.orders-$1", "orders-", "eu.orders-"),
        ("orders-(.*)", "eu.orders-$1", "my-orders-1", None),
        ("([a-z]+)-([a-z]+)", "$2.$1", "orders-eu", "eu.orders"),
        (".*", "copy.$0", "orders", "copy.orders"),
        ("(a)|(b)", "x$1$2", "b", "xb"),
        ("(a)", "${1}0", "a", "a0"),
        ("(.)" * 10, "${10}$1", "abcdefghij", "ja"),
        ("a", "b", "a", "b"),
    ],
)
def test_a_mapping_rule_names_what_it_matches_as_a_whole(
    pattern: str, to: str, topic: str, name: str | None
) -> None:
    assert NamingRule(pattern, to).named(topic) == name


def test_the_first_rule_that_matches_counts_and_the_rest_has_no_name() -> None:
    naming = RuleNaming((NamingRule("orders-(.*)", "eu.$1"), NamingRule("orders.*", "other")))
    assert (naming.target_topic("orders-1"), naming.target_topic("orders")) == ("eu.1", "other")
    assert not naming.covers("trades")
    with pytest.raises(UnknownName, match=r"topic = trades: no rule of replication.policy.rules"):
        naming.target_topic("trades")


@pytest.mark.parametrize(
    ("to", "name", "could"), [("eu.$1", "eu.x", True), ("eu.$1", "eux", False), ("$1-$2", "a-b", True)]
)
def test_what_a_rule_could_make(to: str, name: str, could: bool) -> None:
    assert NamingRule("(.*)-(.*)", to).could_make(name) is could


@pytest.mark.parametrize("name", ["__consumer_offsets", ".x", "a.internal", "mm2-configs.sf-internal"])
def test_internal_topics_are_known_by_their_names(name: str) -> None:
    assert is_internal(name)


@pytest.mark.parametrize("separator", [".", "_", "-", "__", "_-_"])
def test_mirror_makers_topics_are_internal_with_every_separator(separator: str) -> None:
    """ReplicationPolicyTest.testInternalTopic: a flow with `_` writes `sf_checkpoints_internal`."""
    for name in (checkpoints_topic("sf", separator), offset_syncs_topic("sf", separator)):
        assert is_internal(name), name
    flow = dataclasses.replace(FLOW, naming=PrefixNaming("sf", separator))
    assert is_internal(flow.checkpoints_topic)
    assert is_internal(flow.syncs_topic)


@pytest.mark.parametrize(
    "name",
    [
        "orders_internal",
        "checkpoints_internal",
        "sf_checkpoints",
        "sf_checkpoints-internals",
        "amm2_internal",
    ],
)
def test_what_only_sounds_internal_crosses(name: str) -> None:
    assert not is_internal(name)


@pytest.mark.parametrize(
    ("name", "legal"),
    [
        ("a", True),
        ("A.b_c-9", True),
        ("", False),
        (".", False),
        ("..", False),
        ("a" * 249, True),
        ("a" * 250, False),
        ("a b", False),
        ("é", False),
        ("a\n", False),
    ],
)
def test_kafkas_rule_for_topic_names(name: str, legal: bool) -> None:
    assert is_legal(name) is legal
