"""What a failback finds: one partition that diverged, the ranges it was mirrored in, what a rebuild costs."""

from __future__ import annotations

from dataclasses import replace

from causeway.core.failback.divergence import Divergence
from causeway.core.failback.rebuild_impact import PartitionImpact, Reader, RebuildImpact
from causeway.core.kernel.estimate import exact
from causeway.core.kernel.identity import Generation, TopicPartition
from causeway.core.offsets.offset_map import MappedRange
from tests.support import builders

OLD, NEW = TopicPartition("orders", 0), TopicPartition("orders", 0)
OLD_ID, NEW_ID = builders.SOURCE_ID, builders.TARGET_ID


def run_of(source: int, target: int, *segments: tuple[int, int]) -> MappedRange:
    return builders.mapped_range(
        source,
        target,
        *segments,
        target=NEW,
        first_timestamp_ms=5,
        last_timestamp_ms=6,
        generation=Generation(99),
    )


def cut(**changes: object) -> Divergence:
    made = Divergence(
        old=OLD,
        new=NEW,
        old_topic_id=OLD_ID,
        new_topic_id=NEW_ID,
        mirrored_next=10,
        old_start=0,
        written_from=11,
        epoch=0,
        old_end=15,
        new_start=0,
        tail=exact(5),
        tail_bytes=exact(50),
        written=exact(3),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def price(**changes: object) -> RebuildImpact:
    partition = PartitionImpact(
        old=OLD, held=exact(9), held_bytes=exact(900), gone=exact(0), anew=exact(12), newest_ms=5_000
    )
    return replace(RebuildImpact(source="sf", partitions=(partition,)), **changes)  # type: ignore[arg-type]


READER = Reader(group="billing", topics=("orders",), is_active=False)
