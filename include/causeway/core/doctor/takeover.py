"""Taking over from MirrorMaker 2: whether the flow may see what MirrorMaker 2 left, and keep it.

Reason: the takeover is done while nothing is mirrored; that is no time to look for an administrator.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from causeway.core.doctor.finding import Finding, failed, passed, warn
from causeway.core.kernel.acl_vocabulary import NeededRight, Side
from causeway.core.kernel.cluster_facts import ClusterView
from causeway.core.kernel.errors import NotAuthorized

CHECK_TAKEOVER = "takeover"


def judge_takeover(
    lacking: Collection[NeededRight], views: Mapping[Side, ClusterView], *, is_done: bool
) -> list[Finding]:
    """`is_done`: the flow goes on without what is missing, and only knows less of offsets from before."""
    found: list[Finding] = []
    for right in lacking:
        view = views[right.side]
        said = f"{view.principal} lacks {right.operation.word} on {right.resource} {right.name}: {right.why}"
        grant = right.command(view.principal)
        found.append(
            warn(CHECK_TAKEOVER, view.alias, f"{said}; the copy doesn't need it", grant)
            if is_done
            else failed(CHECK_TAKEOVER, view.alias, said, grant, NotAuthorized)
        )
    if found:
        return found
    may = "translate offsets from before it" if is_done else "take over from MirrorMaker 2"
    return [passed(CHECK_TAKEOVER, views["target"].alias, f"{views['target'].principal} may {may}")]
