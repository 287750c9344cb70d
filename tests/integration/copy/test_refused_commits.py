"""A lane whose commit the target refuses: what it costs, who hears of it, and how it goes on.

The map's record of a compacted source grows with its holes. A topic with a small `max.message.bytes` stands
for the defaults and more records.
"""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from causeway.core.copy.lanes import lane_of
from causeway.core.kernel.errors import ClusterUnreachable
from causeway.core.kernel.identity import TopicPartition
from causeway.core.model.flow import CopyLimits, Flow
from causeway.core.model.naming import PrefixNaming
from causeway.core.offsets.offset_map import MAP_PARTITIONS
from causeway.core.records.compression import Codec
from causeway.core.state.parked import ParkReason
from causeway.lab.clients import producer
from causeway.lab.cluster import LabCluster
from causeway.usecases.copy import parked, run
from causeway.usecases.offsets.translate import load_flow_map
from tests.integration.fidelity.cases import BASE_MS, Seen, thinned_batch
from tests.integration.fidelity.raw_log import RawLog, create, place_segment
from tests.proofs.translation.truth import Tally, check_partition
from tests.support.mirroring import Mirror, make_flow

pytestmark = pytest.mark.integration

LANES = 4
LESS_THAN_THE_RECORD, ABSURD = 64 << 10, 600
"""`max.message.bytes` of the map: one record for all of a transaction is larger than the first."""
PATIENCE_SECONDS = 180
THIN = 4_000
ONCE = THIN + 1
"""Its records in an attempt, and the marker."""


def thinned(records: int, seed: int) -> tuple[bytes, list[Seen]]:
    """A segment as a cleaner leaves it, with one of 20 offsets left."""
    chance = random.Random(seed)
    data, seen, base = bytearray(), list[Seen](), 0
    while len(seen) < records:
        deltas = sorted(chance.sample(range(8_000), 400))
        here: list[Seen] = [
            (BASE_MS + len(seen) + n, b"k%d" % (len(seen) + n), b"v", ()) for n in range(len(deltas))
        ]
        data += thinned_batch(base, deltas, 7_999, here, Codec.NONE)
        seen += here
        base += 8_000
    return bytes(data), seen


@pytest.fixture(scope="module")
def source(lab_clusters: Callable[..., LabCluster]) -> LabCluster:
    """With two topics that are compacted already: a large one, and one whose holes fill some kilobytes."""
    made = lab_clusters("thinned")
    for name in ("large", "thin"):
        create(made, name, 1)
    made.stop()
    place_segment(made, TopicPartition("large", 0), thinned(100_000, 1)[0])
    place_segment(made, TopicPartition("thin", 0), thinned(THIN, 2)[0])
    made.start()
    return made


def flow_with_a_map(target: LabCluster, name: str, *topics: str, most_bytes: int) -> Flow:
    flow = make_flow(
        name,
        *topics,
        source=name,  # a map of its own
        naming=PrefixNaming(name),
        lanes=LANES,
        limits=CopyLimits(),
    )
    create(
        target, flow.map_topic, MAP_PARTITIONS, cleanup_policy="compact", max_message_bytes=str(most_bytes)
    )
    return flow


@contextmanager
def mirroring(flow: Flow, source: LabCluster, target: LabCluster) -> Iterator[Mirror]:
    mirror = Mirror(flow, source, target)
    try:
        yield mirror
    finally:
        mirror.close()


def rows(cluster: LabCluster, tp: TopicPartition) -> list[Seen]:
    with RawLog(cluster) as log:
        return [(r.timestamp_ms, r.key, r.value, r.headers) for r in log.records(tp)]


def test_a_compacted_source_crosses_however_much_its_map_weighs(source: LabCluster, nyc: LabCluster) -> None:
    flow = flow_with_a_map(nyc, "weighty", "large", most_bytes=LESS_THAN_THE_RECORD)
    here, there = TopicPartition("large", 0), TopicPartition("weighty.large", 0)
    with mirroring(flow, source, nyc) as mirror:
        report = mirror.run()
    assert (report.outcome, report.lag, report.parked, report.doubts) == ("caught up", 0, [], 0)
    assert report.partitions[here].repeats_in_all == 0
    assert report.transactions >= 3, "the position, and more than one for so many holes"
    assert rows(nyc, there) == thinned(100_000, 1)[1]

    tally = Tally()
    check_partition(source, nyc, here, load_flow_map(flow, nyc.endpoint()), tally)
    assert tally.errors == []
    assert tally.records == 100_000


def test_a_lane_that_may_not_commit_costs_two_transactions_is_reported_and_goes_on_by_itself(
    source: LabCluster, nyc: LabCluster, nyc_admin: AdminClient
) -> None:
    name = "absurd"
    busy = next(
        topic
        for topic in (f"busy{n}" for n in range(100))
        if lane_of(TopicPartition(f"{name}.{topic}", 0), LANES)
        != lane_of(TopicPartition(f"{name}.thin", 0), LANES)
    )
    create(source, busy, 1)
    flow = flow_with_a_map(nyc, name, "thin", busy, most_bytes=ABSURD)
    thin, copied = TopicPartition("thin", 0), TopicPartition(f"{name}.thin", 0)
    writer = Writer(source, busy)
    with mirroring(flow, source, nyc) as mirror:
        try:
            short = mirror.run(run_for_seconds=3)
            assert short.partitions[TopicPartition(busy, 0)].records > 0
            assert short.leaves_something_out, "a lane did nothing but doubt: that is no success"
            assert any("in doubt" in line and "MESSAGE_TOO_LARGE" in line for line in mirror.said), (
                mirror.said
            )
            assert ends_of(nyc, copied) <= 2 * ONCE, "the data is appended twice, and then no more"

            raised = Then(mirror, nyc_admin, lambda: ends_of(nyc, copied))
            with pytest.raises(KeyboardInterrupt), patch.object(parked, "_AGAIN_SECONDS", 3.0):
                mirror.run(run_for_seconds=PATIENCE_SECONDS, is_interrupted=lambda: raised.went_on)
        finally:
            writer.stop()
        raised.thread.join()
        assert raised.stood_at <= 4 * ONCE, "a new run asks twice again, and then no more"
        report = mirror.run()
        verdict = mirror.verify()
    assert (report.outcome, report.lag, report.parked) == ("caught up", 0, [])
    assert rows(nyc, copied) == thinned(THIN, 2)[1]
    assert (verdict.unequal, report.partitions[thin].parked) == ((), None)


def test_a_run_that_gets_nowhere_says_why_once(source: LabCluster, nyc: LabCluster) -> None:
    flow = flow_with_a_map(nyc, "nowhere", "thin", most_bytes=ABSURD)
    with (
        mirroring(flow, source, nyc) as mirror,
        patch.object(run, "_PATIENCE_SECONDS", 0.5),
        pytest.raises(ClusterUnreachable) as end,
    ):
        mirror.run()
    assert str(end.value).count("nothing could be copied") == 1, end.value
    assert str(end.value).count("what is committed stays") == 1
    assert "MESSAGE_TOO_LARGE" in str(end.value)


def ends_of(cluster: LabCluster, tp: TopicPartition) -> int:
    """Without isolation: what is open counts."""
    with RawLog(cluster) as log:
        return log.ends([tp])[tp]


class Writer:
    """A partition of another lane that always has something to copy."""

    def __init__(self, cluster: LabCluster, topic: str) -> None:
        self._cluster, self._topic, self._stopping = cluster, topic, threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self) -> None:
        client = producer(self._cluster.endpoint())
        while not self._stopping.wait(0.01):
            client.produce(self._topic, b"v", b"k", partition=0)
            client.flush(30)

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()


class Then:
    """Once the lane is parked, does what the remedy says; while the run goes on, its partition crosses."""

    def __init__(self, mirror: Mirror, admin: AdminClient, end: Callable[[], int]) -> None:
        self._mirror, self._admin, self._end = mirror, admin, end
        self.stood_at, self.went_on = 0, False
        self.thread = threading.Thread(target=self._watch, daemon=True)
        self.thread.start()

    def _watch(self) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        word = f"parked thin-0: {ParkReason.COMMIT_REFUSED}"
        while not (said := [line for line in self._mirror.said if word in line]):
            if time.monotonic() > deadline:
                return
            time.sleep(0.1)
        self.stood_at = self._end()
        raise_as_told(self._admin, said[0])
        while not self.went_on and time.monotonic() < deadline:
            time.sleep(0.1)
            self.went_on = self._end() > self.stood_at


def raise_as_told(admin: AdminClient, said: str) -> None:
    """`kafka-configs.sh ... --entity-name TOPIC --add-config max.message.bytes=N`, as it is typed."""
    found = re.search(r"--entity-type topics --entity-name (\S+) --add-config (\S+)=(\d+)", said)
    assert found, said
    topic, setting, value = found.groups()
    entry = ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    for answer in admin.incremental_alter_configs([resource]).values():
        answer.result(30)
