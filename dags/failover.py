"""One DAG per flow of flows.yaml, `failover__<flow>`, by hand only.

    plan -> estimate -> approve -> snapshot -> fence -> apply -> verify -> report

Parsing reads one small file; Kafka is touched only when tasks run. Which tasks there are doesn't depend on
anybody's answers: `estimate` leaves out the approval, or all that follows.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pendulum
from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import DAG, get_parsing_context, task

from causeway.airflow.approval_form import APPROVE
from causeway.airflow.failover_form import failover_form
from causeway.airflow.tasks import failover as tasks
from causeway.config.flows_file.deployment import Deployment
from causeway.config.flows_file.load import load_flows

PROJECT = Path(__file__).resolve().parents[1]
FLOWS_FILE = Path(os.environ.get("CAUSEWAY_FLOWS") or PROJECT / "include" / "flows.yaml")
_WAITS = timedelta(hours=4)
_EITHER_WAY = "none_failed_min_one_success"
"""After an approval, or without one where nobody is asked."""
_RETRIED: dict[str, Any] = {"retries": 2, "retry_delay": timedelta(seconds=10)}
"""Each step can be made again: what is committed says how far it came."""


def _step(task_id: str, function: Callable[..., Any], **more: Any) -> Any:
    return task(task_id=task_id, **_RETRIED, **more)(function)


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
        params=failover_form(),
        tags=["failover", flow.source, flow.target],
        doc_md=f"Moves consumer groups from {flow.source} to {flow.target}; see docs/runbook.md.",
    ) as dag:
        plan = _step(tasks.PLAN, tasks.plan_failover)(**of_flow)
        estimate = task.branch(task_id=tasks.ESTIMATE, **_RETRIED)(tasks.estimate_failover)(
            **of_flow, planned=plan
        )
        approve = ApprovalOperator(
            task_id=APPROVE,
            subject=f"Fail {name} over to {flow.target}?",
            body=f"{{{{ ti.xcom_pull(task_ids='{tasks.ESTIMATE}', key='{tasks.BODY}') }}}}",
            response_timeout=_WAITS,
        )
        kept = _step(tasks.SNAPSHOT, tasks.take_snapshot, trigger_rule=_EITHER_WAY)(**of_flow)
        fenced = _step(tasks.FENCE, tasks.raise_fence)(**of_flow, kept=kept)
        applied = _step(tasks.APPLY, tasks.apply_failover)(**of_flow, kept=kept, fenced=fenced)
        verified = _step("verify", tasks.verify_failover)(**of_flow, kept=kept)
        report = _step("report", tasks.report_failover)(
            **of_flow, kept=kept, applied=applied, verified=verified
        )
        estimate >> approve >> kept >> fenced >> applied >> verified >> report
        estimate >> kept
    return dag


deployment = load_flows(FLOWS_FILE)
# A task that runs parses this file too, and asks for its own DAG only.
asked_for = get_parsing_context().dag_id
for flow_name in deployment.flows:
    if asked_for in (None, f"failover__{flow_name}"):
        failover_dag(deployment, flow_name)
