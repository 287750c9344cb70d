"""One DAG per flow of flows.yaml, `drill__<flow>`: a rehearsal each week, off until somebody unpauses it."""

from __future__ import annotations

import os
from pathlib import Path

import pendulum
from airflow.sdk import DAG, get_parsing_context, task

from causeway.airflow.tasks.drill import rehearse
from causeway.config.flows_file.deployment import Deployment
from causeway.config.flows_file.load import load_flows

PROJECT = Path(__file__).resolve().parents[1]
FLOWS_FILE = Path(os.environ.get("CAUSEWAY_FLOWS") or PROJECT / "include" / "flows.yaml")


def drill_dag(deployment: Deployment, name: str) -> DAG:
    flow, schedule = deployment.flows[name], deployment.schedules[name]
    with DAG(
        dag_id=f"drill__{name}",
        schedule="@weekly",
        start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
        catchup=False,
        max_active_runs=1,
        is_paused_upon_creation=True,
        default_args={"pool": schedule.pool, "owner": "causeway"},
        tags=["drill", flow.source, flow.target],
        doc_md=f"Rehearses a failover from {flow.source} to {flow.target} on clones of the groups.",
    ) as dag:
        task(task_id="rehearse")(rehearse)(flow=name, flows_file=str(FLOWS_FILE))
    return dag


deployment = load_flows(FLOWS_FILE)
# A task that runs parses this file too, and asks for its own DAG only.
asked_for = get_parsing_context().dag_id
for flow_name in deployment.flows:
    if asked_for in (None, f"drill__{flow_name}"):
        drill_dag(deployment, flow_name)
