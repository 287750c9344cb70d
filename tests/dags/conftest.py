"""An Airflow that is only imported: its home is a temporary folder, and nothing of it runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def _airflow_settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    home = tmp_path_factory.mktemp("airflow")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AIRFLOW_HOME", str(home))
        environment.setenv("AIRFLOW__CORE__LOAD_EXAMPLES", "False")
        environment.setenv("AIRFLOW__DATABASE__SQL_ALCHEMY_CONN", f"sqlite:///{home}/airflow.db")
        environment.setenv("AIRFLOW__LOGGING__LOGGING_LEVEL", "WARNING")
        yield
