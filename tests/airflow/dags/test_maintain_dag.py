"""dags/maintain.py: one small DAG per flow that keeps its offset map small."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.flows_yaml import flows_yaml

pytestmark = pytest.mark.airflow

FLOWS = flows_yaml(
    "sf_to_nyc: {source: sf, target: nyc, topics: [orders], pool: mirrors, retries: 5}",
    'nyc_to_sf: {source: nyc, target: sf, topics: ["audit-.*"]}',
)


def test_each_flow_has_one_task_once_a_day(load_dags: Callable[..., Any]) -> None:
    bag = load_dags("maintain.py", FLOWS)
    assert bag.import_errors == {}
    assert set(bag.dags) == {"maintain__sf_to_nyc", "maintain__nyc_to_sf"}
    dag = bag.dags["maintain__sf_to_nyc"]
    assert (dag.schedule, dag.catchup, dag.max_active_runs) == ("@daily", False, 1)
    (task,) = dag.tasks
    assert (task.task_id, task.pool, task.retries) == ("offset_map", "mirrors", 5)
    assert task.task_type == "_PythonDecoratedOperator"  # no Spark


def test_by_hand_and_for_one_flow(load_dags: Callable[..., Any]) -> None:
    asked = {
        "_AIRFLOW_PARSING_CONTEXT_DAG_ID": "maintain__nyc_to_sf",
        "_AIRFLOW_PARSING_CONTEXT_TASK_ID": "offset_map",
    }
    bag = load_dags("maintain.py", FLOWS, CAUSEWAY_SCHEDULES="off", **asked)
    assert {name: dag.schedule for name, dag in bag.dags.items()} == {"maintain__nyc_to_sf": None}
