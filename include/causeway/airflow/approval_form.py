"""Airflow's approval, for the DAGs that move groups: nothing is written before somebody has approved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow.sdk import Param, get_current_context
from airflow.sdk.exceptions import AirflowFailException

APPROVE = "approve"
_APPROVED = "Approve"


def approval_form(read: str) -> dict[str, Param]:
    """`read` is what somebody reads before: the sheet, the price."""
    return {
        "approve": Param(
            "ask",
            type="string",
            enum=["ask", "auto"],
            title="Approval",
            description=f"auto: nobody is asked. ask: an operator reads the {read} and approves it",
        ),
        "dry_run": Param(
            default=False,
            type="boolean",
            title="Dry run",
            description=f"The {read} only; writes nothing",
        ),
    }


def refuse_unapproved(params: Mapping[str, Any], read: str) -> None:
    """:raises AirflowFailException: nobody has approved this run, whatever was cleared on the page."""
    if params["dry_run"]:
        raise AirflowFailException("this run was triggered as a dry run: trigger another one")
    if params["approve"] == "auto":
        return
    answer = get_current_context()["ti"].xcom_pull(task_ids=APPROVE) or {}
    if answer.get("chosen_options") != [_APPROVED]:
        raise AirflowFailException(
            f"the {read} of this run isn't approved: clear the task `approve`, and answer it"
        )
