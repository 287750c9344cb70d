"""`causeway lab`: real clusters on this machine that stay until `down`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from causeway import interruption
from causeway.cli.request import Request
from causeway.core.kernel.errors import BadInput
from causeway.render.outcome import Outcome
from causeway.render.tables import table

if TYPE_CHECKING:
    pass


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
