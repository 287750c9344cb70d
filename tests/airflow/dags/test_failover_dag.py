"""dags/failover.py: by hand only, a typed form, an approval that can be left out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.flows_yaml import flows_yaml

pytestmark = pytest.mark.airflow

FLOWS = flows_yaml(
    'sf_to_nyc: {source: sf, target: nyc, topics: [orders], pool: mirrors, schedule: "@continuous"}',
    'nyc_to_sf: {source: nyc, target: sf, topics: ["audit-.*"]}',
)


@pytest.fixture
def bag(load_dags: Callable[..., Any]) -> Any:
    return load_dags("failover.py", FLOWS)


def test_each_flow_has_one_and_nobody_schedules_it(bag: Any) -> None:
    assert bag.import_errors == {}
    assert set(bag.dags) == {"failover__sf_to_nyc", "failover__nyc_to_sf"}
    dag = bag.dags["failover__sf_to_nyc"]
    assert (dag.schedule, dag.catchup, dag.max_active_runs) == (None, False, 1)
    assert dag.is_paused_upon_creation is False, "a paused one would only queue what is triggered at night"


def test_nothing_is_applied_before_it_is_approved_or_automatic(bag: Any) -> None:
    dag = bag.dags["failover__sf_to_nyc"]
    arrows = {name: dag.task_dict[name].downstream_task_ids for name in dag.task_dict}
    assert arrows == {
        "plan": {"estimate"},
        "estimate": {"approve", "snapshot"},
        "approve": {"snapshot"},
        "snapshot": {"fence", "apply", "verify", "report"},
        "fence": {"apply"},
        "apply": {"verify", "report"},
        "verify": {"report"},
        "report": set(),
    }
    assert dag.task_dict["snapshot"].trigger_rule == "none_failed_min_one_success"
    assert dag.task_dict["approve"].task_type == "ApprovalOperator"
    assert "body" in dag.task_dict["approve"].body


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"dry_run": False, "approve": "ask"}, "approve"),
        ({"dry_run": False, "approve": "auto"}, "snapshot"),
        ({"dry_run": True, "approve": "auto"}, None),
    ],
)
def test_what_comes_after_the_plan(answers: dict[str, Any], expected: str | None) -> None:
    from causeway.airflow.tasks.failover import next_step

    assert next_step(answers) == expected


@pytest.mark.parametrize(
    "answer",
    [
        {"timestamp": "yesterday"},
        {"timestamp": "2026-11-18T04:03:00"},
        {"timestamp": 1763438580},
        {"safety": "30"},
        {"active": "kill"},
        {"dry_run": "true"},
        {"mode": "perhaps"},
        {"groups": "billing"},
    ],
)
def test_the_form_refuses_what_is_no_answer(bag: Any, answer: dict[str, Any]) -> None:
    from airflow.sdk.exceptions import ParamValidationError

    params = bag.dags["failover__sf_to_nyc"].params
    params.validate()
    ((name, value),) = answer.items()
    with pytest.raises(ParamValidationError):
        params[name] = value


@pytest.mark.parametrize(
    "answers", [{"approve": "ask", "dry_run": False}, {"approve": "auto", "dry_run": True}]
)
@pytest.mark.parametrize("chosen", [None, ["Reject"]])
def test_no_snapshot_is_taken_that_nobody_approved(
    monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any], chosen: list[str] | None
) -> None:
    """Whatever was cleared or marked on the page: no cluster is asked for that."""
    from airflow.sdk.exceptions import AirflowFailException

    from causeway.airflow import approval_form
    from causeway.airflow.tasks import failover

    told = None if chosen is None else {"chosen_options": chosen}
    context = {"ti": SimpleNamespace(xcom_pull=lambda **_: told)}
    monkeypatch.setattr(approval_form, "get_current_context", lambda: context)
    with pytest.raises(AirflowFailException):
        failover.take_snapshot("sf_to_nyc", "no file", answers)


def test_a_dag_that_cant_be_paused_is_no_reason_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk import BaseHook

    from causeway.airflow import pause_dags
    from causeway.airflow.rest import AirflowRest
    from causeway.core.kernel.errors import ClusterUnreachable

    asked: list[str] = []

    def ask(_rest: object, dag_id: str, **_: object) -> bool:
        asked.append(dag_id)
        raise ClusterUnreachable("airflow", rule="doesn't answer")

    found = SimpleNamespace(host="airflow", port=8080, schema="https", login="ops", password="secret")
    monkeypatch.setattr(BaseHook, "get_connection", lambda _: found)
    monkeypatch.setattr(AirflowRest, "is_paused", ask)
    assert pause_dags.pause_dags("f") == []
    assert asked == ["mirror__f", "groups__f", "maintain__f"]


def test_dags_serialise(bag: Any) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    for dag in bag.dags.values():
        assert DagSerialization.from_dict(DagSerialization.to_dict(dag)).dag_id == dag.dag_id


def test_a_form_that_is_wrong_ends_the_task_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from causeway.airflow.tasks import failover

    (tmp_path / "flows.yaml").write_text(FLOWS)
    monkeypatch.setattr(failover, "airflow_endpoint", lambda *_: SimpleNamespace())
    answers: dict[str, Any] = {
        "timestamp": "2226-11-18T04:03:00Z",
        "safety": None,
        "groups": [],
        "topics": [],
        "active": "refuse",
        "clamp": False,
        "mode": "unplanned",
    }
    with pytest.raises(AirflowFailException, match=r"timestamp = 2226.*in the future"):
        failover.plan_failover("sf_to_nyc", str(tmp_path / "flows.yaml"), answers)


def test_whatever_was_left_alone_is_counted_though_five_are_named() -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from causeway.airflow.tasks.failover import refuse_left_alone

    refuse_left_alone([], 0)
    kept = [*(f"g{n}: why" for n in range(20)), "and 380 more"]
    with pytest.raises(AirflowFailException, match=r"^400 left alone, .*: g0: .*; g4: why; and 395 more$"):
        refuse_left_alone(kept, 400)
    with pytest.raises(AirflowFailException, match=r"^2 left alone, the others are moved: g0: why; g1: why$"):
        refuse_left_alone(kept[:2], 2)
