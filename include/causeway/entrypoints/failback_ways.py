"""Which flow leads back: named by `failback_of`, or, with prefixes, the one of the other direction."""

from __future__ import annotations

from causeway.config.deployment import Deployment
from causeway.core.errors import BadInput
from causeway.core.flow import Flow
from causeway.core.remedies import next_command


def flow_back(deployment: Deployment, forward: Flow) -> Flow:
    """:raises BadInput: there is none, or more than one could be meant; says what to write."""
    if forward.failback_of:
        raise BadInput(
            f"flow {forward.name}",
            rule=f"is itself the way back of {forward.failback_of}",
            remedy=f"`causeway failback {forward.failback_of}` with --resume, --rebuild or --home; "
            f"{next_command(forward.failback_of)} says which",
        )
    if forward.failback:
        return deployment.flow(forward.failback)
    found = [
        flow
        for flow in deployment.flows.values()
        if (flow.source, flow.target) == (forward.target, forward.source)
    ]
    if len(found) != 1:
        names = ", ".join(flow.name for flow in found) or "none"
        raise BadInput(
            f"flows from {forward.target} to {forward.source}",
            value=names,
            rule="must be one, to lead back",
            remedy=f"with names that stay write a flow with `failback_of: {forward.name}`",
        )
    return found[0]
