"""An Airflow that is only imported: its home is a temporary folder, and nothing of it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

DAGS = Path(__file__).resolve().parents[3] / "dags"


@pytest.fixture(scope="session", autouse=True)
def _airflow_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    home = tmp_path_factory.mktemp("airflow")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AIRFLOW_HOME", str(home))
        environment.setenv("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
        environment.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", f"sqlite:///{home}/airflow.db")
        environment.setenv("AIRFLOW__LOGGING__LOGGING_LEVEL", "WARNING")
        yield


@pytest.fixture
def load_dags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """The DAGs of a file in dags/ for a flows.yaml, as Airflow's DAG processor reads them."""

    def load(name: str, flows: str, **environment: str) -> Any:
        from airflow.dag_processing.dagbag import DagBag

        file = tmp_path / "flows.yaml"
        file.write_text(flows)
        for variable, value in {"CAUSEWAY_FLOWS": str(file), **environment}.items():
            monkeypatch.setenv(variable, value)
        return DagBag(dag_folder=str(DAGS / name))

    return load
