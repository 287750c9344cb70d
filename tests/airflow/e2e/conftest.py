"""One Airflow and two clusters with passwords for all tests of this folder: real ones, small."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from causeway.airflow.rest import AirflowRest
from causeway.demo.airflow_home import AirflowHome, prepare_home
from causeway.demo.airflow_processes import marked_processes, start_airflow, stop_airflow
from causeway.lab.cluster import LabCluster
from tests.conftest import LabClusterFactory, cluster_factory

PROJECT = Path(__file__).resolve().parents[3]

FLOWS = """\
clusters:
  sf: {connection: kafka_sf}
  nyc: {connection: kafka_nyc}
  gone: {connection: kafka_gone}
  doomed: {connection: kafka_doomed}
flows:
  quiet_words: {source: sf, target: nyc, topics: [quiet-words], groups: ["quiet[.].*"],
    sync.group.offsets.enabled: true, sync.topic.configs.enabled: false}
  interrupted: {source: sf, target: nyc, topics: [interrupted], run_for: 10m, retries: 2, retry_delay: 1s,
    sync.topic.configs.enabled: false}
  storm: {source: sf, target: nyc, topics: [storm], run_for: 10m, retries: 9, retry_delay: 1s,
    sync.topic.configs.enabled: false}
  half_fit: {source: sf, target: nyc, topics: [fit, unfit], emit.heartbeats.enabled: true}
  doomed: {source: doomed, target: nyc, topics: [doomed], groups: ["doomed[.].*"], lanes: 3,
    sync.group.offsets.enabled: true}
  away: {source: sf, target: nyc, topics: [away], groups: ["away[.].*"], lanes: 3,
    replication.policy: identity}
  away_back: {source: nyc, target: sf, failback_of: away, groups: ["away[.].*"], lanes: 3,
    replication.policy: identity}
  rehearsed: {source: sf, target: nyc, topics: [rehearsed], groups: ["rehearsed[.].*"], lanes: 3}
  no_way: {source: gone, target: nyc, topics: [no-way], retries: 2, retry_delay: 1s}
"""


@dataclass(frozen=True, slots=True)
class Mirror:
    home: AirflowHome
    rest: AirflowRest
    source: LabCluster
    target: LabCluster
    doomed: LabCluster
    """Another source, to be killed; whoever wants it starts it."""

    @property
    def flows_file(self) -> Path:
        return self.home.directory.parent / "flows.yaml"

    def trigger(self, flow: str, run_id: str, **params: Any) -> None:
        self.rest.unpause(f"mirror__{flow}")
        self.rest.trigger(f"mirror__{flow}", run_id, params)

    def wait(self, flow: str, run_id: str, *, meanwhile: Callable[[], None] = lambda: None) -> str:
        """How the run ended."""
        while (state := self.rest.run_state(f"mirror__{flow}", run_id)) not in {"success", "failed"}:
            meanwhile()
            time.sleep(0.3)
        return state

    def states(self, flow: str, run_id: str) -> dict[str, str]:
        return {task["task_id"]: task["state"] for task in self.rest.tasks(f"mirror__{flow}", run_id)}

    def attempts(self, flow: str, run_id: str, task: str) -> int:
        tasks = self.rest.tasks(f"mirror__{flow}", run_id)
        return next(int(each["try_number"]) for each in tasks if each["task_id"] == task)

    def log(self, flow: str, run_id: str, task: str, attempt: int = 1) -> str:
        path = self.home.task_log(f"mirror__{flow}", run_id, task, attempt)
        return path.read_text(encoding="utf-8") if path.exists() else ""

    def drivers(self) -> list[psutil.Process]:
        """The JVMs of running copies, and their Python driver and workers."""
        running = [(process, command_of(process)) for process in marked_processes(self.home.directory)]
        return [each for each, command in running if "copy_flow.py" in command or "pyspark" in command]

    def eventually(self, is_true: Callable[[], bool]) -> None:
        eventually(is_true)


def command_of(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


@pytest.fixture(scope="package")
def guarded_clusters(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[LabClusterFactory]:
    yield from cluster_factory(tmp_path_factory, request)


@pytest.fixture(scope="package")
def mirror(tmp_path_factory: pytest.TempPathFactory, guarded_clusters: LabClusterFactory) -> Iterator[Mirror]:
    """It ends with this folder: an Airflow at rest goes on parsing DAGs."""
    source, target = (guarded_clusters(name, security="SASL_SSL") for name in ("sf_secure", "nyc_secure"))
    home = prepare_home(tmp_path_factory.mktemp("e2e") / "airflow", PROJECT)
    doomed = guarded_clusters("doomed", start=False)
    flows = home.directory.parent / "flows.yaml"
    flows.write_text(FLOWS)
    environment = {
        "CAUSEWAY_FLOWS": str(flows),
        "AIRFLOW_CONN_KAFKA_SF": source.connection_json(),
        "AIRFLOW_CONN_KAFKA_NYC": target.connection_json(),
        "AIRFLOW_CONN_KAFKA_DOOMED": doomed.connection_json(),
    }
    rest = home.rest()
    try:
        start_airflow(home, environment, print)
        eventually(
            lambda: sum(name.startswith("mirror__") for name in rest.dag_ids()) == FLOWS.count("source:"),
            what=lambda: str(rest.import_errors()),
        )
        yield Mirror(home, rest, source, target, doomed)
    finally:
        stop_airflow(home.directory, print)


def eventually(
    is_true: Callable[[], bool], *, what: Callable[[], str] = lambda: "", seconds: float = 120
) -> None:
    deadline = time.monotonic() + seconds
    while not is_true():
        assert time.monotonic() < deadline, what()
        time.sleep(0.1)
