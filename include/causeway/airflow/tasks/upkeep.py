"""What a mirror's DAG does besides the copy: drift, sync, heartbeat, as far as flows.yaml asks for them.

`copy >> drift >> sync`: the report of what differs is written before anything is changed. `heartbeat` stands
by itself, so that it is on its way while the copy runs, and a missing right for it stops nothing else.
"""

from __future__ import annotations

import logging
from typing import Any

from airflow.sdk import task
from airflow.sdk.exceptions import AirflowException

from causeway.airflow.connections import airflow_endpoint
from causeway.airflow.failures import failing_as_airflow_does
from causeway.config.flows_file.load import load_flows
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.model.flow import Flow

log = logging.getLogger("causeway")


def upkeep_tasks(flow: Flow, flows_file: str, copy: Any, retried: dict[str, Any]) -> None:
    """Adds the tasks to the DAG that is being built; none if the flow keeps nothing up."""
    what = {"flow": flow.name, "flows_file": flows_file}
    if flow.upkeep.sync_settings or flow.upkeep.sync_acls:
        drift = task(task_id="drift", **retried)(report_drift)(**what)
        copy >> drift >> task(task_id="sync", **retried)(sync_mirrors)(**what)
    if flow.upkeep.emit_heartbeats:
        task(task_id="heartbeat", **retried)(write_heartbeat)(**what)


def report_drift(flow: str, flows_file: str) -> dict[str, int]:
    """Says in the log what differs and why it would or wouldn't be changed. Writes nothing."""
    from causeway.render.drift import drift_lines
    from causeway.usecases.upkeep.sync import read_drift

    with failing_as_airflow_does():
        found = read_drift(*_flow_and_clusters(flow, flows_file))
    for line in drift_lines(flow, found):
        log.info(line)
    changes = len(found.settings.changes)
    return {"settings_to_change": changes, "settings_left": len(found.settings.drifts) - changes}


def sync_mirrors(flow: str, flows_file: str) -> None:
    """:raises AirflowException: something couldn't be seen or was refused; the rest is done."""
    from causeway.render.drift import errors_of, sync_lines
    from causeway.usecases.upkeep.sync import sync_flow

    with failing_as_airflow_does():
        done = sync_flow(*_flow_and_clusters(flow, flows_file), dry_run=False)
    for line in sync_lines(flow, done):
        log.info(line)
    errors = errors_of(done)
    if errors:
        raise AirflowException(f"{flow}: {len(errors)} things couldn't be synced: {errors[0]}")


def write_heartbeat(flow: str, flows_file: str) -> None:
    """:raises AirflowException: the source can't be used, or a right is missing."""
    from causeway.usecases.upkeep import heartbeats

    with failing_as_airflow_does():
        wanted, source, _ = _flow_and_clusters(flow, flows_file)
        written = heartbeats.write_heartbeat(wanted, source)
    log.info("heartbeat of %s for %s at %d", written.source, written.target, written.at_ms)


def _flow_and_clusters(flow: str, flows_file: str) -> tuple[Flow, ClusterEndpoint, ClusterEndpoint]:
    deployment = load_flows(flows_file)
    wanted = deployment.flow(flow)
    source, target = (airflow_endpoint(deployment, alias) for alias in (wanted.source, wanted.target))
    return wanted, source, target
