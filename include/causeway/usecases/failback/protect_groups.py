"""The last of a homecoming: a group sync, so that groups that returned are protected again at once.

All else is done by then. Where no sync can be made now, that is reported, and the next one does it.
"""

from __future__ import annotations

from causeway.core.groups.unprotected import unprotected_lines
from causeway.core.kernel.errors import CausewayError
from causeway.core.model.group_filter import FlowGroups
from causeway.usecases.failback.journal_store import FlowPair
from causeway.usecases.groups.sync import sync_groups
from causeway.usecases.groups.unprotected import find_unprotected_groups
from causeway.usecases.run_lock.ownership import Say


def protect_again(ways: FlowPair, groups: FlowGroups, say: Say) -> list[str]:
    """`groups` are the forward flow's.

    :returns: who isn't protected now, why, and the remedy; nothing where all are, or the flow syncs none.
    """
    if not groups.sync_offsets:
        return []
    flow = ways.forward
    try:
        report = sync_groups(flow, groups, ways.old, ways.new, say, writes=True)
        say(f"{flow.name}: group sync: {report.result.commits:,} offsets committed")
        found = find_unprotected_groups(flow, groups, ways.old, ways.new)
    except CausewayError as trouble:
        return [f"NOT PROTECTED groups of {flow.name}: no group sync since they returned: {trouble}"]
    return unprotected_lines(flow.name, found)
