"""Which rules of the source's authorizer a mirror gets, under which name, and which are taken away."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import pytest

from causeway.core.model.flow import Flow
from causeway.core.model.naming import IdentityNaming, NamingPolicy, NamingRule, RuleNaming
from causeway.core.state.acl import Acl
from causeway.core.topics.acls import AclPlan, AclsFound, plan_acls
from tests.support import builders
from tests.support.builders import acl

FLOW = builders.flow("sf_to_nyc")
MIRRORS = {"orders": "sf.orders", "orders-eu": "sf.orders-eu", "trades": "sf.trades"}
PLAIN = {name: name for name in MIRRORS}


def plan(
    source: Collection[Acl],
    target: Collection[Acl] = (),
    created: Collection[Acl] = (),
    flow: Flow = FLOW,
    mirrors: Mapping[str, str] = MIRRORS,
) -> AclPlan:
    return plan_acls(flow, mirrors, AclsFound(source, target, created), mirrored_by="User:causeway")


def created_from(*source: Acl) -> tuple[Acl, ...]:
    return plan(source).to_create


@pytest.mark.parametrize("operation", ["Read", "Describe", "DescribeConfigs"])
def test_what_lets_read_crosses_under_the_mirrors_name(operation: str) -> None:
    assert created_from(acl(operation=operation)) == (acl("sf.orders", operation),)


def test_all_becomes_read() -> None:
    assert created_from(acl(operation="All")) == (acl("sf.orders", "Read"),)


@pytest.mark.parametrize("operation", ["Write", "Create", "Delete", "Alter", "AlterConfigs"])
def test_what_lets_change_never_crosses_and_is_reported(operation: str) -> None:
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


def test_a_denial_that_would_shut_the_mirror_out_is_left_out() -> None:
    for who, operation in (("causeway", "Read"), ("causeway", "Write"), ("*", "Write"), ("*", "Alter")):
        got = plan([acl(operation=operation, permission="Deny", who=who)])
        assert got.to_create == ()
        assert "would shut out User:causeway" in got.left_behind[0][1]


def test_the_mirrors_own_user_gets_nothing_by_a_sync() -> None:
    got = plan([acl(who="causeway")])
    assert got.to_create == ()
    assert got.left_behind[0][1] == "who mirrors the topic has rights of its own there"
    on_source, denied = acl(who="reader"), acl(permission="Deny", who="reader")
    got = plan_acls(
        FLOW,
        MIRRORS,
        AclsFound([on_source, denied], (), ()),
        mirrored_by="User:causeway",
        read_by="User:reader",
    )
    assert [rule for rule, _ in got.left_behind] == [on_source], "nor by the name that it has on the source"
    assert got.to_create == (replace(denied, topic="sf.orders"),)


@pytest.mark.parametrize("operation", ["Read", "Describe", "All"])
def test_what_nobody_may_read_on_the_source_nobody_reads_on_the_target(operation: str) -> None:
    assert created_from(acl(operation=operation, permission="Deny", who="*")) != ()


def test_topics_that_are_not_mirrored_are_nobodys_business() -> None:
    got = plan([acl("clicks"), acl("click", pattern="prefixed"), acl("orders-e"), acl("order")])
    assert (got.to_create, got.left_behind) == ((), ())


def test_prefixed_patterns_stay_patterns_after_the_mirrors_prefix() -> None:
    assert created_from(acl("orders", pattern="prefixed")) == (acl("sf.orders", pattern="prefixed"),)
    assert created_from(acl("*")) == (acl("sf.", pattern="prefixed"),)
    assert created_from(acl("o", "Read", "Deny", pattern="prefixed")) == (
        acl("sf.o", "Read", "Deny", pattern="prefixed"),
    )


@pytest.mark.parametrize("naming", [IdentityNaming("sf"), RuleNaming((NamingRule(".*", "$0"),), "sf")])
def test_where_names_have_no_prefix_patterns_are_written_topic_by_topic(naming: NamingPolicy) -> None:
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
    assert plan([acl()], [], [mine]).to_forget == ()
    assert plan([], [], [mine]).to_forget == (mine,)


def test_a_denial_is_not_lost_when_an_allowance_for_the_same_topic_goes() -> None:
    allow, deny = acl("sf.orders"), acl("sf.orders", "Write", "Deny")
    got = plan([acl(operation="Write", permission="Deny")], [allow, deny], [allow, deny])
    assert (got.to_remove, got.to_create, got.in_place) == ((allow,), (), 1)


def test_two_rules_of_the_source_may_be_one_on_the_target() -> None:
    got = plan([acl(operation="All"), acl(operation="Read")])
    assert got.to_create == (acl("sf.orders"),)


@pytest.mark.parametrize(
    "principal",
    [
        "User:CN=amy,OU=data team,O=b",
        "User:CN=O'Brien\\, amy,O=b",
        "User:a:b",
        "User:ümlaut",
        "Group:sales",
        "ServiceAccount:*",
        "User:",
    ],
)
def test_principals_of_any_kind_cross_letter_by_letter(principal: str) -> None:
    ours = Acl("orders", "literal", principal, "10.0.0.7", "Read", "Deny")
    assert created_from(ours) == (replace(ours, topic="sf.orders"),)


def test_a_prefix_of_a_star_is_not_the_star() -> None:
    """No topic begins like that; the rule about all topics is the literal one."""
    got = plan([acl("*", pattern="prefixed"), acl("*a"), acl("orders*")])
    assert (got.to_create, got.left_behind) == ((), ())


def test_a_prefix_covers_what_begins_so_and_nothing_beside_it() -> None:
    names = sorted(["order", "orders", "orders-eu", "orders.z", "orders_", "ordert", "Orders"])
    assert list(acl("orders", pattern="prefixed").covered(names)) == [
        "orders",
        "orders-eu",
        "orders.z",
        "orders_",
    ]
    assert list(acl("", pattern="prefixed").covered(names)) == names
    assert list(acl("zzz", pattern="prefixed").covered(names)) == []


CERTIFIED = "User:CN=mirror,O=b"


def denial(who: str, operation: str = "Read") -> Acl:
    return Acl("orders", "literal", who, "*", operation, "Deny")


def plan_without_a_name(source: Collection[Acl], target: Collection[Acl]) -> AclPlan:
    return plan_acls(FLOW, MIRRORS, AclsFound(source, target, ()), mirrored_by=None)


@pytest.mark.parametrize(
    "grant",
    [
        Acl("causeway-flows.internal", "literal", CERTIFIED, "*", "Write", "Allow"),
        Acl("causeway", "prefixed", CERTIFIED, "*", "All", "Allow"),
        Acl("*", "literal", CERTIFIED, "10.0.0.7", "Write", "Allow"),
    ],
)
def test_a_user_whose_name_only_brokers_know_is_not_shut_out(grant: Acl) -> None:
    """A certificate, a ticket, a token: it is one of those who may write the flows topic."""
    got = plan_without_a_name([denial(CERTIFIED), denial("User:CN=bob")], [grant])
    assert got.to_create == (replace(denial("User:CN=bob"), topic="sf.orders"),)
    why = f"{CERTIFIED} may be who mirrors the topic: it may write causeway-flows.internal"
    assert got.left_behind == ((denial(CERTIFIED), why),)


@pytest.mark.parametrize(
    "grant",
    [
        Acl("causeway-flows.internal", "literal", CERTIFIED, "*", "Read", "Allow"),
        Acl("causeway-flows.internal", "literal", CERTIFIED, "*", "Write", "Deny"),
        Acl("sf.", "prefixed", CERTIFIED, "*", "Write", "Allow"),
    ],
)
def test_who_may_not_write_the_flows_topic_mirrors_nothing(grant: Acl) -> None:
    assert plan_without_a_name([denial(CERTIFIED)], [grant]).left_behind == ()


def test_where_the_name_is_known_nobody_else_is_taken_for_the_mirror() -> None:
    writer = Acl("causeway-flows.internal", "literal", "User:bob", "*", "Write", "Allow")
    got = plan([denial("User:bob")], [writer])
    assert got.to_create == (replace(denial("User:bob"), topic="sf.orders"),)


def test_where_everybody_may_write_the_flows_topic_anybody_may_be_the_mirror() -> None:
    everybody = Acl("*", "literal", "User:*", "*", "Write", "Allow")
    got = plan_without_a_name(
        [denial("User:CN=bob"), denial("User:*"), denial("User:*", "Write")], [everybody]
    )
    assert got.to_create == (replace(denial("User:*"), topic="sf.orders"),)
    assert [rule for rule, _ in got.left_behind] == [denial("User:*", "Write"), denial("User:CN=bob")]


def test_a_mirror_that_is_held_back_gets_nothing_and_keeps_what_it_has() -> None:
    mine = acl("sf.orders", who="bob")
    got = plan_acls(
        FLOW,
        MIRRORS,
        AclsFound([acl("orders"), acl("trades")], [mine], [mine, acl("sf.trades", who="bob")]),
        mirrored_by="User:causeway",
        held_back={"orders": "it was recreated"},
    )
    assert got.to_create == (acl("sf.trades"),)
    assert (got.to_remove, got.to_forget) == ((), (acl("sf.trades", who="bob"),))
    assert got.left_behind == ((acl("orders"), "it was recreated"),)


def test_a_pattern_over_more_than_the_one_that_is_held_back_goes_with_the_sources() -> None:
    mine = acl("sf.orders", pattern="prefixed")
    found = AclsFound([], [mine], [mine])
    got = plan_acls(FLOW, MIRRORS, found, mirrored_by="User:causeway", held_back={"orders": "."})
    assert got.to_remove == (mine,)


@pytest.mark.parametrize("permission", ["Allow", "Deny"])
def test_a_pattern_that_the_source_has_stays_for_what_is_held_back(permission: str) -> None:
    """A denial that goes would let somebody read the mirror, though the source denies it still."""
    mine = acl("sf.orders-e", permission=permission, pattern="prefixed")
    got = plan_acls(
        FLOW,
        MIRRORS,
        AclsFound([acl("orders-e", permission=permission, pattern="prefixed")], [mine], [mine]),
        mirrored_by="User:causeway",
        held_back={"orders-eu": "it was recreated"},
    )
    assert (got.to_create, got.to_remove, got.to_forget) == ((), (), ())


def test_a_pattern_is_written_for_the_mirrors_that_are_not_held_back() -> None:
    flow = replace(FLOW, naming=IdentityNaming("sf"))
    mine = acl("orders-eu")
    got = plan_acls(
        flow,
        PLAIN,
        AclsFound([acl("orders", pattern="prefixed")], [mine], [mine]),
        mirrored_by="User:causeway",
        held_back={"orders-eu": "it was recreated"},
    )
    assert (got.to_create, got.to_remove, got.left_behind) == ((acl("orders"),), (), ())


def test_what_denies_comes_first_and_goes_last() -> None:
    allow, deny = acl("*"), acl("trades", permission="Deny")
    got = plan(
        [allow, deny],
        [acl("sf.orders", permission="Deny"), acl("sf.orders")],
        [acl("sf.orders", permission="Deny"), acl("sf.orders")],
    )
    assert [each.permission for each in got.to_create] == ["Deny", "Allow"]
    assert [each.permission for each in got.to_remove] == ["Allow", "Deny"]


def test_what_is_there_for_another_reason_is_not_made_and_so_never_removed() -> None:
    administrators = acl("sf.orders")
    got = plan([acl("orders")], [administrators])
    assert (got.to_create, got.in_place) == ((), 1)
    assert plan([], [administrators]).to_remove == ()


def test_thousands_of_rules_are_planned_at_once() -> None:
    """Each is looked up, not compared with each other one: 20,000 rules on 5,000 topics."""
    mirrors = {f"t{number}": f"t{number}" for number in range(5_000)}
    rules = [acl(f"t{number % 5_000}", who=f"user{number}") for number in range(20_000)]
    got = plan_acls(
        replace(FLOW, naming=IdentityNaming("sf")),
        mirrors,
        AclsFound(rules, rules[:10_000], rules),
        mirrored_by="User:x",
    )
    assert (len(got.to_create), got.in_place, got.to_remove) == (10_000, 10_000, ())
