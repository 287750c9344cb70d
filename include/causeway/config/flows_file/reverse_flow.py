"""Which flow is the reverse flow: named by `failback_of`, or, with prefixes, the one of the other
direction."""

from __future__ import annotations

from causeway.config.flows_file.deployment import Deployment
from causeway.core.kernel.errors import BadInput
from causeway.core.model.flow import Flow
from causeway.core.state.repair_commands import next_command


def flow_back(deployment: Deployment, forward: Flow) -> Flow:
    """:raises BadInput: there is none, or more than one could be meant; says what to write."""
    if forward.failback_of:
        raise BadInput(
            f"flow {forward.name}",
            rule=f"is itself the reverse flow of {forward.failback_of}",
            remedy=f"name {forward.failback_of}: {next_command(forward.failback_of)} says which step "
            "comes next, if any does",
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
            rule="must be exactly one, to mirror back",
            remedy=f"with `replication.policy: identity` write a flow with `failback_of: {forward.name}`",
        )
    return found[0]


def flows_ahead(deployment: Deployment, reverse: Flow) -> tuple[Flow, ...]:
    """Those that `reverse` may mirror back for."""
    if reverse.failback_of:
        return (deployment.flow(reverse.failback_of),)
    return tuple(
        flow
        for flow in deployment.flows.values()
        if (flow.source, flow.target) == (reverse.target, reverse.source) and not flow.failback_of
    )
