"""Follow a live producer through Spark, and read its records on the target as they become visible.

The latency of a record is from the clock before `produce` on the source to the clock after the poll
of a `read_committed` consumer on the target, all on one machine. Numbers are reported, never asserted.
"""

from __future__ import annotations

import signal
import statistics
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.lab.cluster import LabCluster
from causeway.lab.live import LiveProducer, parse_live_value
from causeway.lab.record import ClusterSpec
from tests.integration.copy.spark_flow import environment, flows_file, submit_command
from tests.proofs.chaos.parts.processes import Started, start, wait_until

TOPIC = "ticker"
_WARM_SECONDS = 5.0
_LONGEST_SECONDS = 600
_PARTITIONS = 2


@dataclass(frozen=True, slots=True)
class Latencies:
    delivered: int
    numbers_by_partition: dict[int, list[int]]
    """What a `read_committed` reader saw, in order."""
    milliseconds: list[float]

    def __str__(self) -> str:
        """Median, 99th percentile and worst, in one line."""
        ordered = sorted(self.milliseconds)
        if not ordered:
            return "nothing was measured"
        at = ordered[min(int(len(ordered) * 0.99), len(ordered) - 1)]
        return (
            f"{len(ordered):,} records: median {statistics.median(ordered):,.0f} ms, "
            f"p99 {at:,.0f} ms, worst {ordered[-1]:,.0f} ms"
        )


class _Reader(threading.Thread):
    """Notes number and latency of each record of the target topic, until it knows how many there are."""

    def __init__(self, endpoint: ClusterEndpoint, topic: str) -> None:
        super().__init__(name="follow-reader", daemon=True)
        self.numbers: dict[int, list[int]] = {p: [] for p in range(_PARTITIONS)}
        self.births: list[tuple[float, float]] = []
        self.stopping = threading.Event()
        settings = {
            **endpoint.settings,
            "group.id": "unused",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "fetch.wait.max.ms": 50,
        }
        self._consumer = Consumer(settings)
        self._consumer.assign([TopicPartition(topic, p, 0) for p in range(_PARTITIONS)])

    def run(self) -> None:
        while not self.stopping.is_set():
            for message in self._consumer.consume(1_000, 0.05):
                now = time.time() * 1000
                if message.error() is None:
                    live = parse_live_value(message.value())
                    self.numbers[message.partition()].append(live.number)
                    self.births.append((now, now - live.sent_at_ms))
        self._consumer.close()


def follow(
    source: LabCluster, target: LabCluster, folder: Path, *, seconds: int, records_per_second: int
) -> Latencies:
    """Measure for `seconds` beside a live producer, once the run has been at work for five."""
    connections = {"sf": source.connection_json(), "nyc": target.connection_json()}
    flow = "follow"
    command = submit_command(flow, flows_file(folder, flow, TOPIC), "--run-for", str(_LONGEST_SECONDS))
    with LiveProducer(
        source.endpoint(), topic=TOPIC, records_per_second=records_per_second, partitions=_PARTITIONS
    ) as live:
        run = start("follow", command, folder / "follow.log", environment(connections, folder))
        try:
            reader = _Reader(target.endpoint(), f"sf.{TOPIC}")
            reader.start()
            _wait_until(lambda: reader.births, run)
            began = reader.births[0][0]
            time.sleep(_WARM_SECONDS + seconds)
            delivered = live.stop()
            _wait_until(lambda: sum(map(len, reader.numbers.values())) >= delivered, run)
            _kill_the_jvm(run)
        finally:
            run.kill_all()
    reader.stopping.set()
    reader.join(20)
    warm = [latency for at, latency in reader.births if at - began > _WARM_SECONDS * 1000]
    return Latencies(delivered, reader.numbers, warm)


def _kill_the_jvm(run: Started) -> None:
    """By now the source is quiet: a driver without its JVM would hold the flow for nothing."""
    run.send(signal.SIGKILL)
    run.popen.wait()
    wait_until(lambda: not run.members(), "the Python driver ends with its JVM", timeout_seconds=30)


def _wait_until(is_so: Callable[[], object], run: Started) -> None:
    def is_so_or_over() -> bool:
        assert run.exit_code is None, f"the run ended with {run.exit_code}: {run.output()[-800:]}"
        return bool(is_so())

    wait_until(is_so_or_over, "what was produced to arrive", timeout_seconds=120)


def follow_fresh(folder: Path, *, seconds: int, records_per_second: int) -> Latencies:
    """Between two new clusters."""
    source, target = (LabCluster(ClusterSpec(name=name), folder / name) for name in ("sf", "nyc"))
    try:
        source.start()
        target.start()
        return follow(source, target, folder, seconds=seconds, records_per_second=records_per_second)
    finally:
        source.stop()
        target.stop()
