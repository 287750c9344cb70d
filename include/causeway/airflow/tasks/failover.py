"""The failover's Python tasks: the same steps as `causeway failover`, each a task, with Airflow's approval.

Invariants
  a. The plan's hash goes from the sheet to the snapshot, and from there through the journal to the first
     move: what is done is what was approved, or nothing.
  b. A task hands on names and small facts. What is done is read from the clusters, so each task can be
     killed, cleared and run again.

Everything that costs time is imported when a task runs.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from airflow.sdk import get_current_context
from airflow.sdk.exceptions import AirflowFailException

from causeway.airflow.approval_form import APPROVE, refuse_unapproved
from causeway.airflow.connections import airflow_endpoint
from causeway.airflow.failures import failing_as_airflow_does
from causeway.config.flows_file.load import load_flows
from causeway.render.run_report import report_path
from causeway.render.tables import one_line

if TYPE_CHECKING:
    from causeway.core.failover.impact_sheet import Sheet
    from causeway.core.failover.request import FailoverRequest
    from causeway.core.kernel.endpoint import ClusterEndpoint
    from causeway.core.model.flow import Flow
    from causeway.core.model.group_filter import FlowGroups
    from causeway.usecases.failover.failover import Failover

log = logging.getLogger("causeway")
PLAN, ESTIMATE, SNAPSHOT, FENCE, APPLY = "plan", "estimate", "snapshot", "fence", "apply"
BODY = "body"
"""XCom of `estimate`: what whoever approves reads."""
_FIELDS = {"at": "timestamp"}
"""Of the form, where they aren't called as the command line's options."""
_NAMED = 5
Facts = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Opened:
    flow: Flow
    selection: FlowGroups
    source: ClusterEndpoint
    target: ClusterEndpoint


def plan_failover(flow: str, flows_file: str, params: Mapping[str, Any]) -> Facts:
    """Where each group would go, by both answers; and whether an earlier run has begun it, or done it."""
    from causeway.core.journal.journal import Status
    from causeway.render.failover_text import moves_text
    from causeway.usecases.failover.execute import preview_failover

    with failing_as_airflow_does():
        on = _opened(flow, flows_file)
        wish = _wish(flow, params)
        earlier = _step(on, lambda failover: failover.find_earlier(wish))
        if earlier is not None:
            is_done = earlier.status is Status.DONE
            what = "was done already: nothing to do" if is_done else f"was begun by {earlier.by}: it goes on"
            log.info("%s: failover %s %s", flow, earlier.run, what)
            return {"plan": earlier.agreement, "earlier": earlier.run, "is_done": is_done}
        ends, for_real = (on.source, on.target), not params["dry_run"]
        sheet = preview_failover(on.flow, *ends, wish, on.selection, is_priced=False, for_real=for_real)
    _say(moves_text(sheet))
    return {"plan": sheet.plan.agreement, "earlier": "", "is_done": False}


def estimate_failover(flow: str, flows_file: str, planned: Facts, params: Mapping[str, Any]) -> str | None:
    """The sheet: in the log, as a page and as JSON beside the reports of runs, and for whoever approves.

    :returns: the task that comes next; None: none does.
    """
    from causeway.render.failover_approval import resumed_markdown, sheet_markdown
    from causeway.render.failover_text import sheet_text
    from causeway.usecases.failover.execute import preview_failover

    if planned["is_done"]:
        log.info("%s: failover %s was done already: nothing to do", flow, planned["earlier"])
        return None
    with failing_as_airflow_does():
        on = _opened(flow, flows_file)
        wish = _wish(flow, params)
        earlier = _step(on, lambda failover: failover.find_earlier(wish))
        if earlier is not None:
            _hand_on(earlier.agreement, resumed_markdown(earlier))
            return next_step(params)
        sheet = preview_failover(on.flow, on.source, on.target, wish, on.selection)
    _say(sheet_text(sheet))
    page = _keep(sheet)
    _hand_on(sheet.plan.agreement, sheet_markdown(sheet, str(page)))
    return next_step(params)


def next_step(params: Mapping[str, Any]) -> str | None:
    """None: it was only a look."""
    if params["dry_run"]:
        return None
    return SNAPSHOT if params["approve"] == "auto" else APPROVE


def take_snapshot(flow: str, flows_file: str, params: Mapping[str, Any]) -> Facts:
    """Nothing is written before somebody has approved, whatever was cleared or marked on the page."""
    from causeway.usecases.failover.execute import take_agreed_snapshot
    from causeway.usecases.failover.failover import Failover
    from causeway.usecases.session.source_may_be_gone import open_session, trouble_of

    refuse_unapproved(params, "sheet")
    agreed = get_current_context()["ti"].xcom_pull(task_ids=ESTIMATE, key=PLAN)
    with failing_as_airflow_does():
        on = _opened(flow, flows_file)
        wish = _wish(flow, params)
        with open_session(on.source, on.target) as sides, trouble_of(on.flow):
            failover = Failover(on.flow, sides, on.selection, _who())
            run = take_agreed_snapshot(failover, wish, agreed, log.info)
    offsets = sum(map(len, run.shifts.values()))
    log.info("%s: failover %s: %d offsets of %d groups kept", flow, run.run, offsets, len(run.shifts))
    return {"run": run.run, "groups": len(run.shifts), "offsets": offsets}


def raise_fence(flow: str, flows_file: str, kept: Facts) -> Facts:
    from causeway.airflow.pause_dags import pause_dags

    with failing_as_airflow_does():
        _step(_opened(flow, flows_file), lambda failover: failover.raise_fence(kept["run"]))
    log.info("%s: fenced, nothing can be added any more", flow)
    return {"paused": pause_dags(flow)}


def apply_failover(flow: str, flows_file: str, kept: Facts, fenced: Facts) -> Facts:
    from causeway.airflow.pause_dags import unpause_dags
    from causeway.core.kernel.errors import StalePlan

    with failing_as_airflow_does():
        on = _opened(flow, flows_file)
        try:
            moved = _step(on, lambda failover: failover.move_groups(kept["run"]), source=on.source)
        except StalePlan:
            unpause_dags(flow, fenced["paused"])
            raise
    log.info("%s: %d offsets of %d groups committed", flow, moved.offsets, kept["groups"])
    return {"committed": moved.offsets, "left_alone": list(moved.left_alone)}


def verify_failover(flow: str, flows_file: str, kept: Facts) -> Facts:
    with failing_as_airflow_does():
        verified = _step(_opened(flow, flows_file), lambda failover: failover.verify(kept["run"]))
    log.info("%s: %s", flow, verified)
    return verified.as_dict()


def report_failover(flow: str, flows_file: str, kept: Facts, applied: Facts, verified: Facts) -> Facts:
    """:raises AirflowFailException: something was left alone; nobody reads the log of a green run."""
    facts = {**verified, "left_alone": applied["left_alone"]}
    with failing_as_airflow_does():
        run = _step(_opened(flow, flows_file), lambda failover: failover.record(kept["run"], facts))
    seconds = (run.ended_ms - run.begun_ms) / 1000
    log.info("%s: failover %s is in the journal, %.1f s after its snapshot", flow, run.run, seconds)
    log.info("%s: fenced; back with `causeway failover %s --rollback %s`", flow, flow, run.run)
    for line in run.slipped:
        log.warning("%s: put right: %s", flow, one_line(line))
    refuse_left_alone([*applied["left_alone"], *run.left_alone], len(applied["left_alone"]) + run.left_count)
    return {**kept, **verified, "committed": applied["committed"], "seconds": seconds}


def refuse_left_alone(first: Sequence[str], count: int) -> None:
    """`first`: of so many; the journal doesn't keep them all."""
    if count:
        more = f"; and {count - _NAMED:,} more" if count > _NAMED else ""
        named = one_line("; ".join(first[:_NAMED]))
        raise AirflowFailException(f"{count:,} left alone, the others are moved: {named}{more}")


def _opened(flow: str, flows_file: str) -> _Opened:
    deployment = load_flows(flows_file)
    wanted = deployment.flow(flow)
    source, target = (airflow_endpoint(deployment, alias) for alias in (wanted.source, wanted.target))
    return _Opened(wanted, deployment.groups[flow], source, target)


def _step(
    on: _Opened, step: Callable[[Failover], Awaitable[T]], *, source: ClusterEndpoint | None = None
) -> T:
    """One of a failover's steps, in a session of its own; without the source, unless it is given."""
    from causeway.usecases.failover.failover import Failover
    from causeway.usecases.session.source_may_be_gone import in_session

    by = _who()
    return in_session(
        on.flow, source, on.target, lambda sides: step(Failover(on.flow, sides, on.selection, by))
    )


def _wish(flow: str, params: Mapping[str, Any]) -> FailoverRequest:
    from causeway.core.kernel.errors import BadInput
    from causeway.render.failover_request import LATEST, PLANNED, WrittenRequest, read_request

    at = params["timestamp"] or LATEST
    if params["mode"] == PLANNED and at != LATEST:
        rule = "belongs to mode unplanned: a planned failover moves each group to where it stands"
        raise BadInput("timestamp", value=at, rule=rule, remedy="leave one of the two out")
    written = WrittenRequest(
        flow=flow,
        at=PLANNED if params["mode"] == PLANNED else at,
        safety=params["safety"],
        groups=params["groups"] or [],
        topics=params["topics"] or [],
        active=params["active"],
        clamp=params["clamp"],
    )
    return read_request(written, named=lambda option: _FIELDS.get(option, option))


def _who() -> str:
    return f"airflow {get_current_context()['dag_run'].run_id}"


def _say(text: str) -> None:
    for line in text.splitlines():
        log.info(line)


def _hand_on(plan: str, body: str) -> None:
    task = get_current_context()["ti"]
    task.xcom_push(key=PLAN, value=plan)
    task.xcom_push(key=BODY, value=body)


def _keep(sheet: Sheet) -> Path:
    """Beside the reports of runs: `<...>.html` and `<...>.json`."""
    from causeway.render.failover_html import write_page

    task = get_current_context()["ti"]
    place = report_path(f"failover-{sheet.flow}", task.run_id, task.try_number)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(json.dumps(sheet.as_dict(), indent=1) + "\n", encoding="utf-8")
    page = place.with_suffix(".html")
    write_page(sheet, page)
    return page
