"""The Python tasks of a mirror's DAG: thin, with everything that costs time imported when they run.

`report` succeeds and updates the flow's asset also when partitions are parked, for the others went on;
`parked` then fails, without retries, so that the run is red: nobody reads the log of a green one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import Asset
from airflow.sdk.exceptions import AirflowFailException

from causeway.airflow.connections import airflow_endpoint
from causeway.airflow.failures import failing_as_airflow_does
from causeway.config.flows_file.load import load_flows
from causeway.core.kernel.plurals import counted
from causeway.render.run_report import left_out_lines, read_report, report_lines, summary

if TYPE_CHECKING:
    from causeway.usecases.copy.prepare_topics import TopicOutcome

log = logging.getLogger("causeway")


def prepare_topics(flow: str, flows_file: str) -> None:
    """Makes what is missing on the target and says what the copy will find, before a Spark is started.

    :raises AirflowException: a cluster can't be used, the flow is fenced, a connection is wrong.
    """
    from causeway.usecases.copy import prepare_topics as copy_prepare_topics
    from causeway.usecases.run_lock import ownership
    from causeway.usecases.session import both_clusters

    deployment = load_flows(flows_file)
    wanted = deployment.flow(flow)
    with failing_as_airflow_does():
        source, target = (airflow_endpoint(deployment, alias) for alias in (wanted.source, wanted.target))
        with both_clusters.open_clusters(source, target) as both:
            both_clusters.refuse_one_cluster(wanted, both)
            state = both.network.run(lambda: both.flow_state(wanted))
            both_clusters.refuse_other_clusters(wanted, both, state)
            ownership.refuse_fenced(flow, state)
        outcome = copy_prepare_topics.prepare_topics(
            wanted, *both_clusters.admins(source, target), frozenset(state.pairs)
        )
    for line in topic_lines(outcome):
        log.info(line)
    for refused in outcome.refused:
        log.warning("left alone: %s: %s; %s", refused.topic, refused.reason, refused.remedy)


def topic_lines(outcome: TopicOutcome) -> Iterator[str]:
    partitions = sum(topic.partitions for topic in outcome.mirrored)
    yield f"{counted(len(outcome.mirrored), 'topic')} to mirror, {counted(partitions, 'partition')}"
    for new in outcome.created:
        yield f"created {new.name} with {counted(new.partitions, 'partition')}"
    for growth in outcome.grown:
        yield f"{growth.name} grew to {growth.to_partitions} partitions"
    yield from outcome.notes


def publish_report(path: str, *, outlet_events: Any) -> dict[str, Any]:
    """Shows the run's report in the log; XCom and the flow's asset get its summary."""
    with failing_as_airflow_does():
        report = read_report(Path(path))
    for line in report_lines(report):
        log.info(line)
    short = summary(report, Path(path))
    asset = Asset(f"causeway_{short['flow']}")
    outlet_events[asset].extra = {name: fact for name, fact in short.items() if name != "left_out"}
    return short


def fail_if_parked(short: Mapping[str, Any]) -> None:
    """:raises AirflowFailException: something was left out; a line of each says why and what to do."""
    parked, refused = short["parked_count"], short["refused_topics_count"]
    if not parked and not refused:
        log.info("nothing was left out")
        return
    for line in left_out_lines(read_report(Path(short["report"]))):
        log.warning(line)
    first = "; ".join(short["left_out"][:3])
    counts = f"{counted(parked, 'partition')} parked, {counted(refused, 'topic')} left alone"
    raise AirflowFailException(f"{short['flow']}: {counts}: {first}")
