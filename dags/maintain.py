"""One DAG per flow of flows.yaml, `maintain__<flow>`: keeps the offset map small, beside the mirror.

A run of the mirror that begins in the middle ends it, and the retry goes on: safe at any time.
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pendulum
from airflow.sdk import DAG, get_parsing_context, task

from causeway.airflow.tasks import maintain
from causeway.config.flows_file.deployment import Deployment
from causeway.config.flows_file.load import load_flows

PROJECT = Path(__file__).resolve().parents[1]
FLOWS_FILE = Path(os.environ.get("CAUSEWAY_FLOWS") or PROJECT / "include" / "flows.yaml")
BY_HAND = os.environ.get("CAUSEWAY_SCHEDULES") == "off"


def maintenance_dag(deployment: Deployment, name: str) -> DAG:
    flow, schedule = deployment.flows[name], deployment.schedules[name]
    with DAG(
        dag_id=f"maintain__{name}",
        schedule=None if BY_HAND else "@daily",
        start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
        catchup=False,
        max_active_runs=1,
        default_args={"pool": schedule.pool, "owner": "causeway"},
        tags=["maintain", flow.source, flow.target],
        doc_md=f"Merges what is old in `{flow.map_topic}` on {flow.target}; see docs/offset-map.md.",
    ) as dag:
        offset_map = task(
            task_id="offset_map",
            retries=schedule.retries,
            retry_delay=timedelta(seconds=schedule.retry_delay_seconds),
        )(maintain.maintain_map)
        offset_map(flow=name, flows_file=str(FLOWS_FILE))
    return dag


deployment = load_flows(FLOWS_FILE)
# A task that runs parses this file too, and asks for its own DAG only.
asked_for = get_parsing_context().dag_id
for flow_name in deployment.flows:
    if asked_for in (None, f"maintain__{flow_name}"):
        maintenance_dag(deployment, flow_name)
