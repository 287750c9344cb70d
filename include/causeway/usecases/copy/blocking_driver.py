"""Drives a run in this thread, by the wall clock: for Spark's driver, and for a failover's last records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from causeway import interruption
from causeway.brokers.transport.connection import Network
from causeway.core.copy.lane_task import LaneResult, LaneTask
from causeway.core.copy.ports import LaneFenced, OutcomeUnknown, Unreachable
from causeway.core.copy.report import RunOutcome, RunReport
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import CausewayError, ClusterUnreachable
from causeway.core.model.flow import Flow
from causeway.usecases.copy.administration import AdminClients
from causeway.usecases.copy.run import FlowRun, RunOptions
from causeway.usecases.copy.run_steps import Administer, CopyLanes, End, Pause
from causeway.usecases.run_lock.keepalive import Keepalive
from causeway.usecases.run_lock.ownership import Say
from causeway.usecases.session.both_clusters import open_clusters

Carry = Callable[[Sequence[LaneTask]], list[LaneResult]]
"""Runs each task somewhere and brings all results back; raises only if it can't run any."""

FOLLOWING_TRANSACTION_SECONDS = 0.5


def copy_flow(
    flow: Flow,
    source: ClusterEndpoint,
    target: ClusterEndpoint,
    carry: Carry,
    options: RunOptions,
    say: Say,
    *,
    on_report: Callable[[RunReport], None] = lambda _: None,
) -> RunReport:
    """:raises CausewayError: nothing could be done, or it isn't this run's turn any more.

    `on_report` gets the report in any case once the run has begun, also before an error.
    """
    if options.run_for_seconds is not None:
        seconds = min(flow.limits.transaction_seconds, FOLLOWING_TRANSACTION_SECONDS)
        flow = replace(flow, limits=replace(flow.limits, transaction_seconds=seconds))
    with open_clusters(source, target) as clusters:
        network = clusters.network
        run = FlowRun(flow, clusters, AdminClients(flow, source, target), options, say)
        _begin_run(flow.name, run, network)
        with Keepalive(target, flow.name, run.generation) as signs:
            try:
                run.report.outcome = _go_on_until_the_end(run, network, carry, options.is_interrupted)
            except (CausewayError, KeyboardInterrupt) as end:
                run.broke_off(end)
                raise
            finally:
                signs.stop()
                with interruption.whole():
                    try:
                        network.run(run.finish)
                    finally:
                        on_report(run.report)
    return run.report


def _begin_run(flow: str, run: FlowRun, network: Network) -> None:
    try:
        network.run(run.look)
        run.create_internal_topics()
        network.run(run.begin)
    except (Unreachable, OutcomeUnknown, LaneFenced) as trouble:
        raise ClusterUnreachable(
            f"flow {flow}", rule=f"can't begin: {trouble}", remedy="run it again"
        ) from trouble
    except KeyboardInterrupt:
        network.run(run.leave_turn)
        raise


def _go_on_until_the_end(
    run: FlowRun, network: Network, carry: Carry, is_interrupted: Callable[[], bool]
) -> RunOutcome:
    while True:
        if is_interrupted():
            raise KeyboardInterrupt
        match _play_round(run, network, carry):
            case End(outcome):
                return outcome
            case Pause(seconds):
                network.run(lambda: network.sleep(seconds))


def _play_round(run: FlowRun, network: Network, carry: Carry) -> Pause | End:
    while True:
        match network.run(run.next_step):
            case Administer(work):
                work()
            case CopyLanes(tasks):
                run.took(carry(tasks))
            case end:
                return end
