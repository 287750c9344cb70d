"""Runs of the flow as users start them: `spark-submit spark_jobs/copy_flow.py`, local or on a cluster."""

from __future__ import annotations

import itertools
import json
import os
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.proofs.chaos.parts.processes import Member, Started, members, start, wait_until
from tests.support.scratch import JAVA_OPTIONS

ROOT = Path(__file__).parents[4]
_BIN = Path(sys.executable).parent
FLOW = "chaos"
_FLOWS_YAML = """\
clusters:
  sf: {connection: kafka_sf}
  nyc: {connection: kafka_nyc}
flows:
  chaos:
    source: sf
    target: nyc
    topics: [orders, ledger, ticker]
    lanes: LANES
    transaction.max.bytes: 1MiB
    settle: SETTLE
"""


@dataclass(frozen=True, slots=True)
class SparkRun:
    """One run: a driver JVM, the Python driver below it, and (in local mode) the Python workers."""

    process: Started
    holder: str
    run_id: str
    report_path: Path
    is_short: bool
    cluster: StandaloneCluster | None

    @property
    def exit_code(self) -> int | None:
        return self.process.exit_code

    @property
    def has_begun(self) -> bool:
        return self.process.exit_code is not None or bool(self.workers())

    def python_driver(self) -> Member | None:
        return next(
            (m for m in self.process.members() if m.parent == self.process.pid and _is_driver(m)), None
        )

    def workers(self) -> list[Member]:
        """Spark's Python workers: children of its Python daemons."""
        everyone = self.process.members()
        if self.cluster is not None:
            everyone = self.cluster.members()
        daemons = {m.pid for m in everyone if "pyspark.daemon" in m.command}
        return [m for m in everyone if m.parent in daemons]

    def executors(self) -> list[Member]:
        if self.cluster is None:
            return []
        return [m for m in self.cluster.members() if "CoarseGrainedExecutorBackend" in m.command]

    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.report_path.read_text())
        return found

    def tail(self, characters: int = 1500) -> str:
        return self.process.output()[-characters:]


def _is_driver(member: Member) -> bool:
    return "copy_" in member.command and "pyspark.daemon" not in member.command


@dataclass(slots=True)
class Launcher:
    """Starts runs of the flow between two clusters, given as Airflow's connections."""

    source: str
    target: str
    folder: Path
    lanes: int = 4
    standalone: StandaloneCluster | None = None
    settles: bool = False
    started: list[SparkRun] = field(default_factory=list)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        text = _FLOWS_YAML.replace("LANES", str(self.lanes)).replace("SETTLE", str(self.settles).lower())
        self.flows_file.write_text(text)

    @property
    def flows_file(self) -> Path:
        return self.folder / "flows.yaml"

    def launch(
        self,
        *,
        run_for: float | None,
        take_over: bool = False,
        run_id: str | None = None,
        is_short: bool = False,
        on_cluster: bool = False,
    ) -> SparkRun:
        number = next(self._numbers)
        holder, report = f"run-{number:03d}", self.folder / f"run-{number:03d}.json"
        cluster = self.standalone if on_cluster else None
        script = ROOT / ("tests/proofs/chaos/parts/copy_short.py" if is_short else "spark_jobs/copy_flow.py")
        command = [
            str(_BIN / "spark-submit"),
            *("--master", cluster.master if cluster else "local[*]"),
            *("--driver-memory", "512m", "--driver-java-options", JAVA_OPTIONS),
            *("--conf", "spark.ui.enabled=false", "--conf", "spark.log.level=ERROR"),
            *("--conf", "spark.executor.memory=512m", "--conf", "spark.executor.cores=1"),
            *(
                "--conf",
                f"spark.executor.extraJavaOptions={JAVA_OPTIONS}",
                "--conf",
                f"spark.local.dir={self.folder}",
            ),
            *(str(script), FLOW, "--file", str(self.flows_file)),
            *("--holder", holder, "--run-id", run_id or holder, "--report", str(report)),
            *(("--until-caught-up",) if run_for is None else ("--run-for", str(run_for))),
            *(("--take-over",) if take_over else ()),
        ]
        run = SparkRun(
            start(holder, command, self.folder / f"{holder}.log", self._environment(cluster)),
            holder,
            run_id or holder,
            report,
            is_short,
            cluster,
        )
        self.started.append(run)
        return run

    def _environment(self, cluster: StandaloneCluster | None) -> dict[str, str]:
        return {
            **_plain_environment(),
            **{name: value for name, value in os.environ.items() if name == "PYTHONPATH"},
            "AIRFLOW_CONN_KAFKA_SF": self.source,
            "AIRFLOW_CONN_KAFKA_NYC": self.target,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYSPARK_PYTHON": str(cluster.python) if cluster else sys.executable,
        }

    def stop(self) -> None:
        for run in self.started:
            run.process.kill_all()


class StandaloneCluster:
    """A master and two workers of one core each; their Python has Causeway's needs, but not Causeway."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._processes: list[Started] = []
        self.python = folder / "bare-python/bin/python"
        self.master = ""

    def start(self) -> StandaloneCluster:
        self._make_bare_python()
        port = _free_port()
        self.master = f"spark://127.0.0.1:{port}"
        self._start(
            "master", "master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"
        )
        wait_until(lambda: "Starting Spark master" in self._output(0), "Spark's master")
        for number in (1, 2):
            self._start(
                f"worker-{number}",
                "worker.Worker",
                *("--host", "127.0.0.1", "--cores", "1", "--memory", "700m", "--webui-port", "0"),
                *("--work-dir", str(self._folder / f"work-{number}"), self.master),
            )
        for number in (1, 2):
            wait_until(
                lambda n=number: "Successfully registered" in self._output(n),  # type: ignore[misc]
                "Spark's workers",
            )
        return self

    def members(self) -> list[Member]:
        return [member for process in self._processes for member in members(process.pid)]

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.kill_all()

    def _make_bare_python(self) -> None:
        """Path lines of a .pth in a .pth aren't followed: so the editable Causeway stays out."""
        subprocess.run(
            [sys.executable, "-m", "venv", "--without-pip", str(self._folder / "bare-python")], check=True
        )
        (site,) = (self._folder / "bare-python/lib").glob("python*/site-packages")
        (ours,) = (_BIN.parent / "lib").glob("python*/site-packages")
        (site / "needs.pth").write_text(f"{ours}\n")
        command = [str(self.python), "-c", "import causeway"]
        found = subprocess.run(command, capture_output=True, env=_plain_environment(), check=False)
        assert found.returncode != 0, "the executors' Python must not have Causeway by itself"

    def _start(self, name: str, kind: str, *arguments: str) -> None:
        command = [str(_BIN / "spark-class"), f"org.apache.spark.deploy.{kind}", *arguments]
        daemons = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": JAVA_OPTIONS}
        environment = _plain_environment() | daemons
        self._processes.append(start(name, command, self._folder / f"{name}.log", environment))

    def _output(self, number: int) -> str:
        return self._processes[number].output()


def _plain_environment() -> dict[str, str]:
    """Ours, but nothing that leads Python or Spark elsewhere."""
    ours = {name: value for name, value in os.environ.items() if name not in ("SPARK_HOME", "PYTHONPATH")}
    return {**ours, "PATH": f"{_BIN}:{os.environ['PATH']}", "SPARK_LOCAL_IP": "127.0.0.1"}


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    return port
