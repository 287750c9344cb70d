"""The full sizes of what the tests here play small, and docs/proof.md's section about them."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from confluent_kafka.admin import NewTopic

from causeway.core.kernel.identity import Generation, SourceOffset, TargetOffset, TopicPartition
from causeway.core.model.flow import CopyLimits
from causeway.core.offsets.offset_map import MappedRange
from causeway.core.offsets.translation import PartitionMap
from causeway.lab.clients import admin_client, producer, wait_for_leaders
from causeway.lab.cluster import LabCluster
from causeway.lab.record import ClusterSpec
from causeway.usecases.offsets.maintain_map import maintain_map
from tests.proofs.translation.followed import FOLLOWED_PER_SECOND, FOLLOWED_SECONDS, follow
from tests.proofs.translation.stage import Stage, play
from tests.support.mirroring import Mirror, make_flow

_RECORDS, _KILLS = 1_500_000, 4
_PLAIN_RECORDS, _PLAIN_TRANSACTIONS, _PLAIN_PARTITIONS = 5_000_000, 200, 4
_PLAIN_BATCH_BYTES, _PLAIN_RECORD_BYTES = 32 << 10, 104
"""Small batches, and less than a record has: a transaction ends after what fills it; 200 are the least."""
_MOST_MAP_BYTES = 100_000
_ASKED = 1_000_000
Say = Callable[[str], None]


class TranslationFailed(Exception):
    """An offset that leads to another record, or a map that is too large."""


def prove(folder: Path, seed: int, say: Say, *, records: int = _RECORDS, plain: int = _PLAIN_RECORDS) -> str:
    source = _cluster("sf", folder, say, {"log.cleaner.backoff.ms": "100"})
    target = _cluster("nyc", folder, say, {})
    try:
        exact = _exactness(source, target, seed, say, records)
        small = _size(source, target, say, plain)
        followed = _following(source, target, say)
    finally:
        source.stop()
        target.stop()
    return f"## Offsets through the map\n\n{exact}\n\n{small}\n\n{followed}\n\n{_speed(say)}\n"


def _cluster(name: str, folder: Path, say: Say, settings: dict[str, str]) -> LabCluster:
    made = LabCluster(ClusterSpec(name=name, broker_settings=settings), folder / name, say=say)
    made.start()
    return made


def _exactness(source: LabCluster, target: LabCluster, seed: int, say: Say, records: int) -> str:
    stage = Stage(source, target, "exact", seed=seed, transaction_bytes=256 << 10)
    tally = play(stage, records=records, kills=_KILLS, say=say)
    say(f"exactness: {tally}")
    if tally.errors:
        raise TranslationFailed("\n".join(tally.errors[:20]))
    return (
        "Runs copied plain, compacted and transactional topics, and "
        f"{stage.kills} runs were killed in the middle. Meanwhile topics grew, the target was restarted, and "
        f"maintenance ran (seed {seed}). Then every offset of both sides was translated: of records, holes "
        "and markers. Each was compared with what consumers read there (timestamp, key, value, headers): "
        f"{tally}."
    )


def _size(source: LabCluster, target: LabCluster, say: Say, records: int) -> str:
    """A plain copy, set to make as many transactions as the promise names."""
    _create(source, "size", _PLAIN_PARTITIONS)
    client = producer(
        source.endpoint(),
        linger_ms=50,
        batch_size=_PLAIN_BATCH_BYTES,
        queue_buffering_max_messages=500_000,
    )
    for number in range(records):
        while True:
            try:
                client.produce("size", b"%099d" % number, partition=number // 1_000 % _PLAIN_PARTITIONS)
                break
            except BufferError:
                client.poll(0.1)
    assert client.flush(300) == 0
    limits = CopyLimits(
        transaction_bytes=records * _PLAIN_RECORD_BYTES // _PLAIN_TRANSACTIONS, lane_seconds=3_600.0
    )
    flow = make_flow("size", "size", source="sized", lanes=1, limits=limits)
    mirror, transactions = Mirror(flow, source, target), list[int]()
    carry = mirror.carry

    def counted(tasks):  # type: ignore[no-untyped-def]
        results = carry(tasks)
        transactions.extend(result.transactions for result in results)
        return results

    mirror.carry = counted  # type: ignore[method-assign]
    report = mirror.run()
    mirror.close()
    assert (report.outcome, report.records) == ("caught up", records)
    kept = maintain_map(flow, target.endpoint(), say)
    again = maintain_map(flow, target.endpoint(), say)
    say(f"size: {sum(transactions)} transactions, {kept}")
    if sum(transactions) < _PLAIN_TRANSACTIONS:
        raise TranslationFailed(f"{sum(transactions)} transactions, not {_PLAIN_TRANSACTIONS}")
    if kept.bytes_after > _MOST_MAP_BYTES or again.transactions:
        raise TranslationFailed(f"the map has {kept.bytes_after} bytes; again: {again}")
    return (
        f"A plain copy of {records:,} records in {sum(transactions)} transactions. The live entries of its "
        f"map, keys and values, have {kept.bytes_before:,} bytes as the lanes wrote them "
        f"({kept.entries_before:,} entries). They have {kept.bytes_after:,} bytes "
        f"after maintenance ({kept.entries_after:,} entries)."
    )


def _following(source: LabCluster, target: LabCluster, say: Say) -> str:
    found = follow(source, target, records_per_second=FOLLOWED_PER_SECOND, seconds=FOLLOWED_SECONDS)
    say(f"following: {found}")
    return f"""\
A flow that follows a source of {found.records_per_second} records/s made {found.runs} transactions in
{found.seconds:.0f} s, each with a run of {found.run_bytes:.0f} bytes. That is {found.mb_a_day:.1f} MB for a
partition and day; {found.merged_mb_a_day:.2f} MB are left after maintenance ({found.merged_run_bytes:.1f}
bytes a run). The map grows with the number of transactions, not of records. Its entries go
once the target's retention has removed their records. [benchmarks.md](benchmarks.md) has other rates."""


def _speed(say: Say) -> str:
    """One core, in the process's own time: offsets anywhere in a partition of 100,000 runs."""
    source_id, target_id = UUID(int=1), UUID(int=2)
    runs = [
        MappedRange(
            target=TopicPartition("sf.speed", 0),
            source_first=SourceOffset(n * 500),
            target_first=TargetOffset(n * 501),
            segments=((500, 0),),
            first_timestamp_ms=0,
            last_timestamp_ms=0,
            generation=Generation(1),
            source_topic_id=source_id,
            target_topic_id=target_id,
        )
        for n in range(100_000)
    ]
    index = PartitionMap(runs, None, source_topic_id=source_id, target_topic_id=target_id)
    chance = random.Random(1)
    asked = [chance.randrange(50_000_000) for _ in range(_ASKED)]
    rates = []
    ways: tuple[Callable[[Iterable[Any]], Sequence[object]], ...] = (index.to_targets, index.to_sources)
    for many in ways:
        began = time.process_time()
        many(asked)
        rates.append(_ASKED / (time.process_time() - began))
    say(f"speed: {rates[0]:,.0f} and {rates[1]:,.0f} translations a second")
    return (
        f"One core translates {rates[0] / 1e6:.1f} million offsets a second to the target and "
        f"{rates[1] / 1e6:.1f} million back, anywhere in a partition of 100,000 runs."
    )


def _create(cluster: LabCluster, topic: str, partitions: int) -> None:
    admin = admin_client(cluster.endpoint())
    admin.create_topics([NewTopic(topic, partitions)])[topic].result(60)
    wait_for_leaders(admin, {topic: partitions})
