"""A cleaner writes into a batch when it will take its tombstones away: that is no time of a record."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from causeway.core.kernel.identity import TopicPartition
from causeway.core.model.naming import PrefixNaming
from causeway.core.records.batches import BatchHead
from causeway.core.records.compression import Codec
from causeway.core.records.records import Record, encode_batch
from causeway.lab.cluster import LabCluster
from tests.integration.fidelity.cases import NOBODY
from tests.integration.fidelity.raw_log import RawLog, create
from tests.support.mirroring import Mirror, make_flow

pytestmark = pytest.mark.integration

HERE, THERE = TopicPartition("buried", 0), TopicPartition("horizon.buried", 0)
RECORDS = 12
DELETE_HORIZON_BIT = 0x40
A_DAY_MS = 86_400_000
CLEANER_SECONDS = 60


def test_the_map_never_takes_a_delete_horizon_for_a_records_time(
    lab_cluster: Callable[..., LabCluster], nyc: LabCluster
) -> None:
    source = lab_cluster("horizon", broker_settings={"log.cleaner.backoff.ms": "100"})
    create(
        source,
        HERE.topic,
        1,
        cleanup_policy="compact",
        segment_ms="200",
        min_cleanable_dirty_ratio="0.001",
        delete_retention_ms=str(A_DAY_MS),
    )
    first_ms = int(time.time() * 1000) - 60_000
    head = bury(source, first_ms)
    assert head.base_timestamp > first_ms + A_DAY_MS - 120_000, "the moment of the deletion"

    flow = make_flow("horizon", HERE.topic, source="horizon", naming=PrefixNaming("horizon"), lanes=1)
    mirror = Mirror(flow, source, nyc)
    report = mirror.run()
    mirror.close()
    assert (report.lag, report.parked) == (0, [])
    with RawLog(source) as here, RawLog(nyc) as there:
        assert [told(r) for r in there.records(THERE)] == [told(r) for r in here.records(HERE)]
        crossed = there.batches(THERE)[0][0]
        runs = there.run(lambda: there.target.map_runs(flow.map_topic, [THERE]))[THERE]
    assert crossed.base_timestamp == head.base_timestamp, "as it is, and not repacked"
    times = [(run.first_timestamp_ms, run.last_timestamp_ms) for run in runs]
    assert times[0][0] == first_ms
    assert all(first <= last for first, last in times), times


def told(record: Record) -> tuple[object, ...]:
    return record.timestamp_ms, record.key, record.value, record.headers


def bury(cluster: LabCluster, first_ms: int) -> BatchHead:
    """Keys and tombstones that stay for now, in one batch; late records roll its segment for the cleaner."""
    batch = [Record(n, first_ms + n, b"k%d" % n, None if n % 2 else b"v%d" % n) for n in range(RECORDS)]
    with RawLog(cluster) as log:
        log.append({HERE: encode_batch(batch, codec=Codec.ZSTD, **NOBODY)})
        deadline = time.monotonic() + CLEANER_SECONDS
        while True:
            head, _ = log.batches(HERE)[0]
            if head.attributes & DELETE_HORIZON_BIT:
                return head
            assert time.monotonic() < deadline, "the cleaner doesn't come"
            time.sleep(0.3)
            late = Record(0, int(time.time() * 1000), b"late", b"x")
            log.append({HERE: encode_batch([late], codec=Codec.NONE, **NOBODY)})
