"""The Spark application of a big flow's groups: one action, a task for each share of the offset map.

spark-submit spark_jobs/sync_groups.py FLOW --file flows.yaml --report PATH
"""

from __future__ import annotations

import argparse
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pyspark import SparkContext

from causeway import interruption
from causeway.config.flows_file.deployment import Deployment
from causeway.config.flows_file.load import load_flows
from causeway.core.groups.report import GroupsReport, report_lines
from causeway.core.groups.task import GroupTask, GroupTaskResult
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import CausewayError
from causeway.spark.copy_job import endpoints_from, say_aloud, warn_of_clear_secrets, watch_parent
from causeway.spark.executor import GroupPayload, carry_groups
from causeway.spark.session import spark_context
from causeway.usecases.groups.sync import CarryGroups, sync_groups
from causeway.usecases.report_files import write_report_file
from causeway.usecases.run_lock.ownership import Say

_SAY_SECONDS = 2.0


def main(arguments: Sequence[str]) -> int:
    """Exit codes as in causeway.core.kernel.errors."""
    parser = argparse.ArgumentParser(prog="sync_groups", description="Groups of one flow, with Spark.")
    parser.add_argument("flow")
    parser.add_argument("--file", type=Path, required=True, help="flows.yaml")
    parser.add_argument("--report", type=Path, help="where to write the report")
    options = parser.parse_args(arguments)
    watch_parent(os.environ)
    try:
        deployment = load_flows(options.file)
        deployment.flow(options.flow)
        endpoints = endpoints_from(deployment, options.flow, os.environ)
        report = run(deployment, options.flow, endpoints, say=say_aloud, writes=True)
        if options.report is not None:
            write_report_file(report.as_dict(), options.report)
    except KeyboardInterrupt:
        say_aloud("causeway: interrupted; what was committed stays, the next sync does the rest")
        return interruption.EXIT_CODE
    except CausewayError as error:
        say_aloud(f"causeway: error: {error}")
        return error.exit_code
    for line in report_lines(report):
        say_aloud(line)
    return 0


def run(
    deployment: Deployment,
    flow_name: str,
    endpoints: tuple[ClusterEndpoint, ClusterEndpoint],
    *,
    say: Say,
    writes: bool,
) -> GroupsReport:
    source, target = endpoints
    with interruption.listening(), spark_context(f"causeway groups {flow_name}") as context:
        warn_of_clear_secrets(context, endpoints, flow_name, say)
        carry = groups_carrier(context, source, target, say)
        return sync_groups(
            deployment.flow(flow_name),
            deployment.groups[flow_name],
            source,
            target,
            say,
            writes=writes,
            carry=carry,
        )


def groups_carrier(
    context: SparkContext, source: ClusterEndpoint, target: ClusterEndpoint, say: Say
) -> CarryGroups:
    def carry(tasks: Sequence[GroupTask]) -> list[GroupTaskResult]:
        payloads = [GroupPayload(task, source, target) for task in tasks]
        if not payloads:
            return []
        with _progress(context, tasks, say):
            answers: list[GroupTaskResult | CausewayError]
            with interruption.at_once():
                answers = context.parallelize(payloads, len(payloads)).mapPartitions(carry_groups).collect()
        for answer in answers:
            if isinstance(answer, CausewayError):
                raise answer
        return [answer for answer in answers if isinstance(answer, GroupTaskResult)]

    return carry


@contextmanager
def _progress(context: SparkContext, tasks: Sequence[GroupTask], say: Say) -> Iterator[None]:
    """A line now and then, because one action is all that the driver waits for."""
    flow, shares, over = tasks[0].flow, len(tasks), threading.Event()

    def tell() -> None:
        tracker = context.statusTracker()
        while not over.wait(_SAY_SECONDS):
            stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
            done = sum(stage.numCompletedTasks for stage in stages if stage is not None)
            say(f"{flow}: {done} of {shares} shares of {len(tasks[0].groups):,} groups")

    telling = threading.Thread(target=tell, daemon=True)
    telling.start()
    try:
        yield
    finally:
        over.set()
        telling.join()
