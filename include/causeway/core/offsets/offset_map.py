"""The offset map: which target offset each source offset went to, as runs.

A run is a stretch of source offsets whose records lie one after the other on the target:

    source   100 101 102  .   .  105 106          . = hole: compacted away, marker, aborted, dropped
    target    40  41  42         43  44           run(source_first=100, target_first=40,
                                                      segments=((3, 2), (2, 0)))

`segments` are (copied, skipped) pairs in source order. Runs are appended in the data's own
transaction to `causeway-offset-map.<source>.internal`, so a run exists exactly if its records do.
A stretch with very many holes is several runs, so that no record of the map outgrows its topic: they
touch each other on the target, where a marker lies between any two transactions.

How runs are written down is `map_format.py`'s.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from uuid import UUID
from zlib import crc32

from causeway.core.kernel.errors import ProtocolFault
from causeway.core.kernel.identity import Generation, SourceOffset, TargetOffset, TopicPartition

MAP_PARTITIONS = 8
MOST_SEGMENTS = 4_096
"""Of a run. Even with the largest numbers its record is far smaller than any topic's limit by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MappedRange:
    target: TopicPartition
    source_first: SourceOffset
    target_first: TargetOffset
    segments: tuple[tuple[int, int], ...]
    """(records copied, source offsets skipped after them), in order."""
    first_timestamp_ms: int
    last_timestamp_ms: int
    """The latest of its records' times, whatever their order."""
    generation: Generation
    source_topic_id: UUID
    target_topic_id: UUID
    source_epoch: int = -1
    """Leader epoch of the last record's batch on the source; -1: not known."""
    target_epoch: int = -1
    """Of the target's leader when the run was appended; -1: not known."""
    holes_before: tuple[int, int] = (0, 0)
    """Of the first run that a flow, or an adoption, wrote here: how many offsets of the source, and of the
    target, lie between the place where it began and the first record."""

    @property
    def ids(self) -> tuple[UUID, UUID]:
        return self.source_topic_id, self.target_topic_id

    @property
    def source_begins(self) -> SourceOffset:
        """From here on the map knows everything, if no run lies before this one."""
        return SourceOffset(self.source_first - self.holes_before[0])

    @property
    def target_begins(self) -> TargetOffset:
        return TargetOffset(self.target_first - self.holes_before[1])

    @property
    def count(self) -> int:
        return sum(copied for copied, _ in self.segments)

    @property
    def target_next(self) -> TargetOffset:
        return TargetOffset(self.target_first + self.count)

    @property
    def source_next(self) -> SourceOffset:
        """After the last copied record; trailing holes belong to nobody."""
        span = sum(copied + skipped for copied, skipped in self.segments)
        return SourceOffset(self.source_first + span - self.segments[-1][1])

    def source_of(self, target: TargetOffset) -> SourceOffset:
        """The source offset of the record at `target`, which must lie inside the run."""
        left, source = target - self.target_first, int(self.source_first)
        for copied, skipped in self.segments:
            if 0 <= left < copied:
                return SourceOffset(source + left)
            left -= copied
            source += copied + skipped
        raise ValueError(f"target offset {target} lies outside of {self}")

    def in_front_of(self, source: SourceOffset, target: TargetOffset) -> MappedRange:
        """The records that lie before both offsets; at least the run's first one does."""
        source_at, target_at, kept = int(self.source_first), int(self.target_first), list[tuple[int, int]]()
        for copied, skipped in self.segments:
            here = min(copied, source - source_at, target - target_at)
            if here > 0:
                kept.append((here, skipped))
            if here < copied:
                break
            source_at, target_at = source_at + copied + skipped, target_at + copied
        return replace(self, segments=(*kept[:-1], (kept[-1][0], 0)))


def valid_ranges(runs: Iterable[MappedRange]) -> list[MappedRange]:
    """Of one pair's runs in the order of their records in the map: what still is true of the target's log.

    A log that lost its tail is written again from its new end, and the map still knows what lay there
    before. So a run takes away what older ones say of the target's offsets after its first, and of its
    source's: aborted attempts may lie where the lost tail began.

        older   |----------|----------|         holds   |----------|---|
        newer                  |-----------|                           |-----------|
    """
    holding: list[MappedRange] = []
    for run in runs:
        while holding and (
            holding[-1].target_first >= run.target_first or holding[-1].source_first >= run.source_first
        ):
            holding.pop()
        if holding and (
            holding[-1].target_next > run.target_first or holding[-1].source_next > run.source_first
        ):
            holding[-1] = holding[-1].in_front_of(run.source_first, run.target_first)
        holding.append(run)
    return holding


def ranges_of_topics(runs: Iterable[MappedRange], ids: tuple[UUID, UUID]) -> list[MappedRange]:
    """Those that hold, by target offset, of these two topics and of none that had their names before."""
    return valid_ranges(run for run in runs if run.ids == ids)


def first_of_transaction(runs: Iterable[MappedRange], last: MappedRange) -> MappedRange:
    """Of one pair's runs, rising: where the transaction begins that `last` is part of. The fate of one of its
    runs is the fate of them all."""
    first = last
    for run in sorted(runs, key=lambda run: run.target_first, reverse=True):
        if run.target_next == first.target_first and run.generation == last.generation:
            first = run
    return first


def map_partition(target: TopicPartition, partitions: int = MAP_PARTITIONS) -> int:
    """A stable hash: the same on every machine and in every version, and of a map that somebody has grown:
    what it holds already stays where it is looked for."""
    return crc32(f"{target.topic}/{target.partition}".encode()) % min(partitions, MAP_PARTITIONS)


class RangeBuilder:
    """Collects the batches of one partition in one transaction; a hole on the target starts a new run."""

    def __init__(
        self,
        target: TopicPartition,
        generation: Generation,
        source_topic_id: UUID,
        target_topic_id: UUID,
        begins: tuple[SourceOffset, TargetOffset] | None = None,
    ) -> None:
        """`begins`, where nothing was mirrored yet: the first run tells of the holes before it."""
        self._fixed = (target, generation, source_topic_id, target_topic_id)
        self._begins = begins
        self._runs: list[MappedRange] = []
        self._open: _OpenRange | None = None

    def add(
        self,
        source_segments: tuple[tuple[int, int], ...],
        target_first: TargetOffset,
        first_timestamp_ms: int,
        last_timestamp_ms: int,
        source_epoch: int = -1,
    ) -> None:
        """One appended batch: `source_segments` are (first source offset, count) of its records, rising."""
        count = sum(n for _, n in source_segments)
        if self._open is None or self._open.target_next != target_first:
            self._close()
            self._open = _OpenRange(int(source_segments[0][0]), int(target_first), first_timestamp_ms)
        for first, n in source_segments:
            self._open.extend(first, n)
        self._open.target_next = target_first + count
        self._open.last_timestamp_ms = max(self._open.last_timestamp_ms, last_timestamp_ms)
        self._open.source_epoch = source_epoch

    def build(self, target_epoch: int = -1) -> tuple[MappedRange, ...]:
        self._close()
        runs, self._runs = self._runs, []
        return tuple(replace(run, target_epoch=target_epoch) for run in runs)

    def _close(self) -> None:
        if self._open is None:
            return
        target, generation, source_id, target_id = self._fixed
        run, self._open = self._open, None
        for source_first, target_first, segments in run.pieces():
            begins, self._begins = self._begins or (source_first, target_first), None
            self._runs.append(
                MappedRange(
                    target=target,
                    source_first=SourceOffset(source_first),
                    target_first=TargetOffset(target_first),
                    segments=segments,
                    first_timestamp_ms=run.first_timestamp_ms,
                    last_timestamp_ms=run.last_timestamp_ms,
                    generation=generation,
                    source_topic_id=source_id,
                    target_topic_id=target_id,
                    source_epoch=run.source_epoch,
                    holes_before=(source_first - begins[0], target_first - begins[1]),
                )
            )


class _OpenRange:
    def __init__(self, source_first: int, target_first: int, first_timestamp_ms: int) -> None:
        self.source_first, self.target_first = source_first, target_first
        self.source_next, self.target_next = source_first, target_first
        self.first_timestamp_ms = self.last_timestamp_ms = first_timestamp_ms
        self.source_epoch = -1
        self.segments: list[list[int]] = [[0, 0]]

    def extend(self, first: int, count: int) -> None:
        skipped = first - self.source_next
        if skipped < 0:
            raise ProtocolFault("source offsets of a partition", value=first, rule="must rise")
        if skipped:
            self.segments[-1][1] = skipped
            self.segments.append([0, 0])
        self.segments[-1][0] += count
        self.source_next = first + count

    def pieces(self) -> Iterator[tuple[int, int, tuple[tuple[int, int], ...]]]:
        """Source offset, target offset and segments of each; what lies between two of them is nobody's."""
        source, target = self.source_first, self.target_first
        for at in range(0, len(self.segments), MOST_SEGMENTS):
            here = self.segments[at : at + MOST_SEGMENTS]
            *inner, (last, _) = ((copied, skipped) for copied, skipped in here)
            yield source, target, (*inner, (last, 0))
            source += sum(copied + skipped for copied, skipped in here)
            target += sum(copied for copied, _ in here)
