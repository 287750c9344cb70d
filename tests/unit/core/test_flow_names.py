"""What a flow's names become on the target: positions, transactions, topics."""

from __future__ import annotations

import pytest

from causeway.core.flow import CopyLimits, Flow, Start
from causeway.core.naming import IdentityNaming, PrefixNaming, is_internal, is_legal
from causeway.core.topic_filter import TopicFilter

FLOW = Flow(
    name="sf_to_nyc",
    source="sf",
    target="nyc",
    topics=TopicFilter((".*",)),
    naming=PrefixNaming("sf"),
    start=Start("earliest"),
    lanes=4,
    replication_factor=None,
    config_properties_exclude=(),
    limits=CopyLimits(),
)


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


def test_identity_keeps_names_and_sees_no_cycle() -> None:
    assert IdentityNaming().target_topic("orders") == "orders"
    assert not IdentityNaming().comes_from("nyc.orders", "nyc")


@pytest.mark.parametrize("name", ["__consumer_offsets", ".x", "a.internal", "mm2-configs.sf-internal"])
def test_internal_topics_are_known_by_their_names(name: str) -> None:
    assert is_internal(name)


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
