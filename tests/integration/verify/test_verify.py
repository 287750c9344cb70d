"""Record-by-record verification on two real clusters: equal is equal, and each planted fault is named."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient

from causeway.brokers.admin.topics import ClusterAdmin
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import AuthenticationFailed, ClusterUnreachable
from causeway.core.kernel.identity import SourceOffset, TopicPartition
from causeway.core.topics.plan import NewTopicPlan
from causeway.core.verify.report import Kind, PartitionVerdict, VerifyReport
from causeway.lab.access import Right
from causeway.lab.cluster import LabCluster
from causeway.render.verify import verdict_text
from causeway.usecases.verify.partition_pair import PartitionPair
from causeway.usecases.verify.partitions import VerifyProgress, verify_flow
from tests.support.mirroring import Mirror, make_flow
from tests.support.quick import init_transactions, quick_producer

pytestmark = pytest.mark.integration
TopicName = Callable[..., str]
LabClusterFactory = Callable[..., LabCluster]
Record = dict[str, Any]
# Older than a broker's retention (a week) and its cleaner would delete what is being compared.
BIRTH_MS = int(time.time() * 1000) - 3_600_000


def story(count: int) -> list[Record]:
    """Keys, tombstones, empty and binary values, headers that repeat or are null, times that go back."""
    return [
        {
            "key": None if i % 7 == 0 else f"key-{i % 5}".encode(),
            "value": None if i % 11 == 0 else b"" if i % 13 == 0 else f"value-{i}\x00\xff".encode("latin-1"),
            "timestamp": BIRTH_MS + i - (500 if i % 17 == 0 else 0),
            "headers": [("h", b"1"), ("h", b"2"), ("null", None), ("empty", b"")] if i % 3 == 0 else None,
        }
        for i in range(count)
    ]


def write(endpoint: ClusterEndpoint, topic: str, records: Sequence[Record], partition: int = 0) -> None:
    producer = quick_producer(endpoint, linger_ms=5)
    send(producer, topic, records, partition)
    assert producer.flush(60) == 0


def send(producer: Producer, topic: str, records: Sequence[Record], partition: int = 0) -> None:
    for record in records:
        producer.produce(
            topic, partition=partition, **{k: v for k, v in record.items() if k != "headers" or v}
        )
        producer.poll(0)


def write_in_transactions(
    endpoint: ClusterEndpoint, topic: str, transactions: Sequence[tuple[Sequence[Record], bool]]
) -> None:
    """Each with whether it is committed."""
    producer = Producer({**endpoint.settings, "transactional.id": f"writer-{topic}"})
    init_transactions(producer, 30)
    for records, is_committed in transactions:
        producer.begin_transaction()
        send(producer, topic, records)
        producer.flush(30)
        producer.commit_transaction(30) if is_committed else producer.abort_transaction(30)


class Stage:
    """A topic of its own on both clusters, with its name on the target."""

    def __init__(self, source: LabCluster, target: LabCluster, topic: str) -> None:
        self.source, self.target = source.endpoint(), target.endpoint()
        self.topic, self.mirror = topic, f"sf.{topic}"

    def create(self, partitions: int = 1, source_settings: dict[str, str] | None = None) -> Stage:
        for endpoint, name, settings in (
            (self.source, self.topic, source_settings or {}),
            (self.target, self.mirror, {}),
        ):
            admin = ClusterAdmin(endpoint)
            assert admin.create_topics([NewTopicPlan(name, partitions, tuple(settings.items()))]) == {}
            admin.wait_for_leaders({name: partitions})
        return self

    def pair(self, partition: int = 0, first: int | None = None) -> PartitionPair:
        return PartitionPair(
            source=TopicPartition(self.topic, partition),
            target=TopicPartition(self.mirror, partition),
            first_source_offset=None if first is None else SourceOffset(first),
        )

    def verify(self, *, first: int | None = None, source_end: int | None = None) -> PartitionVerdict:
        pair = self.pair(first=first)
        ends = {} if source_end is None else {pair.source: SourceOffset(source_end)}
        report = verify_flow(self.source, self.target, [pair], ends=ends)
        (verdict,) = report.partitions
        assert report.exit_code == (0 if verdict.is_equal else 1)
        return verdict


@pytest.fixture
def stage(sf: LabCluster, nyc: LabCluster, topic_name: TopicName) -> Stage:
    return Stage(sf, nyc, topic_name("verify"))


def delete_before(admin: AdminClient, topic: str, offset: int) -> None:
    for answer in admin.delete_records([KafkaPartition(topic, 0, offset)]).values():
        answer.result(30)


def counts(verdict: PartitionVerdict) -> tuple[int, int, int, int]:
    return verdict.equal, verdict.different, verdict.missing, verdict.extra


def test_equal_partitions_are_equal_and_progress_is_reported(stage: Stage) -> None:
    stage.create(partitions=3)
    for partition, count in enumerate((10_000, 0, 37)):
        for endpoint, topic in ((stage.source, stage.topic), (stage.target, stage.mirror)):
            write(endpoint, topic, story(count), partition)
    told: list[VerifyProgress] = []
    report: VerifyReport = verify_flow(
        stage.source, stage.target, [stage.pair(p) for p in range(3)], on_progress=told.append
    )
    assert [counts(verdict) for verdict in report.partitions] == [
        (10_000, 0, 0, 0),
        (0, 0, 0, 0),
        (37, 0, 0, 0),
    ]
    assert (report.exit_code, report.records_equal) == (0, 10_037)
    assert told[-1] == VerifyProgress(10_037, 3, 3)
    assert [each.records_equal for each in told] == sorted(each.records_equal for each in told)


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("value", {"value": b"other"}),
        ("key", {"key": b"other"}),
        ("headers", {"headers": [("h", b"2"), ("h", b"1")]}),
        ("timestamp", {"timestamp": BIRTH_MS}),
    ],
)
def test_one_changed_record_is_named(stage: Stage, field: str, change: Record) -> None:
    records = story(5000)
    stage.create()
    write(stage.source, stage.topic, records)
    write(stage.target, stage.mirror, [*records[:4321], {**records[4321], **change}, *records[4322:]])
    verdict = stage.verify()
    assert counts(verdict) == (4999, 1, 0, 0)
    (difference,) = verdict.differences
    assert (difference.field, difference.source_offset, difference.target_offset) == (field, 4321, 4321)


def test_one_lost_and_one_repeated_record_are_named(stage: Stage) -> None:
    records = story(5000)
    stage.create()
    write(stage.source, stage.topic, records)
    write(stage.target, stage.mirror, [*records[:1000], *records[1001:3000], *records[2999:]])
    verdict = stage.verify()
    assert counts(verdict) == (4999, 0, 1, 1)
    assert [(d.kind, d.source_offset, d.target_offset) for d in verdict.differences] == [
        (Kind.MISSING, 1000, None),
        (Kind.EXTRA, None, 2999),
    ]


def test_aborted_records_and_markers_do_not_count_on_either_side(stage: Stage) -> None:
    records = story(900)
    stage.create()
    write_in_transactions(
        stage.source,
        stage.topic,
        [(records[:300], True), (story(50), False), (records[300:], True), (story(20), False)],
    )
    write_in_transactions(stage.target, stage.mirror, [(story(10), False), (records, True)])
    assert counts(stage.verify(source_end=974)) == (900, 0, 0, 0)


def test_what_the_target_does_not_have_is_lag_or_missing_as_the_caller_says(stage: Stage) -> None:
    records = story(1000)
    stage.create()
    write(stage.source, stage.topic, records)
    write(stage.target, stage.mirror, records[:600])
    behind = stage.verify()
    assert (counts(behind), behind.behind) == ((600, 0, 0, 0), 400)
    missing = stage.verify(source_end=700)
    assert (counts(missing), missing.behind) == ((600, 0, 100, 0), 300)


def test_a_foreign_record_after_the_last_mirrored_one_is_extra(stage: Stage) -> None:
    stage.create()
    write(stage.source, stage.topic, story(100))
    write(stage.target, stage.mirror, [*story(100), {"value": b"foreign"}])
    assert counts(stage.verify()) == (100, 0, 0, 1)


def test_a_flow_that_began_later_is_compared_from_there(stage: Stage) -> None:
    stage.create()
    write(stage.source, stage.topic, story(1000))
    write(stage.target, stage.mirror, story(1000)[400:])
    assert counts(stage.verify(first=400, source_end=1000)) == (600, 0, 0, 0)


def test_what_retention_deleted_on_the_target_is_gone(stage: Stage, nyc_admin: AdminClient) -> None:
    stage.create()
    write(stage.source, stage.topic, story(1000))
    write(stage.target, stage.mirror, story(1000))
    delete_before(nyc_admin, stage.mirror, 250)
    verdict = stage.verify(source_end=1000)
    assert (counts(verdict), verdict.gone_on_target) == ((750, 0, 0, 0), 250)


def test_what_retention_deleted_on_the_source_is_gone(stage: Stage, sf_admin: AdminClient) -> None:
    stage.create()
    write(stage.source, stage.topic, story(1000))
    write(stage.target, stage.mirror, story(1000))
    delete_before(sf_admin, stage.topic, 250)
    verdict = stage.verify()
    assert (counts(verdict), verdict.gone_on_source) == ((750, 0, 0, 0), 250)
    delete_before(sf_admin, stage.topic, 1000)
    assert stage.verify().gone_on_source == 1000


def test_log_append_time_becomes_create_time_of_the_same_value(stage: Stage, nyc_admin: AdminClient) -> None:
    stage.create(source_settings={"message.timestamp.type": "LogAppendTime"})
    write(stage.source, stage.topic, [{"value": b"x"}])
    write(stage.target, stage.mirror, [{"value": b"x", "timestamp": BIRTH_MS}])
    verdict = stage.verify()
    assert counts(verdict) == (0, 1, 0, 0)
    stamp = int(verdict.differences[0].source_value.split()[0])
    assert abs(stamp - BIRTH_MS) > 1000
    delete_before(nyc_admin, stage.mirror, 1)
    write(stage.target, stage.mirror, [{"value": b"x", "timestamp": stamp}])
    assert counts(stage.verify()) == (1, 0, 0, 0)


def test_large_records_are_compared_in_bounded_buffers(stage: Stage) -> None:
    records = [{"value": bytes([i]) * 900_000, "timestamp": BIRTH_MS + i} for i in range(60)]
    stage.create()
    write(stage.source, stage.topic, records)
    write(stage.target, stage.mirror, records)
    assert counts(stage.verify(source_end=60)) == (60, 0, 0, 0)


def test_of_a_compacted_topic_all_that_both_sides_hold_is_compared(
    sf: LabCluster, nyc: LabCluster, topic_name: TopicName, nyc_admin: AdminClient
) -> None:
    """Not only the last record of each key: nothing has been cleaned."""
    topic = topic_name("compacted")
    compact = (("cleanup.policy", "compact,delete"),)
    assert ClusterAdmin(sf.endpoint()).create_topics([NewTopicPlan(topic, 1, compact)]) == {}
    ClusterAdmin(sf.endpoint()).wait_for_leaders({topic: 1})
    records = [{**each, "key": f"key-{n % 5}".encode()} for n, each in enumerate(story(400))]
    write(sf.endpoint(), topic, records)
    mirror = Mirror(make_flow(topic.replace("-", "_"), topic), sf, nyc)
    mirror.run()
    report = mirror.verify()
    assert (report.records_equal, report.exit_code) == (400, 0)
    assert "400 records compared equal, in pairs that the offset map names" in verdict_text("f", report)
    delete_before(nyc_admin, f"sf.{topic}", 250)
    (verdict,) = mirror.verify().partitions
    assert (verdict.equal, verdict.gone_on_target, verdict.is_equal) == (150, 250, True)
    write(nyc.endpoint(), f"sf.{topic}", [{"key": b"key-1", "value": b"foreign"}])
    assert [each.extra for each in mirror.verify().unequal] == [1]
    mirror.close()


def test_a_topic_that_is_not_there_is_the_trouble_of_its_partition_only(stage: Stage) -> None:
    stage.create()
    write(stage.source, stage.topic, story(10))
    write(stage.target, stage.mirror, story(10))
    absent = PartitionPair(source=TopicPartition(stage.topic, 0), target=TopicPartition("sf.absent", 0))
    report = verify_flow(stage.source, stage.target, [absent, stage.pair()])
    assert [verdict.is_equal for verdict in report.partitions] == [False, True]
    assert "sf.absent" in report.partitions[0].trouble
    assert report.exit_code == 1


def test_a_cluster_that_is_not_there_is_an_error(stage: Stage) -> None:
    nowhere = ClusterEndpoint("nyc", {"bootstrap.servers": "127.0.0.1:1"})
    with pytest.raises(ClusterUnreachable):
        verify_flow(stage.source, nowhere, [])


def test_with_the_right_to_read_and_no_right_to_any_group(
    lab_clusters: LabClusterFactory, sf: LabCluster, topic_name: TopicName
) -> None:
    guarded = lab_clusters("guarded_verify", security="SASL_SSL", users=("auditor",))
    stage = Stage(sf, guarded, topic_name("verify")).create()
    write(stage.source, stage.topic, story(1000))
    write(stage.target, stage.mirror, story(1000))
    stage.target = guarded.endpoint("auditor")
    refused = stage.verify()
    assert f"--operation Describe --topic {stage.mirror}" in refused.trouble
    guarded.grant("auditor", Right("topic", stage.mirror, "read"))
    assert counts(stage.verify(source_end=1000)) == (1000, 0, 0, 0)
    wrong = ClusterEndpoint("nyc", {**stage.target.settings, "sasl.password": "wrong"})
    with pytest.raises(AuthenticationFailed):
        verify_flow(stage.source, wrong, [])
