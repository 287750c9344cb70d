"""Prove that the target shows what the source shows: every record, in order, on real clusters.

Pairs of partitions are compared one after the other, both sides in lock step with bounded buffers. The
target's end is taken before the source's, so a flow that runs meanwhile can't make a record look extra.
Trouble with one pair is part of its verdict; trouble with a cluster is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from causeway.brokers.admin.probe import probe
from causeway.brokers.admin.record_reader import RecordReader
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import CausewayError, ClusterTrouble
from causeway.core.kernel.identity import SourceOffset, TopicPartition
from causeway.core.verify.comparison import PartitionComparison
from causeway.core.verify.map_comparison import ENOUGH_DIFFERENCES
from causeway.core.verify.report import PartitionVerdict, VerifyReport
from causeway.usecases.verify.by_map import verify_by_map
from causeway.usecases.verify.partition_pair import PartitionPair


@dataclass(frozen=True, slots=True)
class VerifyProgress:
    records_equal: int
    partitions_done: int
    partitions_total: int


def verify_flow(
    source_endpoint: ClusterEndpoint,
    target_endpoint: ClusterEndpoint,
    pairs: Sequence[PartitionPair],
    *,
    ends: Mapping[TopicPartition, SourceOffset] | None = None,
    on_progress: Callable[[VerifyProgress], None] | None = None,
) -> VerifyReport:
    """Compare each pair up to the target's end; `ends` says how far the target must have come at least.

    :param ends: per source partition the offset below which every record must be on the target.
    :raises ClusterTrouble: a cluster can't be reached or read.
    """
    for endpoint in (source_endpoint, target_endpoint):
        probe(endpoint)
    verdicts: list[PartitionVerdict] = []
    records_before = 0

    def tell(records: int) -> None:
        if on_progress:
            on_progress(VerifyProgress(records_before + records, len(verdicts), len(pairs)))

    with (
        RecordReader(source_endpoint, as_mirrored=True) as source,
        RecordReader(target_endpoint) as target,
    ):
        for pair in pairs:
            verdicts.append(_verify_pair(pair, source, target, (ends or {}).get(pair.source), tell))
            records_before += verdicts[-1].equal
            tell(0)
    return VerifyReport(tuple(verdicts))


def _verify_pair(
    pair: PartitionPair,
    source: RecordReader,
    target: RecordReader,
    source_end: SourceOffset | None,
    tell: Callable[[int], None],
) -> PartitionVerdict:
    comparison = None
    try:
        if pair.needs_the_map:
            verdict = verify_by_map(pair, source, target, source_end, tell)
            return replace(verdict, **_not_compared(pair, target))
        comparison = _open(pair, source, target, source_end)
        is_done, put_aside = False, 0
        while not is_done:
            source.fill()
            put_aside += source.buffer.leave_out(pair.quarantined)
            target.fill()
            is_done = comparison.advance(source.buffer, target.buffer)
            tell(comparison.equal)
            if comparison.unequal > ENOUGH_DIFFERENCES:
                verdict = comparison.verdict(pair.source, pair.target)
                return replace(verdict, trouble=f"not compared further: {comparison.unequal} differences")
    except CausewayError as exc:
        if isinstance(exc, ClusterTrouble) and exc.retriable:
            raise
        verdict = PartitionVerdict(source=pair.source, target=pair.target)
        if comparison is not None:
            verdict = comparison.verdict(pair.source, pair.target)
        return replace(verdict, trouble=str(exc))
    verdict = comparison.verdict(pair.source, pair.target)
    return replace(verdict, quarantined=put_aside, **_not_compared(pair, target))


def _not_compared(pair: PartitionPair, target: RecordReader) -> dict[str, Any]:
    """Of what lies before a beginning that was set by hand: who says so, and how much it is."""
    if pair.set_by_hand is None:
        return {}
    start, _ = target.bounds(pair.target)
    first = pair.first_target_offset or 0
    return {"set_by_hand": pair.set_by_hand, "not_compared": max(0, first - start)}


def _open(
    pair: PartitionPair, source: RecordReader, target: RecordReader, source_end: SourceOffset | None
) -> PartitionComparison:
    """Both logs from where they can be compared; their starts bound what retention may have deleted."""
    target_start, target_log_end = target.bounds(pair.target)
    source_start, source_log_end = source.bounds(pair.source)
    first = source_start if pair.first_source_offset is None else pair.first_source_offset
    first_there = pair.first_target_offset or 0
    source_until = pair.source_until(source_log_end, source_end)
    target.open(pair.target, max(first_there, target_start), pair.target_until(target_log_end))
    source.open(pair.source, max(first, source_start), source_until)
    return PartitionComparison(
        may_skip_source=max(0, target_start - first_there),
        may_skip_target=max(0, source_start - (pair.first_source_offset or 0)),
        source_log_end=SourceOffset(source_until),
        source_end=source_end,
    )
