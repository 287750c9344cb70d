"""dags/drill.py: each week, and off until somebody wants it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

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


@pytest.mark.parametrize("wrong", ["", "1 of 3 offsets didn't end where the plan said"])
def test_a_drill_that_went_wrong_is_red(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from causeway.entrypoints import airflow_drill
    from causeway.flows.failover import drill

    (tmp_path / "flows.yaml").write_text(FLOWS)
    done = SimpleNamespace(run="r1", wrong=wrong, as_dict=dict)
    monkeypatch.setattr(drill, "drill", lambda *_, **__: done)
    monkeypatch.setattr(airflow_drill, "airflow_endpoint", lambda *_: SimpleNamespace())
    context = {"dag_run": SimpleNamespace(run_id="weekly")}
    monkeypatch.setattr(airflow_drill, "get_current_context", lambda: context)
    if wrong:
        with pytest.raises(AirflowFailException, match=wrong):
            airflow_drill.rehearse("sf_to_nyc", str(tmp_path / "flows.yaml"))
    else:
        assert airflow_drill.rehearse("sf_to_nyc", str(tmp_path / "flows.yaml")) == {"run": "r1"}
