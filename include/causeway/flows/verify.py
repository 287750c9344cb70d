"""Prove that the target shows what the source shows: every record, in order, on real clusters.

Pairs of partitions are compared one after the other, both sides in lock step with bounded buffers. The
target's end is taken before the source's, so a flow that runs meanwhile can't make a record look extra.
Trouble with one pair is part of its verdict; trouble with a cluster is raised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from causeway.brokers.probe import probe
from causeway.brokers.record_reader import RecordReader
from causeway.core.beginnings import SetByHand
from causeway.core.comparison import PartitionComparison, PartitionVerdict, VerifyReport
from causeway.core.endpoint import ClusterEndpoint
from causeway.core.errors import CausewayError, ClusterTrouble
from causeway.core.identity import SourceOffset, TargetOffset, TopicPartition
from causeway.flows.verify_compacted import verify_last_records

_ENOUGH_DIFFERENCES = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionPair:
    """A source partition and its mirror."""

    source: TopicPartition
    target: TopicPartition
    source_topic_id: UUID | None = None
    first_source_offset: SourceOffset | None = None
    """Where the flow began to copy; None: at the source's log start."""
    first_target_offset: TargetOffset | None = None
    """Where what it copied since lies; None: at the target's log start."""
    set_by_hand: SetByHand | None = None
    """Who set this beginning; what lies in front of it is no mirror of what lies in front of it there."""
    is_compacted: bool = False
    """On either side: then only the last record of each key can be compared."""
    quarantined: frozenset[int] = frozenset()
    """Source offsets of records that the flow put aside."""


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
        if pair.is_compacted:
            verdict = verify_last_records(
                pair.source,
                pair.target,
                source,
                target,
                source_end,
                pair.quarantined,
                (pair.first_source_offset or 0, pair.first_target_offset or 0),
            )
            return replace(verdict, **_not_compared(pair, target))
        comparison = _open(pair, source, target, source_end)
        is_done, put_aside = False, 0
        while not is_done:
            source.fill()
            put_aside += source.buffer.leave_out(pair.quarantined)
            target.fill()
            is_done = comparison.advance(source.buffer, target.buffer)
            tell(comparison.equal)
            if comparison.unequal > _ENOUGH_DIFFERENCES:
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
    """Of what lies in front of a beginning that was set by hand: who says so, and how much it is."""
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
    target.open(pair.target, max(first_there, target_start), target_log_end)
    source.open(pair.source, max(first, source_start), source_log_end)
    return PartitionComparison(
        may_skip_source=max(0, target_start - first_there),
        may_skip_target=max(0, source_start - (pair.first_source_offset or 0)),
        source_log_end=SourceOffset(source_log_end),
        source_end=source_end,
    )
