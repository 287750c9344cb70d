"""One partition's way through a lane: batches as they were fetched, in order, waiting to be appended.

Invariant: `consumed` is the source offset after everything that was handed on or left out permanently.
When all appends have been acknowledged, it is the partition's position.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from causeway.core.copy.lane_task import Assignment, LaneTask, PartitionRow
from causeway.core.copy.ports import (
    Fetched,
    FetchFrom,
)
from causeway.core.copy.repack import JOINED_BYTES, Repacked, is_small
from causeway.core.copy.tail_comparison import SettledTail
from causeway.core.kernel.identity import SourceOffset, TargetOffset, TopicPartition
from causeway.core.offsets.offset_map import RangeBuilder
from causeway.core.records.batches import BatchHead, CorruptBatch
from causeway.core.records.visibility import Visibility, read_committed
from causeway.core.state.parked import Parked, ParkReason
from causeway.core.state.position import Position
from causeway.core.state.repair_commands import adopt_remedy
from causeway.core.topics.quarantine import HeldOut
from causeway.usecases.copy.lane.inspect import PartitionState


@dataclass(slots=True)
class Sent:
    """What an append in flight will have done once it is acknowledged."""

    segments: tuple[tuple[int, int], ...]
    records: int
    size_bytes: int
    first_timestamp_ms: int
    last_timestamp_ms: int
    repacked_because: str
    source_before: int
    epoch_before: int
    """Where the partition stays if the target refuses this batch."""
    source_epoch: int = -1
    """Of its last record's batch."""
    is_joined: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A repacked batch that waits to be sent, and where the partition stands once it is."""

    made: Repacked
    because: str
    source_next: int
    source_epoch: int
    is_joined: bool


@dataclass(slots=True)
class InTransaction:
    """What the open transaction has done to this partition: it counts only once it is committed."""

    touched: bool = False
    records: int = 0
    size_bytes: int = 0
    verbatim: int = 0
    repacked: dict[str, int] = field(default_factory=dict)
    settled: int = 0
    """Of `records`: those that lay there already."""
    aborted: int = 0
    """Aborted records before those."""
    quarantined: dict[int, str] = field(default_factory=dict)
    """Source offsets of records that go into quarantine instead, and why."""


class PartitionStream:
    """Reads ahead on the source side, keeps the target's expected end on the other."""

    def __init__(self, ground: PartitionState, row: PartitionRow, task: LaneTask, now_ms: int) -> None:
        self.assignment: Assignment = ground.assignment
        self.target: TopicPartition = ground.target
        self.row = row
        self.position = ground.position
        self.fetch_next = int(ground.source_next)
        self.fetch_epoch = ground.source_epoch
        self.consumed = int(ground.source_next)
        self.consumed_epoch = ground.source_epoch
        self.target_next = int(ground.target_next)
        self.target_end = ground.target_end
        self.target_epoch = ground.target_epoch
        self.leader_epoch = ground.leader_epoch
        """Of the target's leader whose log was proved; another one has to be proved first."""
        self.aborted_seen = ground.aborted_seen
        self.queue: deque[tuple[BatchHead, memoryview | None]] = deque()
        self.parts: deque[Part] = deque()
        """Of a batch that was cut in pieces: they come before the queue."""
        self.held_out: deque[HeldOut] = deque()
        """For the quarantine: each goes there in the transaction that moves the position over it."""
        self.txn = InTransaction()
        pair = ground.assignment.pair
        self.runs = RangeBuilder(
            pair.target, task.generation, pair.source_topic_id, pair.target_topic_id, ground.begins
        )
        self.is_due = ground.position is not None and ground.position.is_old(now_ms)
        """Has to be committed again, whether or not there is news."""
        self.place_is_due = ground.needs_a_place
        """The next commit writes the position into the map as well: only a committed offset knows of it."""
        self.closed = False
        """Takes no more in this task: parked, or waiting for the next round."""
        self.demands = ground.assignment.demands
        self.may_join = self.demands.may_join
        self.was_refused = False
        """The target refused one of its batches in this task."""
        self._flow = task.flow
        row.source_from = row.source_next = self.consumed
        row.recopied_from = ground.recopied_from
        if ground.settled is not None:
            self._keep(ground.settled)

    def _keep(self, tail: SettledTail) -> None:
        """What an earlier owner appended counts as if this one had, and gets its runs in the map."""
        for batch in tail.batches:
            self.runs.add(
                batch.segments,
                TargetOffset(batch.target_first),
                batch.first_timestamp_ms,
                batch.last_timestamp_ms,
                batch.source_epoch,
            )
            self.txn.size_bytes += batch.size_bytes
        self.txn.records = self.txn.settled = tail.records
        self.txn.aborted = tail.aborted_in_front
        self.row.source_from = int(tail.batches[0].segments[0][0])

    @property
    def wants_more(self) -> bool:
        return not self.closed and self.fetch_next < self.assignment.end

    def fetch_from(self) -> FetchFrom:
        return FetchFrom(self.assignment.pair.source_topic_id, self.fetch_next, self.fetch_epoch)

    def take(self, fetched: Fetched) -> None:
        """Cut an answer into batches, each checked before anything of it is appended."""
        if self.closed:
            return
        try:
            for head, batch, seen in read_committed(fetched.records, fetched.aborted, self.fetch_next):
                self.queue.append((head, batch if seen is Visibility.DATA else None))
                self.fetch_next = head.next_offset
                if head.leader_epoch >= 0:
                    self.fetch_epoch = head.leader_epoch
        except CorruptBatch as cause:
            self.park_corrupt(cause)

    def park_corrupt(self, cause: CorruptBatch) -> None:
        """What was read before the bad batch still crosses."""
        source = self.assignment.pair.source
        self.row.parked = Parked(
            ParkReason.SOURCE_CORRUPT,
            f"{source}: {cause}",
            f"repair {source} from a healthy replica, or {adopt_remedy(self._flow, source)}",
        )
        self.closed = True

    def park(self, parked: Parked) -> None:
        self.row.parked = parked
        self.drop_what_waits()
        self.closed = True

    def drop_what_waits(self) -> None:
        self.queue.clear()
        self.parts.clear()

    def wait_for_next_round(self, why: str) -> None:
        self.row.later = why
        self.closed = True

    def skip_holes(self) -> None:
        """Markers and aborted data before the queue: the position moves over them."""
        while self.queue and self.queue[0][1] is None and not self.parts:
            self.pass_over(self.queue.popleft()[0])

    def next_batch(self) -> tuple[BatchHead, memoryview] | None:
        self.skip_holes()
        if not self.queue:
            return None
        head, batch = self.queue.popleft()
        assert batch is not None
        return head, batch

    def small_neighbours(self, head: BatchHead) -> list[tuple[BatchHead, memoryview | None]]:
        """What waits after a small batch and may travel in one with it, with the holes in between."""
        left, taken, codec = JOINED_BYTES - head.size_bytes, 0, head.codec
        for number, (following, batch) in enumerate(self.queue if self.may_join else (), 1):
            if batch is None:
                continue
            left -= following.size_bytes
            if left < 0 or not is_small(following) or following.codec is not codec:
                break
            taken = number
        return [self.queue.popleft() for _ in range(taken)]

    def put_back(self, left: Sequence[tuple[BatchHead, memoryview | None]]) -> None:
        self.queue.extendleft(reversed(left))

    def do_not_join(self, together: Sequence[tuple[BatchHead, memoryview | None]]) -> None:
        """One of them can't be read: each by itself, so that those before it still cross."""
        self.put_back(together)
        self.may_join = False

    def pass_over(self, head: BatchHead) -> None:
        """The batch was handed on, or held nothing that a reader would see."""
        self.consumed = head.next_offset
        if head.leader_epoch >= 0:
            self.consumed_epoch = head.leader_epoch

    def next_part(self) -> Part | None:
        """What was cut is sent piece by piece, and the position moves piece by piece."""
        if not self.parts:
            return None
        part = self.parts.popleft()
        self.consumed = part.source_next
        if part.source_epoch >= 0:
            self.consumed_epoch = part.source_epoch
        return part

    def take_held_out(self) -> list[HeldOut]:
        """Those that the position has moved over, for the transaction that commits it."""
        taken: list[HeldOut] = []
        while self.held_out and self.held_out[0].offset < self.consumed:
            taken.append(self.held_out.popleft())
        self.txn.quarantined |= {each.offset: each.why for each in taken}
        return taken

    def acknowledged(self, sent: Sent, base_offset: int) -> None:
        self.runs.add(
            sent.segments,
            TargetOffset(base_offset),
            sent.first_timestamp_ms,
            sent.last_timestamp_ms,
            sent.source_epoch,
        )
        self.target_next = self.target_end = base_offset + sent.records
        self.txn.records += sent.records
        self.txn.size_bytes += sent.size_bytes
        if sent.repacked_because:
            why = sent.repacked_because
            self.txn.repacked[why] = self.txn.repacked.get(why, 0) + 1
        else:
            self.txn.verbatim += 1

    def refused(self, sent: Sent, parked: Parked) -> None:
        """The position stays before the refused batch; what came after it is forgotten."""
        self._step_back(sent)
        self.park(parked)

    def held_up(self, sent: Sent, why: str) -> None:
        """Refused for a reason that passes: the next round tries the same batch again."""
        self._step_back(sent)
        self.drop_what_waits()
        self.wait_for_next_round(why)

    def _step_back(self, sent: Sent) -> None:
        self.consumed, self.consumed_epoch = sent.source_before, sent.epoch_before
        self.was_refused = True

    def next_position(self, task: LaneTask, *, producer_id: int, time_ms: int) -> Position:
        before = self.position
        pair = self.assignment.pair
        return Position(
            source_next=SourceOffset(self.consumed),
            target_next=TargetOffset(self.target_next),
            source_topic_id=pair.source_topic_id,
            target_topic_id=pair.target_topic_id,
            source_epoch=self.consumed_epoch,
            target_epoch=self.target_epoch,
            generation=task.generation,
            producer_id=producer_id,
            time_ms=time_ms,
            records=(before.records if before else 0) + self.txn.records,
            aborted_records=(before.aborted_records if before else 0) + self._repeated_now,
            is_placed=self.place_is_due or (before is not None and before.is_placed),
        )

    @property
    def _repeated_now(self) -> int:
        """Aborted records count once their tail is passed: a tail that the next owner reads again,
        because nothing was appended after it, would be counted again."""
        appended = self.txn.records > self.txn.settled
        return self.txn.aborted + (self.aborted_seen if appended else 0)

    @property
    def has_news(self) -> bool:
        """Whether committing would say anything that isn't committed already."""
        p = self.position
        if p is None or self.is_due or self.place_is_due or p.target_epoch != self.target_epoch:
            return True  # a new leader was proved: once written, it needn't be proved again by every round
        return p.source_next != self.consumed or p.target_next != self.target_next

    def committed(self, position: Position) -> None:
        """The transaction stands: fold it into the row."""
        row, txn = self.row, self.txn
        row.source_next = int(position.source_next)
        row.records += txn.records
        row.size_bytes += txn.size_bytes
        row.verbatim_batches += txn.verbatim
        for why, count in txn.repacked.items():
            row.repacked_batches[why] = row.repacked_batches.get(why, 0) + count
        row.settled_records += txn.settled
        row.quarantined |= txn.quarantined
        row.aborted_records += self._repeated_now
        if txn.records > txn.settled:
            self.aborted_seen = 0
        if txn.touched:
            self.target_end += 1  # our own marker
        self.position, self.txn, self.is_due = position, InTransaction(), False
        self.place_is_due = False


def least_served_first(streams: list[PartitionStream], now_ms: int) -> list[PartitionStream]:
    """By the times of their positions; a time that a clock was ahead with says nothing."""
    times = {s.target: s.position.time_ms if s.position is not None else 0 for s in streams}
    return sorted(streams, key=lambda s: times[s.target] if times[s.target] <= now_ms else 0)
