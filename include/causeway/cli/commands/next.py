"""`causeway next FLOW`: where the flow is in its episode, and the one command that comes next.

The same two lines end `status` and each command of a failover and of a failback.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from causeway.cli.request import Request
from causeway.core.kernel.errors import BadInput, CausewayError
from causeway.core.kernel.timestamps import rfc3339
from causeway.render.outcome import Outcome

if TYPE_CHECKING:
    from causeway.config.flows_file.deployment import Deployment
    from causeway.core.episode.stage import Next
    from causeway.core.model.flow import Flow


def add_next(add: Any) -> None:
    add(
        "next",
        next_of_flow,
        "show the flow's stage (mirroring, failed over, resting, ...) and the next command",
    )


def next_of_flow(request: Request) -> Outcome:
    found = _find_next(request)
    return Outcome(payload=found.as_dict(), text="\n".join(next_lines(found)))


def next_lines(found: Next) -> list[str]:
    since = "" if found.since_ms is None else f" since {rfc3339(found.since_ms)}"
    by = f" by {found.by}" if found.by else ""
    when = f" {found.when}" if found.when else ""
    step = f"`{found.command}`{when}; success: {found.success}" if found.command else "nothing has to be done"
    return [
        f"{found.flow}: {str(found.stage).upper()}{since}{by}: {found.what}",
        f"{found.flow}: NEXT {step}",
    ]


def with_next(request: Request, outcome: Outcome) -> Outcome:
    return look_next(request).below(outcome)


@dataclass(frozen=True, slots=True)
class Look:
    """What comes next, or why that isn't known."""

    flow: str
    found: Next | None
    trouble: CausewayError | None = None

    def below(self, outcome: Outcome) -> Outcome:
        """What was done stays done, whatever keeps the next step from being known."""
        unknown = [f"{self.flow}: NEXT is unknown now: {self.trouble}"]
        lines = unknown if self.found is None else next_lines(self.found)
        return Outcome(
            payload={**outcome.payload, "next": None if self.found is None else self.found.as_dict()},
            text="\n".join([outcome.text, *lines]),
            exit_code=outcome.exit_code,
        )


def look_next(request: Request) -> Look:
    flow = request.options.flow
    try:
        return Look(flow, _find_next(request))
    except CausewayError as trouble:
        return Look(flow, None, trouble)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(
            f"the command was done; `causeway next {flow}` says what comes next"
        ) from None


def _find_next(request: Request) -> Next:
    from causeway.cli.request import deployment_of, opened
    from causeway.usecases.inspect.episode import find_next_step

    asked = deployment_of(request).flow(request.options.flow)
    deployment, flow, source, target = opened(request, asked.failback_of or asked.name)
    return find_next_step(flow, _leads_back(deployment, flow), source, target)


def _leads_back(deployment: Deployment, flow: Flow) -> Flow | None:
    from causeway.config.flows_file.reverse_flow import flow_back

    try:
        return flow_back(deployment, flow)
    except BadInput:  # none is configured, or nobody can say which: a failback says what to write
        return None
