"""What each verb of the command line does: read the request, call one use case, shape its answer.

Everything that costs time is imported inside a verb, so that `causeway --help` is instant and a verb needs
only what it uses. A verb returns an Outcome and prints nothing but progress.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from causeway import interruption
from causeway.core.errors import BadInput
from causeway.entrypoints.tables import table

if TYPE_CHECKING:
    from causeway.config.deployment import Deployment

PARKED = 5
_LONGEST_REASON = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`payload` is what --json prints, `text` what people read."""

    payload: Mapping[str, object]
    text: str
    exit_code: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked, and from where. `progress` always shows; `say` only with --verbose."""

    options: Namespace
    environ: Mapping[str, str] = field(repr=False)
    directory: Path
    progress: Callable[[str], None]
    say: Callable[[str], None]


Verb = Callable[[Request], Outcome]


def deployment_of(request: Request) -> Deployment:
    from causeway.config.load import load_flows
    from causeway.entrypoints.project import find_flows_file, shown_path

    path = find_flows_file(request.options.file, request.environ, request.directory)
    shown = shown_path(path, request.directory)
    request.say(f"reading {shown}")
    return load_flows(path, shown_as=shown)


def lab_up(request: Request) -> Outcome:
    from causeway.lab import lab

    options = request.options
    names = [name.strip() for name in options.clusters.split(",")]
    if not all(names):
        raise BadInput("--clusters", value=options.clusters, rule="has an empty name", remedy="write sf,nyc")
    with interruption.at_once():  # it waits for brokers, and stops those that it has started
        state = lab.up(
            clusters=names,
            kafka_version=options.kafka,
            security=options.security,
            nodes=options.nodes,
            say=request.progress,
        )
    return _lab_outcome(state)


def lab_status(_request: Request) -> Outcome:
    from causeway.lab import lab

    return _lab_outcome(lab.status())


def lab_down(request: Request) -> Outcome:
    from causeway.lab import lab

    stopped = lab.down(say=request.progress)
    forgotten = lab.forget(say=request.progress) if request.options.forget else ()
    lines = [f"{each.name}: {_stopped(each.pids)}" for each in stopped] or ["no lab is up"]
    lines += [f"{name}: its data is deleted" for name in forgotten]
    payload = {
        "stopped": [{"name": each.name, "pids": _by_node(each.pids)} for each in stopped],
        "forgotten": list(forgotten),
    }
    return Outcome(payload=payload, text="\n".join(lines))


def _stopped(pids: Mapping[int, int]) -> str:
    return f"stopped (pid {', '.join(map(str, pids.values()))})" if pids else "wasn't running"


def _by_node(pids: Mapping[int, int]) -> dict[str, int]:
    return {str(node): pid for node, pid in pids.items()}


def _lab_outcome(state: object) -> Outcome:
    from causeway.lab.lab import LabStatus

    assert isinstance(state, LabStatus)
    payload = {
        "clusters": [
            {
                "name": each.name,
                "is_running": each.is_running,
                "bootstrap_servers": each.bootstrap_servers,
                "kafka_version": each.kafka_version,
                "security": each.security,
                "pids": _by_node(each.pids),
                "home": str(each.home),
                "logs": [str(log) for log in each.logs],
            }
            for each in state.clusters
        ],
        "connections": str(state.connections),
    }
    if not state.clusters:
        return Outcome(payload=payload, text="no lab is up; start one: causeway lab up")
    headers = ("CLUSTER", "UP", "BOOTSTRAP SERVERS", "KAFKA", "SECURITY", "PID")
    rows = [
        (
            each.name,
            each.is_running,
            each.bootstrap_servers,
            each.kafka_version,
            each.security,
            ",".join(map(str, each.pids.values())) or None,
        )
        for each in state.clusters
    ]
    exported = f"set -a; source {state.connections}; set +a"
    text = f"{table(headers, rows)}\n\nconnections for other programs: {exported}"
    return Outcome(payload=payload, text=text)


def flows(request: Request) -> Outcome:
    """Reading the file is the check: a mistake ends here with its line."""
    from causeway.entrypoints.flow_listing import connections_checked, flows_listed

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


def run_for_seconds(text: str | None) -> float | None:
    """:raises BadInput: not a duration of at least a second."""
    from causeway.config.refusal import Refusal
    from causeway.config.units import parse_duration_seconds

    if text is None:
        return None
    try:
        seconds = parse_duration_seconds(text)
    except Refusal as refusal:
        raise BadInput("--run-for", value=text, rule=refusal.rule, remedy=refusal.remedy) from None
    if not 1 <= seconds <= 86_400:
        raise BadInput("--run-for", value=text, rule="must be 1s to 24h", remedy="write 10m")
    return seconds


def reason_given(text: str) -> str:
    """Who comes after reads it in `status`, perhaps in the middle of a night.

    :raises BadInput: nothing that a person could read.
    """
    reason = text.strip()
    if not reason or len(reason) > _LONGEST_REASON or not reason.isprintable():
        rule = f"must be 1 to {_LONGEST_REASON} characters on one line"
        raise BadInput(
            "--because", value=text[:40], rule=rule, remedy='write --because "moving to nyc, ticket 123"'
        )
    return reason
