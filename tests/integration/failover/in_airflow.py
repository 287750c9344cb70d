"""An Airflow of its own between clusters of the lab, for proofs that press its buttons."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from causeway.airflow.rest import AirflowRest
from causeway.config.flows_file.load import load_flows
from causeway.config.values.environment import environment_variable
from causeway.core.model.flow import Flow
from causeway.demo.airflow_home import AirflowHome, prepare_home
from causeway.demo.airflow_processes import start_airflow, stop_airflow
from causeway.lab.cluster import LabCluster

_PROJECT = Path(__file__).resolve().parents[3]
_PATIENCE_SECONDS = 300
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class FailoverDag:
    """The DAG of one flow, by REST."""

    home: AirflowHome
    rest: AirflowRest
    flow: Flow

    @property
    def dag_id(self) -> str:
        return f"failover__{self.flow.name}"

    def trigger(self, run_id: str, **answers: Any) -> None:
        self.rest.trigger(self.dag_id, run_id, answers)

    def states(self, run_id: str) -> dict[str, str]:
        return {task["task_id"]: task["state"] for task in self.rest.tasks(self.dag_id, run_id)}

    def xcom(self, run_id: str, task: str) -> Any:
        """What the task returned."""
        return self.rest.xcom(self.dag_id, run_id, task)

    def wait(self, run_id: str) -> str:
        """How it ended."""
        self.until(lambda: self.rest.run_state(self.dag_id, run_id) in {"success", "failed"}, run_id)
        return self.rest.run_state(self.dag_id, run_id)

    def until(self, is_true: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not is_true():
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.dag_id}: {what}: {self.states(what)}")
            time.sleep(0.5)


@contextmanager
def airflow_between(
    clusters: Mapping[str, LabCluster], flows: str, folder: Path, say: Say
) -> Iterator[FailoverDag]:
    """`flows`: a flows.yaml with one flow, whose clusters have the connections `kafka_<alias>`."""
    home = prepare_home(folder / "airflow", _PROJECT)
    file = folder / "flows.yaml"
    file.write_text(flows)
    connections = {environment_variable(f"kafka_{name}"): c.connection_json() for name, c in clusters.items()}
    (flow,) = load_flows(file).flows.values()
    dag = FailoverDag(home, home.rest(), flow)
    try:
        start_airflow(home, {"CAUSEWAY_FLOWS": str(file), "CAUSEWAY_SCHEDULES": "off", **connections}, say)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while dag.dag_id not in dag.rest.dag_ids():
            if time.monotonic() > deadline:
                raise TimeoutError(str(dag.rest.import_errors()))
            time.sleep(0.5)
        yield dag
    finally:
        stop_airflow(home.directory, say)
