"""One partition's stream in a lane, and the batches that a fetch brings it."""

from __future__ import annotations

import struct

import google_crc32c

from causeway.core.copy.lane_task import LaneTask, PartitionRow
from causeway.core.copy.ports import Fetched
from causeway.core.kernel.identity import Generation, SourceOffset, TargetOffset
from causeway.core.model.flow import CopyLimits
from causeway.core.records.batches import HEADER
from causeway.usecases.copy.lane.inspect import PartitionState
from causeway.usecases.copy.lane.partition_stream import PartitionStream
from tests.support import builders

PAIR = builders.pair()
TASK = LaneTask(
    flow="f",
    group="causeway.f",
    lane=1,
    transactional_id="causeway.f.1",
    generation=Generation(9),
    map_topic="m",
    map_partitions=8,
    limits=CopyLimits(),
    assignments=(),
)


def raw(base: int, count: int = 1, *, attributes: int = 0, epoch: int = 7) -> bytes:
    checked = HEADER.pack(0, 0, 0, 2, 0, attributes, count - 1, 0, 0, 1, 0, 0, count)[21:] + b"payload"
    return struct.pack(">qiibI", base, len(checked) + 9, epoch, 2, google_crc32c.value(checked)) + checked


def stream(*, at: int = 100, end: int = 200) -> PartitionStream:
    ground = PartitionState(
        assignment=builders.assignment(end),
        position=None,
        source_next=SourceOffset(at),
        source_epoch=5,
        target_next=TargetOffset(40),
        target_end=40,
        target_epoch=2,
        leader_epoch=4,
        log_start=0,
    )
    return PartitionStream(ground, PartitionRow(source=PAIR.source, target=PAIR.target), TASK, now_ms=0)


def fetched(*batches: bytes, aborted: tuple[tuple[int, int], ...] = ()) -> Fetched:
    return Fetched(
        records=memoryview(b"".join(batches)), log_start=0, last_stable=0, high_watermark=0, aborted=aborted
    )
