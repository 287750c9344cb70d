"""The last of a homecoming: a group sync, so that groups that came home are protected again at once.

All else is done by then. Where no sync can be made now, that is said, and the next one does it.
"""

from __future__ import annotations

from causeway.core.errors import CausewayError
from causeway.core.group_filter import FlowGroups
from causeway.core.unprotected import unprotected_lines
from causeway.flows.failback.logbook import Ways
from causeway.flows.groups.run import sync_groups
from causeway.flows.groups.unprotected import look_for_unprotected
from causeway.flows.ownership import Say


def protect_again(ways: Ways, groups: FlowGroups, say: Say) -> list[str]:
    """`groups` are the forward flow's.

    :returns: who isn't protected now, why, and the way out; nothing where all are, or the flow syncs none.
    """
    if not groups.sync_offsets:
        return []
    flow = ways.forward
    try:
        report = sync_groups(flow, groups, ways.old, ways.new, say, writes=True)
        say(f"{flow.name}: group sync: {report.result.commits:,} offsets committed")
        found = look_for_unprotected(flow, groups, ways.old, ways.new)
    except CausewayError as trouble:
        return [f"NOT PROTECTED groups of {flow.name}: no group sync since they came home: {trouble}"]
    return unprotected_lines(flow.name, found)
