"""dags/drill.py: each week, and off until somebody wants it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.flows_yaml import flows_yaml

pytestmark = pytest.mark.airflow

FLOWS = flows_yaml("sf_to_nyc: {source: sf, target: nyc, topics: [orders], pool: mirrors}")


def test_each_flow_has_one_weekly_and_off(load_dags: Callable[..., Any]) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    bag = load_dags("drill.py", FLOWS)
    assert bag.import_errors == {}
    (dag,) = bag.dags.values()
    assert (dag.dag_id, dag.schedule, dag.catchup, dag.max_active_runs) == (
        "drill__sf_to_nyc",
        "@weekly",
        False,
        1,
    )
    assert dag.is_paused_upon_creation is True
    assert set(dag.task_dict) == {"rehearse"}
    assert DagSerialization.from_dict(DagSerialization.to_dict(dag)).dag_id == dag.dag_id


@pytest.mark.parametrize("wrong", ["", "1 of 3 offsets differ from the plan"])
def test_a_drill_that_went_wrong_is_red(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from causeway.airflow.tasks import drill as tasks_drill
    from causeway.usecases.failover import drill

    (tmp_path / "flows.yaml").write_text(FLOWS)
    done = SimpleNamespace(run="r1", wrong=wrong, as_dict=dict)
    monkeypatch.setattr(drill, "drill", lambda *_, **__: done)
    monkeypatch.setattr(tasks_drill, "airflow_endpoint", lambda *_: SimpleNamespace())
    context = {"dag_run": SimpleNamespace(run_id="weekly")}
    monkeypatch.setattr(tasks_drill, "get_current_context", lambda: context)
    if wrong:
        with pytest.raises(AirflowFailException, match=wrong):
            tasks_drill.rehearse("sf_to_nyc", str(tmp_path / "flows.yaml"))
    else:
        assert tasks_drill.rehearse("sf_to_nyc", str(tmp_path / "flows.yaml")) == {"run": "r1"}
