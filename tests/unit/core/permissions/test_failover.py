"""What failover, drill and failback need besides, and what doctor makes of what is missing."""

from __future__ import annotations

from dataclasses import replace

from causeway.core.doctor.excess_rights import meant_for_mirrors
from causeway.core.doctor.failover import judge_failover, rights_to_ask
from causeway.core.doctor.finding import Finding, Result
from causeway.core.failback.divergence import export_prefix, export_topic
from causeway.core.kernel.acl_vocabulary import NeededRight, Operation, Side
from causeway.core.kernel.cluster_facts import ClusterView
from causeway.core.model.group_filter import FlowGroups
from causeway.core.model.naming import IdentityNaming
from causeway.core.permissions.failover import (
    closing_rights,
    drill_rights,
    failover_rights,
    moving_rights,
    turn_rights,
    writing_rights,
)
from causeway.core.permissions.flow import group_rights, needed_rights
from tests.support.mirroring import make_flow

PREFIXED = make_flow("sf_to_nyc", "orders")
NAMED = replace(PREFIXED, naming=IdentityNaming("sf"), failback="nyc_to_sf")
BACK = replace(
    make_flow("nyc_to_sf", "orders", source="nyc", target="sf"),
    naming=IdentityNaming("nyc"),
    failback_of="sf_to_nyc",
)
VIEWS: dict[Side, ClusterView] = {
    "source": ClusterView(alias="sf", cluster_id="1", principal="User:here", brokers=()),
    "target": ClusterView(alias="nyc", cluster_id="2", principal="User:there", brokers=()),
}
Said = set[tuple[Side, str, str, str]]


def said(rights: object) -> Said:
    assert isinstance(rights, list | tuple)
    return {(right.side, right.resource, right.name, right.operation.word) for right in rights}


def judged(*lacking: NeededRight) -> list[Finding]:
    return judge_failover(lacking, VIEWS)


def test_the_prefix_of_the_mirrors_covers_the_checkpoints() -> None:
    checkpoints = ("target", "topic", "sf.checkpoints.internal", "Read")
    assert checkpoints not in said(failover_rights(PREFIXED, ["a"]))
    assert checkpoints in said(failover_rights(NAMED, ["a"]))


def test_a_drill_moves_and_deletes_only_clones() -> None:
    on_groups = {each for each in said(drill_rights(PREFIXED, ["a"])) if each[1] == "group"}
    assert on_groups == {
        ("source", "group", "a", "Describe"),
        ("target", "group", "a", "Describe"),
        ("target", "group", "causeway.drill.sf_to_nyc/", "Read"),
        ("target", "group", "causeway.drill.sf_to_nyc/", "Delete"),
    }


def test_to_fence_and_to_write_a_flow_takes_some_of_its_own_rights() -> None:
    turn = {("target", "topic", "causeway-flows.internal", word) for word in ("Read", "Write")}
    claims = {("target", "transactional-id", "causeway.nyc_to_sf.", "Write")}
    assert said(turn_rights(BACK)) == turn
    assert said(closing_rights(BACK)) == turn | claims
    everything = said(writing_rights(BACK, ["orders"]))
    assert turn | claims < everything < said(needed_rights(BACK, ["orders"]))
    assert ("target", "topic", "orders", "Write") in everything


def test_exports_begin_with_the_prefix_however_long_the_topics_name_is() -> None:
    for topic in ("orders", "o" * 249):
        export = export_topic(topic, 1_763_438_580_000)
        assert export.startswith(export_prefix(topic))
        assert len(export) <= 249


def test_what_is_judged_with_the_copy_and_its_groups_is_not_judged_twice() -> None:
    groups = FlowGroups(sync_offsets=True)
    known = (*needed_rights(NAMED, ["orders"]), *group_rights(NAMED, groups, ["a"]))
    asked = rights_to_ask(NAMED, ["a"], ["orders"], ["orders"], known)
    assert said(asked).isdisjoint(said(known))
    assert ("source", "topic", "orders", "Delete") in said(asked)
    assert ("source", "topic", "orders", "AlterConfigs") in said(asked)
    assert len(asked) == len(said(asked))


def test_only_a_flow_with_a_failback_is_rebuilt_and_no_reverse_flow_is_rehearsed() -> None:
    assert all("diverged" not in right.name for right in rights_to_ask(PREFIXED, ["a"], ["orders"], (), ()))
    home = rights_to_ask(BACK, ["a"], ["orders"], (), ())
    assert said(home) == said(failover_rights(BACK, ["a"]))


def test_what_a_rebuild_may_do_is_no_excess_of_the_reverse_flow() -> None:
    rebuilding = {Operation.DELETE, Operation.ALTER_CONFIGS}
    assert meant_for_mirrors(BACK) >= rebuilding
    assert meant_for_mirrors(NAMED).isdisjoint(rebuilding)


def test_all_is_well() -> None:
    (found,) = judged()
    assert (found.result, found.where, found.finding) == (
        Result.PASSED,
        "nyc",
        "User:there may do all of it",
    )


def test_what_is_missing_is_one_line_for_many_groups_and_harms_no_copy() -> None:
    rights = moving_rights(["a", "b"])
    (found,) = judged(*rights)
    assert (found.result, found.exit_code, found.where) == (Result.WARN, 0, "nyc")
    assert found.finding.startswith("User:there lacks Read on group a, b: ")
    assert found.finding.endswith("; the copy doesn't need it")
    assert found.remedy == "; ".join(right.command("User:there") for right in rights)
    assert [each.where for each in judged(*failover_rights(PREFIXED, ["a"])[:1])] == ["sf"]
