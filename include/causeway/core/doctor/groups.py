"""Consumer groups: whether the flow may see them, tell of them and commit for them.

Reason: what a broker hides looks like a cluster without groups, and is found out in a failover.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from causeway.core.doctor.finding import (
    PARKED_EXIT_CODE,
    Finding,
    Result,
    failed,
    passed,
    some,
    together,
    warn,
)
from causeway.core.groups.unprotected import Unprotected, findings_of
from causeway.core.kernel.acl_vocabulary import NeededRight, Operation, Side, grant_command
from causeway.core.kernel.cluster_facts import ClusterView
from causeway.core.kernel.errors import NotAuthorized
from causeway.core.kernel.plurals import counted
from causeway.core.model.flow import Flow
from causeway.core.model.group_filter import FlowGroups
from causeway.core.permissions.flow import group_rights

CHECK_GROUPS = "groups"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupFacts:
    selected: Sequence[str]
    """Groups of the source that the flow selects and this user may see."""
    hidden: Collection[str]
    """Those that flows.yaml names and this user may not see."""
    lacking: Mapping[str, Collection[Operation]]
    """By topic of checkpoints and syncs."""
    not_committable: Collection[str]
    """Of the selected: those for which nothing may be committed on the target."""
    unprotected: Unprotected = field(default_factory=Unprotected)


def judge_groups(
    flow: Flow, groups: FlowGroups, facts: GroupFacts, views: Mapping[Side, ClusterView]
) -> list[Finding]:
    found = [_on_source(flow, facts, views["source"])]
    needed = group_rights(flow, groups, facts.not_committable)
    found += [
        _missing(right, views["target"])
        for right in needed
        if right.resource == "topic" and right.operation in facts.lacking.get(right.name, ())
    ]
    found += _unprotected(flow, facts.unprotected)
    if facts.not_committable:
        found.append(_not_committable(flow, facts, views["target"]))
    if len(found) == 1:
        what = "tell of groups and commit for them" if groups.sync_offsets else "tell of groups"
        found.append(passed(CHECK_GROUPS, flow.target, f"{views['target'].principal} may {what}"))
    return found


def _on_source(flow: Flow, facts: GroupFacts, view: ClusterView) -> Finding:
    grant = grant_command(view.principal, Operation.DESCRIBE.word, "group", "'*'")
    if facts.hidden:
        said = f"{view.principal} may not see {some(list(facts.hidden))}, which groups names"
        grants = (
            grant_command(view.principal, Operation.DESCRIBE.word, "group", name) for name in facts.hidden
        )
        return failed(CHECK_GROUPS, flow.source, said, together(grants), NotAuthorized)
    if not facts.selected and not view.has_authorizer:
        return passed(CHECK_GROUPS, flow.source, "no group that the flow selects, so far")
    if not facts.selected:
        said = f"{view.principal} sees no group that the flow selects"
        return warn(CHECK_GROUPS, flow.source, said, f"if there are some: {grant}")
    number = counted(len(facts.selected), "group")
    return passed(CHECK_GROUPS, flow.source, f"{number} to see to")


def _unprotected(flow: Flow, groups: Unprotected) -> list[Finding]:
    return [
        Finding(
            result=Result.FAILED,
            check=CHECK_GROUPS,
            where=flow.target,
            finding=f"not protected: {what}",
            remedy=way,
            exit_code=PARKED_EXIT_CODE,
        )
        for what, way in findings_of(flow.name, groups)
    ]


def _missing(right: NeededRight, view: ClusterView) -> Finding:
    said = f"{view.principal} lacks {right.operation.word} on topic {right.name}: {right.why}"
    return failed(CHECK_GROUPS, view.alias, said, right.command(view.principal), NotAuthorized)


def _not_committable(flow: Flow, facts: GroupFacts, view: ClusterView) -> Finding:
    names = sorted(facts.not_committable)
    said = f"{view.principal} lacks Read on group {some(names)}: their offsets can't be committed"
    grants = (grant_command(view.principal, Operation.READ.word, "group", name) for name in names)
    return failed(CHECK_GROUPS, flow.target, said, together(grants), NotAuthorized)
