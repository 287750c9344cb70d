"""The copy itself: fetch ahead, append in waves, commit data, map and positions in one transaction.

A *wave* is one request's worth: one batch of each partition that has one. Up to five waves are in
flight; their answers are read in the order in which they were sent.

Invariants
    A. A wave that brings a partition new to the transaction travels alone: only then can a refusal
       with CONCURRENT_TRANSACTIONS be repeated, because nothing was sent behind it.
    B. Each answer's base offset is the end that we know (rule R6). Below: the target lost something;
       above: somebody else writes. Either way the transaction is aborted, and the next attempt, which
       reads the tail, says which.
    C. After a refusal its partition takes no more. If a later batch of it is accepted all the same,
       order is broken, and the transaction is aborted.
    D. Nothing is committed before every answer is in.
    E. Who was asked for first gets a batch, or is waited for; who got something goes to the end. So each
       partition gets its turn, across tasks too: those whose positions are oldest begin.
    F. What is appended to the map at once is bounded, whatever was left out on the source: a transaction
       holds so many segments, a run fewer (`RunBuilder`), and they go in batches of so many bytes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Mapping
from itertools import zip_longest

from causeway.core.codecs import Codec
from causeway.core.identity import TopicPartition
from causeway.core.kafka_errors import KafkaErrorCode as Code
from causeway.core.lane_task import LaneTask, RefusedCommit
from causeway.core.map_format import encode_place, encode_run, filling
from causeway.core.offset_map import MOST_SEGMENTS, map_partition
from causeway.core.ports import (
    AppendAnswer,
    Appended,
    Clock,
    Diverged,
    Doubt,
    FetchAnswer,
    Fetched,
    LogEnd,
    Owner,
    Refused,
    Source,
    Target,
    Unreachable,
)
from causeway.core.position import Position
from causeway.core.quarantine import in_batches as in_quarantine_batches
from causeway.core.records import Record, encode_batch, in_batches
from causeway.flows.lane.deposed import why_it_passes
from causeway.flows.lane.preparing import prepare
from causeway.flows.lane.refusals import (
    fetch_refusal,
    is_cut,
    map_refusal,
    quarantine_refusal,
    take_refusal,
)
from causeway.flows.lane.stream import Sent, Stream

_IN_FLIGHT = 5
_WAVE_BYTES = 8 << 20
_PARTITION_FETCH_BYTES = 1 << 20
_FETCH_WAITS_MS = (250, 1_000, 4_000)
"""How long a source may hold an answer up; longer once it had none for a partition whose end is far. Kafka
3.6 and 3.7 cut off a remote read that takes longer, and begin it again when they are asked again."""
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
        streams: list[Stream],
    ) -> None:
        self._task, self._source, self._target, self._owner = task, source, target, owner
        self._turns = _least_served_first(streams, clock.time_ms())
        self._clock, self._streams = clock, {stream.target: stream for stream in self._turns}
        self._in_flight: deque[tuple[Wave, Awaitable[dict[TopicPartition, AppendAnswer]]]] = deque()
        self._transaction_bytes = self._transaction_segments = 0
        self._transaction_began = clock.monotonic()
        self._asked: list[tuple[Stream, int]] = []
        """By the last fetch, in this order, and from where on."""
        self._waits = deque(_FETCH_WAITS_MS)
        self._deadline = clock.monotonic() + task.limits.lane_seconds
        self.transactions = 0
        self.refused_commit: RefusedCommit | None = None
        self._trial: RefusedCommit | None = None

    async def run(self) -> None:
        fetching = self._start_fetch()
        while fetching is not None:
            try:
                await self._take(await fetching)
            except Unreachable as trouble:
                self._stop_reading(str(trouble))  # what was read is still worth a commit
            self._take_turns()
            fetching = None if self._time_is_over() else self._start_fetch()
            await self._append_queues()
            if len(self._waits) < len(_FETCH_WAITS_MS):
                await self.commit()  # what there is doesn't wait for one that is slow
        await self.commit()

    def _time_is_over(self) -> bool:
        return self._clock.monotonic() >= self._deadline

    # fetch

    def _start_fetch(self) -> Awaitable[dict[TopicPartition, FetchAnswer]] | None:
        wanting = [stream for stream in self._turns if stream.wants_more]
        if not wanting:
            return None
        self._asked = [(stream, stream.fetch_next) for stream in wanting]
        # A broker fills the answer in the order of the question.
        return self._source.fetch(
            {stream.assignment.pair.source: stream.fetch_from() for stream in wanting},
            max_bytes=self._task.limits.fetch_bytes_over(self._source.round_trip_seconds),
            max_wait_ms=self._waits[0],
        )

    def _take_turns(self) -> None:
        """Of those that got nothing only the first one is known to have had its turn."""
        served = {stream.target for stream, at in self._asked if stream.fetch_next > at}
        first, at = self._asked[0]
        if first.wants_more and first.target not in served:
            if len(self._waits) > 1:
                self._waits.popleft()
            else:
                source, end = first.assignment.pair.source, first.assignment.end
                first.wait_for_next_round(f"{source} gives nothing from {at} on, though it ends at {end}")
        self._turns.sort(key=lambda stream: stream.target in served)

    def _stop_reading(self, why: str) -> None:
        for stream in self._streams.values():
            if stream.wants_more:
                stream.wait_for_next_round(why)

    async def _take(self, answers: dict[TopicPartition, FetchAnswer]) -> None:
        by_source = {stream.assignment.pair.source: stream for stream in self._streams.values()}
        for tp, answer in answers.items():
            if isinstance(answer, Fetched):
                by_source[tp].take(answer)
            else:
                await self._refused(by_source[tp], answer)

    async def _refused(self, stream: Stream, answer: Diverged | Refused) -> None:
        source = stream.assignment.pair.source
        if is_cut(stream.fetch_next, answer):
            stream.drop_what_waits()
        parked = fetch_refusal(self._task.flow, stream.assignment, stream.fetch_next, stream.consumed, answer)
        if parked is None:
            stream.wait_for_next_round(f"{source}: {answer}")
            return
        topic_id = stream.assignment.pair.source_topic_id
        passes = await why_it_passes(self._source, source, topic_id, stream.fetch_epoch, answer)
        if passes:
            stream.wait_for_next_round(f"{source}: {passes}")
        else:
            stream.row.parked, stream.closed = parked, True

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
        raise Doubt(f"the last transaction of {self._task.transactional_id} doesn't complete")

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
                raise Doubt(f"no answer for {tp}")
            if isinstance(answer, Refused):
                if not stream.was_refused:
                    take_refusal(self._task, stream, sent, answer, self._clock.time_ms())
                continue
            await self._check_base(stream, answer)
            stream.acknowledged(sent, answer.base_offset)

    async def _check_base(self, stream: Stream, answer: Appended) -> None:
        """Whoever wrote there is found by the next attempt, which reads the tail: only then is it known."""
        if stream.was_refused:
            await self.abort(f"{stream.target} took a batch behind one that it had refused")
        if answer.base_offset != stream.target_end:
            await self.abort(
                f"{stream.target} appended at {answer.base_offset}, "
                f"its end should have been {stream.target_end}"
            )

    async def abort(self, why: str) -> None:
        """For what is *known* to be wrong: nobody may ever see it."""
        await self._owner.end(commit=False)
        raise Doubt(why)

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
                # Whose records are ours is told by the positions: the next task names the new one first.
                raise Doubt(f"the epochs of producer {writer} have run out")
        self._transaction_bytes = self._transaction_segments = 0
        self._transaction_began = self._clock.monotonic()

    async def _end(self, news: list[Stream], positions: dict[TopicPartition, Position]) -> None:
        try:
            await self._append_quarantined(news)
            await self._append_map(news, positions)
            await self._owner.commit_positions(self._task.group, positions)
            await self._owner.end(commit=True)
        except Doubt as doubt:
            if doubt.code and self.refused_commit is None:
                self.refused_commit = RefusedCommit(why=str(doubt), code=doubt.code)
            raise

    def _positions(self, news: list[Stream]) -> dict[TopicPartition, Position]:
        now, producer = self._clock.time_ms(), self._owner.producer.producer_id
        return {s.target: s.next_position(self._task, producer_id=producer, time_ms=now) for s in news}

    async def _prove_ends(self, touched: list[Stream]) -> None:
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
                raise Doubt(f"end of {stream.target}: {end}")
            if end.offset < stream.target_end:
                raise Doubt(f"{stream.target} ends at {end.offset}, {stream.target_end} was acknowledged")
            if end.leader_epoch != stream.leader_epoch:
                await self.abort(f"the leader of {stream.target} changed in the middle of a transaction")
            stream.target_epoch = end.leader_epoch

    async def _append_map(self, news: list[Stream], positions: Mapping[TopicPartition, Position]) -> None:
        entries: dict[TopicPartition, list[tuple[bytes, bytes | None]]] = {}
        batches: dict[TopicPartition, list[list[tuple[bytes, bytes | None]]]] = {}
        for stream in news:
            number = map_partition(stream.target, self._task.map_partitions)
            tp = TopicPartition(self._task.map_topic, number)
            entries.setdefault(tp, []).extend(map(encode_run, stream.runs.build(stream.target_epoch)))
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

    async def _append_quarantined(self, news: list[Stream]) -> None:
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


def _least_served_first(streams: list[Stream], now_ms: int) -> list[Stream]:
    """By the times of their positions; a time that a clock was ahead with says nothing."""
    times = {s.target: s.position.time_ms if s.position is not None else 0 for s in streams}
    return sorted(streams, key=lambda s: times[s.target] if times[s.target] <= now_ms else 0)
