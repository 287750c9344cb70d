"""Batches of a few records each travel in one; what readers see and what the map says stays exact."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.lab.clients import producer
from causeway.lab.cluster import LabCluster
from tests.support.inline_flow import InlineFlow, create_topic, own_flow, topic_of
from tests.support.reading import content, messages

pytestmark = pytest.mark.integration
RECORDS = 600


@pytest.fixture
def runs(sf: LabCluster, nyc: LabCluster) -> InlineFlow:
    return own_flow(sf, nyc, "joins")


def write_one_by_one(cluster: LabCluster, topic: str, count: int, **settings: Any) -> None:
    client = producer(cluster.endpoint(), linger_ms=0, **{"batch.num.messages": 1, **settings})
    for number in range(count):
        client.produce(topic, b"x" * (number % 50), b"key %d" % number, headers=[("h", b"%d" % number)])
    assert client.flush(30) == 0


def records_of(cluster: LabCluster, topic: str) -> list[tuple[Any, ...]]:
    return list(map(content, messages(cluster, topic)))


@pytest.mark.parametrize("codec", ["none", "lz4", "zstd"])
def test_batches_of_one_travel_together(
    runs: InlineFlow, sf: LabCluster, nyc: LabCluster, codec: str
) -> None:
    topic = topic_of(runs)
    create_topic(sf, topic)
    write_one_by_one(sf, topic, RECORDS, **{"compression.type": codec})

    report = runs.run()

    (partition,) = report.partitions.values()
    assert partition.repacked_batches.keys() == {"joined"}
    assert partition.repacked_batches["joined"] < RECORDS / 20
    mirrored = records_of(nyc, f"sf.{topic}")
    assert mirrored == records_of(sf, topic)
    assert len(mirrored) == RECORDS
    assert (report.lag, runs.verify().records_equal) == (0, RECORDS)


def test_a_target_that_takes_only_small_batches_gets_them_one_by_one(
    runs: InlineFlow, sf: LabCluster, nyc: LabCluster
) -> None:
    topic = topic_of(runs)
    create_topic(sf, topic)
    create_topic(nyc, f"sf.{topic}", max_message_bytes="400")
    write_one_by_one(sf, topic, RECORDS)

    report = runs.run()

    (partition,) = report.partitions.values()
    assert (report.outcome, report.parked, report.lag) == ("caught up", [], 0)
    assert partition.verbatim_batches == RECORDS
    assert records_of(nyc, f"sf.{topic}") == records_of(sf, topic)
