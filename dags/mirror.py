"""One DAG per flow, `mirror__<flow>`: topics, copy, report, parked; drift, sync and groups after copy.
Flows that follow their source also have `groups__<flow>`: their consumer groups, each minute beside the copy.

Parsing reads one small file; Kafka and Spark are touched only when tasks run. A mistake in the file shows
on Airflow's page as this file's import error, with line, field, rule and fix.
"""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pendulum
from airflow.sdk import DAG, Asset, get_parsing_context, task

from causeway.airflow.form import flow_document, run_form
from causeway.airflow.tasks import run
from causeway.airflow.tasks.copy import CopyOperator
from causeway.airflow.tasks.groups import GroupsOperator
from causeway.airflow.tasks.upkeep import upkeep_tasks
from causeway.config.flows_file.deployment import Deployment
from causeway.config.flows_file.load import load_flows

PROJECT = Path(__file__).resolve().parents[1]
FLOWS_FILE = Path(os.environ.get("CAUSEWAY_FLOWS") or PROJECT / "include" / "flows.yaml")
GROUPS_EVERY = timedelta(seconds=60)
# For a stand-by or a demo: the same file, but nothing starts by itself.
BY_HAND = os.environ.get("CAUSEWAY_SCHEDULES") == "off"


def mirror_dag(deployment: Deployment, name: str) -> DAG:
    flow, schedule = deployment.flows[name], deployment.schedules[name]
    retried: dict[str, Any] = {
        "retries": schedule.retries,
        "retry_delay": timedelta(seconds=schedule.retry_delay_seconds),
    }
    asset = Asset(f"causeway_{name}")
    with DAG(
        dag_id=f"mirror__{name}",
        schedule=None if BY_HAND else schedule.schedule,
        start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
        catchup=False,
        max_active_runs=1,
        default_args={"pool": schedule.pool, "owner": "causeway"},
        params=run_form(schedule),
        tags=["mirror", flow.source, flow.target],
        doc_md=flow_document(flow, schedule),
    ) as dag:
        topics = task(task_id="topics", **retried)(run.prepare_topics)
        copy = CopyOperator(
            task_id="copy",
            flow=name,
            flows_file=FLOWS_FILE,
            application=str(PROJECT / "spark_jobs" / "copy_flow.py"),
            **retried,
        )
        report = task(task_id="report", outlets=[asset])(run.publish_report)
        parked = task(task_id="parked")(run.fail_if_parked)
        topics(flow=name, flows_file=str(FLOWS_FILE)) >> copy
        if not deployment.groups[name].is_off:
            copy >> groups_task(name, **retried)
        parked(report(copy.output))
        upkeep_tasks(flow, str(FLOWS_FILE), copy, retried)
    return dag


def groups_dag(deployment: Deployment, name: str) -> DAG:
    """A run that follows for ten minutes would leave consumer groups that long without news."""
    flow = deployment.flows[name]
    with DAG(
        dag_id=f"groups__{name}",
        schedule=None if BY_HAND else GROUPS_EVERY,
        start_date=pendulum.datetime(2026, 1, 1, tz="UTC"),
        catchup=False,
        max_active_runs=1,
        # Not in the flow's pool: the copy may hold its only slot for as long as it follows.
        default_args={"owner": "causeway"},
        tags=["groups", flow.source, flow.target],
        doc_md=f"Checkpoints and group offsets of `{name}`. `causeway groups {name}` says why not.",
    ) as dag:
        groups_task(name)
    return dag


def groups_task(name: str, **retried: Any) -> GroupsOperator:
    return GroupsOperator(
        task_id="groups",
        flow=name,
        flows_file=FLOWS_FILE,
        application=str(PROJECT / "spark_jobs" / "sync_groups.py"),
        **retried,
    )


deployment = load_flows(FLOWS_FILE)
# A task that runs parses this file too, and asks for its own DAG only.
asked_for = get_parsing_context().dag_id
for flow_name in deployment.flows:
    if asked_for in (None, f"mirror__{flow_name}"):
        mirror_dag(deployment, flow_name)
    follows = deployment.schedules[flow_name].run_for_seconds is not None
    if follows and not deployment.groups[flow_name].is_off and asked_for in (None, f"groups__{flow_name}"):
        groups_dag(deployment, flow_name)
