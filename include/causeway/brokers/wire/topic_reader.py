"""Whole topics of our own, read record by record: what is committed in them, to their ends."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from causeway.brokers.wire.log_reader import LATEST, READ_COMMITTED, READ_UNCOMMITTED, WireLogReader
from causeway.core.copy.ports import Fetched, FetchFrom, Refused, Unreachable, is_unreachable
from causeway.core.kernel.acl_vocabulary import Operation
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.records.records import decode_records
from causeway.core.records.visibility import Undecided, Visibility, read_committed

_READ_BYTES = 8 << 20
_READ_WAIT_MS = 100
_PAUSE_SECONDS = 0.01
_TRIES = 3_000
_FRUITLESS_FETCHES = 50


class WireTopicReader(WireLogReader):
    """A log reader that knows what a small topic's records add up to: one reads them all."""

    async def end_of(self, tp: TopicPartition, isolation: int = READ_COMMITTED) -> int:
        """The last stable offset: what is to be read now; without isolation the end of all that is there."""
        for _ in range(_TRIES):
            end = (await self.list_offsets({tp: LATEST}, isolation=isolation))[tp]
            if not isinstance(end, Refused):
                return end.offset
            if end.code == Code.TOPIC_AUTHORIZATION_FAILED:
                raise self.wire.lacks_right(tp.topic, Operation.READ)
            if is_unreachable(end):
                break
            await self.wire.network.sleep(_PAUSE_SECONDS)
        raise Unreachable(f"end of {tp} on {self.wire.endpoint}: {end}")

    async def committed_records(self, tp: TopicPartition, stable: int | None = None) -> Any:
        """All that is committed, in order, also after the open transaction of another lane. `stable`: the
        last stable offset, if it is known; as of then, before it all is decided.

        Lanes share the map's partitions: up to the last stable offset a lane might miss its own last run.
        """
        stable = await self.end_of(tp) if stable is None else stable
        async for record in self.records(tp, 0, stable):
            yield record
        undecided, end = Undecided(), await self.end_of(tp, READ_UNCOMMITTED)
        async for head, batch, seen in self.batches(tp, stable, end, READ_UNCOMMITTED):
            for decided, content in undecided.committed_by(head, batch, seen):
                for record in decode_records(content, decided):
                    yield record

    async def records(self, tp: TopicPartition, start: int, end: int, *, topic_id: UUID | None = None) -> Any:
        """The visible records of `[start, end)`, in order; `topic_id`: of that topic, and of no later one."""
        async for head, batch, seen in self.batches(tp, start, end, READ_COMMITTED, topic_id=topic_id):
            if seen is Visibility.DATA:
                for record in decode_records(batch, head):
                    if record.offset >= start:
                        yield record

    async def batches(
        self, tp: TopicPartition, start: int, end: int, isolation: int, *, topic_id: UUID | None = None
    ) -> Any:
        at, fruitless = start, 0
        if at >= end:
            return
        topic_id = topic_id or (await self.wire.topics([tp.topic]))[tp.topic].topic_id
        while at < end:
            before, answer = at, await self._fetch_one(tp, FetchFrom(topic_id, at), isolation)
            if isinstance(answer, int):
                at = answer
                continue
            for head, batch, seen in read_committed(answer.records, answer.aborted, at):
                yield head, batch, seen
                at = head.next_offset
            fruitless = fruitless + 1 if at == before else 0
            if fruitless > _FRUITLESS_FETCHES:
                raise Unreachable(f"{tp} of {self.wire.endpoint} gives nothing from {at} to its end {end}")

    async def _fetch_one(self, tp: TopicPartition, begin: FetchFrom, isolation: int) -> Fetched | int:
        """The log from there on, or where it begins now because the log's cleaner was faster."""
        answer = (await self._fetch({tp: begin}, _READ_BYTES, _READ_WAIT_MS, isolation))[tp]
        match answer:
            case Fetched():
                return answer
            case Refused(code=Code.OFFSET_OUT_OF_RANGE):
                first = (await self.log_starts([tp]))[tp]
                if isinstance(first, int) and first > begin.offset:
                    return first
            case Refused(code=Code.TOPIC_AUTHORIZATION_FAILED):
                raise self.wire.lacks_right(tp.topic, Operation.READ)
        raise Unreachable(f"{tp} of {self.wire.endpoint}: {answer}")
