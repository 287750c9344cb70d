"""Rights: those that a flow lacks, and those that it has for nothing.

Reasons: a missing right parks topics or ends runs, at night; a right in excess is what an attacker, or a
mistake, gets along with the mirror's password.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from causeway.core.doctor.excess_rights import Granted
from causeway.core.doctor.finding import Finding, failed, passed, some, together, warn
from causeway.core.kernel.acl_vocabulary import (
    NeededRight,
    Operation,
    Resource,
    Side,
)
from causeway.core.kernel.cluster_facts import ClusterView
from causeway.core.kernel.errors import NotAuthorized
from causeway.core.model.flow import Flow
from causeway.core.model.naming import FLOWS_TOPIC, SCRATCH_PREFIX, PrefixNaming

CHECK_RIGHTS = "rights"
_SHOW = frozenset({Operation.READ, Operation.WRITE})


@dataclass(frozen=True, slots=True, kw_only=True)
class RightsFacts:
    source: Granted
    target: Granted
    existing: Collection[str]
    """Topics of the target that are there."""
    not_creatable: Collection[str]
    """Topics of the target that this user may not make; also of those that are there."""
    may_commit: bool
    may_claim: bool
    has_heartbeats: bool = False
    """The source has a topic of heartbeats, so nobody has to make it."""
    may_see_other_way: bool = True
    """The positions of the flow in the other direction, which are on the source."""


def judge_missing(
    needed: Iterable[NeededRight],
    facts: RightsFacts,
    views: Mapping[Side, ClusterView],
    mirrors: Mapping[str, str],
    upkeep: Iterable[NeededRight] = (),
) -> list[Finding]:
    """`mirrors`: the target name of each source topic; `upkeep`: rights that the copy can do without."""
    found: list[Finding] = []
    rights, besides = list(needed), list(upkeep)
    for side, view in views.items():
        mine = [right for right in rights if right.side == side]
        missing = _grouped((right, _lacking_names(right, facts, mirrors)) for right in mine)
        found += [_missing(view, group, names, facts, mirrors) for group, names in missing]
        wanting = _grouped(
            (right, _lacking_for_upkeep(right, view, facts, mirrors))
            for right in besides
            if right.side == side
        )
        found += [_wanting(view, group, names) for group, names in wanting]
        if not missing and not wanting:
            has = f"{view.principal} has all that the flow needs"
            found.append(
                passed(
                    CHECK_RIGHTS, view.alias, has if view.has_authorizer else "no authorizer: none are needed"
                )
            )
    return found


def _grouped(lacking: Iterable[tuple[NeededRight, list[str]]]) -> list[tuple[list[NeededRight], list[str]]]:
    """One line for a right that is missing on many topics."""
    groups: dict[tuple[str, Operation, str], tuple[list[NeededRight], list[str]]] = {}
    for right, names in lacking:
        if names:
            rights, all_names = groups.setdefault((right.resource, right.operation, right.why), ([], []))
            rights.append(right)
            all_names += names
    return list(groups.values())


def _lacking_names(right: NeededRight, facts: RightsFacts, mirrors: Mapping[str, str]) -> list[str]:
    """What of it is missing, by name."""
    if right.resource == "group":
        is_held = facts.may_commit if right.side == "target" else facts.may_see_other_way
        return [] if is_held else [right.name]
    if right.resource == "transactional-id":
        return [] if facts.may_claim else [right.name]
    names = list(mirrors.values()) if right.is_prefix else [right.name]
    if right.operation is Operation.CREATE:
        return [name for name in names if name in facts.not_creatable]
    granted = facts.source if right.side == "source" else facts.target
    return [name for name in names if _is_lacking(granted.get(name), right.operation)]


def _lacking_for_upkeep(
    right: NeededRight, view: ClusterView, facts: RightsFacts, mirrors: Mapping[str, str]
) -> list[str]:
    if right.resource == "cluster":  # without Describe a user doesn't see what else it may do
        return [right.name] if view.has_authorizer and right.operation not in (view.operations or ()) else []
    if right.side == "source" and right.operation is Operation.CREATE and facts.has_heartbeats:
        return []
    granted = facts.source if right.side == "source" else facts.target
    names = list(mirrors.values()) if right.is_prefix else [right.name]
    lacking = [n for n in names if (held := granted.get(n)) is not None and right.operation not in held]
    return lacking if view.has_authorizer else []


def _wanting(view: ClusterView, rights: list[NeededRight], names: list[str]) -> Finding:
    """The copy goes on without it; what it is for fails, and says so."""
    first = rights[0]
    on = "the cluster" if first.resource == "cluster" else f"{first.resource} {some(names)}"
    grants = together(right.command(view.principal) for right in rights)
    said = f"{view.principal} lacks {first.operation.word} on {on}: {first.why}; the copy doesn't need it"
    return warn(CHECK_RIGHTS, view.alias, said, grants)


def _is_lacking(operations: frozenset[int] | None, operation: Operation) -> bool:
    """Of a topic that may not even be seen no more is known: what would show it is lacking."""
    if operations is None or operation in operations:
        return False
    return bool(operations) or operation in _SHOW


def _missing(
    view: ClusterView,
    rights: list[NeededRight],
    names: list[str],
    facts: RightsFacts,
    mirrors: Mapping[str, str],
) -> Finding:
    first = rights[0]
    finding = f"{view.principal} lacks {first.operation.word} on {first.resource} {some(names)}: {first.why}"
    grants = together(right.command(view.principal) for right in rights)
    if _is_for_later(first, names, facts, mirrors):
        return warn(CHECK_RIGHTS, view.alias, f"{finding}; not needed now", grants)
    return failed(CHECK_RIGHTS, view.alias, finding, grants, NotAuthorized)


def _is_for_later(
    right: NeededRight, names: list[str], facts: RightsFacts, mirrors: Mapping[str, str]
) -> bool:
    """What is made already needs no right to be made, nor to be made like its source."""
    if right.operation is Operation.CREATE:
        return all(name in facts.existing for name in names)
    if right.operation is Operation.DESCRIBE_CONFIGS:
        return all(mirrors.get(name) in facts.existing for name in names)
    return right.operation is Operation.ALTER


def doctor_rights(flow: Flow) -> tuple[NeededRight, ...]:
    """What doctor can use beyond the flow's own rights; without them it says what it couldn't look at."""
    scratch: tuple[tuple[Resource, Operation, str], ...] = (
        ("topic", Operation.CREATE, "make the scratch topic of the rehearsal"),
        ("topic", Operation.WRITE, "rehearse transactions in it"),
        ("topic", Operation.READ, "read them back"),
        ("topic", Operation.DELETE, "delete it at the end"),
        ("group", Operation.READ, "rehearse the commit of positions"),
        ("group", Operation.DELETE, "delete the scratch group at the end"),
        ("transactional-id", Operation.WRITE, "rehearse the claim and the fence"),
    )
    return (
        *(
            _right("target", resource, SCRATCH_PREFIX, operation, why, is_prefix=True)
            for resource, operation, why in scratch
        ),
        *_looks(flow),
    )


def _looks(flow: Flow) -> list[NeededRight]:
    looks = [
        _right(side, "cluster", "", operation, why)
        for side in ("source", "target")
        for operation, why in (
            (Operation.DESCRIBE, "read the cluster's clock, its authorizer's list and this user's rights"),
            (Operation.DESCRIBE_CONFIGS, "read broker settings"),
        )
        if side == "target" or operation is Operation.DESCRIBE
    ]
    own = (FLOWS_TOPIC, flow.map_topic)
    looks += [
        _right("target", "topic", name, Operation.DESCRIBE_CONFIGS, "read this topic's settings")
        for name in own
    ]
    return [*looks, *settings_rights(flow, [""] if isinstance(flow.naming, PrefixNaming) else [])]


def settings_rights(flow: Flow, source_topics: Iterable[str]) -> list[NeededRight]:
    """To read the settings of mirrors: one prefix, or each by its name."""
    is_prefix = isinstance(flow.naming, PrefixNaming)
    names = [flow.naming.target_topic("" if is_prefix else topic) for topic in source_topics]
    return [
        _right(
            "target",
            "topic",
            name,
            Operation.DESCRIBE_CONFIGS,
            "read the mirrors' settings",
            is_prefix=is_prefix,
        )
        for name in dict.fromkeys(names)
    ]


def _right(
    side: Side, resource: Resource, name: str, operation: Operation, why: str, *, is_prefix: bool = False
) -> NeededRight:
    return NeededRight(
        side=side, resource=resource, name=name, operation=operation, why=why, is_prefix=is_prefix
    )
