"""The copy task: the Spark provider's operator, made safe to hand secrets to.

Invariants
  a. The two Kafka connections are resolved while the task runs, and leave it in one way only: in the
     environment of the spark-submit process, as AIRFLOW_CONN_*. Never in arguments, Spark settings,
     rendered fields or XCom; each secret value is masked in the logs before anything else happens.
  b. That environment holds nothing of Airflow's own (database, signing keys) and no other connection.
  c. Killing the task kills the driver: spark-submit becomes the driver's JVM, and Spark's Python processes
     end with that. If the task itself is killed with -9, the kernel ends the JVM (elsewhere than on Linux
     the driver does: it watches CAUSEWAY_PARENT_PID).
  d. Bad input, a flow held by somebody else and a broken protocol fail at once; the rest may be retried.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowException, AirflowNotFoundException

import causeway
from causeway.airflow.connections import HandedOver, hand_over
from causeway.airflow.failures import failing_as_airflow_does, failure_of
from causeway.config.flows_file.load import load_flows
from causeway.config.values.environment import environment_variable
from causeway.config.values.units import parse_duration_seconds
from causeway.render.run_report import report_path

SPARK_CONNECTION = "spark_local"
LOCAL_SPARK = '{"conn_type": "spark", "host": "local[*]"}'

PARKED = 5
MEANINGS = {
    2: "an option, a name, flows.yaml or a connection is wrong",
    3: "a cluster can't be used as asked",
    4: "another run has the flow, or a fence stops it",
    PARKED: "partitions are parked",
    6: "the clusters contradict the protocol",
}
"""The exit codes of causeway.core.kernel.errors."""

SPARK_SETTINGS = {
    # Correctness doesn't need these three (the lanes fence each other); they keep repeated work away.
    "spark.speculation": "false",
    "spark.task.maxFailures": "1",
    "spark.dynamicAllocation.enabled": "false",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "WARN",
    "spark.redaction.regex": "(?i)sasl|ssl|jaas|password|secret|token",
    # A driver that mostly waits for Python: starts seconds earlier, in less memory.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
# PySpark's word on a pandas that we don't use, in the log of each run.
_QUIET = "ignore::FutureWarning:pyspark.testing.utils"
_OF_AIRFLOW = ("AIRFLOW__", "AIRFLOW_CONN_", "AIRFLOW_VAR_", "_AIRFLOW")


class CopyHook(SparkSubmitHook):  # type: ignore[misc]  # airflow is not typed for us
    """spark-submit with an environment of our making, in client mode."""

    def __init__(self, *, handed_over: HandedOver, **submit: Any) -> None:
        super().__init__(deploy_mode="client", **submit)
        self._handed_over = handed_over

    def _get_spark_binary_path(self) -> list[str]:
        found: list[str] = super()._get_spark_binary_path()
        return [*tied_to_this_process(), *found] if sys.platform == "linux" else found

    def submit(self, application: str = "", **popen: Any) -> str | None:
        # Not the provider's env_vars: on YARN and Kubernetes those become arguments.
        environment = {
            **driver_environment(self._connection["master"]),
            **self._handed_over.environment,
        }
        answer: str | None = super().submit(application, env=environment, **popen)
        return answer

    def _process_spark_submit_log(self, lines: Iterator[str]) -> None:
        # Airflow masks the task's log, but not the copy of it on the worker's own output (seen in 3.3.2).
        super()._process_spark_submit_log(self._handed_over.redact(line) for line in lines)

    @property
    def exit_code(self) -> int | None:
        return self._submit_sp.returncode if self._submit_sp else None

    @property
    def last_words(self) -> str:
        return next((line for line in reversed(self._last_submit_log_lines) if line.strip()), "")


class CopyOperator(SparkSubmitOperator):  # type: ignore[misc]  # airflow is not typed for us
    """Runs spark_jobs/copy_flow.py for one flow; returns the path of the run's report."""

    def __init__(self, *, flow: str, flows_file: Path, **operator: Any) -> None:
        super().__init__(
            conn_id=SPARK_CONNECTION, conf=dict(SPARK_SETTINGS), name=f"causeway {flow}", **operator
        )
        self.flow, self.flows_file = flow, str(flows_file)

    def execute(self, context: Any) -> str:
        task = context["ti"]
        report = report_path(self.flow, task.run_id, task.try_number)
        report.parent.mkdir(parents=True, exist_ok=True)
        arguments = [self.flow, "--file", self.flows_file, *mode_arguments(context["params"])]
        # A second try has the run id of the first, so it needs not wait for that one's silence.
        arguments += ["--run-id", f"{task.dag_id} {task.run_id}", "--report", str(report)]
        arguments += ["--holder", f"airflow {task.run_id} try {task.try_number}"]
        let_spark_run_here()
        hook = CopyHook(
            conn_id=self._conn_id,
            conf=self.conf,
            name=self.name,
            application_args=arguments,
            handed_over=handed_over(self.flow, self.flows_file),
        )
        self._hook = hook
        try:
            hook.submit(self.application)
        except AirflowException:
            if hook.exit_code != PARKED:
                raise failure(hook.exit_code, hook.last_words) from None
            self.log.warning(
                "partitions are parked, or lanes in doubt; the others went on, the report says which and why"
            )
        return str(report)


def handed_over(flow_name: str, flows_file: str) -> HandedOver:
    deployment = load_flows(flows_file)
    flow = deployment.flow(flow_name)
    with failing_as_airflow_does():
        return hand_over(deployment, (flow.source, flow.target))


def mode_arguments(params: Mapping[str, Any]) -> list[str]:
    """The form's answers as the driver's arguments; no time limit means: until caught up."""
    run_for = params.get("run_for")
    follow = run_for is not None and not params.get("until_caught_up")
    mode = ["--run-for", f"{parse_duration_seconds(run_for):g}"] if follow else ["--until-caught-up"]
    return [*mode, *(["--take-over"] if params.get("take_over") else [])]


def failure(exit_code: int | None, last_words: str) -> AirflowException:
    """How the task ends: at once, or with the retries that flows.yaml gives it."""
    if exit_code is not None and exit_code < 0:
        why = f"killed by signal {-exit_code}"
    else:
        why = f"exit code {exit_code}: {MEANINGS.get(exit_code or 0, 'the driver broke down')}"
    return failure_of(exit_code)(f"copy ended, {why}; {last_words}")


def driver_environment(master: str) -> dict[str, str]:
    """The task's environment without Airflow's own settings and secrets."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(_OF_AIRFLOW)}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', os.defpath)}"
    here = {"SPARK_LOCAL_IP": "127.0.0.1"} if master.startswith("local") else {}
    ours = {"PATH": path, "CAUSEWAY_PARENT_PID": str(os.getpid())}
    return {"PYSPARK_PYTHON": sys.executable, "PYTHONWARNINGS": _QUIET} | here | kept | ours


def let_spark_run_here() -> None:
    """An unknown Spark connection means this machine; the provider's answer would be YARN."""
    try:
        BaseHook.get_connection(SPARK_CONNECTION)
    except AirflowNotFoundException:
        os.environ[environment_variable(SPARK_CONNECTION)] = LOCAL_SPARK


def tied_to_this_process() -> list[str]:
    """Put before a command: the kernel ends it when this process is gone, even by kill -9."""
    return [sys.executable, "-I", "-S", str(files(causeway) / "tied_exec.py"), str(os.getpid())]
