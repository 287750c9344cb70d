"""Settle: commit what a dead owner left open instead of aborting it, so that default readers see no repeats.

    describe -> prove -> note -> commit in its place -> describe again  before the claim
    read the tail -> prove -> S and T move, map and position first      after the claim (`tail.py`)

Switchable per flow, for transactions v2 only. To prove is to compare: each record is the source's next one,
on both occasions, because between them the owner may have gone on, and a successor may have died.

Invariants
    A. What isn't proved isn't committed: anything odd leaves the transaction to the claim, which aborts it.
    B. What was committed and isn't proved after the claim is never passed over: its partition is parked. The
       note says how far anything was: what retention took elsewhere is nobody's loss. It is taken back once
       the tail was read, and nothing of it is visible.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from causeway.core.copy.lane_task import LaneTask
from causeway.core.copy.park_reasons import foreign_data, tail_unproved
from causeway.core.copy.ports import (
    Clock,
    Diverged,
    Fetched,
    FetchFrom,
    LogEnd,
    OpenTransaction,
    OutcomeUnknown,
    Refused,
    Source,
    Target,
)
from causeway.core.copy.tail_comparison import Differs, SettledTail, TailComparison
from causeway.core.kernel.identity import TopicPartition
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.records.batches import BatchHead, CorruptBatch, OversizedBatch
from causeway.core.records.visibility import Visibility, read_committed
from causeway.core.state.parked import Parked
from causeway.core.state.settle_notes import SettleNote, may_hold_settled, note_of, note_records, taken_back
from causeway.usecases.copy.lane.inspect import PartitionState, Rows
from causeway.usecases.copy.lane.refusals import fetch_refusal
from causeway.usecases.copy.lane.stale_leader import why_it_passes

_FETCH_BYTES = 8 << 20
_FRUITLESS_READS = 20
_PAUSE_SECONDS = 0.02
_TRIES = 10
_OFFSETS_TOPIC = "__consumer_offsets"


class Unproved(Exception):
    """The tail isn't what it should be, or can't be compared now: then there is nothing to park for."""

    def __init__(self, why: str, parked: Parked | None = None) -> None:
        super().__init__(why)
        self.parked = parked

    @property
    def passes(self) -> bool:
        return self.parked is None


class Settling:
    """Settles one lane; remembers whose transactions it saw, because their records are the lane's own."""

    def __init__(self, task: LaneTask, source: Source, target: Target, clock: Clock, rows: Rows) -> None:
        self._task, self._source, self._target, self._clock = task, source, target, clock
        self._rows = rows
        self.seen_producers: set[int] = set()
        self.notes: frozenset[SettleNote] = frozenset()
        """Those that stand when the lane is owned."""
        self._ended: set[TopicPartition] = set()

    async def settle(self, seen: Mapping[TopicPartition, PartitionState]) -> None:
        """`seen` is what the look before the claim found: partitions that may go on."""
        if not self._target.may_be_settled:
            return
        for _ in range(_TRIES):
            transaction = await self._target.open_transaction(self._task.transactional_id)
            if transaction is None or not await self._is_proved(transaction, seen):
                return
            self.seen_producers.add(transaction.producer_id)
            await self._say_how_far(transaction, seen)
            if not await self._target.settle(self._task.transactional_id, transaction):
                return
            self._ended |= transaction.partitions
            await self._clock.sleep(_PAUSE_SECONDS)

    async def _say_how_far(
        self, transaction: OpenTransaction, seen: Mapping[TopicPartition, PartitionState]
    ) -> None:
        """Written before anything is settled: afterwards, retention may leave nothing else to tell by."""
        notes: list[SettleNote] = []
        for tp, end in (await self._target.log_ends(sorted(transaction.partitions & seen.keys()))).items():
            position = seen[tp].position
            if isinstance(end, Refused) or position is None:
                raise OutcomeUnknown(f"the end of {tp}, before settling: {end}")
            notes.append(note_of(tp, position, end.offset))
        before = (await self._target.flow_state(self._task.flow)).settling
        await self._target.append_many(FLOWS_TOPIC, note_records(self._task.flow, notes, before))

    async def took_away(self, trimmed: Collection[PartitionState]) -> list[PartitionState]:
        """Of partitions whose log begins after their positions: where settled records may have gone with
        it."""
        notes = (await self._target.flow_state(self._task.flow)).settling if trimmed else ()
        return [g for g in trimmed if g.position and may_hold_settled(notes, g.target, g.position)]

    async def take_back_notes(self, read: Collection[PartitionState]) -> None:
        """Of partitions whose tails were read after the claim, and hold nothing of ours that anybody sees.

        Nobody can settle there any more, so what retention takes later is nobody's loss. One that was trimmed
        and has a note is parked already.
        """
        gone = [
            record
            for ground in read
            if ground.position is not None
            for record in taken_back(self._task.flow, self.notes, ground.target, ground.position)
        ]
        if gone:
            await self._target.append_many(FLOWS_TOPIC, gone)

    def count(
        self, before: Mapping[TopicPartition, PartitionState], now: Mapping[TopicPartition, PartitionState]
    ) -> None:
        """Of what was settled: the records whose position came along. The others still come after it."""
        for tp in self._ended & now.keys():
            was, there = before[tp].position, now[tp].position
            if was is not None and there is not None:
                self._rows[tp].settled_records += there.records - was.records

    async def prove(self, ground: PartitionState, ours: Collection[int]) -> SettledTail:
        """After the claim: all that a reader sees between the position and the end.

        :raises Unproved: it isn't the source's continuation, or that can't be proved now.
        """
        walk = _Walk(self._task, self._source, self._target, self._clock, ground)
        return await walk.prove_visible({*ours, *self.seen_producers})

    async def _is_proved(
        self, transaction: OpenTransaction, seen: Mapping[TopicPartition, PartitionState]
    ) -> bool:
        ours = (self._task.map_topic, _OFFSETS_TOPIC)
        mirrored = sorted(tp for tp in transaction.partitions if tp.topic not in ours)
        for tp in mirrored:
            if tp not in seen and self._waits(tp):  # the time-out sees to an end of that
                raise OutcomeUnknown(f"{tp} waits, and what its last owner left open can't be compared yet")
        grounds = [seen[tp] for tp in mirrored if tp in seen]
        if len(grounds) < len(mirrored) or not all(map(_is_sound, grounds)):
            return False
        if await self._is_any_compacted(grounds):
            return False
        stables, ends = await self._target.last_stables(mirrored), await self._target.log_ends(mirrored)
        try:
            for ground in grounds:
                walk = _Walk(self._task, self._source, self._target, self._clock, ground)
                await walk.prove_open(transaction, stables[ground.target], ends[ground.target])
        except Unproved as cause:
            if cause.passes:  # the task of the next round tries again, as above
                raise OutcomeUnknown(str(cause)) from cause
            return False
        return True

    def _waits(self, tp: TopicPartition) -> bool:
        row = self._rows.get(tp)
        return tp in self._task.put_off if row is None else bool(row.later) and row.parked is None

    async def _is_any_compacted(self, grounds: Collection[PartitionState]) -> bool:
        pairs = [ground.assignment.pair for ground in grounds]
        return bool(
            await self._source.compacted({pair.source.topic for pair in pairs})
            or await self._target.compacted({pair.target.topic for pair in pairs})
        )


def _is_sound(ground: PartitionState) -> bool:
    """A position of ours (it is committed before the first append), and a log that still reaches it."""
    return ground.position is not None and ground.recopied_from is None


class _Walk:
    """One partition's tail beside its source, from the position on."""

    def __init__(
        self, task: LaneTask, source: Source, target: Target, clock: Clock, ground: PartitionState
    ) -> None:
        self._task, self._source, self._target, self._clock = task, source, target, clock
        self._ground, self._pair = ground, ground.assignment.pair
        self._comparison = TailComparison(source_next=ground.source_next, target_next=ground.target_next)
        self._source_next, self._source_epoch = int(ground.source_next), ground.source_epoch
        self._aborted = 0
        self._ours: Collection[int] = ()

    async def prove_visible(self, ours: Collection[int]) -> SettledTail:
        ground, self._ours = self._ground, ours
        await self._read_tail(max(ground.target_next, ground.log_start), ground.target_end)
        tail = self._comparison.tail
        tail.aborted_behind = self._aborted - tail.aborted_in_front
        return tail

    async def prove_open(
        self, transaction: OpenTransaction, stable: int | Refused, end: LogEnd | Refused
    ) -> None:
        """All that is visible after the position, then all that is open: of this transaction alone.

        From the record before the position on: a new leader may have lost its marker.
        """
        ground = self._ground
        if isinstance(stable, Refused) or isinstance(end, Refused):
            raise Unproved(f"the end of {ground.target}: {stable}, {end}")
        if stable < ground.target_next:
            raise self._unproved(f"it is stable to {stable} only")
        self._ours = {transaction.producer_id, *ground.writers}
        begin = max(ground.target_next - 1, ground.log_start)
        await self._read_tail(begin, stable)
        await self._read_tail(max(begin, stable), end.offset, of=transaction)

    async def _read_tail(self, at: int, until: int, of: OpenTransaction | None = None) -> None:
        """`of`: without isolation, and nothing but this transaction's data may be there."""
        fruitless = 0
        while at < until:
            before, answer = at, await self._fetch(at, is_isolated=of is None)
            try:
                for head, batch, seen in read_committed(answer.records, answer.aborted, at):
                    if of is not None:
                        self._check_open(head, seen, of)
                    await self._take_batch(head, batch, seen)
                    at = head.next_offset
            except (CorruptBatch, OversizedBatch, Differs) as cause:
                raise self._unproved(str(cause)) from cause
            fruitless = fruitless + 1 if at == before else 0
            if fruitless:
                await self._clock.sleep(_PAUSE_SECONDS)
            if fruitless > _FRUITLESS_READS:
                raise Unproved(f"{self._pair.target} can't be read from {at} to {until}")

    async def _fetch(self, at: int, *, is_isolated: bool) -> Fetched:
        target = self._pair.target
        wanted = {target: FetchFrom(self._pair.target_topic_id, at)}
        answer = (
            await self._target.fetch(wanted, max_bytes=_FETCH_BYTES, max_wait_ms=0, is_isolated=is_isolated)
        )[target]
        if not isinstance(answer, Fetched):
            raise Unproved(f"{target}, after the last mirrored record: {answer}")
        return answer

    def _check_open(self, head: BatchHead, seen: Visibility, transaction: OpenTransaction) -> None:
        owner = (transaction.producer_id, transaction.producer_epoch)
        if seen is not Visibility.DATA or (head.producer_id, head.producer_epoch) != owner:
            raise Differs(
                f"{self._pair.target} holds at {head.base_offset} what this transaction didn't write"
            )

    async def _take_batch(self, head: BatchHead, batch: memoryview, seen: Visibility) -> None:
        if head.next_offset <= self._ground.target_next:
            if seen is Visibility.ABORTED:
                raise Differs(f"the last mirrored record of {self._pair.target} was aborted")
            return
        if seen is Visibility.ABORTED and head.producer_id in self._ours:
            self._aborted += head.record_count
        if seen is not Visibility.DATA:
            return
        if head.producer_id not in self._ours:
            parked = foreign_data(
                self._task.flow, self._ground.assignment, head.base_offset, had_position=True
            )
            raise Unproved(parked.facts, parked)
        while not self._comparison.advance(head, batch):
            await self._offer_more()
        self._comparison.tail.aborted_in_front = self._aborted

    async def _offer_more(self) -> None:
        """The source's next visible batches."""
        source, fruitless = self._pair.source, 0
        while fruitless <= _FRUITLESS_READS:
            before, offered = self._source_next, False
            answer = await self._fetch_source()
            for head, batch, seen in read_committed(answer.records, answer.aborted, before):
                if seen is Visibility.DATA:
                    self._comparison.offer(head, batch)
                    offered = True
                self._source_next = head.next_offset
                self._source_epoch = max(head.leader_epoch, self._source_epoch)
            if offered:
                return
            if self._source_next == before:
                await self._check_source_end()
                await self._clock.sleep(_PAUSE_SECONDS)
                fruitless += 1
        raise Unproved(f"{source} gives nothing from {self._source_next}, though it was mirrored")

    async def _fetch_source(self) -> Fetched:
        source, at = self._pair.source, self._source_next
        wanted = {source: FetchFrom(self._pair.source_topic_id, at, self._source_epoch)}
        answer = (await self._source.fetch(wanted, max_bytes=_FETCH_BYTES, max_wait_ms=0))[source]
        match answer:
            case Fetched():
                return answer
            case _:
                # About the position: a gap is reported and accepted from there.
                stands = int(self._ground.source_next)
                parked = fetch_refusal(self._task.flow, self._ground.assignment, stands, stands, answer)
                if parked is None and isinstance(answer, Diverged):
                    parked = self._unproved(f"the source's log took another turn at {answer.end}").parked
        ground = self._pair.source_topic_id, self._source_epoch
        if parked and await why_it_passes(self._source, source, *ground, answer):
            parked = None
        raise Unproved(f"{source}: {answer}", parked)

    async def _check_source_end(self) -> None:
        """A leader that doesn't know its end yet is waited for; one that does has nothing more to compare."""
        source = self._pair.source
        end = (await self._source.log_ends([source]))[source]
        if isinstance(end, LogEnd) and end.offset <= self._source_next:
            raise Differs(f"{source} ends at {end.offset}")

    def _unproved(self, cause: str) -> Unproved:
        parked = tail_unproved(self._task.flow, self._ground.assignment, self._ground.target_next, cause)
        return Unproved(parked.facts, parked)
