"""dags/drill.py: each week, and off until somebody wants it."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.airflow

PROJECT = Path(__file__).resolve().parents[2]
FLOWS = """\
clusters:
  sf: {connection: kafka_sf}
  nyc: {connection: kafka_nyc}
flows:
  sf_to_nyc: {source: sf, target: nyc, topics: [orders], pool: mirrors}
"""


def test_each_flow_has_one_weekly_and_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.dag_processing.dagbag import DagBag
    from airflow.serialization.serialized_objects import DagSerialization

    (tmp_path / "flows.yaml").write_text(FLOWS)
    monkeypatch.setenv("CAUSEWAY_FLOWS", str(tmp_path / "flows.yaml"))
    bag = DagBag(dag_folder=str(PROJECT / "dags" / "drill.py"))
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
