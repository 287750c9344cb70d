"""Is what a target holds after the last mirrored record the source's continuation? Compared, never counted.

The rule: the k-th record there equals the k-th visible record of the source after the position, in
timestamp, key, value and headers. Both sides are fed batch by batch, so memory stays bounded.

Invariants
    A. Nothing is proved that wasn't compared: a count, a size or a checksum of the whole isn't enough.
    B. What is reported of the proved records (`SettledBatch`) is what their owner would have put into the
       map.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from causeway.core.copy.repack import segments_of
from causeway.core.records.batches import HEADER_BYTES, BatchHead
from causeway.core.records.record_frames import Frame
from causeway.core.records.records import first_timestamp_of, frames_of


class Differs(Exception):
    """Somewhere the tail isn't what the source shows; the message says where."""


@dataclass(frozen=True, slots=True)
class SettledBatch:
    """One batch of the target and where its records come from, as the offset map wants it."""

    segments: tuple[tuple[int, int], ...]
    """(first source offset, count), rising."""
    target_first: int
    first_timestamp_ms: int
    last_timestamp_ms: int
    source_epoch: int
    """Of its last record's batch; -1: not known."""
    size_bytes: int

    @property
    def records(self) -> int:
        return sum(count for _, count in self.segments)


@dataclass(slots=True)
class SettledTail:
    """What was proved, in order."""

    batches: list[SettledBatch] = field(default_factory=list)
    target_epoch: int = -1
    """Of the leader that took the last of them."""
    aborted_in_front: int = 0
    """Aborted records before the last of them: the position passes them now."""
    aborted_behind: int = 0

    @property
    def records(self) -> int:
        return sum(batch.records for batch in self.batches)

    @property
    def source_next(self) -> int:
        first, count = self.batches[-1].segments[-1]
        return first + count

    @property
    def target_next(self) -> int:
        return self.batches[-1].target_first + self.batches[-1].records


class TailComparison:
    """Walks a target's tail and the source beside it; whoever feeds it reads both."""

    def __init__(self, *, source_next: int, target_next: int) -> None:
        self._source_next, self._target_next = source_next, target_next
        self._offered: deque[tuple[BatchHead, memoryview]] = deque()
        self._source: deque[tuple[Frame, int]] = deque()
        """Records of a source batch that is used up in part, with their leader epoch."""
        self._target: deque[Frame] | None = None
        """Records of the target's batch at hand that wait for their counterpart."""
        self._taken: list[Frame] = []
        self._epoch = -1
        self.tail = SettledTail()

    def offer(self, head: BatchHead, batch: memoryview) -> None:
        """The source's next visible batch."""
        self._offered.append((head, batch))

    def advance(self, head: BatchHead, batch: memoryview) -> bool:
        """Compare one visible batch of the target; False: the same again once more of the source is offered.

        :raises Differs: it isn't the source's continuation.
        :raises CorruptBatch: | :raises OversizedBatch: a batch can't be read.
        """
        if self._target is None:
            if self._is_next_verbatim(head, batch):
                return True
            frames = frames_of(batch, head)
            self._target = deque(frame for frame in frames if frame.offset >= self._target_next)
            self._taken = []
        while self._target:
            if not self._has_source():
                return False
            self._compare_record(self._target.popleft(), *self._source.popleft())
        if self._taken:
            segments, first_ms = segments_of(self._taken), self._taken[0].timestamp_ms
            self._prove(head, segments, first_ms, self._epoch, first_target=head.next_offset)
        self._target = None
        return True

    def _is_next_verbatim(self, head: BatchHead, batch: memoryview) -> bool:
        """The fast path: the source's next batch as a whole, bytes beside bytes."""
        if self._source or not self._offered or head.base_offset < self._target_next:
            return False
        theirs, content = self._offered[0]
        if theirs.base_offset < self._source_next or _shape(head) != _shape(theirs) or theirs.has_holes:
            return False
        if batch[HEADER_BYTES:] != content[HEADER_BYTES:]:
            return False
        self._offered.popleft()
        first_ms = first_timestamp_of(content, theirs)
        self._prove(head, ((theirs.base_offset, theirs.record_count),), first_ms, theirs.leader_epoch)
        return True

    def _has_source(self) -> bool:
        while not self._source and self._offered:
            head, batch = self._offered.popleft()
            wanted = (frame for frame in frames_of(batch, head) if frame.offset >= self._source_next)
            self._source.extend((frame, head.leader_epoch) for frame in wanted)
        return bool(self._source)

    def _compare_record(self, ours: Frame, theirs: Frame, epoch: int) -> None:
        if (ours.timestamp_ms, ours.body) != (theirs.timestamp_ms, theirs.body):
            what = "timestamp" if ours.timestamp_ms != theirs.timestamp_ms else "content"
            raise Differs(
                f"the record at target offset {ours.offset} isn't the one at source offset {theirs.offset}: "
                f"its {what} differs"
            )
        self._taken.append(theirs)
        self._epoch = epoch

    def _prove(
        self,
        head: BatchHead,
        segments: tuple[tuple[int, int], ...],
        first_ms: int,
        epoch: int,
        first_target: int = -1,
    ) -> None:
        count = sum(n for _, n in segments)
        made = SettledBatch(
            segments=segments,
            target_first=head.base_offset if first_target < 0 else first_target - count,
            first_timestamp_ms=first_ms,
            last_timestamp_ms=head.max_timestamp,
            source_epoch=epoch,
            size_bytes=head.size_bytes,
        )
        self.tail.batches.append(made)
        self.tail.target_epoch = head.leader_epoch


def _shape(head: BatchHead) -> tuple[object, ...]:
    """What must be equal in two batches beside their bytes for their records to be equal."""
    return (
        head.magic,
        head.codec,
        head.is_log_append_time,
        head.record_count,
        head.last_offset_delta,
        head.base_timestamp,
        head.max_timestamp,
    )
