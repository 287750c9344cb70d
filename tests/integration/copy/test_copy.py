"""The copy between two real brokers: everything crosses once, in order, and nothing else is written."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from causeway.brokers.transport.connection import Network, Wire
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.kernel.identity import SourceOffset, TopicPartition
from causeway.core.model.flow import Start
from causeway.core.model.naming import IdentityNaming
from causeway.core.offsets.offset_map import MappedRange
from causeway.lab.clients import wait_for_leaders
from causeway.lab.cluster import LabCluster
from causeway.lab.story import tell_story
from causeway.usecases.inspect.flow_status import inspect_flow
from causeway.usecases.repair.adopt import adopt_partition
from causeway.usecases.repair.set_positions import Reason
from tests.support.mirroring import Mirror, end_offsets, make_flow
from tests.support.quick import init_transactions
from tests.support.reading import content, messages

pytestmark = pytest.mark.integration
TopicName = Callable[..., str]


@pytest.fixture
def mirror_of(sf: LabCluster, nyc: LabCluster) -> Iterator[Callable[..., Mirror]]:
    made: list[Mirror] = []

    def make(name: str, *topics: str, target: LabCluster = nyc, **changes: Any) -> Mirror:
        made.append(Mirror(make_flow(name.replace("-", "_"), *topics, **changes), sf, target))
        return made[-1]

    yield make
    for mirror in made:
        mirror.close()


def create(cluster: LabCluster, name: str, partitions: int = 1, **config: str) -> None:
    client = AdminClient(dict(cluster.endpoint().settings))
    settings = {key.replace("_", "."): value for key, value in config.items()}
    for answer in client.create_topics([NewTopic(name, partitions, config=settings)]).values():
        answer.result(20)
    wait_for_leaders(client, {name: partitions})


def write(cluster: LabCluster, topic: str, values: range, partition: int = 0, **settings: Any) -> None:
    producer = Producer({**cluster.endpoint().settings, "linger.ms": 5, **settings})
    for n in values:
        producer.produce(topic, f"{n}".encode(), f"key {n % 7}".encode(), partition=partition)
    assert producer.flush(30) == 0


def read_values(cluster: LabCluster, topic: str, partition: int = 0) -> list[int]:
    return [int(message.value()) for message in messages(cluster, topic, partition)]


@pytest.fixture(scope="module")
def told(sf: LabCluster) -> LabCluster:
    """A source with every codec, transactions with aborts, tombstones, headers, an empty topic."""
    tell_story(sf.endpoint(), seed=11, records=4_000)
    return sf


STORY = ("orders", "payments-(eu|us)", "events-[a-z0-9]+", "ledger", "clicks", "quiet")


@pytest.mark.parametrize("version", ["v2", "v1"])
def test_a_story_crosses_record_by_record_and_a_second_run_writes_nothing(
    version: str, told: LabCluster, mirror_of: Callable[..., Mirror], request: pytest.FixtureRequest
) -> None:
    target: LabCluster = request.getfixturevalue("nyc" if version == "v2" else "nyc_v1")
    mirror = mirror_of(f"story_{version}", *STORY, target=target)

    first = mirror.run()

    assert first.outcome == "caught up"
    assert [each for each in first.partitions.values() if each.lag or each.parked] == [], mirror.said
    assert first.lag == 0
    verdict = mirror.verify()
    assert verdict.unequal == ()
    compared = sum(v.equal for v in verdict.partitions if v.source.topic != "clicks")  # that one is compacted
    assert compared == sum(p.records for tp, p in first.partitions.items() if tp.topic != "clicks") > 3_000
    before = end_offsets(target, of="sf.")

    second = mirror.run()

    assert (second.records, second.transactions, second.lag) == (0, 0, 0)
    assert end_offsets(target, of="sf.") == before


def test_idle_partitions_show_no_lag_after_markers(
    sf: LabCluster, mirror_of: Callable[..., Mirror], topic_name: TopicName
) -> None:
    topic = topic_name("marked")
    create(sf, topic)
    producer = Producer({**sf.endpoint().settings, "transactional.id": topic})
    init_transactions(producer, 20)
    for ending in ("commit", "abort", "abort"):
        producer.begin_transaction()
        producer.produce(topic, b"1")
        producer.flush(20)
        if ending == "commit":
            producer.commit_transaction(20)
        else:
            producer.abort_transaction(20)
    mirror = mirror_of(topic, topic)

    report = mirror.run()

    assert (report.records, report.lag) == (1, 0)
    assert inspect_flow(mirror.flow, sf.endpoint(), mirror.target.endpoint()).plan.lag == 0
    assert read_values(mirror.target, f"sf.{topic}") == [1]
    before = end_offsets(mirror.target, of=f"sf.{topic}")
    assert mirror.run().transactions == 0
    assert end_offsets(mirror.target, of=f"sf.{topic}") == before


def test_new_topics_and_partitions_are_followed_without_a_restart(
    sf: LabCluster, mirror_of: Callable[..., Mirror], topic_name: TopicName
) -> None:
    stem = topic_name("grows")
    create(sf, f"{stem}.a")
    write(sf, f"{stem}.a", range(10))
    mirror = mirror_of(stem, f"{stem}.*")

    def grow() -> None:
        _wait_until(lambda: ("sf." + f"{stem}.a", 0) in end_offsets(mirror.target, of=f"sf.{stem}"))
        create(sf, f"{stem}.b")
        write(sf, f"{stem}.b", range(20))
        client = AdminClient(dict(sf.endpoint().settings))
        client.create_partitions([NewPartitions(f"{stem}.a", 2)])[f"{stem}.a"].result(20)
        write(sf, f"{stem}.a", range(100, 130), partition=1)

    grower = threading.Thread(target=grow)
    grower.start()
    report = mirror.run(run_for_seconds=12)
    grower.join()

    assert report.outcome == "time over"
    assert read_values(mirror.target, f"sf.{stem}.b") == list(range(20))
    assert read_values(mirror.target, f"sf.{stem}.a") == list(range(10))
    assert read_values(mirror.target, f"sf.{stem}.a", 1) == list(range(100, 130))


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "waited for a minute"
        time.sleep(0.1)


def test_a_flow_that_starts_latest_takes_what_comes_after_and_keeps_its_start(
    sf: LabCluster, mirror_of: Callable[..., Mirror], topic_name: TopicName
) -> None:
    topic = topic_name("latest")
    create(sf, topic)
    write(sf, topic, range(50))
    mirror = mirror_of(topic, topic, start=Start("latest"))
    assert mirror.run().records == 0

    write(sf, topic, range(50, 80))

    assert mirror.run().records == 30
    assert read_values(mirror.target, f"sf.{topic}") == list(range(50, 80))
    assert mirror.verify().unequal == ()


def test_a_flow_that_starts_at_a_timestamp_begins_inside_a_batch(
    sf: LabCluster, mirror_of: Callable[..., Mirror], topic_name: TopicName
) -> None:
    topic = topic_name("since")
    create(sf, topic)
    now = int(time.time() * 1000)
    producer = Producer({**sf.endpoint().settings, "linger.ms": 200})
    for n in range(100):
        producer.produce(topic, f"{n}".encode(), timestamp=now - 100_000 + n * 1_000)
    producer.flush(20)
    mirror = mirror_of(topic, topic, start=Start("timestamp", now - 100_000 + 37_000))

    report = mirror.run()

    assert read_values(mirror.target, f"sf.{topic}") == list(range(37, 100))
    (partition,) = report.partitions.values()
    assert partition.repacked_batches == {"starts_inside": 1}
    assert mirror.verify().unequal == ()


def test_log_append_time_survives_and_compacted_batches_cross(
    sf: LabCluster, mirror_of: Callable[..., Mirror], topic_name: TopicName
) -> None:
    topic = topic_name("stamped")
    create(sf, topic, message_timestamp_type="LogAppendTime")
    lz4: dict[str, Any] = {"compression.type": "lz4"}
    write(sf, topic, range(300), **lz4)
    mirror = mirror_of(topic, topic)

    report = mirror.run()

    assert sum(p.repacked_batches.get("log_append_time", 0) for p in report.partitions.values()) > 0
    assert mirror.verify().unequal == ()
    assert read_values(mirror.target, f"sf.{topic}") == list(range(300))


def test_the_offset_map_points_each_source_record_at_its_copy(
    told: LabCluster, mirror_of: Callable[..., Mirror], topic_name: TopicName
) -> None:
    mirror = mirror_of(topic_name("mapped"), "ledger", naming=IdentityNaming())
    mirror.run()
    for partition in (0, 1):
        target = TopicPartition("ledger", partition)
        runs = _runs(mirror, target)
        source_records = _by_offset(told, "ledger", partition)
        target_records = _by_offset(mirror.target, "ledger", partition)
        mapped = {
            run.source_of(at): int(at)
            for run in runs
            for at in (type(run.target_first)(run.target_first + n) for n in range(run.count))
        }
        assert set(mapped) == set(source_records)
        assert {source_records[s] for s in mapped} == {target_records[t] for t in mapped.values()}
        assert all(source_records[s] == target_records[t] for s, t in mapped.items())


def _runs(mirror: Mirror, target: TopicPartition) -> list[MappedRange]:
    network = Network()
    log = WireTarget(Wire(mirror.target.endpoint(), network))

    async def read() -> list[MappedRange]:
        await log.wire.connect()
        return (await log.map_runs(mirror.flow.map_topic, [target]))[target]

    try:
        return network.run(read)
    finally:
        log.wire.disconnect()
        network.close()


def _by_offset(cluster: LabCluster, topic: str, partition: int) -> dict[int, tuple[Any, ...]]:
    return {message.offset(): content(message) for message in messages(cluster, topic, partition)}


def test_adopt_goes_on_where_a_person_says(
    sf: LabCluster, nyc: LabCluster, mirror_of: Callable[..., Mirror], topic_name: TopicName
) -> None:
    topic = topic_name("adopted")
    create(sf, topic)
    create(nyc, topic)
    write(sf, topic, range(40))
    write(nyc, topic, range(25))  # somebody else mirrored the first 25
    mirror = mirror_of(topic, topic, naming=IdentityNaming())
    parked = mirror.run().parked
    assert [p.parked["reason"] for p in parked if p.parked] == ["foreign data on the target"]

    done = adopt_partition(
        mirror.flow,
        sf.endpoint(),
        nyc.endpoint(),
        TopicPartition(topic, 0),
        25,
        Reason(by="a test", because="the first 25 are there"),
    )

    assert (done.source_offset, done.target_offset) == (25, 25)
    assert mirror.run().records == 15
    assert read_values(nyc, topic) == list(range(40))


def test_a_position_that_expired_is_rebuilt_from_the_map(
    sf: LabCluster, nyc: LabCluster, mirror_of: Callable[..., Mirror], topic_name: TopicName
) -> None:
    topic = topic_name("expired")
    create(sf, topic)
    write(sf, topic, range(30))
    mirror = mirror_of(topic, topic)
    mirror.run()
    write(sf, topic, range(30, 45))
    client = AdminClient(dict(nyc.endpoint().settings))
    client.delete_consumer_groups([mirror.flow.group])[mirror.flow.group].result(20)

    report = mirror.run()

    assert report.records == 15
    assert SourceOffset(30) in {run.source_first for run in _runs(mirror, TopicPartition(f"sf.{topic}", 0))}
    assert read_values(nyc, f"sf.{topic}") == list(range(45))


def test_a_compacted_topic_keeps_the_last_value_of_each_key(
    sf: LabCluster, nyc: LabCluster, mirror_of: Callable[..., Mirror], topic_name: TopicName
) -> None:
    """The source's cleaner makes holes before the copy, the target's by itself after it."""
    topic = topic_name("compacted")
    create(sf, topic, cleanup_policy="compact", segment_ms="100", min_cleanable_dirty_ratio="0.01")
    for start in range(0, 400, 50):
        write(sf, topic, range(start, start + 50))
        time.sleep(0.2)  # a segment of its own
    _wait_until(lambda: len(read_values(sf, topic)) < 300)
    mirror = mirror_of(topic, topic)

    report = mirror.run()

    assert sum(p.repacked_batches.get("holes", 0) for p in report.partitions.values()) > 0
    assert report.records < 300
    verdict = mirror.verify()
    assert verdict.unequal == ()
    assert 7 <= verdict.records_equal <= report.records, "what no cleaner has taken meanwhile"
    write(nyc, f"sf.{topic}", range(7, 8))  # a foreign last value for one key
    assert [v.extra for v in mirror.verify().unequal] == [1]


def test_a_target_topic_recreated_in_the_middle_of_a_run_is_not_begun_again(
    sf: LabCluster, nyc: LabCluster, mirror_of: Callable[..., Mirror], topic_name: TopicName
) -> None:
    topic = topic_name("anew")
    create(sf, topic)
    write(sf, topic, range(20))
    mirror = mirror_of(topic, topic)
    target_topic = f"sf.{topic}"

    def make_anew() -> None:
        _wait_until(lambda: end_offsets(nyc, of=target_topic).get((target_topic, 0), (0, 0))[1] >= 20)
        client = AdminClient(dict(nyc.endpoint().settings))
        client.delete_topics([target_topic])[target_topic].result(20)
        _wait_until(lambda: not end_offsets(nyc, of=target_topic))
        create(nyc, target_topic)
        write(sf, topic, range(20, 40))

    maker = threading.Thread(target=make_anew)
    maker.start()
    report = mirror.run(run_for_seconds=15)
    maker.join()
    again = mirror.run()

    for each in (report, again):
        assert [p.parked["reason"] for p in each.parked if p.parked] == ["target topic deleted or recreated"]
    assert read_values(nyc, target_topic) == []
