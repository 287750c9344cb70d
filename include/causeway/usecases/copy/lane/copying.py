"""The copy itself: fetch ahead, append in waves, commit data, map and positions in one transaction.

A *wave* is one request's worth: one batch of each partition that has one. Up to five waves are in
flight; their answers are read in the order in which they were sent.

Invariants
    A. A wave that brings a partition new to the transaction travels alone: only then can a refusal
       with CONCURRENT_TRANSACTIONS be repeated, because nothing was sent after it.
    B. Each answer's base offset is the end that we know (rule R6). Below: the target lost something;
       above: somebody else writes. Either way the transaction is aborted, and the next attempt, which
       reads the tail, says which.
    C. After a refusal its partition takes no more. If a later batch of it is accepted all the same,
       order is broken, and the transaction is aborted.
    D. Nothing is committed before every answer is in.
    E. Who was asked for first gets a batch, or is waited for; who got something goes to the end. So each
       partition gets its turn, across tasks too: those whose positions are oldest begin (`fetch_ahead`).
    F. What is appended to the map at once is bounded, whatever was left out on the source: a transaction
       holds so many segments, a run fewer (`RangeBuilder`), and they go in batches of so many bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Mapping
from itertools import zip_longest

from causeway.core.copy.lane_task import LaneTask, RefusedCommit
from causeway.core.copy.ports import (
    AppendAnswer,
    Appended,
    Clock,
    LogEnd,
    OutcomeUnknown,
    Owner,
    Refused,
    Source,
    Target,
    Unreachable,
)
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.offsets.map_format import encode_place, encode_range, filling
from causeway.core.offsets.offset_map import MOST_SEGMENTS, map_partition
from causeway.core.records.compression import Codec
from causeway.core.records.records import Record, encode_batch, in_batches
from causeway.core.state.position import Position
from causeway.core.topics.quarantine import in_batches as in_quarantine_batches
from causeway.usecases.copy.lane.fetch_ahead import FetchAhead
from causeway.usecases.copy.lane.partition_stream import PartitionStream, Sent, least_served_first
from causeway.usecases.copy.lane.prepare import prepare
from causeway.usecases.copy.lane.refusals import (
    map_refusal,
    quarantine_refusal,
    take_refusal,
)

_IN_FLIGHT = 5
_WAVE_BYTES = 8 << 20
_PARTITION_FETCH_BYTES = 1 << 20
_MOST_SEGMENTS = 16 * MOST_SEGMENTS
"""Of a transaction: a thinned source has many in few bytes, and each costs the map some."""
_MAP_BATCH_BYTES = 32 << 10
"""Far below every default, for a map topic that somebody has made smaller."""
_CONCURRENT_PAUSE_SECONDS = 0.01
_CONCURRENT_TRIES = 1_000

Wave = dict[TopicPartition, Sent]


class LaneCopy:
    """Copies the streams of one claimed lane until they reach the planned ends or the time is over."""

    def __init__(
        self,
        task: LaneTask,
        source: Source,
        target: Target,
        owner: Owner,
        clock: Clock,
        streams: list[PartitionStream],
    ) -> None:
        self._task, self._target, self._owner, self._clock = task, target, owner, clock
        turns = least_served_first(streams, clock.time_ms())
        self._streams = {stream.target: stream for stream in turns}
        self._fetch = FetchAhead(task, source, turns)
        self._in_flight: deque[tuple[Wave, Awaitable[dict[TopicPartition, AppendAnswer]]]] = deque()
        self._transaction_bytes = self._transaction_segments = 0
        self._transaction_began = clock.monotonic()
        self._deadline = clock.monotonic() + task.limits.lane_seconds
        self.transactions = 0
        self.refused_commit: RefusedCommit | None = None
        self._trial: RefusedCommit | None = None

    async def run(self) -> None:
        fetching = self._fetch.start()
        while fetching is not None:
            try:
                await self._fetch.take(await fetching)
            except Unreachable as trouble:
                self._fetch.stop_reading(str(trouble))  # what was read is still worth a commit
            self._fetch.take_turns()
            fetching = None if self._time_is_over() else self._fetch.start()
            await self._append_queues()
            if self._fetch.waits_longer:
                await self.commit()  # what there is doesn't wait for one that is slow
        await self.commit()

    def _time_is_over(self) -> bool:
        return self._clock.monotonic() >= self._deadline

    # append

    async def _append_queues(self) -> None:
        while True:
            wave, batches, size = self._next_wave()
            if not wave:
                return
            if all(self._streams[tp].txn.touched for tp in wave):
                while len(self._in_flight) >= _IN_FLIGHT:
                    await self._settle_oldest()
                self._in_flight.append((wave, self._owner.append(batches)))
            else:
                await self._append_alone(wave, batches)
            if not self._transaction_bytes:  # its age counts from here, not from the wait for data
                self._transaction_began = self._clock.monotonic()
            self._transaction_bytes += size
            self._transaction_segments += sum(len(sent.segments) for sent in wave.values())
            if self._transaction_is_full():
                await self.commit()
                if self._time_is_over():
                    return  # what is left in the queues is fetched again by the next round

    def _next_wave(self) -> tuple[Wave, dict[TopicPartition, bytes | bytearray], int]:
        wave: Wave = {}
        batches: dict[TopicPartition, bytes | bytearray] = {}
        size = 0
        for tp, stream in self._streams.items():
            if size >= _WAVE_BYTES:
                break
            prepared = prepare(self._task, stream, self._owner.producer)
            if prepared is not None:
                wave[tp], batches[tp] = prepared
                size += len(batches[tp])
        return wave, batches, size

    async def _append_alone(self, wave: Wave, batches: dict[TopicPartition, bytes | bytearray]) -> None:
        await self._settle_all()
        for tp in wave:
            self._streams[tp].txn.touched = True
        answers = await self._append_to_new_partitions(batches)
        await self._settle(wave, answers)

    async def _append_to_new_partitions(
        self, batches: dict[TopicPartition, bytes | bytearray]
    ) -> dict[TopicPartition, AppendAnswer]:
        """The last transaction's markers may still be on their way: wait, then send the same again."""
        answers: dict[TopicPartition, AppendAnswer] = {}
        waiting = dict(batches)
        for _ in range(_CONCURRENT_TRIES):
            answers.update(await self._owner.append(waiting))
            waiting = {
                tp: batch
                for tp, batch in waiting.items()
                if isinstance(a := answers.get(tp), Refused) and a.code == Code.CONCURRENT_TRANSACTIONS
            }
            if not waiting:
                return answers
            await self._clock.sleep(_CONCURRENT_PAUSE_SECONDS)
        raise OutcomeUnknown(f"the last transaction of {self._task.transactional_id} doesn't complete")

    async def _settle_all(self) -> None:
        while self._in_flight:
            await self._settle_oldest()

    async def _settle_oldest(self) -> None:
        wave, answer = self._in_flight.popleft()
        await self._settle(wave, await answer)

    async def _settle(self, wave: Wave, answers: dict[TopicPartition, AppendAnswer]) -> None:
        for tp, sent in wave.items():
            stream, answer = self._streams[tp], answers.get(tp)
            if answer is None:
                raise OutcomeUnknown(f"no answer for {tp}")
            if isinstance(answer, Refused):
                if not stream.was_refused:
                    take_refusal(self._task, stream, sent, answer, self._clock.time_ms())
                continue
            await self._check_base(stream, answer)
            stream.acknowledged(sent, answer.base_offset)

    async def _check_base(self, stream: PartitionStream, answer: Appended) -> None:
        """Whoever wrote there is found by the next attempt, which reads the tail: only then is it known."""
        if stream.was_refused:
            await self.abort(f"{stream.target} took a batch after one that it had refused")
        if answer.base_offset != stream.target_end:
            await self.abort(
                f"{stream.target} appended at {answer.base_offset}, "
                f"its end should have been {stream.target_end}"
            )

    async def abort(self, why: str) -> None:
        """For what is *known* to be wrong: nobody may ever see it."""
        await self._owner.end(commit=False)
        raise OutcomeUnknown(why)

    # commit

    def _transaction_is_full(self) -> bool:
        limits = self._task.limits
        age = self._clock.monotonic() - self._transaction_began
        return (
            self._transaction_bytes >= limits.transaction_bytes
            or self._transaction_segments >= _MOST_SEGMENTS
            or age >= limits.transaction_seconds
        )

    async def try_commit(self, refused: RefusedCommit) -> None:
        """The positions as they are, and in each partition of the map as much as was refused, of what means
        nothing there: appended data would be there once more for readers without isolation."""
        for stream in self._streams.values():
            stream.is_due = True
        before, self._trial = self.transactions, refused
        await self.commit()
        self.transactions, self._trial = before, None  # nothing was copied

    async def commit(self) -> None:
        """Everything acknowledged so far becomes visible at once, with map and positions; or nothing does."""
        await self._settle_all()
        for stream in self._streams.values():
            if not stream.queue or stream.closed:
                stream.skip_holes()
        news = [s for s in self._streams.values() if s.txn.touched or s.has_news]
        if news:
            await self._prove_ends([s for s in news if s.txn.touched])
            positions, writer = self._positions(news), self._owner.producer.producer_id
            await self._end(news, positions)
            self.transactions += 1
            for stream in news:
                stream.committed(positions[stream.target])
            if self._task.settles and self._owner.producer.producer_id != writer:
                # The positions say whose records are ours: the next task names the new one first.
                raise OutcomeUnknown(f"the epochs of producer {writer} have run out")
        self._transaction_bytes = self._transaction_segments = 0
        self._transaction_began = self._clock.monotonic()

    async def _end(self, news: list[PartitionStream], positions: dict[TopicPartition, Position]) -> None:
        try:
            await self._append_quarantined(news)
            await self._append_map(news, positions)
            await self._owner.commit_positions(self._task.group, positions)
            await self._owner.end(commit=True)
        except OutcomeUnknown as doubt:
            if doubt.code and self.refused_commit is None:
                self.refused_commit = RefusedCommit(why=str(doubt), code=doubt.code)
            raise

    def _positions(self, news: list[PartitionStream]) -> dict[TopicPartition, Position]:
        now, producer = self._clock.time_ms(), self._owner.producer.producer_id
        return {s.target: s.next_position(self._task, producer_id=producer, time_ms=now) for s in news}

    async def _prove_ends(self, touched: list[PartitionStream]) -> None:
        """Asked of the leaders after their answers, never from a cache: the end is ours, and the leader is
        still the one that was proved. A new one may have lost what this transaction appended, and a foreign
        record may have filled the place: base offsets alone wouldn't show it.
        """
        if not touched:
            return
        ends = await self._target.log_ends([stream.target for stream in touched])
        for stream in touched:
            end = ends[stream.target]
            if not isinstance(end, LogEnd):
                raise OutcomeUnknown(f"end of {stream.target}: {end}")
            if end.offset < stream.target_end:
                raise OutcomeUnknown(
                    f"{stream.target} ends at {end.offset}, {stream.target_end} was acknowledged"
                )
            if end.leader_epoch != stream.leader_epoch:
                await self.abort(f"the leader of {stream.target} changed in the middle of a transaction")
            stream.target_epoch = end.leader_epoch

    async def _append_map(
        self, news: list[PartitionStream], positions: Mapping[TopicPartition, Position]
    ) -> None:
        entries: dict[TopicPartition, list[tuple[bytes, bytes | None]]] = {}
        batches: dict[TopicPartition, list[list[tuple[bytes, bytes | None]]]] = {}
        for stream in news:
            number = map_partition(stream.target, self._task.map_partitions)
            tp = TopicPartition(self._task.map_topic, number)
            entries.setdefault(tp, []).extend(map(encode_range, stream.runs.build(stream.target_epoch)))
            if stream.place_is_due:
                entries[tp].append(encode_place(stream.target, positions[stream.target]))
            if self._trial is not None and self._trial.map_bytes:
                batches[tp] = [filling(stream.target, self._trial.map_bytes)]
        for tp, records in entries.items():
            batches.setdefault(tp, []).extend(in_batches(records, _MAP_BATCH_BYTES))
        for together in zip_longest(*batches.values()):
            await self._append_to_map({tp: b for tp, b in zip(batches, together, strict=True) if b})

    async def _append_to_map(self, batches: dict[TopicPartition, list[tuple[bytes, bytes | None]]]) -> None:
        now = self._clock.time_ms()
        encoded: dict[TopicPartition, bytes | bytearray] = {
            tp: self._encoded(tp, [Record(i, now, key, value) for i, (key, value) in enumerate(records)])
            for tp, records in batches.items()
        }
        for tp, answer in (await self._append_to_new_partitions(encoded)).items():
            if isinstance(answer, Refused):
                refusal = map_refusal(tp, answer)
                self.refused_commit = RefusedCommit(
                    why=str(refusal), code=answer.code, map_topic=tp.topic, map_bytes=len(encoded[tp])
                )
                raise refusal

    async def _append_quarantined(self, news: list[PartitionStream]) -> None:
        """In the transaction that moves the position over them: a record is here or there, never nowhere."""
        records = [held.record for stream in news for held in stream.take_held_out()]
        if not records:
            return
        assert self._task.quarantine is not None
        tp = TopicPartition(self._task.quarantine.topic, 0)
        for batch in in_quarantine_batches(records):
            answer = (await self._append_to_new_partitions({tp: self._encoded(tp, batch)}))[tp]
            if isinstance(answer, Refused):
                raise quarantine_refusal(tp, answer)

    def _encoded(self, tp: TopicPartition, records: list[Record]) -> bytes:
        producer = self._owner.producer
        return encode_batch(
            records,
            codec=Codec.NONE,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=producer.take_sequence(tp, len(records)),
        )
