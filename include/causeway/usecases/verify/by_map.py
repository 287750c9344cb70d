"""Verify a pair of partitions through the offset map: compacted ones, and those that were mirrored back.

Both logs are read once, in bounded buffers; `core/verify/map_comparison.py` says what may be missing where.
"""

from __future__ import annotations

from collections.abc import Callable

from causeway.brokers.admin.record_reader import RecordReader
from causeway.core.kernel.identity import SourceOffset
from causeway.core.verify.map_comparison import MapComparison, stretches_of
from causeway.core.verify.report import PartitionVerdict
from causeway.usecases.verify.partition_pair import PartitionPair


def verify_by_map(
    pair: PartitionPair,
    source: RecordReader,
    target: RecordReader,
    source_end: SourceOffset | None,
    tell: Callable[[int], None],
) -> PartitionVerdict:
    """The target's end is taken before the source's, so nothing that a run adds meanwhile looks extra.

    A log that is compacted is read to its end, further than it is judged.
    """
    target_start, target_log_end = target.bounds(pair.target)
    source_start, source_log_end = source.bounds(pair.source)
    target_until = pair.target_until(target_log_end)
    source_until = pair.source_until(source_log_end, source_end)
    comparison = MapComparison(
        stretches=stretches_of(pair.runs),
        source_start=source_start,
        target_start=target_start,
        source_log_end=source_until,
        source_end=source_end,
        target_end=target_until,
        source_is_compacted=pair.source_is_compacted,
        target_is_compacted=pair.target_is_compacted,
        quarantined=pair.quarantined,
        never_crossed=pair.never_crossed,
    )
    first = max(pair.first_source_offset or 0, source_start)
    target.open(
        pair.target,
        max(pair.first_target_offset or 0, target_start),
        target_log_end if pair.target_is_compacted else target_until,
    )
    source.open(pair.source, first, source_log_end if pair.source_is_compacted else source_until)
    comparison.compare(source.shown(), target.shown(), tell)
    return comparison.verdict(pair.source, pair.target)
