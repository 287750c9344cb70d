"""What the logs themselves say of offsets, and whether the map says the same: nothing of the map is believed.

A record is known by all that a consumer sees of it: timestamp, key, value, headers. Each must be unique in
its partition. The answer to a record's offset is its offset on the other side, to a hole's that of the next
record. Where the cleaner goes on working, on either side at its own pace, a record that one side has lost may
still be the answer: there it has to lie after the record before the hole, and not after the next one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import Consumer, KafkaError
from confluent_kafka import TopicPartition as Place

from causeway.core.kernel.identity import TopicPartition
from causeway.core.offsets.translation import FlowMap, PartitionMap
from causeway.lab.cluster import LabCluster
from tests.support.quick import QUICK_READER

_LOOK_SECONDS, _PATIENCE_SECONDS = 0.02, 300.0


@dataclass(slots=True)
class Tally:
    to_target: int = 0
    to_source: int = 0
    records: int = 0
    errors: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return (
            f"{self.to_target:,} offsets to the target and {self.to_source:,} back, of {self.records:,} "
            f"records: {len(self.errors)} errors"
        )


def contents(cluster: LabCluster, tp: TopicPartition) -> tuple[list[int], list[int]]:
    """Offsets and what lies there, as a `read_committed` reader sees the partition."""
    consumer = Consumer(
        {
            **cluster.endpoint().settings,
            "group.id": "unused",
            "enable.auto.commit": "false",
            "isolation.level": "read_committed",
            **QUICK_READER,
            "enable.partition.eof": "true",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.list_topics(tp.topic, timeout=_PATIENCE_SECONDS)  # else 0.5 s are lost
    consumer.assign([Place(tp.topic, tp.partition, -2)])
    offsets: list[int] = []
    known: list[int] = []
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        assert time.monotonic() < deadline, f"{tp} can't be read to its end"
        for message in consumer.consume(2_000, _LOOK_SECONDS):
            error = message.error()
            if error is None:
                offsets.append(message.offset())
                what = (message.timestamp()[1], message.key(), message.value(), message.headers())
                known.append(known_by(*what))
            elif error.code() == KafkaError._PARTITION_EOF:
                consumer.close()
                return offsets, known
            else:
                raise AssertionError(f"{tp}: {error}")


def known_by(timestamp: object, key: object, value: object, headers: Iterable[object] | None) -> int:
    return hash((timestamp, key, value, tuple(headers or ())))


def check_partition(
    source: LabCluster,
    target: LabCluster,
    tp: TopicPartition,
    found: FlowMap,
    tally: Tally,
    written: Mapping[int, int] | None = None,
) -> None:
    """`written`, of a compacted topic: the source offset of each record that was ever there."""
    there = found.target_of(tp)
    assert isinstance(there, TopicPartition), there
    index = found.of_target(there)
    assert isinstance(index, PartitionMap), index
    here_at, here = contents(source, tp)
    there_at, arrived = contents(target, there)
    tally.records += len(arrived)
    if len(set(arrived)) != len(arrived) or (written is None and arrived != here):
        tally.errors.append(
            f"{tp}: {len(arrived)} records on the target, {len(here)} on the source: no truth"
        )
        return
    offset = dict(zip(here, here_at, strict=True)) if written is None else written
    sources, is_exact = [offset[known] for known in arrived], written is None
    tally.to_target += check_direction(
        f"{tp} to the target", sources, there_at, index.to_targets, tally, is_exact=is_exact
    )
    tally.to_source += check_direction(
        f"{tp} back", there_at, sources, index.to_sources, tally, is_exact=is_exact
    )


def check_direction(
    what: str,
    ours: Sequence[int],
    theirs: Sequence[int],
    translate: Callable[[Iterable[Any]], Sequence[object]],
    tally: Tally,
    *,
    is_exact: bool,
) -> int:
    """Every offset from the first record to after the last: those of records, of holes, of markers."""
    asked = range(ours[0], ours[-1] + 2)
    at = 0
    for offset, answer in zip(asked, translate(asked), strict=True):
        while at < len(ours) and ours[at] < offset:
            at += 1
        wanted = theirs[at] if at < len(ours) else theirs[-1] + 1
        if answer == wanted:
            continue
        is_hole = at == len(ours) or ours[at] != offset
        if is_exact or not is_hole or not (isinstance(answer, int) and theirs[at - 1] < answer <= wanted):
            tally.errors.append(f"{what}: {offset} -> {answer}, the record is at {wanted}")
    return len(asked)
