"""`causeway flows`: what flows.yaml says, and whether its clusters' connections are fit for use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from causeway.cli.locate import cluster_endpoint
from causeway.config.flows_file.deployment import Deployment
from causeway.config.values.refusal import listed
from causeway.core.kernel.errors import ConfigError
from causeway.core.kernel.plurals import counted
from causeway.core.model.flow import Flow, Start
from causeway.core.model.naming import IdentityNaming, RuleNaming
from causeway.render.outcome import Outcome
from causeway.render.tables import table


def flows_listed(deployment: Deployment) -> Outcome:
    payload = {
        "file": deployment.file,
        "flows": [_flow_as_dict(deployment, flow) for flow in deployment.flows.values()],
    }
    rows = [
        (
            flow.name,
            f"{flow.source} -> {flow.target}",
            listed(flow.topics.include),
            _policy(flow),
            flow.failback_of or None,
            flow.lanes,
            deployment.schedules[flow.name].schedule or "by hand",
            _length(deployment.schedules[flow.name].run_for_seconds),
        )
        for flow in deployment.flows.values()
    ]
    headers = ("FLOW", "CLUSTERS", "TOPICS", "NAMING", "FAILBACK OF", "LANES", "SCHEDULE", "RUNS FOR")
    number = counted(len(rows), "flow")
    text = f"{table(headers, rows)}\n\n{deployment.file} is valid ({number})"
    return Outcome(payload=payload, text=text)


def _flow_as_dict(deployment: Deployment, flow: Flow) -> dict[str, object]:
    schedule = deployment.schedules[flow.name]
    return {
        "name": flow.name,
        "source": flow.source,
        "target": flow.target,
        "topics": list(flow.topics.include),
        "topics.exclude": list(flow.topics.exclude),
        "replication.policy": _policy(flow),
        "failback_of": flow.failback_of or None,
        "failback": flow.failback or None,
        "start": _start_text(flow.start),
        "lanes": flow.lanes,
        "schedule": schedule.schedule,
        "run_for_seconds": schedule.run_for_seconds,
        "pool": schedule.pool,
        "retries": schedule.retries,
        "retry_delay_seconds": schedule.retry_delay_seconds,
    }


def _policy(flow: Flow) -> str:
    return {IdentityNaming: "identity", RuleNaming: "rules"}.get(type(flow.naming), "prefix")


def _start_text(start: Start) -> str:
    if start.timestamp_ms is None:
        return start.at
    return datetime.fromtimestamp(start.timestamp_ms / 1000, tz=UTC).isoformat(timespec="milliseconds")


def _length(seconds: float | None) -> str:
    return "until caught up" if seconds is None else f"{seconds:g} s"


def connections_checked(
    deployment: Deployment, environ: Mapping[str, str], directory: Path, say: Callable[[str], None]
) -> Outcome:
    """Each cluster by itself: one that isn't fit doesn't hide the others."""
    found = [_checked(deployment, alias, environ, directory, say) for alias in deployment.clusters]
    columns = ("alias", "connection", "shown_servers", "security")
    rows = [(*(each[column] for column in columns), not each["problem"]) for each in found]
    headers = ("CLUSTER", "CONNECTION", "BOOTSTRAP SERVERS", "SECURITY", "FIT")
    problems = [f"{each['alias']}: {each['problem']}" for each in found if each["problem"]]
    return Outcome(
        payload={"clusters": [_without(each, "shown_servers") for each in found]},
        text="\n\n".join([table(headers, rows), *problems]),
        exit_code=ConfigError.exit_code if problems else 0,
    )


def _without(row: Mapping[str, object], name: str) -> dict[str, object]:
    """What machines read has the servers whole."""
    return {key: value for key, value in row.items() if key != name}


def _checked(
    deployment: Deployment,
    alias: str,
    environ: Mapping[str, str],
    directory: Path,
    say: Callable[[str], None],
) -> dict[str, object]:
    row: dict[str, object] = {
        "alias": alias,
        "connection": deployment.clusters[alias].connection_id,
        "bootstrap_servers": None,
        "shown_servers": None,
        "security": None,
        "problem": None,
    }
    try:
        endpoint = cluster_endpoint(deployment, alias, environ, directory, say)
    except ConfigError as problem:
        return {**row, "problem": str(problem)}
    return {
        **row,
        "bootstrap_servers": endpoint.bootstrap_servers,
        "shown_servers": endpoint.shown_servers,
        "security": endpoint.settings["security.protocol"],
    }
