"""The groups task: checkpoints and group offsets in the task itself, through Spark where a flow is big.

The same invariants as the copy task's hold for the driver that it starts (`copy.py`).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk.exceptions import AirflowException, AirflowSkipException

from causeway.airflow.connections import airflow_endpoint
from causeway.airflow.failures import failing_as_airflow_does
from causeway.airflow.tasks.copy import (
    SPARK_CONNECTION,
    SPARK_SETTINGS,
    CopyHook,
    failure,
    handed_over,
    let_spark_run_here,
)
from causeway.config.flows_file.load import load_flows
from causeway.core.kernel.errors import FlowFenced
from causeway.render.run_report import read_report, report_path

log = logging.getLogger("causeway")


class GroupsOperator(SparkSubmitOperator):  # type: ignore[misc]  # airflow is not typed for us
    """Does for a flow's groups what flows.yaml says; returns a summary, and the path of the report.

    A flow that is fenced is skipped: its groups may have moved to the target, and a red task each
    minute would teach people not to look.
    """

    def __init__(self, *, flow: str, flows_file: Path, **operator: Any) -> None:
        super().__init__(
            conn_id=SPARK_CONNECTION, conf=dict(SPARK_SETTINGS), name=f"causeway groups {flow}", **operator
        )
        self.flow, self.flows_file = flow, str(flows_file)

    def execute(self, context: Any) -> dict[str, Any]:
        from causeway.usecases.groups import sync

        task = context["ti"]
        path = report_path(self.flow, f"groups_{task.run_id}", task.try_number)
        deployment = load_flows(self.flows_file)
        flow, groups = deployment.flow(self.flow), deployment.groups[self.flow]
        with failing_as_airflow_does():
            source, target = (airflow_endpoint(deployment, alias) for alias in (flow.source, flow.target))
            if sync.weigh_groups(flow, groups, source, target) > sync.MOST_IN_ONE_TASK:
                self._through_spark(path)
                return _short(read_report(path), path)
            return _here(path, lambda: sync.sync_groups(flow, groups, source, target, log.info, writes=True))

    def _through_spark(self, path: Path) -> None:
        let_spark_run_here()
        hook = CopyHook(
            conn_id=self._conn_id,
            conf=self.conf,
            name=self.name,
            application_args=[self.flow, "--file", self.flows_file, "--report", str(path)],
            handed_over=handed_over(self.flow, self.flows_file),
        )
        self._hook = hook
        try:
            hook.submit(self.application)
        except AirflowException:
            if hook.exit_code == FlowFenced.exit_code:
                raise AirflowSkipException(hook.last_words) from None
            raise failure(hook.exit_code, hook.last_words) from None


def _here(path: Path, work: Any) -> dict[str, Any]:
    from causeway.core.groups.report import report_lines
    from causeway.usecases.report_files import write_report_file

    try:
        report = work()
    except FlowFenced as fenced:
        raise AirflowSkipException(str(fenced)) from None
    write_report_file(report.as_dict(), path)
    for line in report_lines(report):
        log.info(line)
    return _short(report.as_dict(with_places=False), path)


def _short(report: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """What XCom keeps."""
    left_out = ("groups", "excluded", "partitions")
    return {**{name: fact for name, fact in report.items() if name not in left_out}, "report": str(path)}
