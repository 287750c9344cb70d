"""Rights: those that a flow lacks, and those that it has for nothing.

Reasons: a missing right parks topics or ends runs, at night; a right in excess is what an attacker, or a
mistake, gets along with the mirror's password.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from causeway.core.diagnosis.facts import ClusterView, Grant
from causeway.core.diagnosis.finding import Finding, failed, passed, some, together, warn
from causeway.core.diagnosis.names import SCRATCH_PREFIX
from causeway.core.errors import NotAuthorized
from causeway.core.flow import Flow
from causeway.core.naming import FLOWS_TOPIC, HEARTBEATS_TOPIC, PrefixNaming
from causeway.core.rights import NeededRight, Operation, Resource, Side, grant_command, revoke_command

CHECK_RIGHTS, CHECK_EXCESS, CHECK_WRITERS = "rights", "rights in excess", "other writers"
_ALL, _TOPIC = 2, 2  # the protocol's numbers: any operation; a topic
_SHOW = frozenset({Operation.READ, Operation.WRITE})
_OF_CLUSTER = {Operation.CREATE, Operation.ALTER, Operation.CLUSTER_ACTION, Operation.ALTER_CONFIGS}
_LOOKS = frozenset({Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS})

Granted = Mapping[str, frozenset[int] | None]
"""By topic: what this user may do with it; None: not known, which is taken for enough."""


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
        missing = _grouped((right, _lacking(right, facts, mirrors)) for right in mine)
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


def _lacking(right: NeededRight, facts: RightsFacts, mirrors: Mapping[str, str]) -> list[str]:
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
    if right.resource == "cluster":  # who may not describe the cluster isn't told what else it may do
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What this user may do with some resources of one kind, and what it is meant to."""

    resource: Resource
    granted: Granted
    meant: frozenset[Operation] = field(default=frozenset())


MEANT_FOR_SOURCES = frozenset({Operation.READ})
MEANT_FOR_OWN = frozenset({Operation.CREATE, Operation.WRITE, Operation.READ})


def meant_for_mirrors(flow: Flow) -> frozenset[Operation]:
    meant = {Operation.CREATE, Operation.WRITE, Operation.READ, Operation.ALTER}
    if flow.failback_of:  # a rebuild empties them
        meant |= {Operation.DELETE, Operation.ALTER_CONFIGS}
    return frozenset(meant | {Operation.ALTER_CONFIGS} if flow.upkeep.sync_settings else meant)


def meant_for_target_cluster(flow: Flow) -> frozenset[Operation]:
    return frozenset({Operation.ALTER} if flow.upkeep.sync_acls else ())


def held_on_source(
    flow: Flow, granted: Granted, cluster: frozenset[int] | None, other_way: Flow | None = None
) -> tuple[Held, ...]:
    """Of all that a flow reads there, it may write its heartbeats only. `other_way` leads to that cluster, as
    the same user: what it may do there is no excess."""
    writes = {HEARTBEATS_TOPIC} if flow.upkeep.emit_heartbeats else set()
    own = {FLOWS_TOPIC, other_way.map_topic} if other_way else set()
    mirrors = meant_for_mirrors(other_way) if other_way else frozenset()
    return (
        Held(
            resource="topic",
            granted={name: held for name, held in granted.items() if name not in writes | own},
            meant=MEANT_FOR_SOURCES | mirrors,
        ),
        Held(
            resource="topic",
            granted={name: held for name, held in granted.items() if name in writes | own},
            meant=MEANT_FOR_OWN,
        ),
        Held(
            resource="cluster",
            granted={"": cluster},
            meant=meant_for_target_cluster(other_way) if other_way else frozenset(),
        ),
    )


def judge_excess(view: ClusterView, held: Iterable[Held]) -> list[Finding]:
    if not view.has_authorizer:
        return [
            passed(CHECK_EXCESS, view.alias, "no authorizer: everybody may do everything, nothing to look at")
        ]
    held = list(held)
    if _may_everything(held):
        said = f"{view.principal} may do everything, as super users do; no flow needs that"
        return [
            warn(
                CHECK_EXCESS,
                view.alias,
                said,
                "give the flow a user of its own: docs/rights.md has its grants",
            )
        ]
    found = [finding for each in held for finding in _excess(view, each)]
    return found or [passed(CHECK_EXCESS, view.alias, f"{view.principal} has no more than the flow needs")]


def _may_everything(held: Sequence[Held]) -> bool:
    """One line is enough then: taking such rights away one by one leads nowhere."""
    held_of_cluster = [
        set(g or ()) for each in held if each.resource == "cluster" for g in each.granted.values()
    ]
    return any(granted >= _OF_CLUSTER for granted in held_of_cluster)


def _excess(view: ClusterView, held: Held) -> list[Finding]:
    meant = held.meant | _LOOKS
    found: list[Finding] = []
    for operation in (each for each in Operation if each not in meant):
        names = [name for name, granted in held.granted.items() if operation in (granted or ())]
        if not names:
            continue
        word = operation.word
        on = "the cluster" if held.resource == "cluster" else f"{held.resource} {some(names)}"
        remedy = together(revoke_command(view.principal, word, held.resource, name) for name in names[:3])
        found.append(
            warn(
                CHECK_EXCESS,
                view.alias,
                f"{view.principal} may {word} on {on}; no flow does that",
                f"{remedy}; or whatever else grants it: kafka-acls.sh --list --principal {view.principal}",
            )
        )
    return found


def judge_writers(view: ClusterView, mirrors: Collection[str]) -> Finding | None:
    """Whoever else may write a mirror can park it. The flow's own topics are other flows' too."""
    if not view.has_authorizer:
        return None
    if view.grants is None:
        grant = grant_command(view.principal, Operation.DESCRIBE.word, "cluster", "")
        return warn(CHECK_WRITERS, view.alias, "who else may write the mirrors can't be seen", grant)
    others = sorted(
        {
            (grant.principal, grant.name)
            for grant in view.grants
            if grant.resource_type == _TOPIC
            and grant.operation in (_ALL, Operation.WRITE)
            and grant.principal != view.principal
            and any(_covers(grant, name) for name in mirrors)
        }
    )
    if not others:
        return passed(
            CHECK_WRITERS, view.alias, f"nobody but {view.principal} is granted Write on the mirrors"
        )
    principal, name = others[0]
    return warn(
        CHECK_WRITERS,
        view.alias,
        f"{some([each for each, _ in others])} may write mirrors of the flow: that parks partitions",
        f"kafka-acls.sh --list --topic {name}; take Write from {principal}, unless it is another flow's user",
    )


def _covers(grant: Grant, topic: str) -> bool:
    if grant.name == "*":
        return True
    return topic.startswith(grant.name) if grant.is_prefix else topic == grant.name


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
