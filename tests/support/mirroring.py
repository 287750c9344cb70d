"""A flow between two lab clusters, run in this process: what tests of the copy share.

Lanes run here, one after the other, by the same `LaneWorker` that Spark's workers use.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Callable, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from causeway.brokers.admin.probe import probe
from causeway.core.copy.lane_task import LaneResult, LaneTask
from causeway.core.copy.report import RunReport
from causeway.core.model.flow import CopyLimits, Flow
from causeway.core.model.topic_filter import TopicFilter
from causeway.core.verify.report import VerifyReport
from causeway.lab.cluster import LabCluster
from causeway.usecases.copy.blocking_driver import copy_flow
from causeway.usecases.copy.run import RunOptions
from causeway.usecases.copy.worker import LaneWorker
from causeway.usecases.run_lock.ownership import RunOwner
from causeway.usecases.verify.flow import verify_mirror
from tests.support import builders

_LEADER_SECONDS = 20
_WITHOUT_LEADER = {
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_PARTITION,
    KafkaError._UNKNOWN_TOPIC,
}
_numbers = itertools.count(1)


def make_flow(name: str, *topics: str, **changes: Any) -> Flow:
    """`name` must be the test's own: positions and turns are kept under it."""
    made = builders.flow(
        name,
        topics=TopicFilter(topics),
        lanes=3,
        config_properties_exclude=(r"message\.timestamp\.type",),
        limits=CopyLimits(transaction_bytes=256 * 1024, fetch_bytes=256 * 1024),
    )
    return dataclasses.replace(made, **changes)


class Mirror:
    """One flow between two clusters; `said` collects what the runs reported."""

    def __init__(self, flow: Flow, source: LabCluster, target: LabCluster) -> None:
        self.flow, self.source, self.target = flow, source, target
        self.said: list[str] = []
        self.worker = LaneWorker(source.endpoint(), target.endpoint())

    def carry(self, tasks: Sequence[LaneTask]) -> list[LaneResult]:
        return [self.worker.run(task) for task in tasks]

    def run(
        self,
        *,
        run_for_seconds: float | None = None,
        topics: frozenset[str] | None = None,
        take_over: bool = False,
        is_interrupted: Callable[[], bool] = lambda: False,
    ) -> RunReport:
        number = next(_numbers)
        return copy_flow(
            self.flow,
            self.source.endpoint(),
            self.target.endpoint(),
            self.carry,
            RunOptions(
                holder=RunOwner(name=f"test run {number}", run_id=f"{number}"),
                run_for_seconds=run_for_seconds,
                topics=topics,
                take_over=take_over,
                is_interrupted=is_interrupted,
            ),
            self.said.append,
        )

    def verify(self, *, across_failbacks: bool = False) -> VerifyReport:
        return verify_mirror(
            self.flow,
            self.source.endpoint(),
            self.target.endpoint(),
            on_progress=lambda _: None,
            across_failbacks=across_failbacks,
        )

    def close(self) -> None:
        self.worker.close()


def end_offsets(cluster: LabCluster, *, of: str = "") -> dict[tuple[str, int], tuple[int, int]]:
    """(log start, end) of every partition whose topic begins with `of`: what "nothing was written" means."""
    probe(cluster.endpoint())
    consumer = Consumer({**cluster.endpoint().settings, "group.id": "unused"})
    deadline = time.monotonic() + _LEADER_SECONDS
    try:
        while True:
            try:
                return _watermarks(consumer, of)
            except KafkaException as refused:
                # A topic that is being made, or deleted, has no leader for a moment.
                if refused.args[0].code() not in _WITHOUT_LEADER or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
    finally:
        consumer.close()


def _watermarks(consumer: Consumer, of: str) -> dict[tuple[str, int], tuple[int, int]]:
    return {
        (name, partition): consumer.get_watermark_offsets(TopicPartition(name, partition), timeout=20)
        for name, topic in consumer.list_topics(timeout=20).topics.items()
        if name.startswith(of) and not name.startswith("__")
        for partition in topic.partitions
    }
