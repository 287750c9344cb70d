"""`causeway next FLOW`: where the flow is in its episode, and the one command that comes next.

The same two lines end `status` and each command of a failover and of a failback.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from causeway.core.errors import BadInput, CausewayError
from causeway.core.instants import rfc3339
from causeway.entrypoints.verbs import Outcome, Request

if TYPE_CHECKING:
    from collections.abc import Mapping

    from causeway.config.deployment import Deployment
    from causeway.core.failover.episode_stage import Next
    from causeway.core.flow import Flow


def add_next(add: Any) -> None:
    add(
        "next",
        next_of_flow,
        "show the flow's stage (mirroring, failed over, resting, ...) and the next command",
    )


def next_of_flow(request: Request) -> Outcome:
    found = _look(request)
    return Outcome(payload=found.as_dict(), text="\n".join(next_lines(found)))


def next_lines(found: Next) -> list[str]:
    since = "" if found.since_ms is None else f" since {rfc3339(found.since_ms)}"
    by = f" by {found.by}" if found.by else ""
    when = f" {found.when}" if found.when else ""
    return [
        f"{found.flow}: {str(found.stage).upper()}{since}{by}: {found.what}",
        f"{found.flow}: NEXT `{found.command}`{when}; success: {found.success}",
    ]


def with_next(request: Request, outcome: Outcome) -> Outcome:
    """What was done stays done, whatever keeps the next step from being told."""
    lines, said = _told(request)
    return Outcome(
        payload={**outcome.payload, "next": said},
        text="\n".join([outcome.text, *lines]),
        exit_code=outcome.exit_code,
    )


def _told(request: Request) -> tuple[list[str], Mapping[str, object] | None]:
    try:
        found = _look(request)
    except CausewayError as trouble:
        return [f"{request.options.flow}: NEXT can't be told now: {trouble}"], None
    except KeyboardInterrupt:
        flow = request.options.flow
        raise KeyboardInterrupt(
            f"the command was done; `causeway next {flow}` says what comes next"
        ) from None
    return next_lines(found), found.as_dict()


def _look(request: Request) -> Next:
    from causeway.entrypoints.flow_verbs import opened
    from causeway.entrypoints.verbs import deployment_of
    from causeway.flows.episode import look_what_is_next

    asked = deployment_of(request).flow(request.options.flow)
    deployment, flow, source, target = opened(request, asked.failback_of or asked.name)
    return look_what_is_next(flow, _leads_back(deployment, flow), source, target)


def _leads_back(deployment: Deployment, flow: Flow) -> Flow | None:
    from causeway.entrypoints.failback_ways import flow_back

    try:
        return flow_back(deployment, flow)
    except BadInput:  # none is configured, or nobody can say which: a failback says what to write
        return None
