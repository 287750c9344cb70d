"""The verbs beside the copy: drift, sync, heartbeat, upstreams."""

from __future__ import annotations

from typing import Any

from causeway.cli.request import Request, deployment_of, opened
from causeway.core.kernel.errors import UnknownName
from causeway.render.drift import (
    drift_lines,
    drift_payload,
    errors_of,
    exit_code,
    sync_lines,
    sync_payload,
)
from causeway.render.outcome import Outcome
from causeway.render.tables import table

DIFFERENT = 1


def add_upkeep(add: Any) -> None:
    add("drift", drift, "show settings and ACLs of mirrors that differ from their source; writes nothing")
    syncing = add("sync", sync, "make settings and ACLs of mirrors equal to their source's")
    syncing.add_argument("--dry-run", action="store_true", help="show what would be changed; write nothing")
    add("heartbeat", heartbeat, "write one heartbeat to the flow's source, as MirrorMaker 2 does")
    seen = add(
        "upstreams", upstreams, "list the clusters whose heartbeats arrive at a cluster", has_flow=False
    )
    seen.add_argument("cluster", metavar="CLUSTER", help="an alias of flows.yaml")


def drift(request: Request) -> Outcome:
    from causeway.usecases.upkeep.sync import read_drift

    _, flow, source, target = opened(request)
    found = read_drift(flow, source, target)
    return Outcome(
        payload=drift_payload(flow.name, found),
        text="\n".join(drift_lines(flow.name, found)),
        exit_code=exit_code(errors_of(found), DIFFERENT if found.would_change else 0),
    )


def sync(request: Request) -> Outcome:
    from causeway.usecases.upkeep.sync import sync_flow

    _, flow, source, target = opened(request)
    done = sync_flow(flow, source, target, dry_run=request.options.dry_run)
    return Outcome(
        payload=sync_payload(flow.name, done),
        text="\n".join(sync_lines(flow.name, done)),
        exit_code=exit_code(errors_of(done)),
    )


def heartbeat(request: Request) -> Outcome:
    from causeway.core.kernel.timestamps import rfc3339
    from causeway.usecases.upkeep.heartbeats import write_heartbeat

    _, flow, source, _ = opened(request)
    written = write_heartbeat(flow, source)
    at = rfc3339(written.at_ms)
    return Outcome(
        payload={"flow": flow.name, "source": written.source, "target": written.target, "at": at},
        text=f"{flow.name}: heartbeat of {written.source} for {written.target} at {at}",
    )


def upstreams(request: Request) -> Outcome:
    from causeway.cli.locate import cluster_endpoint
    from causeway.config.values.refusal import suggestion
    from causeway.core.kernel.timestamps import rfc3339
    from causeway.usecases.upkeep.heartbeats import see_upstreams

    deployment, alias = deployment_of(request), request.options.cluster
    if alias not in deployment.clusters:
        raise UnknownName(
            "cluster",
            value=alias,
            rule=f"{deployment.file} has no such alias",
            remedy=suggestion(alias, deployment.clusters),
        )
    endpoint = cluster_endpoint(deployment, alias, request.environ, request.directory, request.say)
    separators = {flow.separator for flow in deployment.flows.values() if flow.target == alias}
    seen = see_upstreams(endpoint, sorted(separators | {"."}))
    rows = [
        (
            each.upstream.alias,
            each.upstream.hops,
            each.upstream.topic,
            None if each.last_ms is None else rfc3339(each.last_ms),
        )
        for each in seen
    ]
    names = ("cluster", "hops", "topic", "last_heartbeat")
    text = (
        table(("CLUSTER", "HOPS", "TOPIC", "LAST HEARTBEAT"), rows) if rows else f"{alias} sees no heartbeats"
    )
    payload = {"cluster": alias, "upstreams": [dict(zip(names, row, strict=True)) for row in rows]}
    return Outcome(payload=payload, text=text)
