"""Damaged batches are found before anything of them is appended, and named by offset; the rest crosses."""

from __future__ import annotations

import struct
from collections.abc import Callable

import google_crc32c
import pytest

from causeway.core.copy.ports import Appended
from causeway.core.kernel.identity import TopicPartition
from causeway.core.model.flow import RefusedPolicy
from causeway.core.model.naming import PrefixNaming
from causeway.core.records.compression import Codec
from causeway.core.records.records import Record, encode_batch
from causeway.core.state.parked import ParkReason
from causeway.lab.cluster import LabCluster
from tests.integration.fidelity.cases import BASE_MS, NOBODY
from tests.integration.fidelity.raw_log import RawLog, create, log_folder
from tests.support.mirroring import Mirror, make_flow

pytestmark = pytest.mark.integration
RECORDS = [Record(n, BASE_MS + n, b"key %d" % n, b"value %d" % n * 9) for n in range(20)]
Damage = Callable[[bytearray], None]


def sealed(batch: bytearray) -> None:
    struct.pack_into(">I", batch, 17, google_crc32c.value(bytes(batch[21:])))


def flip_a_value(batch: bytearray) -> None:
    batch[-40] ^= 0x40


def flip_the_checksum(batch: bytearray) -> None:
    batch[18] ^= 1


def flip_the_attributes(batch: bytearray) -> None:
    batch[22] ^= 0x20  # data that looks like a marker


def lengthen_a_record(batch: bytearray) -> None:
    batch[61] = 0x7F
    sealed(batch)


def break_a_varint(batch: bytearray) -> None:
    batch[61:67] = b"\xff" * 6
    sealed(batch)


def break_the_compression(batch: bytearray) -> None:
    batch[70:90] = b"\xaa" * 20
    sealed(batch)


def lie_about_the_count(batch: bytearray) -> None:
    struct.pack_into(">i", batch, 57, 19)
    sealed(batch)


DAMAGES: list[tuple[Codec, Damage]] = [
    (Codec.NONE, flip_a_value),
    (Codec.ZSTD, flip_a_value),
    (Codec.NONE, flip_the_checksum),
    (Codec.LZ4, flip_the_attributes),
    (Codec.NONE, lengthen_a_record),
    (Codec.NONE, break_a_varint),
    (Codec.LZ4, break_the_compression),
    (Codec.ZSTD, break_the_compression),
    (Codec.NONE, lie_about_the_count),
    (Codec.SNAPPY, lie_about_the_count),
]


def write(cluster: LabCluster, topic: str) -> None:
    with RawLog(cluster) as log:
        for _ in range(3):
            for number in range(len(DAMAGES) + 1):
                codec = DAMAGES[number][0] if number < len(DAMAGES) else Codec.NONE
                tp = TopicPartition(topic, number)
                answer = log.append({tp: encode_batch(RECORDS, codec=codec, **NOBODY)})
                assert isinstance(answer[tp], Appended)


def spoil(cluster: LabCluster, tp: TopicPartition, damage: Damage) -> None:
    """The second of three equal batches, in the file of a stopped broker."""
    path = log_folder(cluster, tp) / f"{0:020d}.log"
    data = bytearray(path.read_bytes())
    size = len(data) // 3
    batch = data[size : 2 * size]
    damage(batch)
    data[size : 2 * size] = batch
    path.write_bytes(data)


def test_each_damage_parks_before_its_batch_and_nothing_of_it_is_written(
    lab_cluster: Callable[..., LabCluster], nyc: LabCluster
) -> None:
    source = lab_cluster("spoiled")
    create(source, "damaged", len(DAMAGES) + 1)
    write(source, "damaged")
    source.stop()
    for number, (_, damage) in enumerate(DAMAGES):
        spoil(source, TopicPartition("damaged", number), damage)
    source.start()
    flow = make_flow(
        "spoiled",
        "damaged",
        source="spoiled",
        naming=PrefixNaming("spoiled"),
        on_refused=RefusedPolicy.QUARANTINE,
    )
    mirror = Mirror(flow, source, nyc)
    report = mirror.run()
    mirror.close()

    assert len(report.parked) == len(DAMAGES)
    with RawLog(nyc) as there:
        for number, (codec, damage) in enumerate(DAMAGES):
            at = f"{damage.__name__}, {codec.name}"
            partition = report.partitions[TopicPartition("damaged", number)]
            assert partition.parked is not None, at
            assert partition.parked["reason"] in (ParkReason.SOURCE_CORRUPT, ParkReason.REFUSED), at
            assert "20" in partition.parked["facts"], at
            assert partition.source_next == len(RECORDS), at
            assert len(there.records(TopicPartition("spoiled.damaged", number))) == len(RECORDS), at
        assert len(there.records(TopicPartition("spoiled.damaged", len(DAMAGES)))) == 3 * len(RECORDS)
        assert there.records(TopicPartition(flow.quarantine_topic, 0)) == []
