"""dags/maintain.py: one small DAG per flow that keeps its offset map small."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.airflow

PROJECT = Path(__file__).resolve().parents[2]
FLOWS = """\
clusters:
  sf: {connection: kafka_sf}
  nyc: {connection: kafka_nyc}
flows:
  sf_to_nyc: {source: sf, target: nyc, topics: [orders], pool: mirrors, retries: 5}
  nyc_to_sf: {source: nyc, target: sf, topics: ["audit-.*"]}
"""


def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **environment: str) -> Any:
    from airflow.dag_processing.dagbag import DagBag

    file = tmp_path / "flows.yaml"
    file.write_text(FLOWS)
    for name, value in {"CAUSEWAY_FLOWS": str(file), **environment}.items():
        monkeypatch.setenv(name, value)
    return DagBag(dag_folder=str(PROJECT / "dags" / "maintain.py"))


def test_each_flow_has_one_task_once_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bag = load(tmp_path, monkeypatch)
    assert bag.import_errors == {}
    assert set(bag.dags) == {"maintain__sf_to_nyc", "maintain__nyc_to_sf"}
    dag = bag.dags["maintain__sf_to_nyc"]
    assert (dag.schedule, dag.catchup, dag.max_active_runs) == ("@daily", False, 1)
    (task,) = dag.tasks
    assert (task.task_id, task.pool, task.retries) == ("offset_map", "mirrors", 5)
    assert task.task_type == "_PythonDecoratedOperator"  # no Spark


def test_by_hand_and_for_one_flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {
        "_AIRFLOW_PARSING_CONTEXT_DAG_ID": "maintain__nyc_to_sf",
        "_AIRFLOW_PARSING_CONTEXT_TASK_ID": "offset_map",
    }
    bag = load(tmp_path, monkeypatch, CAUSEWAY_SCHEDULES="off", **asked)
    assert {name: dag.schedule for name, dag in bag.dags.items()} == {"maintain__nyc_to_sf": None}
