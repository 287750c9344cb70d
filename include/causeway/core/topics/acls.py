"""Who may read a mirror: the ACLs of source topics, as they have to be on the target.

As MirrorMaker 2: an ALLOW of Write never crosses, All becomes Read, every DENY crosses as it is, under the
mirror's name. Beyond it:

- an ALLOW crosses only if it lets read (Read, Describe, DescribeConfigs, and All as Read): what lets create,
  delete or alter the source topic would let somebody else do that to the mirror;
- prefixed patterns and `*` cross too. Where mirrors have a prefix of their own, as one pattern after it;
  else topic by topic, because on the target other topics may begin alike;
- only the difference is applied, and only what Causeway created is ever removed (the ledger knows);
- what the mirror's own user may do on the source is no reader's right, and stays there;
- a DENY that would shut out the mirror's own user is left out, and reported: any of that user, and one
  that keeps everybody from writing. One that keeps everybody from reading crosses: it does so on the source.
  A certificate, a ticket or a token says its name to brokers and not to us: then whoever may write the flows
  topic of the target may be that user;
- a mirror that isn't the flow's any more, or whose source was recreated, is held back: rules of its own name
  are neither added nor removed, and a pattern over it stays for as long as the source has it;
- a DENY comes before what is allowed, and goes after it: at no moment reads who shall not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from causeway.core.kernel.acl_vocabulary import Operation
from causeway.core.model.flow import Flow
from causeway.core.model.naming import FLOWS_TOPIC, PrefixNaming
from causeway.core.state.acl import ANY_TOPIC, Acl

ALL = "All"
ANYBODY = "User:*"
_READING = frozenset(op.word for op in (Operation.READ, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS))


@dataclass(frozen=True, slots=True, kw_only=True)
class AclPlan:
    """What the target should have, has and lacks."""

    to_create: tuple[Acl, ...]
    """What denies first."""
    to_remove: tuple[Acl, ...]
    """Created by Causeway, and gone from the source. What denies last."""
    to_forget: tuple[Acl, ...]
    """In the ledger only: not seen on the target, and nobody wants them."""
    in_place: int
    left_behind: tuple[tuple[Acl, str], ...]
    """Of the source, with the reason."""


@dataclass(frozen=True, slots=True)
class AclsFound:
    """The ACLs of topics on both clusters, and those that Causeway has created."""

    source: Collection[Acl]
    target: Collection[Acl]
    created: Collection[Acl]
    """By the ledger."""


def plan_acls(
    flow: Flow,
    mirrors: Mapping[str, str],
    found: AclsFound,
    *,
    mirrored_by: str | None,
    read_by: str | None = None,
    held_back: Mapping[str, str] = MappingProxyType({}),
) -> AclPlan:
    """`mirrors`: all that the flow has begun with, by source topic, also those whose source is gone: as
    long as its ACLs stand, its readers keep theirs. `held_back`: those of them that aren't touched, and why.
    `mirrored_by`: the flow's user on the target, `read_by`: on the source;
    None: not known here.
    """
    names, wanted, stays, left_behind = sorted(mirrors), set[Acl](), set[Acl](), list[tuple[Acl, str]]()
    may_mirror = _writers(FLOWS_TOPIC, found.target) if mirrored_by is None else frozenset()
    for acl in sorted(found.source):
        covered = acl.covered(names)
        topics = [topic for topic in covered if topic not in held_back]
        crossing, why = _crossing(acl, mirrored_by, read_by, may_mirror)
        if covered and crossing is not None:
            stays |= _on_mirrors(flow, crossing, {topic: mirrors[topic] for topic in covered})
        if topics and crossing is not None:
            wanted |= _on_mirrors(flow, crossing, {topic: mirrors[topic] for topic in topics})
        elif covered:
            left_behind.append((acl, why or held_back[covered[0]]))
    frozen = {mirrors[topic] for topic in held_back if topic in mirrors}
    there = set(found.target)
    ours = {acl for acl in found.created if acl.pattern != "literal" or acl.topic not in frozen} - stays
    return AclPlan(
        to_create=tuple(sorted(wanted - there, key=_denials_first)),
        to_remove=tuple(sorted(ours & there, key=_denials_first, reverse=True)),
        to_forget=tuple(sorted(ours - there)),
        in_place=len(wanted & there),
        left_behind=tuple(left_behind),
    )


def _denials_first(acl: Acl) -> tuple[bool, Acl]:
    return acl.permission != "Deny", acl


def _writers(topic: str, acls: Iterable[Acl]) -> frozenset[str]:
    """Whom these rules let write it. Each run writes the flows topic; whom no rule lets do that is a super
    user, whom no rule shuts out either."""
    writing = (ALL, Operation.WRITE.word)
    return frozenset(
        acl.principal
        for acl in acls
        if acl.permission == "Allow" and acl.operation in writing and acl.covered([topic])
    )


def _crossing(
    acl: Acl, mirrored_by: str | None, read_by: str | None, may_mirror: Collection[str]
) -> tuple[Acl | None, str]:
    """The rule as it goes over, still under the source's name; or why it doesn't."""
    if acl.permission == "Deny":
        why = _why_it_shuts_out(acl, mirrored_by, may_mirror)
        return (None, why) if why else (acl, "")
    if acl.principal in (mirrored_by, read_by):
        return None, "who mirrors the topic has rights of its own there"
    if acl.operation == ALL:
        return replace(acl, operation=Operation.READ.word), ""
    if acl.operation in _READING:
        return acl, ""
    return None, "nobody but the mirror may do that to a mirror"


def _why_it_shuts_out(acl: Acl, mirrored_by: str | None, may_mirror: Collection[str]) -> str:
    if acl.principal == ANYBODY and acl.operation in (ALL, *_READING):
        return ""
    if acl.principal in (ANYBODY, mirrored_by):
        return f"it would shut out {mirrored_by or 'its own user'}, who mirrors the topic"
    if acl.principal in may_mirror or ANYBODY in may_mirror:
        return f"{acl.principal} may be who mirrors the topic: it may write {FLOWS_TOPIC}"
    return ""


def _on_mirrors(flow: Flow, acl: Acl, mirrors: Mapping[str, str]) -> set[Acl]:
    if acl.pattern == "literal" and acl.topic != ANY_TOPIC:
        return {replace(acl, topic=mirrors[acl.topic])}
    if isinstance(flow.naming, PrefixNaming):
        prefix = flow.naming.target_topic("" if acl.topic == ANY_TOPIC else acl.topic)
        return {replace(acl, topic=prefix, pattern="prefixed")}
    return {replace(acl, topic=mirror, pattern="literal") for mirror in mirrors.values()}
