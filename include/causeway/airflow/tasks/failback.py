"""The failback's form and Python tasks: the same code as `causeway failback`, with Airflow's approval.

The plan goes by its hash from the look to the apply: what is done is what was approved, or nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import Param, get_current_context

from causeway.airflow.approval_form import APPROVE, approval_form, refuse_unapproved
from causeway.airflow.connections import airflow_endpoint
from causeway.airflow.failures import failing_as_airflow_does
from causeway.config.flows_file.load import load_flows
from causeway.render.tables import one_line

if TYPE_CHECKING:
    from causeway.core.model.group_filter import FlowGroups
    from causeway.usecases.failback.journal_store import FlowPair

log = logging.getLogger("causeway")
LOOK, APPLY = "look", "apply"
HOME = "home"


def failback_form() -> dict[str, Param]:
    return {
        "step": Param(
            "resume",
            type="string",
            enum=["resume", "rebuild", HOME],
            title="Step",
            description="rebuild: deletes all records of these topics on the old primary, then mirrors the "
            "new primary into it. resume: keeps them, and mirrors back only what was written since. home: "
            "writers have stopped. Completes the failback: groups return, and the flow mirrors forward again",
        ),
        "accept_loss": Param(
            default=False,
            type="boolean",
            title="Accept loss",
            description="rebuild only: delete records, too, that the new primary no longer has",
        ),
        "plan": Param(
            None,
            type=["null", "string"],
            title="Plan",
            description="Continue only with this plan, as a dry run showed it. A rebuild with Approval auto "
            "needs it",
        ),
        **approval_form("price"),
    }


def look_at_failback(flow: str, flows_file: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """The price, in the log and for whoever approves."""
    with failing_as_airflow_does():
        ways, selection = _flow_pair(flow, flows_file)
        plan, text = (
            _look_home(ways, selection, params) if params["step"] == HOME else _look_back(ways, params)
        )
    fenced = text.replace("```", "'''")  # a name from a broker may hold anything
    return {"plan": plan, "body": f"```\n{fenced}\n```"}


def next_step(params: Mapping[str, Any]) -> str | None:
    """None: it was only a look."""
    if params["dry_run"]:
        return None
    return APPLY if params["approve"] == "auto" else APPROVE


def apply_failback(
    flow: str, flows_file: str, looked: Mapping[str, Any], params: Mapping[str, Any]
) -> dict[str, Any]:
    """Cleared and run again it goes on, or finds that all is done."""
    refuse_unapproved(params, "price")
    with failing_as_airflow_does():
        ways, selection = _flow_pair(flow, flows_file)
        if params["step"] == HOME:
            return {**_go_home(ways, selection, looked["plan"]), **_protect_again(ways, flows_file)}
        return _go_back(ways, looked["plan"], params)


def _look_back(ways: FlowPair, params: Mapping[str, Any]) -> tuple[str, str]:
    """Nobody is asked for a yes to what would be refused."""
    from causeway.core.failback.divergence import FailbackMode
    from causeway.core.failback.rebuild_impact import refuse_rebuild, refuse_unseen
    from causeway.render.failback_text import plan_text
    from causeway.usecases.failback.start import preview_failback, refuse_another_plan

    plan = preview_failback(ways, FailbackMode(params["step"]), for_real=not params["dry_run"])
    accepts_loss, named = bool(params["accept_loss"]), (params.get("plan") or "").strip()
    text = plan_text(plan, accepts_loss=accepts_loss)
    _tell(text)
    if params["dry_run"]:
        return plan.hash, text
    if plan.rebuild is not None:
        refuse_rebuild(plan.rebuild, accepts_loss=accepts_loss)
        if params["approve"] == "auto":
            refuse_unseen(plan.flow, named, "Plan")
    refuse_another_plan(plan, named)
    return plan.hash, text


def _look_home(ways: FlowPair, selection: FlowGroups, params: Mapping[str, Any]) -> tuple[str, str]:
    from causeway.render.failover_text import sheet_text
    from causeway.usecases.failback.complete import NothingToMoveError, preview_completion

    try:
        sheet = preview_completion(ways, selection, for_real=not params["dry_run"])
    except NothingToMoveError as nothing:
        _tell(text := str(nothing))
        return "", text
    text = sheet_text(sheet)
    _tell(text)
    return sheet.plan.agreement, text


def _tell(text: str) -> None:
    for line in text.splitlines():
        log.info(line)


def _go_back(ways: FlowPair, plan: str, params: Mapping[str, Any]) -> dict[str, Any]:
    from causeway.core.failback.divergence import FailbackMode
    from causeway.render.failback_text import run_text
    from causeway.usecases.failback.start import Operator, fail_back

    operator = Operator(
        by=_who(),
        consent=lambda _: None,
        say=log.info,
        expected_plan=plan,
        accepts_loss=bool(params["accept_loss"]),
    )
    done = fail_back(ways, FailbackMode(params["step"]), operator)
    _tell(run_text(done.run, was_done=done.was_done))
    return {"run": done.run.run, "was_done": done.was_done, "exports": done.run.facts.get("exports", {})}


def _go_home(ways: FlowPair, selection: FlowGroups, plan: str) -> dict[str, Any]:
    from causeway.usecases.failback.complete import complete_failback
    from causeway.usecases.failover.execute import Operator

    operator = Operator(by=_who(), consent=lambda _: None, say=log.info, expected_plan=plan)
    done = complete_failback(ways, selection, operator)
    for line in done.not_yet:
        log.warning(line)
    if not done.not_yet:
        log.info("%s: all is home", ways.forward.name)
    verified = {} if done.moved is None else done.moved.verified.as_dict()
    for line in () if done.moved is None else done.moved.slipped:
        log.warning("%s: put right: %s", ways.forward.name, one_line(line))
    return {"run": done.run.run, "was_done": done.moved is None, "not_yet": list(done.not_yet), **verified}


def _protect_again(ways: FlowPair, flows_file: str) -> dict[str, Any]:
    from causeway.usecases.failback.protect_groups import protect_again

    unprotected = protect_again(ways, load_flows(flows_file).groups[ways.forward.name], log.info)
    for line in unprotected:
        log.warning("%s: %s", ways.forward.name, one_line(line))
    return {"unprotected": unprotected}


def _flow_pair(flow: str, flows_file: str) -> tuple[FlowPair, FlowGroups]:
    from causeway.config.flows_file.reverse_flow import flow_back
    from causeway.usecases.failback.journal_store import FlowPair

    deployment = load_flows(flows_file)
    forward = deployment.flow(flow)
    reverse = flow_back(deployment, forward)
    old, new = (airflow_endpoint(deployment, alias) for alias in (forward.source, forward.target))
    return FlowPair(forward, reverse, old, new), deployment.groups[reverse.name]


def _who() -> str:
    return f"airflow {get_current_context()['dag_run'].run_id}"
