"""dags/failback.py: by hand only, for flows that have a way back, and nothing without a yes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.flows_yaml import flows_yaml

pytestmark = pytest.mark.airflow

FLOWS = flows_yaml(
    "sf_to_nyc: {source: sf, target: nyc, topics: [orders], replication.policy: identity, pool: mirrors}",
    "nyc_to_sf: {source: nyc, target: sf, failback_of: sf_to_nyc, replication.policy: identity}",
    "sf_to_ams: {source: sf, target: ams, topics: [audit]}",
    clusters=("sf", "nyc", "ams"),
)


@pytest.fixture
def bag(load_dags: Callable[..., Any]) -> Any:
    return load_dags("failback.py", FLOWS)


def test_each_flow_with_a_way_back_has_one_and_nobody_schedules_it(bag: Any) -> None:
    assert bag.import_errors == {}
    assert set(bag.dags) == {"failback__sf_to_nyc"}
    dag = bag.dags["failback__sf_to_nyc"]
    assert (dag.schedule, dag.catchup, dag.max_active_runs) == (None, False, 1)
    assert dag.is_paused_upon_creation is False
    arrows = {name: dag.task_dict[name].downstream_task_ids for name in dag.task_dict}
    assert arrows == {
        "look": {"ask", "apply"},
        "ask": {"approve", "apply"},
        "approve": {"apply"},
        "apply": set(),
    }
    assert dag.task_dict["approve"].task_type == "ApprovalOperator"


def test_dags_serialise(bag: Any) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    for dag in bag.dags.values():
        assert DagSerialization.from_dict(DagSerialization.to_dict(dag)).dag_id == dag.dag_id


@pytest.mark.parametrize(
    ("answers", "expected"),
    [
        ({"dry_run": False, "approve": "ask"}, "approve"),
        ({"dry_run": False, "approve": "auto"}, "apply"),
        ({"dry_run": True, "approve": "auto"}, None),
    ],
)
def test_what_comes_after_the_look(answers: dict[str, Any], expected: str | None) -> None:
    from causeway.airflow.tasks.failback import next_step

    assert next_step(answers) == expected


def test_the_form_refuses_what_is_no_answer(bag: Any) -> None:
    from airflow.sdk.exceptions import ParamValidationError

    params = bag.dags["failback__sf_to_nyc"].params
    params.validate()
    assert (params["step"], params["accept_loss"]) == ("resume", False), "nothing is deleted by default"
    params["step"] = "rebuild"
    with pytest.raises(ParamValidationError):
        params["step"] = "perhaps"


def test_without_a_yes_nothing_is_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    from types import SimpleNamespace

    from airflow.sdk.exceptions import AirflowFailException

    from causeway.airflow import approval_form
    from causeway.airflow.tasks import failback

    nobody = {"ti": SimpleNamespace(xcom_pull=lambda **_: None)}
    monkeypatch.setattr(approval_form, "get_current_context", lambda: nobody)
    for answers in ({"dry_run": True, "approve": "auto"}, {"dry_run": False, "approve": "ask"}):
        with pytest.raises(AirflowFailException):
            failback.apply_failback("f", "no file", {"plan": ""}, {"step": "resume", **answers})


@pytest.mark.parametrize(
    ("step", "done_by"), [("resume", "fail_back"), ("rebuild", "fail_back"), ("home", "come_home")]
)
def test_what_was_looked_at_is_what_is_done_or_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, done_by: str
) -> None:
    from types import SimpleNamespace

    from causeway.airflow.tasks import failback
    from causeway.usecases.failback import complete, start

    class Done(Exception):
        """Its name says what is done."""

    def doing(name: str) -> Any:
        def do(*arguments: Any) -> None:
            raise Done(name, arguments[-1].expected_plan)

        return do

    (tmp_path / "flows.yaml").write_text(FLOWS)
    monkeypatch.setattr(failback, "airflow_endpoint", lambda *_: SimpleNamespace())
    context = {"dag_run": SimpleNamespace(run_id="by_hand")}
    monkeypatch.setattr(failback, "get_current_context", lambda: context)
    monkeypatch.setattr(start, "fail_back", doing("fail_back"))
    monkeypatch.setattr(complete, "complete_failback", doing("come_home"))
    answers = {"step": step, "dry_run": False, "approve": "auto", "accept_loss": False}
    with pytest.raises(Done) as done:
        failback.apply_failback("sf_to_nyc", str(tmp_path / "flows.yaml"), {"plan": "abc"}, answers)
    assert done.value.args == (done_by, "abc")


@pytest.mark.parametrize(
    ("answers", "refused"),
    [
        ({"approve": "auto", "plan": None}, "name it by Plan"),
        ({"approve": "auto", "plan": " "}, "name it by Plan"),
        ({"approve": "auto", "plan": "another"}, "another was asked for"),
        ({"approve": "ask", "plan": "another"}, "another was asked for"),
        ({"approve": "auto", "plan": "this"}, ""),
        ({"approve": "ask", "plan": None}, ""),
        ({"approve": "auto", "plan": None, "dry_run": True}, ""),
        ({"approve": "auto", "plan": None, "step": "resume"}, ""),
    ],
)
def test_a_rebuild_that_nobody_approves_names_its_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: dict[str, Any], refused: str
) -> None:
    from types import SimpleNamespace

    from airflow.sdk.exceptions import AirflowFailException

    from causeway.airflow.tasks import failback
    from causeway.core.failback.divergence import FailbackMode, FailbackPlan
    from causeway.usecases.failback import start
    from tests.support.failback_plans import cut, price

    def look(_ways: object, way: FailbackMode, **_: object) -> FailbackPlan:
        priced = price() if way is FailbackMode.REBUILD else None
        return FailbackPlan(flow="sf_to_nyc", reverse="b", way=way, cuts=(cut(),), late=(), rebuild=priced)

    (tmp_path / "flows.yaml").write_text(FLOWS)
    monkeypatch.setattr(failback, "airflow_endpoint", lambda *_: SimpleNamespace())
    monkeypatch.setattr(start, "preview_failback", look)
    params = {"step": "rebuild", "dry_run": False, "accept_loss": False, **answers}
    plan = look(None, FailbackMode(params["step"]))
    params["plan"] = plan.hash if params["plan"] == "this" else params["plan"]
    looked = (failback.look_at_failback, "sf_to_nyc", str(tmp_path / "flows.yaml"), params)
    if refused:
        with pytest.raises(AirflowFailException, match=refused):
            looked[0](*looked[1:])
        return
    found = looked[0](*looked[1:])
    assert found["plan"] == plan.hash
    assert f"plan {plan.hash}" in found["body"]
