"""One DAG per flow of flows.yaml, `failover__<flow>`, by hand only: plan, ask, approve, apply.

Parsing reads one small file; Kafka is touched only when tasks run. Which tasks there are doesn't depend on
anybody's answers: `ask` leaves out the approval, or all of it.
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path

import pendulum
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG, get_parsing_context, task

from causeway.config.deployment import Deployment
from causeway.config.load import load_flows
from causeway.entrypoints import airflow_failover

PROJECT = Path(__file__).resolve().parents[1]
FLOWS_FILE = Path(os.environ.get("CAUSEWAY_FLOWS") or PROJECT / "include" / "flows.yaml")
_WAITS = timedelta(hours=4)


def failover_dag(deployment: Deployment, name: str) -> DAG:
    flow, schedule = deployment.flows[name], deployment.schedules[name]
    of_flow = {"flow": name, "flows_file": str(FLOWS_FILE)}
    with DAG(
        dag_id=f"failover__{name}",
        schedule=None,
        start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
        catchup=False,
        max_active_runs=1,
        is_paused_upon_creation=False,  # a paused one would only queue what somebody triggers at night
        default_args={"pool": schedule.pool, "owner": "causeway"},
        params=airflow_failover.failover_form(),
        tags=["failover", flow.source, flow.target],
        doc_md=f"Moves consumer groups from {flow.source} to {flow.target}; see docs/runbook.md.",
    ) as dag:
        plan = task(task_id="plan", retries=2, retry_delay=timedelta(seconds=10))(
            airflow_failover.plan_failover
        )
        ask = task.branch(task_id="ask")(airflow_failover.next_step)
        approve = ApprovalOperator(
            task_id=airflow_failover.APPROVE,
            subject=f"Fail {name} over to {flow.target}?",
            body="{{ ti.xcom_pull(task_ids='plan')['body'] }}",
            response_timeout=_WAITS,
        )
        # Again after a kill: it goes on from what is committed.
        apply = task(
            task_id=airflow_failover.APPLY,
            retries=2,
            retry_delay=timedelta(seconds=10),
            trigger_rule="none_failed_min_one_success",
        )(airflow_failover.apply_failover)
        planned = plan(**of_flow)
        asked = ask()
        applied = apply(**of_flow, planned=planned)
        planned >> asked >> approve >> applied
        asked >> applied
    return dag


deployment = load_flows(FLOWS_FILE)
# A task that runs parses this file too, and asks for its own DAG only.
asked_for = get_parsing_context().dag_id
for flow_name in deployment.flows:
    if asked_for in (None, f"failover__{flow_name}"):
        failover_dag(deployment, flow_name)
