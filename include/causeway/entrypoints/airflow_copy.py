"""The copy task: the Spark provider's operator, made safe to hand secrets to.

Invariants
  a. The two Kafka connections are resolved while the task runs, and leave it in one way only: in the
     environment of the spark-submit process, as AIRFLOW_CONN_*. Never in arguments, Spark settings,
     rendered fields or XCom; each secret value is masked in the logs before anything else happens.
  b. That environment holds nothing of Airflow's own (database, signing keys) and no other connection.
  c. Killing the task kills the driver: spark-submit becomes the driver's JVM, in the task's process group.
     If the task itself is killed with -9, the driver sees that CAUSEWAY_PARENT_PID is gone, and ends.
  d. Bad input, a flow held by somebody else and a broken protocol fail at once; the rest may be retried.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import BaseHook
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowNotFoundException
from airflow.sdk.log import mask_secret

from causeway.config.units import parse_duration_seconds
from causeway.entrypoints.run_report import report_path

SPARK_CONNECTION = "spark_local"
LOCAL_MASTER = "local[*]"

PARKED = 5
MEANINGS = {
    2: "what a person wrote is wrong",
    3: "a cluster can't be used as asked",
    4: "somebody else has the flow",
    PARKED: "partitions are parked",
    6: "the clusters contradict the protocol",
}
"""The exit codes of causeway.core.errors."""
_NOT_WORTH_A_RETRY = frozenset({2, 4, 6})

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
_SECRET_KEY = re.compile(r"password|secret|token|jaas|key\.pem|keystore|private", re.IGNORECASE)
_SHORTEST_SECRET_LINE = 8
_OF_AIRFLOW = ("AIRFLOW__", "AIRFLOW_CONN_", "AIRFLOW_VAR_", "_AIRFLOW")


class CopyHook(SparkSubmitHook):  # type: ignore[misc]  # airflow is not typed for us
    """spark-submit with an environment of our making, in client mode."""

    def __init__(self, *, secrets_environment: Mapping[str, str], **submit: Any) -> None:
        super().__init__(deploy_mode="client", **submit)
        self._secrets_environment = dict(secrets_environment)

    def _resolve_connection(self) -> dict[str, Any]:
        """An unknown connection means this machine; the provider's answer would be YARN."""
        resolved: dict[str, Any] = super()._resolve_connection()
        try:
            self.get_connection(self._conn_id)
        except AirflowNotFoundException:
            resolved["master"] = LOCAL_MASTER
        return resolved

    def submit(self, application: str = "", **popen: Any) -> str | None:
        # Not the provider's env_vars: on YARN and Kubernetes those become arguments.
        environment = driver_environment(self._connection["master"]) | self._secrets_environment
        answer: str | None = super().submit(application, env=environment, **popen)
        return answer

    @property
    def exit_code(self) -> int | None:
        return self._submit_sp.returncode if self._submit_sp else None

    @property
    def last_words(self) -> str:
        return next((line for line in reversed(self._last_submit_log_lines) if line.strip()), "")


class CopyOperator(SparkSubmitOperator):  # type: ignore[misc]  # airflow is not typed for us
    """Runs spark_jobs/copy_flow.py for one flow; returns the path of the run's report."""

    def __init__(self, *, flow: str, flows_file: Path, connections: Sequence[str], **operator: Any) -> None:
        super().__init__(conn_id=SPARK_CONNECTION, conf=dict(SPARK_SETTINGS), name=f"causeway {flow}", **operator)
        self.flow, self.flows_file, self.connections = flow, str(flows_file), tuple(connections)

    def execute(self, context: Any) -> str:
        task = context["ti"]
        report = report_path(self.flow, task.run_id, task.try_number)
        report.parent.mkdir(parents=True, exist_ok=True)
        arguments = [self.flow, "--file", self.flows_file, *mode_arguments(context["params"])]
        arguments += ["--holder", f"airflow {task.run_id} try {task.try_number}", "--report", str(report)]
        hook = CopyHook(
            conn_id=self._conn_id,
            conf=self.conf,
            name=self.name,
            application_args=arguments,
            secrets_environment=kafka_environment(self.connections),
        )
        self._hook = hook
        try:
            hook.submit(self.application)
        except AirflowException:
            if hook.exit_code != PARKED:
                raise failure(hook.exit_code, hook.last_words) from None
            self.log.warning("partitions are parked; the others went on, the report says which and why")
        return str(report)


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
    final = exit_code in _NOT_WORTH_A_RETRY
    return (AirflowFailException if final else AirflowException)(f"copy ended, {why}; {last_words}")


def driver_environment(master: str) -> dict[str, str]:
    """The task's environment without Airflow's own settings and secrets."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(_OF_AIRFLOW)}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', os.defpath)}"
    here = {"SPARK_LOCAL_IP": "127.0.0.1"} if master.startswith("local") else {}
    ours = {"PATH": path, "CAUSEWAY_PARENT_PID": str(os.getpid())}
    return {"PYSPARK_PYTHON": sys.executable} | here | kept | ours


def kafka_environment(connection_ids: Sequence[str]) -> dict[str, str]:
    """The connections as the driver reads them, with their secrets masked in this task's logs from here on.

    :raises AirflowFailException: there is no such connection.
    """
    environment = {}
    for connection_id in connection_ids:
        try:
            connection = BaseHook.get_connection(connection_id)
        except AirflowNotFoundException:
            variable = f"AIRFLOW_CONN_{connection_id.upper()}"
            raise AirflowFailException(
                f"connection = {connection_id}: not known to Airflow; "
                f"add it under Admin > Connections (type Kafka), or set {variable}"
            ) from None
        for secret in secret_values(connection.password, connection.extra_dejson):
            mask_secret(secret)
        environment[f"AIRFLOW_CONN_{connection_id.upper()}"] = connection.as_json()
    return environment


def secret_values(password: str | None, extra: Mapping[str, Any]) -> list[str]:
    """What must not show: of a key in PEM also each of its lines, for logs are written in lines."""
    whole = [password] if password else []
    whole += [str(value) for key, value in extra.items() if value and _SECRET_KEY.search(key)]
    lines = [line for value in whole for line in value.splitlines() if len(line) >= _SHORTEST_SECRET_LINE]
    return list(dict.fromkeys([*whole, *lines]))
