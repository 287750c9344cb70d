"""A topic that its cleaner works on while it is mirrored: the last value of each key, and the map."""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from dataclasses import dataclass
from zlib import crc32

from causeway.core.copy.report import RunReport
from causeway.core.kernel.identity import TargetOffset, TopicPartition
from causeway.core.offsets.offset_map import MappedRange, valid_ranges
from causeway.lab.clients import producer
from causeway.lab.cluster import LabCluster
from tests.integration.fidelity.raw_log import RawLog, create
from tests.support.mirroring import Mirror, make_flow

_BATCH = 10_000
_CLEANER_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Compacting:
    """What was seen in the end."""

    keys_equal: int
    mirrored: int
    """Records that crossed: those that were cleaned away on the source in time didn't."""
    repacked_for_holes: int
    checked_on_the_map: int

    def __str__(self) -> str:
        return (
            f"{self.keys_equal:,} keys with the same last value; {self.mirrored:,} records mirrored, "
            f"{self.repacked_for_holes:,} batches repacked for their holes; the map led each of "
            f"{self.checked_on_the_map:,} records of the target to its own on the source"
        )


def mirror_while_compacting(
    source: LabCluster, target: LabCluster, topic: str, *, updates: int, keys: int, value_bytes: int = 20
) -> Compacting:
    """:raises AssertionError: a last value is another one, or the map leads to another record."""
    settings = {
        "cleanup_policy": "compact",
        "segment_bytes": str(max(1 << 20, updates)),
        "segment_ms": "500",
        "min_cleanable_dirty_ratio": "0.01",
        "delete_retention_ms": "100",
    }
    create(source, topic, 1, **settings)
    half = _written_and_cleaned(source, topic, updates // 2, keys, value_bytes)
    mirror = Mirror(make_flow(topic.replace("-", "_"), topic), source, target)
    writer = threading.Thread(target=_write, args=(source, topic, updates - half, keys, value_bytes, half))
    writer.start()
    reports: list[RunReport] = []
    while writer.is_alive():
        reports.append(mirror.run(run_for_seconds=2))
    writer.join()
    reports.append(mirror.run())
    mirror.close()
    assert reports[-1].lag == 0
    return _proved(mirror, topic, reports, keys)


def _written_and_cleaned(cluster: LabCluster, topic: str, updates: int, keys: int, value_bytes: int) -> int:
    """The next offset, once the cleaner has made holes in what the mirror hasn't seen yet."""
    _write(cluster, topic, updates, keys, value_bytes)
    deadline = time.monotonic() + _CLEANER_SECONDS
    with RawLog(cluster) as log:
        while not any(head.has_holes for head, _ in log.batches(TopicPartition(topic, 0))):
            assert time.monotonic() < deadline, "the cleaner doesn't come"
            time.sleep(0.5)
            _write(cluster, topic, 1, keys, value_bytes, updates)  # a late record rolls the segment
            updates += 1
    return updates


def _write(
    cluster: LabCluster, topic: str, updates: int, keys: int, value_bytes: int, first: int = 0
) -> None:
    """The value of each record begins with its own offset: there is one writer, and no transaction."""
    client = producer(cluster.endpoint(), linger_ms=5)
    for n in range(first, first + updates):
        client.produce(topic, b"%d " % n + b"x" * value_bytes, b"key %d" % _key(n, keys), partition=0)
        if n % _BATCH == _BATCH - 1:
            assert client.flush(60) == 0
    assert client.flush(60) == 0


def _key(n: int, keys: int) -> int:
    """As if drawn: updates of a key lie anywhere, so a cleaner leaves batches with holes, not empty ones."""
    return crc32(b"%d" % n) % keys


def _proved(mirror: Mirror, topic: str, reports: list[RunReport], keys: int) -> Compacting:
    target = TopicPartition(f"sf.{topic}", 0)
    with RawLog(mirror.target) as there:
        runs: list[MappedRange] = valid_ranges(
            there.run(lambda: there.target.map_runs(mirror.flow.map_topic, [target]))[target]
        )
        checked, held = 0, set[bytes | None]()
        firsts = [run.target_first for run in runs]
        for record in there.records(target):
            run = runs[bisect_right(firsts, record.offset) - 1]
            assert record.value is not None
            assert run.source_of(TargetOffset(record.offset)) == int(record.value.split()[0]), record
            held.add(record.key)
            checked += 1
    verdict = mirror.verify()  # after the count: the cleaner goes on taking records
    assert verdict.unequal == (), verdict
    assert keys <= verdict.records_equal <= checked, "all that both sides still hold"
    partitions = [p for report in reports for p in report.partitions.values()]
    return Compacting(
        keys_equal=len(held),
        mirrored=sum(report.records for report in reports),
        repacked_for_holes=sum(
            count for p in partitions for why, count in p.repacked_batches.items() if "holes" in why
        ),
        checked_on_the_map=checked,
    )
