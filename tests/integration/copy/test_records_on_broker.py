"""Bytes that we write pass a real broker; bytes that it stores are read as its clients read them."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka.net import KafkaConnectionManager, NetworkSelector
from kafka.protocol.consumer import FetchRequest
from kafka.protocol.metadata import FindCoordinatorRequest
from kafka.protocol.producer import EndTxnRequest, InitProducerIdRequest, ProduceRequest

from causeway.core.copy.repack import Repack, Verbatim, choose_way, repack
from causeway.core.records.batches import BatchHead, check_crc, is_control_marker, rebase, split_batches
from causeway.core.records.compression import Codec
from causeway.core.records.records import Record, decode_records, encode_batch
from causeway.lab.clients import wait_for_leaders
from causeway.lab.cluster import LabCluster
from tests.conftest import AdminOf, LabClusterFactory
from tests.support.quick import QUICK_READER

pytestmark = pytest.mark.integration

Batches = list[tuple[BatchHead, memoryview]]
NewTopics = Callable[..., str]

NODE = 1
BASE_MS = 1_700_000_000_000
RECORDS = [
    Record(0, BASE_MS, b"key", b"value" * 40, ((b"h", b"1"), (b"h", None), (b"", b""))),
    Record(1, BASE_MS + 5, None, b""),
    Record(2, BASE_MS - 60_000, b"", None),
    Record(3, BASE_MS + 1, b"\x00\xff", b"x" * 200_000),
    *(Record(n, BASE_MS + n, b"k%d" % (n % 7), b"some text %d " % n * 9) for n in range(4, 1_000)),
]
NOBODY: dict[str, Any] = {"producer_id": -1, "producer_epoch": -1, "base_sequence": -1}


class RawBroker:
    """Produce and Fetch with bytes, on a cluster of one node."""

    def __init__(self, bootstrap_servers: str) -> None:
        self.network = NetworkSelector()
        self.manager = KafkaConnectionManager(
            self.network, bootstrap_servers=bootstrap_servers, client_id="raw"
        )
        self.manager.bootstrap(10_000)

    def close(self) -> None:
        self.manager.close()
        self.network.close()

    def send(self, request: Any) -> Any:
        async def answer() -> Any:
            return await self.manager.send(request, NODE)

        return self.network.run(answer)

    def append(
        self, topic: str, batch: bytes | bytearray, transactional_id: str | None = None
    ) -> tuple[int, int]:
        """The error code and the offset of the batch."""
        data = ProduceRequest.TopicProduceData
        answer = self.send(
            ProduceRequest(
                transactional_id=transactional_id,
                acks=-1,
                timeout_ms=10_000,
                topic_data=[
                    data(
                        name=topic, partition_data=[data.PartitionProduceData(index=0, records=bytes(batch))]
                    )
                ],
                max_version=12,
            )
        )
        (partition,) = answer.responses[0].partition_responses
        return partition.error_code, partition.base_offset

    def fetch(self, topic: str, offset: int = 0) -> bytes:
        wanted = FetchRequest.FetchTopic
        answer = self.send(
            FetchRequest(
                replica_id=-1,
                max_wait_ms=500,
                min_bytes=1,
                max_bytes=50 << 20,
                isolation_level=0,
                session_id=0,
                session_epoch=-1,
                topics=[
                    wanted(
                        topic=topic,
                        partitions=[
                            wanted.FetchPartition(
                                partition=0,
                                current_leader_epoch=-1,
                                fetch_offset=offset,
                                last_fetched_epoch=-1,
                                log_start_offset=-1,
                                partition_max_bytes=50 << 20,
                            )
                        ],
                    )
                ],
                forgotten_topics_data=[],
                rack_id="",
                max_version=12,
            )
        )
        (partition,) = answer.responses[0].partitions
        assert partition.error_code == 0
        return bytes(partition.records or b"")

    def fetch_all(self, topic: str, end: int) -> Batches:
        """Every stored batch up to `end`, checksums looked at; an answer ends with its segment."""
        batches: Batches = []
        offset = 0
        deadline = time.monotonic() + 30
        while offset < end:
            found = list(split_batches(self.fetch(topic, offset)))
            assert found or time.monotonic() < deadline, f"nothing at {offset}"
            if not found:  # markers come a little after EndTxn's answer
                continue
            for head, batch in found:
                check_crc(batch, head)
            batches += found
            offset = found[-1][0].next_offset
        return batches

    def claim(self, transactional_id: str) -> tuple[int, int]:
        self.send(
            FindCoordinatorRequest(key=transactional_id, key_type=1, coordinator_keys=[transactional_id])
        )
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            answer = self.send(
                InitProducerIdRequest(
                    transactional_id=transactional_id,
                    transaction_timeout_ms=60_000,
                    producer_id=-1,
                    producer_epoch=-1,
                )
            )
            if answer.error_code == 0:
                return answer.producer_id, answer.producer_epoch
            time.sleep(0.1)
        raise AssertionError(answer)

    def end(self, transactional_id: str, producer_id: int, producer_epoch: int, *, committed: bool) -> Any:
        return self.send(
            EndTxnRequest(
                transactional_id=transactional_id,
                producer_id=producer_id,
                producer_epoch=producer_epoch,
                committed=committed,
            )
        )


@pytest.fixture
def raw(sf: LabCluster) -> Iterator[RawBroker]:
    broker = RawBroker(sf.bootstrap_servers)
    yield broker
    broker.close()


@pytest.fixture
def new_topic(sf_admin: AdminClient, topic_name: Callable[..., str]) -> NewTopics:
    def make(**config: str) -> str:
        return create(sf_admin, topic_name("records"), **config)

    return make


def create(admin: AdminClient, name: str, **config: str) -> str:
    """Kept for ever: the records are from 2023, and brokers delete by the time in them."""
    settings = {"retention.ms": "-1"} | {key.replace("_", "."): value for key, value in config.items()}
    for future in admin.create_topics([NewTopic(name, 1, 1, config=settings)]).values():
        future.result(30)
    wait_for_leaders(admin, {name: 1})
    return name


def consumed(cluster: LabCluster, topic: str, *, isolation: str = "read_committed") -> list[Record]:
    """What librdkafka reads, offsets included."""
    consumer = Consumer(
        {
            **cluster.endpoint().settings,
            "group.id": "reader",
            "isolation.level": isolation,
            **QUICK_READER,
            "enable.partition.eof": True,
            "enable.auto.commit": False,
            "check.crcs": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    records = []
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error():
            break
        kind, timestamp = message.timestamp()
        headers = tuple((key.encode(), value) for key, value in message.headers() or ())
        records.append(
            Record(
                message.offset(),
                -1 if kind == TIMESTAMP_NOT_AVAILABLE else timestamp,
                message.key(),
                message.value(),
                headers,
            )
        )
    consumer.close()
    return records


def decoded(batches: Iterable[tuple[BatchHead, memoryview]]) -> list[Record]:
    return [
        record for head, batch in batches if not head.is_control for record in decode_records(batch, head)
    ]


@pytest.mark.parametrize("codec", Codec)
def test_what_we_encode_is_accepted_and_read_back_equal(
    sf: LabCluster, raw: RawBroker, new_topic: NewTopics, codec: Codec
) -> None:
    topic = new_topic(max_message_bytes="10000000")
    data = encode_batch(RECORDS, codec=codec, transactional=False, **NOBODY)
    assert raw.append(topic, data) == (0, 0)
    assert consumed(sf, topic) == RECORDS
    ((head, batch),) = raw.fetch_all(topic, len(RECORDS))
    assert head.codec is codec
    assert bytes(batch[61:]) == data[61:]  # the broker found nothing to rewrite


@pytest.mark.parametrize("codec", Codec)
def test_what_librdkafka_wrote_is_decoded_and_crosses_verbatim(
    sf: LabCluster, raw: RawBroker, new_topic: NewTopics, codec: Codec
) -> None:
    topic, copy = new_topic(), new_topic()
    producer = Producer(
        {
            **sf.endpoint().settings,
            "compression.type": codec.name.lower(),
            "linger.ms": 100,
            "batch.num.messages": 100,
            "message.max.bytes": 900_000,
        }
    )
    for r in RECORDS:
        headers = [(key.decode(), value) for key, value in r.headers]
        producer.produce(topic, r.value, r.key, timestamp=r.timestamp_ms, headers=headers)
    assert producer.flush(60) == 0
    batches = raw.fetch_all(topic, len(RECORDS))
    assert codec in {head.codec for head, _ in batches}
    assert decoded(batches) == RECORDS == consumed(sf, topic)

    tid = copy
    producer_id, epoch = raw.claim(tid)
    for head, batch in batches:
        assert choose_way(head, first_wanted=0) == Verbatim()
        ours = rebase(batch, producer_id=producer_id, producer_epoch=epoch, base_sequence=head.base_offset)
        assert raw.append(copy, ours, tid) == (0, head.base_offset)
    assert raw.end(tid, producer_id, epoch, committed=True).error_code == 0
    assert consumed(sf, copy) == RECORDS


def test_markers_of_real_transactions_are_read(raw: RawBroker, new_topic: NewTopics) -> None:
    topic = new_topic()
    for committed, first in ((True, 0), (False, 3)):
        producer_id, epoch = raw.claim(topic)
        data = encode_batch(
            RECORDS[:2], codec=Codec.ZSTD, producer_id=producer_id, producer_epoch=epoch, base_sequence=0
        )
        assert raw.append(topic, data, topic) == (0, first)
        assert raw.end(topic, producer_id, epoch, committed=committed).error_code == 0
    batches = raw.fetch_all(topic, 6)
    assert [head.is_control for head, _ in batches] == [False, True, False, True]
    assert [is_control_marker(batch) for head, batch in batches if head.is_control] == ["commit", "abort"]
    assert [head.record_count for head, _ in batches] == [2, 1, 2, 1]


def test_append_times_survive_a_repack(sf: LabCluster, raw: RawBroker, new_topic: NewTopics) -> None:
    topic, copy = new_topic(message_timestamp_type="LogAppendTime"), new_topic()
    for codec in Codec:
        data = encode_batch(RECORDS[4:50], codec=codec, transactional=False, **NOBODY)
        assert raw.append(topic, data)[0] == 0
    seen = consumed(sf, topic)
    batches = raw.fetch_all(topic, 46 * len(Codec))
    assert decoded(batches) == seen
    assert min(r.timestamp_ms for r in seen) > BASE_MS + 10**9
    _copy_repacked(raw, copy, batches, reasons={"log_append_time"})
    assert consumed(sf, copy) == seen


def _copy_repacked(raw: RawBroker, copy: str, batches: Batches, *, reasons: set[str]) -> list[int]:
    producer_id, epoch = raw.claim(copy)
    sequence = 0
    segments: list[tuple[int, int]] = []
    for head, batch in batches:
        way = choose_way(head, first_wanted=0)
        if isinstance(way, Repack):
            assert set(way.reasons) <= reasons
        made = repack([(head, batch)], first_wanted=0).made
        if not made:
            continue
        (result,) = made
        ours = rebase(
            memoryview(result.batch),
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
        )
        assert raw.append(copy, ours, copy) == (0, sequence)
        sequence += result.record_count
        segments += result.segments
    assert raw.end(copy, producer_id, epoch, committed=True).error_code == 0
    return [first + n for first, count in segments for n in range(count)]


def _settled(broker: RawBroker, cluster: LabCluster, topic: str, *, end: int) -> tuple[Batches, list[Record]]:
    """Batches with delete horizons, and what a consumer saw while the cleaner changed none of them.

    Compaction leaves the newest segment alone, so late records roll it until the horizons are there.
    """
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        batches = broker.fetch_all(topic, end)
        if not any(head.attributes & 0x40 for head, _ in batches):
            late = [Record(0, int(time.time() * 1000), b"late", b"x")]
            data = encode_batch(late, codec=Codec.NONE, transactional=False, **NOBODY)
            assert broker.append(topic, data)[0] == 0
            time.sleep(0.3)
            continue
        seen = consumed(cluster, topic)
        if batches == broker.fetch_all(topic, end):
            return batches, seen
    raise AssertionError("the cleaner set no delete horizon, or didn't come to rest")


def test_what_compaction_left_crosses_with_its_timestamps(
    lab_cluster: LabClusterFactory, admin_of: AdminOf, topic_name: Callable[..., str]
) -> None:
    """Real holes, empty batches, and tombstones whose delete horizon took the base timestamp's place."""
    cluster = lab_cluster("cleaner", broker_settings={"log.cleaner.backoff.ms": "100"})
    broker, admin = RawBroker(cluster.bootstrap_servers), admin_of(cluster)
    topic = create(
        admin,
        topic_name("compacted"),
        cleanup_policy="compact",
        segment_ms="200",
        min_cleanable_dirty_ratio="0.001",
        delete_retention_ms="86400000",
    )
    copy = create(admin, topic_name("copy"))
    now_ms = int(time.time() * 1000) - 60_000
    codecs = list(Codec)
    for n in range(40):
        records = [
            Record(i, now_ms + n * 50 + i, b"k%d" % ((n * 3 + i) % 50), None if i == 2 else b"v%d" % n)
            for i in range(6)
        ]
        data = encode_batch(records, codec=codecs[n % len(codecs)], transactional=False, **NOBODY)
        assert broker.append(topic, data)[0] == 0

    batches, seen = _settled(broker, cluster, topic, end=240)
    horizons = [head for head, _ in batches if head.attributes & 0x40]
    assert all(head.base_timestamp > now_ms + 10_000_000 for head in horizons)

    originals = decoded(batches)
    assert originals == seen[: len(originals)]
    assert any(head.has_holes for head, _ in batches)
    offsets = _copy_repacked(broker, copy, batches, reasons={"holes"})
    assert offsets == [r.offset for r in originals]
    assert [(r.timestamp_ms, r.key, r.value) for r in consumed(cluster, copy)] == [
        (r.timestamp_ms, r.key, r.value) for r in originals
    ]

    head, batch = next((h, b) for h, b in batches if h.attributes & 0x40 and h.record_count)
    copied = rebase(batch, producer_id=1, producer_epoch=0, base_sequence=0)
    ((our_head, our_batch),) = split_batches(bytes(copied))
    assert [r.timestamp_ms for r in decode_records(our_batch, our_head)] == [
        r.timestamp_ms for r in decode_records(batch, head)
    ]
    assert not our_head.attributes & 0x40
    broker.close()
