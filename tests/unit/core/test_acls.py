"""Which rules of the source's authorizer a mirror gets, under which name, and which are taken away."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import pytest

from causeway.core.acls import Acl, AclPlan, plan_acls
from causeway.core.naming import IdentityNaming, NamingRule, RuleNaming
from tests.unit.core.test_flow_names import FLOW

MIRRORS = {"orders": "sf.orders", "orders-eu": "sf.orders-eu", "trades": "sf.trades"}
PLAIN = {name: name for name in MIRRORS}


def acl(
    topic: str = "orders",
    operation: str = "Read",
    permission: str = "Allow",
    who: str = "amy",
    pattern: str = "literal",
) -> Acl:
    return Acl(topic, pattern, f"User:{who}", "*", operation, permission)  # type: ignore[arg-type]


def plan(
    source: Collection[Acl],
    target: Collection[Acl] = (),
    created: Collection[Acl] = (),
    flow=FLOW,
    mirrors=MIRRORS,
) -> AclPlan:
    return plan_acls(flow, mirrors, source, target, created, mirrored_by="User:causeway")


def created_from(*source: Acl) -> tuple[Acl, ...]:
    return plan(source).to_create


@pytest.mark.parametrize("operation", ["Read", "Describe", "DescribeConfigs"])
def test_what_lets_read_crosses_under_the_mirrors_name(operation: str) -> None:
    assert created_from(acl(operation=operation)) == (acl("sf.orders", operation),)


def test_all_becomes_read() -> None:
    assert created_from(acl(operation="All")) == (acl("sf.orders", "Read"),)


@pytest.mark.parametrize("operation", ["Write", "Create", "Delete", "Alter", "AlterConfigs"])
def test_what_lets_change_never_crosses_and_is_said(operation: str) -> None:
    got = plan([acl(operation=operation)])
    assert got.to_create == ()
    assert got.left_behind == ((acl(operation=operation), "nobody but the mirror may do that to a mirror"),)


@pytest.mark.parametrize("operation", ["Read", "Write", "All", "Describe", "Delete"])
def test_denials_cross_as_they_are(operation: str) -> None:
    denial = acl(operation=operation, permission="Deny")
    assert created_from(denial) == (replace(denial, topic="sf.orders"),)


def test_hosts_and_principals_stay() -> None:
    ours = Acl("orders", "literal", "Group:sales", "10.0.0.7", "Read", "Allow")
    assert created_from(ours) == (replace(ours, topic="sf.orders"),)


def test_a_denial_that_would_shut_the_mirror_out_stays_behind() -> None:
    for who, operation in (("causeway", "Read"), ("causeway", "Write"), ("*", "Write"), ("*", "Alter")):
        got = plan([acl(operation=operation, permission="Deny", who=who)])
        assert got.to_create == ()
        assert "would shut out User:causeway" in got.left_behind[0][1]


def test_the_mirrors_own_user_gets_nothing_by_a_sync() -> None:
    got = plan([acl(who="causeway")])
    assert got.to_create == ()
    assert got.left_behind[0][1] == "who mirrors the topic has rights of its own there"


@pytest.mark.parametrize("operation", ["Read", "Describe", "All"])
def test_what_nobody_may_read_on_the_source_nobody_reads_on_the_target(operation: str) -> None:
    assert created_from(acl(operation=operation, permission="Deny", who="*")) != ()


def test_topics_that_are_not_mirrored_are_nobodys_business() -> None:
    got = plan([acl("clicks"), acl("click", pattern="prefixed"), acl("orders-e"), acl("order")])
    assert (got.to_create, got.left_behind) == ((), ())


def test_prefixed_patterns_stay_patterns_behind_the_mirrors_prefix() -> None:
    assert created_from(acl("orders", pattern="prefixed")) == (acl("sf.orders", pattern="prefixed"),)
    assert created_from(acl("*")) == (acl("sf.", pattern="prefixed"),)
    assert created_from(acl("o", "Read", "Deny", pattern="prefixed")) == (
        acl("sf.o", "Read", "Deny", pattern="prefixed"),
    )


@pytest.mark.parametrize("naming", [IdentityNaming("sf"), RuleNaming((NamingRule(".*", "$0"),), "sf")])
def test_where_names_have_no_prefix_patterns_are_written_topic_by_topic(naming) -> None:
    """Another topic of the target may begin alike, and its readers aren't the source's to choose."""
    flow = replace(FLOW, naming=naming)
    got = plan([acl("orders", pattern="prefixed")], flow=flow, mirrors=PLAIN)
    assert got.to_create == (acl("orders"), acl("orders-eu"))
    assert plan([acl("*")], flow=flow, mirrors=PLAIN).to_create == tuple(acl(name) for name in sorted(PLAIN))


def test_only_the_difference_is_applied() -> None:
    got = plan([acl("orders"), acl("trades")], [acl("sf.orders"), acl("sf.orders", who="somebody")])
    assert (got.to_create, got.to_remove, got.in_place) == ((acl("sf.trades"),), (), 1)


def test_only_what_causeway_created_is_removed() -> None:
    mine, theirs = acl("sf.orders"), acl("sf.orders", who="somebody")
    got = plan([], [mine, theirs], [mine])
    assert (got.to_create, got.to_remove, got.to_forget) == ((), (mine,), ())


def test_what_somebody_else_removed_is_made_again_or_forgotten() -> None:
    mine = acl("sf.orders")
    assert plan([acl()], [], [mine]).to_create == (mine,)
    assert plan([], [], [mine]).to_forget == (mine,)


def test_a_denial_is_not_lost_when_an_allowance_for_the_same_topic_goes() -> None:
    allow, deny = acl("sf.orders"), acl("sf.orders", "Write", "Deny")
    got = plan([acl(operation="Write", permission="Deny")], [allow, deny], [allow, deny])
    assert (got.to_remove, got.to_create, got.in_place) == ((allow,), (), 1)


def test_two_rules_of_the_source_may_be_one_on_the_target() -> None:
    got = plan([acl(operation="All"), acl(operation="Read")])
    assert got.to_create == (acl("sf.orders"),)
