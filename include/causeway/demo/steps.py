"""The demo's steps, in the order in which they are shown."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from causeway.airflow.rest import AirflowRest
from causeway.brokers.admin.record_reader import RecordReader
from causeway.brokers.admin.topics import ClusterAdmin
from causeway.config.flows_file.deployment import Deployment
from causeway.config.flows_file.load import load_flows
from causeway.config.values.environment import environment_variable
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.identity import SourceOffset, TopicPartition
from causeway.core.model.flow import Flow
from causeway.demo.airflow_home import ADMIN, AirflowHome, prepare_home
from causeway.demo.airflow_processes import AirflowDied, marked_processes, start_airflow, stop_airflow
from causeway.demo.follow_run import watch_run
from causeway.lab import lab
from causeway.lab.cluster import LabCluster
from causeway.lab.live import LiveProducer
from causeway.lab.places import project_root
from causeway.lab.story import tell_story
from causeway.render.tables import table
from causeway.usecases.verify.cleaners import with_cleaners
from causeway.usecases.verify.mapped_ranges import with_current_ranges
from causeway.usecases.verify.partition_pair import PartitionPair
from causeway.usecases.verify.partitions import verify_flow

Say = Callable[[str], None]

PROJECT = Path(__file__).resolve().parents[3]
FLOW = "sf_to_nyc"
DAG_ID = f"mirror__{FLOW}"
LIVE_TOPIC = "payments-live"
"""The flow's `payments-.*` matches it: a topic that appears while the mirror is at work."""
LIVE_RECORDS_PER_SECOND = 500
_PARSE_SECONDS = 120
_RUN_COLUMNS = ("RUN", "OUTCOME", "RECORDS", "BYTES", "VERBATIM BATCHES", "REPACKED", "LAG")


@dataclass(frozen=True, slots=True)
class Clusters:
    source: LabCluster
    target: LabCluster

    def connections(self, deployment: Deployment, flow: Flow) -> dict[str, str]:
        """As the environment of Airflow: with a secrets backend or its page they would look the same."""
        return {
            environment_variable(deployment.clusters[alias].connection_id): cluster.connection_json()
            for alias, cluster in ((flow.source, self.source), (flow.target, self.target))
        }


def show_demo(*, records: int, follow_seconds: int) -> bool:
    """:returns: whether both clusters hold the same records, in the same order."""
    flows_file = PROJECT / "include" / "flows.yaml"
    deployment = load_flows(flows_file)
    flow = deployment.flow(FLOW)
    with step("two real Kafka clusters") as say:
        clusters = clusters_up(flow, say)
    with step(
        f"a story for {flow.source}: {records:,} records in every codec, keys, headers, transactions"
    ) as say:
        tell_story(clusters.source.endpoint(), records=records, say=say)
    with step("Airflow") as say:
        home = _airflow_up(clusters.connections(deployment, flow), flows_file, say)
        rest = home.rest()
        _wait_for_dag(rest, say)
        rest.unpause(DAG_ID)
        _say_where(home, say)
    producer = LiveProducer(
        clusters.source.endpoint(), topic=LIVE_TOPIC, records_per_second=LIVE_RECORDS_PER_SECOND
    )
    with (
        step(f"first run: the story, and {LIVE_RECORDS_PER_SECOND} records/s that keep coming") as say,
        producer,
    ):
        say(f"a producer writes into {LIVE_TOPIC} of {flow.source} all the while")
        first = _run_dag(home, rest, {"run_for": f"{follow_seconds}s", "until_caught_up": False}, say)
    with step("second run: what is left, now that the producer has stopped") as say:
        say(f"{producer.delivered:,} records were written meanwhile")
        second = _run_dag(home, rest, {"until_caught_up": True}, say)
    with step("comparing both clusters, record by record, in order") as say:
        equal = compare(flow, clusters, say)
    _conclude(home, [first, second], equal=equal)
    return equal


@contextmanager
def step(title: str) -> Iterator[Say]:
    began = time.monotonic()
    _show(f"\n=== {title}")
    yield lambda line: _show(f"    {line}")
    _show(f"    done in {time.monotonic() - began:.1f} s")


def _show(line: str) -> None:
    # A terminal that was closed must not keep the demo from taking itself down.
    with suppress(OSError):
        print(line, flush=True)


def airflow_directory() -> Path:
    return project_root() / ".causeway" / "airflow"


def clusters_up(flow: Flow, say: Say) -> Clusters:
    root = project_root()
    homes = {each.name: each.home for each in lab.up(root, (flow.source, flow.target), say=say).clusters}
    return Clusters(*(LabCluster.open(homes[name], root=root) for name in (flow.source, flow.target)))


def _airflow_up(connections: dict[str, str], flows_file: Path, say: Say) -> AirflowHome:
    directory = airflow_directory()
    if marked_processes(directory):
        say("an earlier demo's Airflow still runs")
        stop_airflow(directory, say)
    if directory.exists():
        shutil.rmtree(directory)
    home = prepare_home(directory, PROJECT)
    # Nothing starts by itself: the demo starts the runs that it shows, and later the page's reader does.
    by_hand = {"CAUSEWAY_FLOWS": str(flows_file), "CAUSEWAY_SCHEDULES": "off"}
    start_airflow(home, connections | by_hand, say)
    return home


def _wait_for_dag(rest: AirflowRest, say: Say) -> None:
    say(f"waiting for the DAG {DAG_ID}")
    deadline = time.monotonic() + _PARSE_SECONDS
    while DAG_ID not in rest.dag_ids():
        if errors := rest.import_errors():
            raise AirflowDied("dags/mirror.py", rule=errors[0], remedy="correct it and try again")
        if time.monotonic() > deadline:
            raise AirflowDied(f"DAG {DAG_ID}", rule=f"must be there within {_PARSE_SECONDS} s")
        time.sleep(0.5)


def _say_where(home: AirflowHome, say: Say) -> None:
    say(f"{home.url}/dags/{DAG_ID}   user {ADMIN}, password {home.password}")


def _run_dag(home: AirflowHome, rest: AirflowRest, conf: dict[str, Any], say: Say) -> dict[str, Any]:
    run_id = f"demo_{datetime.now(UTC):%Y%m%dT%H%M%S}"
    rest.trigger(DAG_ID, run_id, conf)
    say(f"triggered {run_id} of {DAG_ID} with {conf}")
    watch_run(home, rest, DAG_ID, run_id, say)
    summary: dict[str, Any] = rest.xcom(DAG_ID, run_id, "report")
    return summary


def compare(flow: Flow, clusters: Clusters, say: Say) -> bool:
    """What the source shows now has to be on the target, whatever the runs believe of themselves."""
    source, target = clusters.source.endpoint(), clusters.target.endpoint()
    pairs, ends = _pairs_with_ends(flow, source)
    pairs = with_current_ranges(flow, source, target, with_cleaners(source, target, pairs).pairs)
    found = verify_flow(source, target, pairs, ends=ends)
    rows = []
    for topic, verdicts in groupby(found.partitions, key=lambda verdict: verdict.source.topic):
        each = list(verdicts)
        wrong = sum(verdict.different + verdict.missing + verdict.extra for verdict in each)
        rows.append((topic, len(each), sum(v.equal for v in each), wrong, all(v.is_equal for v in each)))
    for line in table(("TOPIC", "PARTITIONS", "EQUAL RECORDS", "WRONG", "EQUAL"), rows).splitlines():
        say(line)
    for verdict in found.unequal:
        say(f"{verdict.source}: {verdict.trouble or verdict.differences[0]}")
    say(f"{found.records_equal:,} records are equal in key, value, headers, timestamp and order")
    return not found.unequal and found.records_equal > 0


def _pairs_with_ends(
    flow: Flow, source: ClusterEndpoint
) -> tuple[list[PartitionPair], dict[TopicPartition, SourceOffset]]:
    pairs, ends = [], {}
    topics = [t for t in ClusterAdmin(source).topics() if not t.is_internal and flow.topics.matches(t.name)]
    with RecordReader(source) as reader:
        for topic in topics:
            for partition in range(topic.partitions):
                here = TopicPartition(topic.name, partition)
                there = TopicPartition(flow.naming.target_topic(topic.name), partition)
                pairs.append(PartitionPair(source=here, target=there))
                ends[here] = SourceOffset(reader.bounds(here)[1])
    return pairs, ends


def _conclude(home: AirflowHome, runs: Sequence[Mapping[str, Any]], *, equal: bool) -> None:
    with step("the mirror is exact" if equal else "THE MIRROR DIFFERS") as say:
        facts = ("outcome", "records", "bytes", "verbatim", "repacked", "lag")
        rows = [
            (name, *(run[fact] for fact in facts))
            for name, run in zip(("first", "second"), runs, strict=True)
        ]
        for line in table(_RUN_COLUMNS, rows).splitlines():
            say(line)
        _say_where(home, say)
        say("schedules are off in this Airflow: trigger a DAG to see it run; the clusters' connections come")
        say("from its environment (AIRFLOW_CONN_...), so its page of connections doesn't list them")
        say("HELD BACK, if you saw it: the story leaves a transaction open on sf, and no mirror passes one")
        say("it stays until `make demo-down`; `causeway lab down --forget` deletes the clusters' data")
