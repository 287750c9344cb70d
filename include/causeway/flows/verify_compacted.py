"""Verify a compacted partition: each side's cleaner runs by itself, only each key's last record must agree.

What a cleaner may take on one side and not yet on the other isn't a difference: older records of a key, and
tombstones. A key whose newest source record isn't mirrored yet, or never because it is in quarantine, can't
be judged.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from causeway.brokers.record_reader import RecordReader
from causeway.core.comparison import Content, Difference, Kind, PartitionVerdict, difference_of
from causeway.core.identity import SourceOffset, TargetOffset, TopicPartition

_SHOWN_DIFFERENCES = 10
Latest = dict[bytes | None, tuple[int, Content]]


def verify_last_records(
    source_at: TopicPartition,
    target_at: TopicPartition,
    source: RecordReader,
    target: RecordReader,
    source_end: SourceOffset | None,
    quarantined: Collection[int] = (),
    firsts: tuple[int, int] = (0, 0),
) -> PartitionVerdict:
    """`firsts`: where the flow began, on the source and on the target."""
    target_start, target_end = target.bounds(target_at)
    source_start, source_log_end = source.bounds(source_at)
    there = _latest(target, target_at, max(target_start, firsts[1]), target_end)
    here = _latest(source, source_at, max(source_start, firsts[0]), source_log_end)
    put_aside = {key for key, (offset, _) in here.items() if offset in quarantined}
    here_now = sum(source_start <= offset < source_log_end for offset in quarantined)
    verdict = PartitionVerdict(source=source_at, target=target_at, quarantined=here_now)
    for key in (here.keys() | there.keys()) - put_aside:
        verdict = _judge(verdict, here.get(key), there.get(key), source_end)
    return verdict


def _latest(reader: RecordReader, at: TopicPartition, start: int, end: int) -> Latest:
    latest: Latest = {}
    reader.open(at, start, end)
    while True:
        reader.fill()
        for offset, content in zip(reader.buffer.offsets, reader.buffer.contents, strict=True):
            latest[content[1]] = offset, content
        reader.buffer.drop(len(reader.buffer))
        if reader.buffer.is_complete:
            return latest


def _judge(
    verdict: PartitionVerdict,
    here: tuple[int, Content] | None,
    there: tuple[int, Content] | None,
    source_end: SourceOffset | None,
) -> PartitionVerdict:
    if here is not None and source_end is not None and here[0] >= source_end:
        return verdict
    if _is_gone(here) and _is_gone(there):
        return verdict
    if here is not None and there is not None and here[1] == there[1]:
        return replace(verdict, equal=verdict.equal + 1)
    shown = verdict.differences
    if len(shown) < _SHOWN_DIFFERENCES:
        shown = (*shown, _difference(here, there))
    if here is None:
        return replace(verdict, extra=verdict.extra + 1, differences=shown)
    if there is None:
        return replace(verdict, missing=verdict.missing + 1, differences=shown)
    return replace(verdict, different=verdict.different + 1, differences=shown)


def _is_gone(latest: tuple[int, Content] | None) -> bool:
    """Never there, deleted, or so by a tombstone that the cleaner has since taken."""
    return latest is None or latest[1][2] is None


def _difference(here: tuple[int, Content] | None, there: tuple[int, Content] | None) -> Difference:
    if here is None:
        assert there is not None
        return Difference(kind=Kind.EXTRA, target_offset=TargetOffset(there[0]))
    if there is None:
        return Difference(kind=Kind.MISSING, source_offset=SourceOffset(here[0]))
    return difference_of(here[0], here[1], there[0], there[1])
