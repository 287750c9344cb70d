"""A dress rehearsal of the copy protocol on a scratch topic of the real target, with a run's own code.

    transaction   data, a run of the offset map and a position in one transaction; nothing shows before its
                  commit, all of it afterwards
    fence         an owner with an open transaction is beaten by the next claim; what it had open is aborted
    late batch    what the beaten owner still sends is refused: a batch to a partition that it has written,
                  one to a partition that doesn't know it yet, its positions

The scratch topic has three partitions: data, map, and one that only the late batch is sent to.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from causeway.brokers.admin.scratch import Scratch, late_append
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.ports import (
    Appended,
    Fetched,
    FetchFrom,
    LaneFenced,
    LogEnd,
    OutcomeUnknown,
    Owner,
    Refused,
    Unreachable,
)
from causeway.core.doctor.finding import Finding, Result, failed_by
from causeway.core.doctor.rehearsal import (
    CHECK_REHEARSAL,
    contradicted,
    got_in,
    not_fenced,
    rehearsed,
    trouble_with,
)
from causeway.core.kernel.cluster_facts import ClockReading, middle_reading
from causeway.core.kernel.errors import CausewayError
from causeway.core.kernel.identity import Generation, SourceOffset, TargetOffset, TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.model.flow import Flow
from causeway.core.offsets.map_format import encode_range
from causeway.core.offsets.offset_map import MappedRange
from causeway.core.records.compression import Codec
from causeway.core.records.records import Record, decode_records, encode_batch
from causeway.core.records.visibility import Visibility, read_committed
from causeway.core.state.position import Position

SCRATCH_PARTITIONS = 3
_READ_BYTES = 1 << 20
_TRIES, _PAUSE_SECONDS = 500, 0.02
_RECORDS = 3

Content = list[tuple[bytes | None, bytes | None, object]]
"""Of records: key, value, headers."""


@dataclass(frozen=True, slots=True)
class _Shown:
    content: Content
    marker_ms: int | None
    """The time of the last marker in the log."""


class Rehearsal:
    """Two owners of one transactional id, each with connections of its own, as two workers have."""

    def __init__(self, flow: Flow, first: WireTarget, second: WireTarget, scratch: Scratch) -> None:
        self._first, self._second, self._scratch = first, second, scratch
        self._timeout_ms = flow.limits.transaction_timeout_ms
        self._clock, self._alias = first.wire.network, first.wire.endpoint.alias
        self._data, self._map, self._untouched = (
            TopicPartition(scratch.topic, number) for number in range(SCRATCH_PARTITIONS)
        )
        self._topic_id = UUID(int=0)
        self._must_show: Content = []
        """What a committed reader of the data partition must see."""
        self._old: Owner | None = None
        self._new: Owner | None = None
        self.reading: ClockReading | None = None
        """What the target's leader stamped on a commit marker."""

    async def run(self) -> list[Finding]:
        """Step by step; after a step that FAILED the next ones would mean nothing."""
        found: list[Finding] = []
        for name, step in (
            ("transaction", self._transaction),
            ("fence", self._fence),
            ("late batch", self._late_batch),
        ):
            try:
                finding = await step()
            except (OutcomeUnknown, LaneFenced, Unreachable) as trouble:
                finding = trouble_with(self._alias, name, str(trouble))
            except CausewayError as error:
                finding = failed_by(CHECK_REHEARSAL, self._alias, error)
            found.append(finding)
            if finding.result is Result.FAILED:
                break
        return found

    async def _transaction(self) -> Finding:
        self._topic_id = (await self._first.wire.topics([self._scratch.topic]))[self._scratch.topic].topic_id
        for tp in (self._data, self._map, self._untouched):
            await self._settled(tp)  # metadata names a leader a moment before it feels like one
        self._old = owner = await self._first.claim(
            self._scratch.transactional_id, timeout_ms=self._timeout_ms
        )
        records = self._records("committed")
        base = await self._append(owner, self._data, records)
        run = self._run_of(base, len(records))
        await self._append(owner, self._map, [Record(0, records[0].timestamp_ms, *encode_range(run))])
        position = self._position(base + len(records))
        await owner.commit_positions(self._scratch.group, {self._data: position})
        if (await self._read(self._data)).content:
            return contradicted(self._alias, "transaction: its records show before they are committed")
        await self._commit_and_read_clock(owner)
        self._must_show += _content(records)
        wrong = await self._what_is_wrong(position)
        if (await self._settled(self._map)).content != [(*encode_range(run), ())]:
            wrong = "the run of the offset map isn't what was committed"
        if wrong:
            return contradicted(self._alias, f"transaction: {wrong}")
        return rehearsed(self._alias, "transaction: data, map and position committed together and read back")

    async def _commit_and_read_clock(self, owner: Owner) -> None:
        """The marker that ends a transaction is stamped by the leader that writes it."""
        asked = self._clock.time_ms()
        await owner.end(commit=True)
        stamped_ms = (await self._settled(self._data)).marker_ms
        answered = self._clock.time_ms()
        if stamped_ms is not None:
            self.reading = middle_reading(stamped_ms, asked, answered)

    async def _fence(self) -> Finding:
        assert self._old is not None
        await self._append(self._old, self._data, self._records("to be aborted"))
        self._new = await self._second.claim(self._scratch.transactional_id, timeout_ms=self._timeout_ms)
        try:
            await self._old.end(commit=True)
        except LaneFenced:
            pass
        else:
            return not_fenced(self._alias, "a commit")
        if (await self._settled(self._data)).content != self._must_show:
            return contradicted(self._alias, "fence: records of the beaten owner's open transaction show")
        return rehearsed(self._alias, "fence: a claim ends the older owner; what it had open is aborted")

    async def _late_batch(self) -> Finding:
        assert self._old is not None
        assert self._new is not None
        records = self._records("of the new owner")
        base = await self._append(self._new, self._data, records)
        for tp, where in (
            (self._data, "a partition that it had written"),
            (self._untouched, "a partition that it hadn't written yet"),
        ):
            batch = self._batch(self._old, tp, self._records("late"))
            answer = await late_append(self._first.wire, self._scratch.transactional_id, tp, batch)
            if isinstance(answer, Appended):
                return got_in(self._alias, where, self._first.wire.transaction_version)
        try:
            await self._old.commit_positions(self._scratch.group, {self._data: self._position(10**6)})
        except LaneFenced:
            pass
        else:
            return not_fenced(self._alias, "a position")
        position = self._position(base + len(records))
        await self._new.commit_positions(self._scratch.group, {self._data: position})
        await self._new.end(commit=True)
        self._must_show += _content(records)
        wrong = await self._what_is_wrong(position)
        if wrong:
            return contradicted(self._alias, f"late batch: {wrong}")
        return rehearsed(self._alias, "late batch: batches and positions of the beaten owner are refused")

    async def _what_is_wrong(self, position: Position) -> str:
        """Between what was committed and what is read; empty: nothing."""
        if (await self._settled(self._data)).content != self._must_show:
            return "the records read aren't those that were committed"
        if (await self._settled(self._untouched)).content:
            return "records show in a partition where nothing was committed"
        found = await self._second.positions(self._scratch.group, [self._data], stable=True)
        return "" if found[self._data] == position else f"the position read is {found[self._data]}"

    def _records(self, word: str) -> list[Record]:
        now_ms = self._clock.time_ms()
        return [
            Record(0, now_ms + number, f"{word} {number}".encode(), b"scratch", ((b"doctor", None),))
            for number in range(_RECORDS)
        ]

    def _batch(self, owner: Owner, tp: TopicPartition, records: list[Record]) -> bytes:
        return encode_batch(
            records,
            codec=Codec.LZ4,
            producer_id=owner.producer.producer_id,
            producer_epoch=owner.producer.epoch,
            base_sequence=owner.producer.take_sequence(tp, len(records)),
        )

    async def _append(self, owner: Owner, tp: TopicPartition, records: list[Record]) -> int:
        """Alone, and again while the last transaction's markers are being written, as a lane does."""
        batch = self._batch(owner, tp, records)
        for _ in range(_TRIES):
            answer = (await owner.append({tp: batch}))[tp]
            if isinstance(answer, Appended):
                return answer.base_offset
            if answer.code != Code.CONCURRENT_TRANSACTIONS:
                break
            await self._clock.sleep(_PAUSE_SECONDS)
        raise OutcomeUnknown(f"append to {tp}: {answer}")

    async def _settled(self, tp: TopicPartition) -> _Shown:
        """Once nothing is open: a commit is answered before its markers are written."""
        for _ in range(_TRIES):
            stable = (await self._second.last_stables([tp]))[tp]
            end = (await self._second.log_ends([tp]))[tp]
            if isinstance(end, LogEnd) and stable == end.offset:
                return await self._read(tp)
            await self._clock.sleep(_PAUSE_SECONDS)
        raise Unreachable(f"{tp}: a transaction stays open though it was ended (stable {stable}, end {end})")

    async def _read(self, tp: TopicPartition) -> _Shown:
        """What a committed reader sees now."""
        end = (await self._second.last_stables([tp]))[tp]
        if isinstance(end, Refused):
            raise Unreachable(f"{tp}: {end}")
        at, content, marker_ms = 0, [], None
        while at < end:
            wanted = {tp: FetchFrom(self._topic_id, at)}
            answer = (await self._second.fetch(wanted, max_bytes=_READ_BYTES, max_wait_ms=100))[tp]
            if not isinstance(answer, Fetched):
                raise Unreachable(f"{tp}: {answer}")
            for head, batch, seen in read_committed(answer.records, answer.aborted, at):
                content += _content(decode_records(batch, head)) if seen is Visibility.DATA else []
                marker_ms = head.max_timestamp if seen is Visibility.MARKER else marker_ms
                at = head.next_offset
        return _Shown(content, marker_ms)

    def _run_of(self, base: int, count: int) -> MappedRange:
        now_ms = self._clock.time_ms()
        return MappedRange(
            target=self._data,
            source_first=SourceOffset(0),
            target_first=TargetOffset(base),
            segments=((count, 0),),
            first_timestamp_ms=now_ms,
            last_timestamp_ms=now_ms,
            generation=Generation(0),
            source_topic_id=self._topic_id,
            target_topic_id=self._topic_id,
        )

    def _position(self, target_next: int) -> Position:
        return Position(
            source_next=SourceOffset(target_next),
            target_next=TargetOffset(target_next),
            source_topic_id=self._topic_id,
            target_topic_id=self._topic_id,
            source_epoch=-1,
            target_epoch=-1,
            generation=Generation(0),
            producer_id=-1,
            time_ms=self._clock.time_ms(),
        )


def _content(records: list[Record]) -> Content:
    return [(record.key, record.value, record.headers) for record in records]
