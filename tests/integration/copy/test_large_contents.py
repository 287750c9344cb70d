"""Batches that hold much more than they weigh: every client can read what crosses, in bounded memory."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from causeway.core.copy.ports import Appended
from causeway.core.copy.repack import JOINED_DECOMPRESSED_BYTES
from causeway.core.kernel.identity import TopicPartition
from causeway.core.records.compression import DEFAULT_DECOMPRESSED_LIMIT_BYTES, Codec, decompress
from causeway.core.records.records import Record, encode_batch
from causeway.core.state.parked import ParkReason
from causeway.lab.clients import admin_client, producer
from causeway.lab.cluster import LabCluster
from causeway.usecases.repair.adopt import adopt_partition
from causeway.usecases.repair.set_positions import Reason
from tests.integration.copy.measured_run import run_measured
from tests.integration.fidelity.cases import BASE_MS, NOBODY
from tests.integration.fidelity.raw_log import RawLog
from tests.support.inline_flow import InlineFlow, create_topic, mirror_of, named, topic_of
from tests.support.reading import content, messages

pytestmark = pytest.mark.integration
MEGABYTE = 1_000_000
PEAK_MIB = 450
"""Of a worker that holds nothing large: some 150."""


@pytest.fixture
def runs(sf: LabCluster, nyc: LabCluster) -> InlineFlow:
    name = uuid.uuid4().hex[:8]
    flow = mirror_of(f"large_{name}", f"large-{name}", lanes=1)
    return InlineFlow(flow, named(sf, "sf"), named(nyc, "nyc"))


def write_zeros(cluster: LabCluster, topic: str, count: int) -> None:
    """A megabyte each, nearly all zeros, in a batch of its own of some 120 bytes."""
    client = producer(
        cluster.endpoint(),
        linger_ms=0,
        batch_num_messages=1,
        compression_type="zstd",
        message_max_bytes=2 * MEGABYTE,
    )
    for number in range(count):
        client.produce(topic, b"%06d" % number + bytes(MEGABYTE), b"key %d" % number)
        if number % 50 == 0:
            client.flush(30)
    assert client.flush(30) == 0


def records_of(cluster: LabCluster, topic: str) -> Iterator[tuple[Any, ...]]:
    """By librdkafka, which gives up on a batch that holds more than 100 MB."""
    return map(content, messages(cluster, topic, **{"queued.max.messages.kbytes": 64_000}))


def assert_same_records(source: LabCluster, target: LabCluster, topic: str, count: int) -> None:
    seen = 0
    for there, here in zip(records_of(target, f"sf.{topic}"), records_of(source, topic), strict=True):
        # The kind of a time differs where the source's brokers set it; a long value isn't worth printing.
        assert (there[0][1], there[1], there[3]) == (here[0][1], here[1], here[3]), seen
        is_same = there[2] == here[2]
        assert is_same, seen
        seen += 1
    assert seen == count


def held_bytes(cluster: LabCluster, topic: str) -> list[int]:
    with RawLog(cluster) as log:
        return [
            len(decompress(head.codec, batch[61:])) for head, batch in log.batches(TopicPartition(topic, 0))
        ]


def test_small_batches_that_hold_much_stay_readable_and_the_lane_small(
    runs: InlineFlow, sf: LabCluster, nyc: LabCluster
) -> None:
    topic, count = topic_of(runs), 600
    create_topic(sf, topic)
    write_zeros(sf, topic, count)

    told = run_measured(runs, topic)

    assert (told["outcome"], told["lag"], told["parked"]) == ("caught up", 0, [])
    assert told["peak_mib"] < PEAK_MIB, told
    assert max(held_bytes(nyc, f"sf.{topic}")) <= JOINED_DECOMPRESSED_BYTES
    assert_same_records(sf, nyc, topic, count)
    assert runs.verify().records_equal == count


def batch_of(count: int, megabytes: int) -> bytes:
    records = [Record(n, BASE_MS + n, b"k%d" % n, bytes(megabytes << 20)) for n in range(count)]
    return encode_batch(records, codec=Codec.ZSTD, **NOBODY)


def append(cluster: LabCluster, topic: str, *batches: bytes) -> None:
    with RawLog(cluster) as log:
        for batch in batches:
            (answer,) = log.append({TopicPartition(topic, 0): batch}).values()
            assert isinstance(answer, Appended)


def set_on_topic(cluster: LabCluster, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    admin = admin_client(cluster.endpoint())
    (answer,) = admin.incremental_alter_configs([resource]).values()
    answer.result(30)


def test_a_batch_of_80_mb_crosses_where_it_has_to_be_taken_apart(
    runs: InlineFlow, sf: LabCluster, nyc: LabCluster
) -> None:
    topic = topic_of(runs)
    create_topic(sf, topic, message_timestamp_type="LogAppendTime")
    create_topic(nyc, f"sf.{topic}")
    append(sf, topic, batch_of(20, 4), batch_of(3, 0))

    told = run_measured(runs, topic)

    assert (told["outcome"], told["lag"], told["parked"]) == ("caught up", 0, [])
    assert told["peak_mib"] < PEAK_MIB, told
    assert_same_records(sf, nyc, topic, 23)
    assert runs.verify().records_equal == 23


def test_one_that_holds_too_much_is_named_as_that_and_its_remedy_goes_on(
    runs: InlineFlow, sf: LabCluster, nyc: LabCluster
) -> None:
    topic, size = topic_of(runs), DEFAULT_DECOMPRESSED_LIMIT_BYTES
    create_topic(sf, topic, message_timestamp_type="LogAppendTime")
    large = batch_of((size >> 24) + 1, 16)
    append(sf, topic, batch_of(3, 0), large, batch_of(2, 0))

    (parked,) = [p.parked for p in runs.run().partitions.values() if p.parked]

    assert parked["reason"] == ParkReason.SOURCE_OVERSIZED
    assert f"its {len(large):,} bytes are more than {size:,} bytes decompressed" in parked["facts"]
    end = 3 + (size >> 24) + 1
    assert f"adopt {runs.flow.name} {topic} 0 {end} " in parked["remedy"]
    assert len(list(records_of(nyc, f"sf.{topic}"))) == 3
    at = TopicPartition(topic, 0)
    adopt_partition(runs.flow, runs.source, runs.target, at, end, Reason(by="test", because="as it is said"))
    assert runs.run().lag == 0
    assert [r[1] for r in records_of(nyc, f"sf.{topic}")] == [b"k0", b"k1", b"k2", b"k0", b"k1"]


def test_a_codec_that_asks_for_too_much_is_cured_by_the_setting_that_is_named(
    runs: InlineFlow, sf: LabCluster, nyc: LabCluster
) -> None:
    """It crosses as it is once the target's topic keeps each producer's codec."""
    topic, size = topic_of(runs), DEFAULT_DECOMPRESSED_LIMIT_BYTES
    create_topic(sf, topic)
    create_topic(nyc, f"sf.{topic}", compression_type="lz4")
    large = batch_of((size >> 24) + 1, 16)
    append(sf, topic, large)
    (parked,) = [p.parked for p in runs.run().partitions.values() if p.parked]
    assert parked["remedy"].startswith(f"set compression.type of sf.{topic} on the target to producer")

    set_on_topic(nyc, f"sf.{topic}", "compression.type", "producer")
    report = runs.run()
    assert (report.lag, report.parked) == (0, [])
    with RawLog(nyc) as log:
        ((_, crossed),) = log.batches(TopicPartition(f"sf.{topic}", 0))
    assert crossed[61:] == large[61:]
