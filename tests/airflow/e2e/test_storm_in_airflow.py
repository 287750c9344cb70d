"""A seeded storm over the DAG: whatever kills a run of Airflow's, the mirror is what the source is."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from typing import Any

import psutil
import pytest
from confluent_kafka import TopicPartition

from causeway.lab.cluster import LabCluster
from causeway.lab.live import LiveProducer
from tests.support.mirroring import end_offsets
from tests.support.reading import content, messages

pytestmark = [pytest.mark.airflow, pytest.mark.spark, pytest.mark.integration, pytest.mark.chaos]
FLOW, TOPIC, PARTITIONS = "storm", "storm", 2


class Storm:
    """One run of the DAG at a time, and what becomes of it."""

    def __init__(self, mirror: Any) -> None:
        self.mirror = mirror
        self.runs = self.attempt = 0

    @property
    def run_id(self) -> str:
        return f"storm-{self.runs}"

    def trigger(self, **params: Any) -> None:
        self.runs, self.attempt = self.runs + 1, 1
        self.mirror.trigger(FLOW, self.run_id, **params)

    def wait_for_more(self) -> None:
        before = self.mirrored()

        def more() -> bool:
            time.sleep(0.5)  # each look is a client of its own
            return self.mirrored() > before + 200

        self.mirror.eventually(more)

    def mirrored(self) -> int:
        return sum(end for _, end in end_offsets(self.mirror.target, of=f"sf.{TOPIC}").values())

    def java(self) -> psutil.Process:
        found: list[psutil.Process] = []

        def is_there() -> bool:
            found.extend(p for p in self.mirror.drivers() if is_java(p))
            return bool(found)

        self.mirror.eventually(is_there)
        return found[0]

    def wait_for_next_try(self) -> None:
        self.attempt += 1
        self.mirror.eventually(lambda: self.mirror.attempts(FLOW, self.run_id, "copy") == self.attempt)


def kill_the_task(storm: Storm) -> None:
    """As the kernel does when memory is short."""
    driver = storm.java().parent()
    assert driver is not None
    driver.kill()
    storm.wait_for_next_try()


def kill_the_driver(storm: Storm) -> None:
    storm.java().kill()
    storm.wait_for_next_try()


def mark_the_task_failed(storm: Storm) -> None:
    """On the page; then somebody triggers the next run."""
    storm.mirror.rest.mark_failed(f"mirror__{FLOW}", storm.run_id, "copy")
    storm.mirror.eventually(lambda: not storm.mirror.drivers())
    storm.mirror.wait(FLOW, storm.run_id)
    storm.trigger(run_for="10m")


def kill_the_target(storm: Storm) -> None:
    storm.mirror.target.kill()
    storm.mirror.target.start()


STRIKES: list[Callable[[Storm], None]] = [
    kill_the_task,
    kill_the_driver,
    mark_the_task_failed,
    kill_the_target,
]


def test_a_storm_over_the_dag(mirror: Any) -> None:
    seed = int(os.environ.get("CAUSEWAY_CHAOS_SEED", random.SystemRandom().randrange(1_000_000)))
    strikes = random.Random(seed).sample(STRIKES, len(STRIKES))
    print(f"CAUSEWAY_CHAOS_SEED={seed}: {', '.join(each.__name__ for each in strikes)}")
    storm = Storm(mirror)
    with LiveProducer(
        mirror.source.endpoint(), topic=TOPIC, partitions=PARTITIONS, records_per_second=200
    ) as live:
        storm.trigger(run_for="10m")
        for strike in strikes:
            storm.wait_for_more()
            strike(storm)
        storm.wait_for_more()
        mirror.rest.mark_failed(f"mirror__{FLOW}", storm.run_id, "copy")
        mirror.eventually(lambda: not mirror.drivers())
    mirror.wait(FLOW, storm.run_id)
    storm.trigger(until_caught_up=True)
    assert mirror.wait(FLOW, storm.run_id) == "success", mirror.log(FLOW, storm.run_id, "copy")
    for number in range(PARTITIONS):
        written = read_all(mirror.source, TopicPartition(TOPIC, number))
        assert len(written) >= live.delivered // PARTITIONS > 0
        assert read_all(mirror.target, TopicPartition(f"sf.{TOPIC}", number)) == written


def read_all(cluster: LabCluster, place: TopicPartition) -> list[tuple[Any, ...]]:
    return list(map(content, messages(cluster, place.topic, place.partition)))


def is_java(process: psutil.Process) -> bool:
    try:
        return bool(process.name() == "java")
    except psutil.Error:
        return False
