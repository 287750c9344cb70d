"""The demo's second act: a consumer is at work, `sf` is killed, its group goes on on `nyc`.

At the end all is as it was: `sf` runs, the failover is rolled back, the fence lifted. Whatever ends this act
early, that is done as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import Any

import psutil
from confluent_kafka import Consumer, KafkaError, Message

from causeway.airflow.rest import AirflowRest
from causeway.config.flows_file.load import load_flows
from causeway.core.kernel.errors import BadInput
from causeway.core.model.flow import Flow
from causeway.core.model.group_filter import FlowGroups
from causeway.demo.airflow_home import AirflowHome
from causeway.demo.airflow_processes import marked_processes
from causeway.demo.follow_run import watch_run
from causeway.demo.steps import (
    DAG_ID,
    FLOW,
    PROJECT,
    Clusters,
    airflow_directory,
    clusters_up,
    step,
)
from causeway.lab.cluster import LabCluster
from causeway.usecases.failover.rollback import roll_back
from causeway.usecases.groups.sync import sync_groups

FAILOVER_ID = f"failover__{FLOW}"
TOPIC = "orders"
_APPROVE = "approve"
_POLL_SECONDS = 30.0
Read = dict[int, list[bytes]]
"""Values by partition, in the order in which they were read."""
Say = Callable[[str], None]


def show_failover() -> bool:
    """:returns: whether each record was read once, on one side or the other.
    :raises BadInput: there is no demo to begin with.
    """
    home = _running_home()
    rest = home.rest()
    deployment = load_flows(PROJECT / "include" / "flows.yaml")
    flow, group = deployment.flow(FLOW), f"demo-shop-{int(time.time())}"
    with step("a consumer at work") as say:
        clusters = clusters_up(flow, say)
        first = read_some(clusters.source, group, TOPIC, share=0.5)
        say(f"group {group} has read {_count_read(first):,} records of {TOPIC} on {flow.source}, and commits")
        _remember_groups(flow, clusters, group, say)
    with _put_back(flow, clusters, rest):
        with step(f"{flow.source} dies: kill -9") as say:
            clusters.source.kill()
            say(f"{flow.source} is gone; whether it comes back nobody knows")
        with step(f"failover: DAG {FAILOVER_ID}, to where the group was last known to stand") as say:
            _fail_over(home, rest, group, say)
        with step(f"the consumer goes on on {flow.target}") as say:
            mirrored = flow.naming.target_topic(TOPIC)
            second = read_some(clusters.target, group, mirrored, share=1.0)
            say(f"group {group} reads {_count_read(second):,} records of {mirrored} there")
            whole = read_some(clusters.target, f"{group}-all", mirrored, share=1.0)
            exact = all(first.get(p, []) + second.get(p, []) == values for p, values in whole.items())
            what = (
                "each record was read once, in order" if exact else "SOMETHING WAS READ TWICE, OR NOT AT ALL"
            )
            say(f"{_count_read(first):,} + {_count_read(second):,} of {_count_read(whole):,}: {what}")
    return exact


def read_some(cluster: LabCluster, group: str, topic: str, *, share: float) -> Read:
    """From where the group stands; of each partition that share of what lies before it. Then it commits."""
    settings = {
        **cluster.endpoint().settings,
        "group.id": group,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
    }
    read: dict[int, list[Message]] = {}
    with closing(Consumer(settings)) as consumer:
        consumer.subscribe([topic])
        at_end: set[int] = set()
        while not at_end or len(at_end) < len(consumer.assignment()):
            message = consumer.poll(_POLL_SECONDS)
            assert message is not None, f"no answer from {cluster.name}"
            if message.error() is None:
                read.setdefault(message.partition(), []).append(message)
            elif message.error().code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 (its public name)
                at_end.add(message.partition())
        kept = {p: messages[: max(1, int(len(messages) * share))] for p, messages in read.items()}
        for messages in kept.values():
            consumer.commit(messages[-1], asynchronous=False)
    return {p: [message.value() for message in messages] for p, messages in kept.items()}


def _remember_groups(flow: Flow, clusters: Clusters, group: str, say: Say) -> None:
    """As the DAG does after each copy."""
    sync_groups(
        flow,
        FlowGroups(include=(group,)),
        clusters.source.endpoint(),
        clusters.target.endpoint(),
        say,
        writes=True,
    )
    say(f"its place is in {flow.checkpoints_topic} of {flow.target} now")


def _fail_over(home: AirflowHome, rest: AirflowRest, group: str, say: Say) -> None:
    run_id = f"demo_{datetime.now(UTC):%Y%m%dT%H%M%S}"
    rest.unpause(FAILOVER_ID)
    rest.trigger(FAILOVER_ID, run_id, {"groups": [group]})
    say(f"triggered {run_id}: an empty form but for the group")

    def answer(state: str) -> None:
        if state == "awaiting_input":
            say("the sheet is shown for approval on Airflow's page; here the demo says yes")
            rest.answer(FAILOVER_ID, run_id, _APPROVE, "Approve")

    watch_run(home, rest, FAILOVER_ID, run_id, say, on_state=lambda _task, state: answer(state))


@contextmanager
def _put_back(flow: Flow, clusters: Clusters, rest: AirflowRest) -> Iterator[None]:
    was_paused = rest.is_paused(DAG_ID)
    try:
        yield
    finally:
        with step("as it was before") as say:
            clusters.source.start()
            say(f"{flow.source} runs again")
            _roll_back(flow, clusters, say)
            rest.set_paused(DAG_ID, is_paused=was_paused)


def _roll_back(flow: Flow, clusters: Clusters, say: Say) -> None:
    run = newest_failover(flow, clusters.target)
    if run is None:
        return
    done = roll_back(
        flow, clusters.target.endpoint(), run, by="the demo", consent=lambda _run, _left: None, say=say
    )
    say(f"failover {run} is rolled back, its fence: {done.fence}")


def newest_failover(flow: Flow, target: LabCluster) -> str | None:
    from causeway.usecases.journal.store import read_journal
    from causeway.usecases.session.source_may_be_gone import open_target_session

    with open_target_session(target.endpoint()) as sides:
        found = sides.network.run(lambda: read_journal(sides, flow.name)).newest(flow.name)
    return None if found is None else found.run


def _running_home() -> AirflowHome:
    for process in marked_processes(airflow_directory()):
        try:
            port = process.environ().get("AIRFLOW__API__PORT")
        except psutil.Error:
            continue
        if port:
            return AirflowHome(
                directory=airflow_directory().resolve(), project=PROJECT.resolve(), port=int(port)
            )
    raise BadInput("demo", rule="doesn't run, so there is nothing to fail over", remedy="`make demo` first")


def _count_read(read: dict[int, Any]) -> int:
    return sum(map(len, read.values()))
