"""An Airflow's folder and its processes: private, and none left."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from causeway.demo.airflow_home import MARK, AirflowHome, airflow_environment, prepare_home
from causeway.demo.airflow_processes import marked_processes, stop_airflow

STUBBORN = """
import pathlib, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
pathlib.Path(sys.argv[1]).touch()
time.sleep(600)
"""
ORPHAN = f"""
import subprocess, sys
subprocess.Popen([sys.executable, "-c", {STUBBORN!r}, sys.argv[1]], start_new_session=True)
"""


@pytest.fixture
def home(tmp_path: Path) -> AirflowHome:
    return prepare_home(tmp_path / "airflow", tmp_path / "project")


def test_nobody_else_can_read_it(home: AirflowHome) -> None:
    assert stat.S_IMODE(home.directory.stat().st_mode) == 0o700
    for file in (home.passwords_file, home.secrets_file):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert home.password not in repr(home)


def test_secrets_stay_when_it_is_used_again(home: AirflowHome) -> None:
    again = prepare_home(home.directory, home.project)
    assert (again.password, again.secrets_file.read_text()) == (home.password, home.secrets_file.read_text())


def test_two_homes_share_no_secret(home: AirflowHome, tmp_path: Path) -> None:
    other = prepare_home(tmp_path / "other", tmp_path / "project")
    kept = [json.loads(each.secrets_file.read_text()).values() for each in (home, other)]
    assert not set(kept[0]) & set(kept[1])
    assert home.password != other.password


def test_nothing_of_the_callers_airflow_leaks_in(home: AirflowHome, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AIRFLOW__CORE__EXECUTOR", "AIRFLOW_CONN_KAFKA_SF", "SPARK_HOME", "CAUSEWAY_FLOWS"):
        monkeypatch.setenv(name, "of the caller")
    monkeypatch.setenv("HOME", "/of/the/caller")
    environment = airflow_environment(home, {"AIRFLOW_CONN_KAFKA_NYC": "given"})
    assert "of the caller" not in environment.values()
    assert environment["HOME"] == "/of/the/caller"
    assert environment["AIRFLOW_CONN_KAFKA_NYC"] == "given"


def test_it_listens_to_this_machine_only(home: AirflowHome) -> None:
    environment = airflow_environment(home, {})
    assert environment["AIRFLOW__API__HOST"] == "127.0.0.1"


def test_stopping_ends_orphans_in_other_sessions_that_ignore_it(
    home: AirflowHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("causeway.demo.airflow_processes._STOP_SECONDS", 0.3)
    is_deaf = tmp_path / "is-deaf"
    environment = os.environ | {MARK: str(home.directory)}
    subprocess.run([sys.executable, "-c", ORPHAN, str(is_deaf)], env=environment, check=True)
    eventually(is_deaf.exists)
    assert stop_airflow(home.directory, print) == 1
    assert marked_processes(home.directory) == []


def test_stopping_leaves_other_homes_alone(home: AirflowHome, tmp_path: Path) -> None:
    other = tmp_path / "other"
    sleeper = subprocess.Popen(["sleep", "60"], env=os.environ | {MARK: str(other)})
    try:
        eventually(lambda: len(marked_processes(other)) == 1)
        assert stop_airflow(home.directory, print) == 0
        assert sleeper.poll() is None
    finally:
        sleeper.kill()
        sleeper.wait()


def eventually(is_true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.02)
