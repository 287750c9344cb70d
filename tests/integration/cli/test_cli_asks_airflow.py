"""The command line finds a connection that only Airflow has, in Airflow's own ways."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.integration, pytest.mark.airflow]
FLOWS = Path(__file__).parents[3] / "include" / "flows.yaml"


def flows_connections(home: Path, **settings: str) -> tuple[int, dict[str, dict[str, str]], str]:
    """Exit code, clusters by alias, and the notes."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW", "CAUSEWAY"))}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "causeway.cli.main",
            "flows",
            "--connections",
            "--json",
            "--file",
            str(FLOWS),
        ],
        env={**kept, "HOME": str(home), "AIRFLOW_HOME": str(home / "airflow"), **settings},
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )
    return (
        done.returncode,
        {found["alias"]: found for found in json.loads(done.stdout)["clusters"]},
        done.stderr,
    )


def test_a_secrets_backend_is_asked_and_its_answer_checked(tmp_path: Path) -> None:
    connections = tmp_path / "connections.json"
    extra = {"bootstrap.servers": "sf.example:9092"}
    connections.write_text(
        json.dumps(
            {
                "kafka_sf": {"conn_type": "kafka", "extra": extra},
                "kafka_nyc": {"conn_type": "kafka", "extra": {**extra, "sasl.password": "hunter2-canary"}},
            }
        )
    )
    code, clusters, notes = flows_connections(
        tmp_path,
        AIRFLOW__SECRETS__BACKEND="airflow.secrets.local_filesystem.LocalFilesystemBackend",
        AIRFLOW__SECRETS__BACKEND_KWARGS=json.dumps({"connections_file_path": str(connections)}),
    )
    assert code == 2
    assert clusters["sf"]["bootstrap_servers"] == "sf.example:9092"
    assert clusters["sf"]["problem"] is None
    problem = clusters["nyc"]["problem"]
    assert problem.startswith("connection kafka_nyc (Airflow): sasl.password: does nothing with")
    assert "canary" not in problem + notes


def test_an_airflow_that_can_not_be_asked_is_named_and_no_secret_is_repeated(tmp_path: Path) -> None:
    code, clusters, notes = flows_connections(
        tmp_path, AIRFLOW__DATABASE__SQL_ALCHEMY_CONN="nonsense://user:hunter2-canary@127.0.0.1:1/x"
    )
    assert code == 2
    assert f"Airflow ({tmp_path / 'airflow'}) can't be asked" in clusters["sf"]["problem"]
    assert "AIRFLOW_CONN_KAFKA_SF" in clusters["sf"]["problem"]
    assert "canary" not in clusters["sf"]["problem"] + notes
