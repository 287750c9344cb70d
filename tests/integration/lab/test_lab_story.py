"""The story is all there, and the same for the same seed."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable

import pytest
from confluent_kafka import Consumer, Message, TopicPartition

from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.lab.cluster import LabCluster
from causeway.lab.live import LiveProducer, parse_live_value
from causeway.lab.story import CODECS, Story, tell_story
from tests.support.quick import QUICK_READER

pytestmark = pytest.mark.integration
LabClusterFactory = Callable[..., LabCluster]
# Both tellings end at one time, and it is recent: what is older than a week is deleted under the reader.
ENDS_AT_MS = time.time_ns() // 1_000_000


def read_topic(endpoint: ClusterEndpoint, topic: str, *, isolation: str = "read_committed") -> list[Message]:
    """Every record that this reader sees, partition by partition, in order."""
    settings = {"group.id": "unused", "isolation.level": isolation, "enable.partition.eof": True}
    consumer = Consumer({**endpoint.settings, **settings, **QUICK_READER, "enable.auto.commit": False})
    partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    consumer.assign([TopicPartition(topic, partition, 0) for partition in partitions])
    found: list[Message] = []
    open_partitions = set(partitions)
    while open_partitions:
        message = consumer.poll(30)
        if message is None:  # not `not message`: a tombstone has no length, so it is false
            pytest.fail(f"{topic}: nothing came")
        if message.error():
            open_partitions.discard(message.partition())
        else:
            found.append(message)
    consumer.close()
    return sorted(found, key=lambda message: (message.partition(), message.offset()))


def content(message: Message) -> tuple[object, ...]:
    return message.partition(), message.key(), message.value(), message.headers(), message.timestamp()


@pytest.fixture(scope="module")
def told(sf: LabCluster, lab_clusters: LabClusterFactory) -> LabCluster:
    return lab_clusters("story")


@pytest.fixture(scope="module")
def story(told: LabCluster) -> Story:
    return tell_story(told.endpoint(), seed=7, records=2_000, ends_at_ms=ENDS_AT_MS)


def test_a_committed_reader_sees_what_the_story_says(told: LabCluster, story: Story) -> None:
    for topic, count in story.records.items():
        if topic != "clicks":  # compaction may have begun
            assert len(read_topic(told.endpoint(), topic)) == count, topic
    assert read_topic(told.endpoint(), "quiet") == []


def test_orders_have_keys_headers_and_tombstones(told: LabCluster, story: Story) -> None:
    orders = read_topic(told.endpoint(), "orders")
    assert {order.partition() for order in orders} == {0, 1, 2, 3}
    assert all(order.key() and len(order.headers()) == 2 for order in orders)
    assert sum(order.value() is None for order in orders) == story.records["orders"] // 20


def test_the_ledger_holds_aborted_records_that_only_some_readers_see(told: LabCluster, story: Story) -> None:
    everything = read_topic(told.endpoint(), "ledger", isolation="read_uncommitted")
    assert story.aborted["ledger"] > 0
    assert len(everything) == story.records["ledger"] + story.aborted["ledger"]


@pytest.mark.parametrize("codec", CODECS)
def test_every_codec_has_its_topic(told: LabCluster, story: Story, codec: str) -> None:
    """Read from the log itself: the codec is in the low three bits of each batch's attributes."""
    codecs: Counter[int] = Counter()
    for segment in told.log_path().parent.glob(f"data/events-{codec}-*/*.log"):
        log = segment.read_bytes()
        while len(log) > 61 and log[16] == 2:
            codecs[log[22] & 7] += 1
            log = log[12 + int.from_bytes(log[8:12], "big") :]
    assert list(codecs) == [CODECS.index(codec)]


def test_the_same_seed_tells_the_same_story_and_another_one_another(
    told: LabCluster, story: Story, lab_clusters: LabClusterFactory
) -> None:
    again = lab_clusters("story_again")
    assert tell_story(again.endpoint(), seed=7, records=2_000, ends_at_ms=ENDS_AT_MS) == story
    for topic in ("orders", "ledger", "payments-eu"):
        first = list(map(content, read_topic(told.endpoint(), topic)))
        assert list(map(content, read_topic(again.endpoint(), topic))) == first, topic
    tell_story(again.endpoint(), seed=8, records=200, ends_at_ms=ENDS_AT_MS)
    payments = list(map(content, read_topic(told.endpoint(), "payments-eu")))
    longer = list(map(content, read_topic(again.endpoint(), "payments-eu")))
    assert len(longer) > len(payments)
    assert [each for each in longer if each in payments] == payments


def test_a_live_producer_loses_and_repeats_nothing_though_its_broker_is_killed(
    lab_cluster: LabClusterFactory,
) -> None:
    cluster = lab_cluster("live")
    with LiveProducer(cluster.endpoint(), records_per_second=2_000, partitions=3) as live:
        wait_for(lambda: live.delivered > 500)
        cluster.kill()
        cluster.start()
        before = live.delivered
        wait_for(lambda: live.delivered > before + 500)
    written = live.delivered
    numbers: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for message in read_topic(cluster.endpoint(), live.topic):
        numbers[message.partition()].append(parse_live_value(message.value()).number)
    assert numbers == {partition: list(range(partition, written, 3)) for partition in range(3)}


def wait_for(condition: Callable[[], bool]) -> None:
    pause = threading.Event()
    while not condition():
        pause.wait(0.05)
