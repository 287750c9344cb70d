"""One DAG per flow of flows.yaml that has a way back, `failback__<flow>`, by hand only: look, approve, apply.

Parsing reads one small file; Kafka is touched only when tasks run.
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pendulum
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG, get_parsing_context, task

from causeway.airflow.approval_form import APPROVE
from causeway.airflow.tasks import failback as tasks
from causeway.config.flows_file.deployment import Deployment
from causeway.config.flows_file.load import load_flows
from causeway.config.flows_file.reverse_flow import flow_back
from causeway.core.kernel.errors import BadInput

PROJECT = Path(__file__).resolve().parents[1]
FLOWS_FILE = Path(os.environ.get("CAUSEWAY_FLOWS") or PROJECT / "include" / "flows.yaml")
_WAITS = timedelta(hours=4)


def failback_dag(deployment: Deployment, name: str) -> DAG:
    flow, schedule = deployment.flows[name], deployment.schedules[name]
    of_flow = {"flow": name, "flows_file": str(FLOWS_FILE)}
    retried: dict[str, Any] = {"retries": 2, "retry_delay": timedelta(seconds=10)}
    with DAG(
        dag_id=f"failback__{name}",
        schedule=None,
        start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
        catchup=False,
        max_active_runs=1,
        is_paused_upon_creation=False,  # a paused one would only queue what somebody triggers
        default_args={"pool": schedule.pool, "owner": "causeway"},
        params=tasks.failback_form(),
        tags=["failback", flow.source, flow.target],
        doc_md=f"Returns from {flow.target} to {flow.source} after a failover; see docs/runbook.md.",
    ) as dag:
        looked = task(task_id=tasks.LOOK, **retried)(tasks.look_at_failback)(**of_flow)
        asked = task.branch(task_id="ask")(tasks.next_step)()
        approve = ApprovalOperator(
            task_id=APPROVE,
            subject=f"Fail {name} back to {flow.source}?",
            body=f"{{{{ ti.xcom_pull(task_ids='{tasks.LOOK}')['body'] }}}}",
            response_timeout=_WAITS,
        )
        applied = task(task_id=tasks.APPLY, trigger_rule="none_failed_min_one_success", **retried)(
            tasks.apply_failback
        )(**of_flow, looked=looked)
        looked >> asked >> approve >> applied
        asked >> applied
    return dag


def has_way_back(deployment: Deployment, name: str) -> bool:
    try:
        flow_back(deployment, deployment.flows[name])
    except BadInput:
        return False
    return True


deployment = load_flows(FLOWS_FILE)
# A task that runs parses this file too, and asks for its own DAG only.
asked_for = get_parsing_context().dag_id
for flow_name in deployment.flows:
    if asked_for in (None, f"failback__{flow_name}") and has_way_back(deployment, flow_name):
        failback_dag(deployment, flow_name)
