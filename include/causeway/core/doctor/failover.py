"""Failover, drill and failback: whether this user may do all of it.

Reason: they are for a night when no administrator may be at hand, and the copy shows nothing of what is
missing for them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from causeway.core.doctor.finding import Finding, passed, some, together, warn
from causeway.core.journal.journal_format import FAILOVERS_TOPIC
from causeway.core.kernel.acl_vocabulary import NeededRight, Side
from causeway.core.kernel.cluster_facts import ClusterView
from causeway.core.model.flow import Flow
from causeway.core.permissions.failback import failback_rights
from causeway.core.permissions.failover import drill_rights, failover_rights

CHECK_FAILOVER = "failover"


def rights_to_ask(
    flow: Flow,
    groups: Iterable[str],
    topics: Iterable[str],
    compacted: Collection[str],
    judged: Iterable[NeededRight],
) -> list[NeededRight]:
    """What `flow` needs besides, but for what is `judged` with the copy and its groups.

    A reverse flow is failed over to complete a failback, and is never rehearsed.
    """
    names = sorted(groups)
    needed = [*failover_rights(flow, names), *(() if flow.failback_of else drill_rights(flow, names))]
    needed += failback_rights(topics, compacted) if flow.failback else ()
    known = {_key(right) for right in judged}
    return [right for right in dict.fromkeys(needed) if _key(right) not in known]


def _key(right: NeededRight) -> tuple[object, ...]:
    return right.side, right.resource, right.name, right.operation


def judge_failover(lacking: Iterable[NeededRight], views: Mapping[Side, ClusterView]) -> list[Finding]:
    alike: dict[tuple[object, ...], list[NeededRight]] = {}
    for right in lacking:
        alike.setdefault((right.side, right.resource, right.operation, right.why), []).append(right)
    found = [_lacking_finding(rights, views[rights[0].side]) for rights in alike.values()]
    may = f"{views['target'].principal} may do all of it"
    return found or [passed(CHECK_FAILOVER, views["target"].alias, may)]


def judge_journal(note: str, alias: str) -> list[Finding]:
    """`note`: what is odd about the topic that keeps failovers."""
    ways = (
        f"find who wrote there, and take their Write on {FAILOVERS_TOPIC} away; what they wrote harms nothing"
    )
    return [warn(CHECK_FAILOVER, alias, note, ways)] if note else []


def _lacking_finding(rights: list[NeededRight], view: ClusterView) -> Finding:
    """One line for a right that is missing on many topics or groups."""
    first, names = rights[0], some([right.name for right in rights])
    said = f"{view.principal} lacks {first.operation.word} on {first.resource} {names}: {first.why}"
    grants = together(right.command(view.principal) for right in rights)
    return warn(CHECK_FAILOVER, view.alias, f"{said}; the copy doesn't need it", grants)
