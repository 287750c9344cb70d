"""`causeway flows`: check flows.yaml and list its flows."""

from __future__ import annotations

from causeway.cli.request import Request, deployment_of
from causeway.render.outcome import Outcome


def flows(request: Request) -> Outcome:
    """Reading the file is the check: a mistake ends here with its line."""
    from causeway.cli.commands.flow_list import connections_checked, flows_listed

    deployment = deployment_of(request)
    listed = flows_listed(deployment)
    if not request.options.connections:
        return listed
    checked = connections_checked(deployment, request.environ, request.directory, request.say)
    return Outcome(
        payload={**listed.payload, **checked.payload},
        text=f"{listed.text}\n\n{checked.text}",
        exit_code=checked.exit_code,
    )
