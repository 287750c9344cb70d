"""What doctor makes of consumer groups."""

from __future__ import annotations

from dataclasses import replace

from causeway.core.doctor.finding import Finding, Result
from causeway.core.doctor.groups import GroupFacts, judge_groups
from causeway.core.groups.unprotected import Unprotected
from causeway.core.kernel.acl_vocabulary import Operation, Side
from causeway.core.kernel.cluster_facts import ClusterView
from causeway.core.model.group_filter import FlowGroups
from causeway.core.model.naming import IdentityNaming
from tests.support.mirroring import make_flow

FLOW = make_flow("sf_to_nyc", "orders", naming=IdentityNaming())
RULES = FlowGroups(sync_offsets=True)
WELL = GroupFacts(selected=("a", "b"), hidden=(), lacking={}, not_committable=())
VIEWS: dict[Side, ClusterView] = {
    "source": ClusterView(alias="sf", cluster_id="1", principal="User:me", brokers=()),
    "target": ClusterView(alias="nyc", cluster_id="2", principal="User:me", brokers=()),
}


def judged(facts: GroupFacts, *, has_authorizer: bool = True) -> list[Finding]:
    views = {side: replace(view, has_authorizer=has_authorizer) for side, view in VIEWS.items()}
    return judge_groups(FLOW, RULES, facts, views)


def test_all_is_well() -> None:
    found = judged(WELL)
    assert [(each.result, each.where) for each in found] == [(Result.PASSED, "sf"), (Result.PASSED, "nyc")]
    assert found[0].finding == "2 groups to see to"


def test_a_source_that_shows_no_group_is_worth_a_look_where_rights_can_hide_them() -> None:
    none = replace(WELL, selected=())
    assert judged(none)[0].result is Result.WARN
    assert "--operation Describe --group '*'" in judged(none)[0].remedy
    assert judged(none, has_authorizer=False)[0].result is Result.PASSED


def test_groups_that_returned_and_are_not_protected_fail_with_the_remedy() -> None:
    found = [
        each
        for each in judged(replace(WELL, unprotected=Unprotected(waiting=("a", "b"), own=("c",))))
        if each.result is Result.FAILED
    ]
    assert [(each.where, each.exit_code) for each in found] == [("nyc", 5), ("nyc", 5)]
    assert found[0].finding.startswith("not protected: 2 groups (a, b): on the target each still holds")
    assert found[0].remedy == "`causeway groups sf_to_nyc --sync` protects them"
    assert found[1].finding.startswith("not protected: 1 group (c): each reads on the target, or has")


def test_a_group_that_is_named_and_hidden_fails() -> None:
    found = judged(replace(WELL, hidden=("billing",)))[0]
    assert (found.result, found.exit_code) == (Result.FAILED, 3)
    assert found.remedy.endswith("--operation Describe --group billing")


def test_each_missing_right_comes_with_its_grant() -> None:
    lacking = {
        "sf.checkpoints.internal": (Operation.WRITE,),
        "mm2-offset-syncs.sf.internal": (Operation.CREATE,),
    }
    found = [each for each in judged(replace(WELL, lacking=lacking)) if each.result is Result.FAILED]
    assert [each.remedy.split("--operation ")[1] for each in found] == [
        "Write --topic sf.checkpoints.internal",
        "Create --topic mm2-offset-syncs.sf.internal",
    ]
    (found_group,) = [
        each for each in judged(replace(WELL, not_committable=("a",))) if each.result is Result.FAILED
    ]
    assert found_group.remedy.endswith("--operation Read --group a")
