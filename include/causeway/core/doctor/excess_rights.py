"""Rights that a flow holds and doesn't need, and other users who may write its mirrors."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from causeway.core.doctor.finding import Finding, passed, some, together, warn
from causeway.core.kernel.acl_vocabulary import (
    Operation,
    Resource,
    grant_command,
    revoke_command,
)
from causeway.core.kernel.cluster_facts import ClusterView, Grant
from causeway.core.model.flow import Flow
from causeway.core.model.naming import FLOWS_TOPIC, HEARTBEATS_TOPIC

CHECK_EXCESS, CHECK_WRITERS = "rights in excess", "other writers"
_ALL, _TOPIC = 2, 2  # the protocol's numbers: any operation; a topic
_OF_CLUSTER = {Operation.CREATE, Operation.ALTER, Operation.CLUSTER_ACTION, Operation.ALTER_CONFIGS}
_LOOKS = frozenset({Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS})

Granted = Mapping[str, frozenset[int] | None]
"""By topic: what this user may do with it; None: not known, which is taken for enough."""


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
