"""The failover's form and Python tasks: the same use case as `causeway failover`, with Airflow's approval.

The plan's hash goes from the sheet to the apply, so what is done is what was approved or nothing. Everything
that costs time is imported when a task runs.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import Param, get_current_context

from causeway.config.load import load_flows
from causeway.entrypoints.airflow_connections import airflow_endpoint
from causeway.entrypoints.airflow_failures import failing_as_airflow_does
from causeway.entrypoints.run_report import report_path

if TYPE_CHECKING:
    from causeway.config.deployment import Deployment
    from causeway.core.endpoint import ClusterEndpoint
    from causeway.core.failover.sheet import Sheet
    from causeway.core.failover.wish import Wish
    from causeway.core.flow import Flow

log = logging.getLogger("causeway")
APPROVE, APPLY = "approve", "apply"
_MOST_CHARACTERS = 20_000


def failover_form() -> dict[str, Param]:
    """Typed: Airflow refuses other answers before there is a run."""
    return {
        "timestamp": Param(
            None,
            type=["null", "string"],
            format="date-time",
            title="Fail over to",
            description="The moment from which on groups read, with its zone. Empty: where each one stood",
        ),
        "safety": Param(
            None,
            type=["null", "string"],
            pattern="^[0-9]{1,7}(ms|s|m|h|d)$",
            title="Step back",
            description="So far from the moment: 30s",
        ),
        "groups": _names("Groups", "Names or patterns. Empty: all of the flow"),
        "topics": _names("Topics", "Of the source, names or patterns. Empty: all of the flow"),
        "active": Param(
            "refuse",
            type="string",
            enum=["refuse", "leave"],
            title="Groups at work on the target",
            description="refuse: move none at all. leave: move the others",
        ),
        "clamp": Param(
            default=False,
            type="boolean",
            title="Clamp to the oldest record",
            description="Where retention took the records of that moment",
        ),
        "approve": Param(
            "ask",
            type="string",
            enum=["ask", "auto"],
            title="Approval",
            description="ask: somebody reads the sheet and approves. auto: for automation",
        ),
        "dry_run": Param(
            default=False, type="boolean", title="Dry run", description="The sheet only; writes nothing"
        ),
    }


def _names(title: str, description: str) -> Param:
    return Param([], type="array", items={"type": "string"}, title=title, description=description)


def plan_failover(flow: str, flows_file: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """The sheet: in the log, as a page and as JSON beside the reports of runs, and for whoever approves."""
    from causeway.entrypoints.failover_text import sheet_text
    from causeway.flows.failover.apply import look_before_failover

    with failing_as_airflow_does():
        deployment, wanted, source, target = _opened(flow, flows_file)
        wish = _wish(flow, params)
        sheet = look_before_failover(wanted, source, target, wish, deployment.groups[flow])
    text = sheet_text(sheet)
    for line in text.splitlines():
        log.info(line)
    page = _keep(sheet)
    shown = text if len(text) <= _MOST_CHARACTERS else f"{text[:_MOST_CHARACTERS]}\n... the rest is in {page}"
    fenced = shown.replace("```", "'''")  # a name from a broker may hold anything
    return {"plan": sheet.plan.hash, "page": str(page), "body": f"```\n{fenced}\n```"}


def next_step(params: Mapping[str, Any]) -> str | None:
    """None: it was only a look."""
    if params["dry_run"]:
        return None
    return APPLY if params["approve"] == "auto" else APPROVE


def apply_failover(
    flow: str, flows_file: str, planned: Mapping[str, Any], params: Mapping[str, Any]
) -> dict[str, Any]:
    """Cleared and run again it goes on, or finds that all is done."""
    from causeway.entrypoints.failover_verb import failed_over
    from causeway.flows.failover.apply import Operator, fail_over

    with failing_as_airflow_does():
        deployment, wanted, source, target = _opened(flow, flows_file)
        operator = Operator(
            by=f"airflow {get_current_context()['dag_run'].run_id}",
            consent=lambda _sheet: None,
            say=log.info,
            expected_plan=planned["plan"],
        )
        wish = _wish(flow, params)
        done = fail_over(wanted, source, target, wish, deployment.groups[flow], operator)
    outcome = failed_over(done)
    for line in outcome.text.splitlines():
        log.info(line)
    return {name: fact for name, fact in outcome.payload.items() if name != "sheet"}


def _opened(flow: str, flows_file: str) -> tuple[Deployment, Flow, ClusterEndpoint, ClusterEndpoint]:
    deployment = load_flows(flows_file)
    wanted = deployment.flow(flow)
    source, target = (airflow_endpoint(deployment, alias) for alias in (wanted.source, wanted.target))
    return deployment, wanted, source, target


def _wish(flow: str, params: Mapping[str, Any]) -> Wish:
    from causeway.entrypoints.failover_wish import LATEST, read_wish

    return read_wish(
        flow,
        at=params["timestamp"] or LATEST,
        safety=params["safety"],
        groups=params["groups"],
        topics=params["topics"],
        active=params["active"],
        clamp=params["clamp"],
    )


def _keep(sheet: Sheet) -> Path:
    """Beside the reports of runs: `<...>.html` and `<...>.json`."""
    import json

    from causeway.entrypoints.failover_page import write_page

    task = get_current_context()["ti"]
    place = report_path(f"failover-{sheet.flow}", task.run_id, task.try_number)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(sheet.as_dict(), indent=1) + "\n", encoding="utf-8")
    page = place.with_suffix(".html")
    write_page(sheet, page)
    return page
