"""`causeway status FLOW`: who owns the flow, and position, end and lag of each partition."""

from __future__ import annotations

from causeway.cli.commands.next import look_next
from causeway.cli.request import Request, opened
from causeway.render.outcome import Outcome


def status(request: Request) -> Outcome:
    """Who holds the flow is printed of one read: the last line but one says it, too."""
    from causeway.render.flow_status import standing, with_unprotected
    from causeway.usecases.groups.unprotected import find_unprotected_groups
    from causeway.usecases.inspect.flow_status import as_of
    from causeway.usecases.inspect.status_without_source import inspect_for_status

    deployment, flow, source, target = opened(request)
    view = inspect_for_status(flow, source, target)
    groups = find_unprotected_groups(flow, deployment.groups[flow.name], source, target)
    look = look_next(request)
    if look.found is not None and look.found.flow == flow.name and look.found.state is not None:
        view = as_of(look.found.state, view)
    return look.below(with_unprotected(flow.name, standing(view), groups))
