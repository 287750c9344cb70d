"""The driver of a run: what `spark-submit` starts, and what `causeway run` calls.

It plans, carries lanes to the executors and brings their rows back; progress goes to standard output,
one line each. Endpoints come from the environment (AIRFLOW_CONN_*), never from an argument.
"""

from __future__ import annotations

import argparse
import os
import signal
import socket
import sys
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path

from pyspark import SparkContext

from causeway import interruption
from causeway.config.connection.connections import resolve_endpoint
from causeway.config.flows_file.deployment import Deployment
from causeway.config.flows_file.load import load_flows
from causeway.core.copy.lane_task import LaneResult, LaneTask
from causeway.core.copy.progress import lanes_in_doubt
from causeway.core.copy.report import RunReport
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import BadInput, CausewayError
from causeway.core.kernel.plurals import counted, outcome_in_words, some
from causeway.spark.jvm import SUBMITTED
from causeway.spark.session import carrier, spark_context, travels_in_clear
from causeway.usecases.copy.blocking_driver import Carry, copy_flow
from causeway.usecases.copy.run import RunOptions
from causeway.usecases.report_files import write_report_file
from causeway.usecases.run_lock.ownership import RunOwner, Say

PARKED_EXIT_CODE = 5
CAUGHT_UP = "end once all is copied that the source holds when the run begins (the default)"
_PARENT_VARIABLE = "CAUSEWAY_PARENT_PID"
_PARENT_CHECK_SECONDS = 0.5


def main(arguments: Sequence[str]) -> int:
    """Exit codes as in causeway.core.kernel.errors."""
    options = _parse(arguments)
    watch_parent(os.environ)
    try:
        deployment = load_flows(options.file)
        deployment.flow(options.flow)
        report = run(
            deployment,
            options.flow,
            endpoints_from(deployment, options.flow, os.environ),
            RunOptions(
                holder=RunOwner(name=options.holder, run_id=options.run_id or options.holder),
                run_for_seconds=None if options.until_caught_up else options.run_for,
                take_over=options.take_over,
            ),
            say=say_aloud,
            report_path=options.report,
        )
    except KeyboardInterrupt:
        say_aloud("causeway: interrupted; what was committed stays, the next run goes on from there")
        return interruption.EXIT_CODE
    except CausewayError as error:
        say_aloud(f"causeway: error: {error}")
        return error.exit_code
    say_aloud(last_line(report))
    return PARKED_EXIT_CODE if report.leaves_something_out else 0


def run(
    deployment: Deployment,
    flow_name: str,
    endpoints: tuple[ClusterEndpoint, ClusterEndpoint],
    options: RunOptions,
    *,
    say: Say,
    report_path: Path | None = None,
) -> RunReport:
    """One run of a flow through Spark; the report is on disk before this returns or raises."""
    source, target = endpoints

    def keep(report: RunReport) -> None:
        if report_path is not None:
            write_report(report, report_path)

    if SUBMITTED not in os.environ:
        say(f"{flow_name}: starting Spark (some seconds)")
    with interruption.listening(), spark_context(f"causeway {flow_name}") as context:
        warn_of_clear_secrets(context, endpoints, flow_name, say)
        return copy_flow(
            deployment.flow(flow_name),
            source,
            target,
            _unless_interrupted(carrier(context, source, target)),
            options,
            say,
            on_report=keep,
        )


def warn_of_clear_secrets(
    context: SparkContext, endpoints: Sequence[ClusterEndpoint], flow_name: str, say: Say
) -> None:
    if any(e.secrets for e in endpoints) and travels_in_clear(dict(context.getConf().getAll())):
        say(
            f"{flow_name}: WARNING: passwords travel to Spark's executors in clear; "
            "set spark.authenticate and spark.network.crypto.enabled to true"
        )


def endpoints_from(
    deployment: Deployment, flow_name: str, environ: Mapping[str, str]
) -> tuple[ClusterEndpoint, ClusterEndpoint]:
    flow = deployment.flow(flow_name)
    source, target = (
        resolve_endpoint(
            alias,
            deployment.clusters[alias].connection_id,
            environ,
            lambda _: None,
            insecure=deployment.clusters[alias].insecure,
        )
        for alias in (flow.source, flow.target)
    )
    return source, target


def new_run_id() -> str:
    return str(uuid.uuid4())


def default_holder(kind: str) -> str:
    return f"{kind} on {socket.gethostname()} pid {os.getpid()}"


def write_report(report: RunReport, path: Path) -> None:
    """Whole or not at all."""
    write_report_file(report.as_dict(), path)


def last_line(report: RunReport) -> str:
    refused = f", {counted(len(report.refused_topics), 'topic')} left alone" if report.refused_topics else ""
    nothing = "nothing new, nothing written" if report.records == 0 else counted(report.records, "record")
    outcome = outcome_in_words(report.outcome, len(report.parked))
    if not report.partitions and not refused:
        nothing = f"nothing to mirror ({'; '.join(report.notes) or 'no partition'}), nothing written"
    doubts = lanes_in_doubt(len(report.in_doubt))
    return (
        f"{report.flow}: {outcome}: {nothing}, lag {report.lag:,}{refused}{doubts}, {report.seconds:.1f} s"
        f"{what_it_means(report)}"
    )


def what_it_means(report: RunReport) -> str:
    """After the numbers of a run that wasn't given a time, or not all topics."""
    only = "" if report.topics is None else f"; only {some(report.topics)}: the other topics were left alone"
    if report.outcome != "caught up" or not report.ends_seen_at:
        return only
    return f"; caught up with the source as it was at {report.ends_seen_at}, when the run began{only}"


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="copy_flow", description="Copy one flow with Spark.")
    parser.add_argument("flow")
    parser.add_argument("--file", type=Path, required=True, help="flows.yaml")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--until-caught-up", action="store_true", help=CAUGHT_UP)
    mode.add_argument("--run-for", type=float, metavar="SECONDS", help="follow the source for so long")
    parser.add_argument("--take-over", action="store_true", help="even if another run holds the flow")
    parser.add_argument("--holder", default=default_holder("spark"), help="who runs, for people")
    parser.add_argument("--run-id", default=new_run_id(), help="the same for a repeated try of one run")
    parser.add_argument("--report", type=Path, help="where to write the run's report")
    options = parser.parse_args(arguments)
    if options.run_for is not None and options.run_for <= 0:
        parser.error(str(BadInput("--run-for", value=options.run_for, rule="must be more than 0 seconds")))
    return options


def watch_parent(environ: Mapping[str, str]) -> None:
    """A driver whose Airflow task was killed must not go on beside the task's next try.

    Under `spark-submit` the parent is Spark's JVM: without it a run that follows a quiet source would
    wait for work that it can't carry, and hold the flow.
    """
    if _PARENT_VARIABLE not in environ and SUBMITTED not in environ:
        return
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_CHECK_SECONDS)
        os.kill(os.getpid(), signal.SIGKILL)

    threading.Thread(target=watch, name="watch-parent", daemon=True).start()


def _unless_interrupted(carry: Carry) -> Carry:
    """A round that Ctrl-C broke off isn't one that Spark lost."""

    def carry_on(tasks: Sequence[LaneTask]) -> list[LaneResult]:
        results = carry(tasks)
        interruption.check()
        return results

    return carry_on


def say_aloud(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
