"""A claimed lane on a real target: appends, positions and the ends of its transactions.

Two dialects, chosen by the target's finalized `transaction.version`:

    v2 (>= 2)   partitions join a transaction by being appended to; `EndTxn` answers with the next epoch
    v1          partitions and the group are added first; after each end the lane is claimed again with
                the epoch that it holds, which a beaten owner can't (one transaction per epoch)

Invariants
    A. All appends of one transaction to one broker use one connection. When it closes, the transaction
       takes no further append (rule R4): the pinned connection fails, and that is `OutcomeUnknown`.
    B. No request that changes something is sent twice, unless its answer shows that nothing was done.
"""

from __future__ import annotations

from collections.abc import Awaitable, Generator, Mapping, Sequence
from typing import Any

from kafka.errors import KafkaError
from kafka.future import Future
from kafka.protocol.producer import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    TxnOffsetCommitRequest,
)

from causeway.brokers.transport.append_request import AppendRequest
from causeway.brokers.transport.connection import GROUP, TRANSACTION, Wire
from causeway.brokers.wire.lane_claim import ABORTING, PASSING, PAUSE_SECONDS, TRIES, init_producer, raise_for
from causeway.core.copy.ports import AppendAnswer, OutcomeUnknown, Refused, Unreachable
from causeway.core.copy.producer import ProducerState
from causeway.core.groups.commit_portions import by_topic, in_portions
from causeway.core.kernel.acl_vocabulary import Operation
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.state.position import Position


class _Answers:
    """What the leaders answered to one wave; whoever gives up a transaction doesn't wait for it."""

    def __init__(self, sent: list[Awaitable[Any]], wire: Wire) -> None:
        self._sent, self._wire = sent, wire

    def __await__(self) -> Generator[Any, Any, dict[TopicPartition, AppendAnswer]]:
        return self._read_answers().__await__()

    async def _read_answers(self) -> dict[TopicPartition, AppendAnswer]:
        answers: dict[TopicPartition, AppendAnswer] = {}
        try:
            for response in self._sent:
                answers.update((await response).by_partition)
        except (KafkaError, OSError) as cause:
            raise OutcomeUnknown(f"append to {self._wire.endpoint}: {cause}") from cause
        return answers


class LaneTransaction:
    """Implements `core.ports.Owner`."""

    def __init__(self, wire: Wire, transactional_id: str, timeout_ms: int, producer: ProducerState) -> None:
        self._wire, self._id, self._timeout_ms = wire, transactional_id, timeout_ms
        self.producer = producer
        self._pinned: dict[int, Any] = {}
        self._joined: set[TopicPartition] = set()
        self._is_v2 = wire.is_v2
        self._line: Future = Future().success(None)

    def append(
        self, batches: Mapping[TopicPartition, bytes | bytearray]
    ) -> Awaitable[dict[TopicPartition, AppendAnswer]]:
        at_once = self._send_at_once(batches)
        if at_once is not None:
            return _Answers(at_once, self._wire)
        started: Awaitable[dict[TopicPartition, AppendAnswer]] = (
            self._wire.network.selector.call_soon_with_future(self._append_in_line, dict(batches))
        )
        return started

    def _send_at_once(
        self, batches: Mapping[TopicPartition, bytes | bytearray]
    ) -> list[Awaitable[Any]] | None:
        """Nearly every wave: nothing has to be asked, nobody waits in front. None: the long way."""
        if not self._line.is_done or not (self._is_v2 or self._joined >= batches.keys()):
            return None
        grouped = self._wire.by_known_leader(batches)
        pinned: list[Any] = [self._pinned.get(node) for node in grouped]
        if any(c is None or not c.connected or c.paused for c in pinned):
            return None
        return [
            connection.send_request(self._append_request({tp: batches[tp] for tp in group}))
            for connection, group in zip(pinned, grouped.values(), strict=True)
        ]

    async def _append_in_line(
        self, batches: dict[TopicPartition, bytes | bytearray]
    ) -> dict[TopicPartition, AppendAnswer]:
        refused: dict[TopicPartition, AppendAnswer] = {}
        try:
            if not self._is_v2:
                refused.update(await self._join([tp for tp in batches if tp not in self._joined]))
                batches = {tp: batch for tp, batch in batches.items() if tp not in refused}
            sent = await self._send_in_line(batches)
        except (Unreachable, KafkaError, OSError) as cause:
            raise OutcomeUnknown(f"append to {self._wire.endpoint}: {cause}") from cause
        return refused | await _Answers(sent, self._wire)

    async def _send_in_line(self, batches: dict[TopicPartition, bytes | bytearray]) -> list[Awaitable[Any]]:
        """One wave after the other onto the connections, also when a throttled one makes them wait."""
        before, self._line = self._line, Future()
        mine = self._line
        await before
        try:
            grouped = await self._wire.by_leader(batches)
            if -1 in grouped:
                raise OutcomeUnknown(f"{grouped[-1][0]} has no leader")
            return [
                await self._send_batches(node, {tp: batches[tp] for tp in group})
                for node, group in grouped.items()
            ]
        finally:
            mine.success(None)

    async def _send_batches(
        self, node: int, batches: dict[TopicPartition, bytes | bytearray]
    ) -> Awaitable[Any]:
        """Sent on the connection that this transaction uses for this node, whatever happened to it."""
        connection = self._pinned.get(node)
        if connection is None:
            connection = self._pinned[node] = self._wire.connection(node)
            await connection
        await self._wire.writable(connection)
        answer: Awaitable[Any] = connection.send_request(self._append_request(batches))
        return answer

    def _append_request(self, batches: Mapping[TopicPartition, bytes | bytearray]) -> AppendRequest:
        return AppendRequest(batches, transactional_id=self._id, is_v2=self._is_v2)

    async def _join(self, partitions: list[TopicPartition]) -> dict[TopicPartition, Refused]:
        """v1: partitions are added to the transaction before they are appended to; those that can't be."""
        refused: dict[TopicPartition, Refused] = {}
        waiting = partitions
        for _ in range(TRIES):
            if not waiting:
                return refused
            codes = await self._add_partitions(waiting)
            if set(codes.values()) <= {0}:
                self._joined.update(waiting)
                return refused
            denied = [tp for tp, code in codes.items() if code == Code.TOPIC_AUTHORIZATION_FAILED]
            refused.update(dict.fromkeys(denied, Refused(int(Code.TOPIC_AUTHORIZATION_FAILED))))
            waiting = [tp for tp in waiting if tp not in refused]
            if not denied:
                if not ABORTING & set(codes.values()):
                    break
                await self._wire.network.sleep(PAUSE_SECONDS)
        code = max(set(codes.values()) - {0, int(Code.OPERATION_NOT_ATTEMPTED)}, default=0)
        self._check(code or int(Code.OPERATION_NOT_ATTEMPTED), "AddPartitionsToTxn")
        return refused

    async def _add_partitions(self, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        """All or none of them are added; the codes say why."""
        topic_type = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
        by_topic: dict[str, list[int]] = {}
        for tp in partitions:
            by_topic.setdefault(tp.topic, []).append(tp.partition)
        answer = await self._ask(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=self._id,
                v3_and_below_producer_id=self.producer.producer_id,
                v3_and_below_producer_epoch=self.producer.epoch,
                v3_and_below_topics=[topic_type(name=n, partitions=p) for n, p in by_topic.items()],
                max_version=3,
            )
        )
        return {
            TopicPartition(topic.name, p.partition_index): p.partition_error_code
            for topic in answer.results_by_topic_v3_and_below
            for p in topic.results_by_partition
        }

    async def commit_positions(self, group: str, positions: Mapping[TopicPartition, Position]) -> None:
        """In as many requests as it takes: they are one transaction all the same."""
        if not self._is_v2:
            await self._join_group(group)
        metadata = {tp: position.metadata() for tp, position in positions.items()}
        for portion in in_portions(group, metadata):
            await self._commit_offsets(
                group, {tp: (positions[tp].source_next, metadata[tp]) for tp in portion}
            )

    async def _commit_offsets(self, group: str, offsets: Mapping[TopicPartition, tuple[int, str]]) -> None:
        request_type = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
        topics = [
            request_type(name=name, partitions=[_offset_of(tp, *offsets[tp]) for tp in partitions])
            for name, partitions in by_topic(offsets).items()
        ]
        for _ in range(TRIES):
            request = TxnOffsetCommitRequest(
                transactional_id=self._id,
                group_id=group,
                producer_id=self.producer.producer_id,
                producer_epoch=self.producer.epoch,
                generation_id=-1,
                member_id="",
                group_instance_id=None,
                topics=topics,
                max_version=5 if self._is_v2 else 3,
            )
            answer = await self._ask(request, key=group, kind=GROUP)
            codes = {p.error_code for topic in answer.topics for p in topic.partitions}
            if codes == {0}:
                return
            if Code.TOPIC_AUTHORIZATION_FAILED in codes:
                raise self._wire.lacks_right(_denied_topic(answer), Operation.READ)
            if not codes <= {0, *ABORTING, *PASSING}:
                break
            if codes & PASSING:
                self._wire.forget_coordinator(group, GROUP)
            await self._wire.network.sleep(PAUSE_SECONDS)
        self._check(max(codes), f"TxnOffsetCommit of {group}", group)

    async def _join_group(self, group: str) -> None:
        for _ in range(TRIES):
            answer = await self._ask(
                AddOffsetsToTxnRequest(
                    transactional_id=self._id,
                    producer_id=self.producer.producer_id,
                    producer_epoch=self.producer.epoch,
                    group_id=group,
                    max_version=3,
                )
            )
            if not answer.error_code:
                return
            if answer.error_code not in ABORTING:
                break
            await self._wire.network.sleep(PAUSE_SECONDS)
        self._check(answer.error_code, f"AddOffsetsToTxn of {group}", group)

    async def end(self, *, commit: bool) -> None:
        answer = await self._ask(
            EndTxnRequest(
                transactional_id=self._id,
                producer_id=self.producer.producer_id,
                producer_epoch=self.producer.epoch,
                committed=commit,
                max_version=5 if self._is_v2 else 4,
            )
        )
        self._check(answer.error_code, "EndTxn")
        self._pinned.clear()
        self._joined.clear()
        if self._is_v2:
            self.producer = ProducerState(answer.producer_id, answer.producer_epoch)
        else:
            self.producer = await init_producer(self._wire, self._id, self._timeout_ms, self.producer)

    async def close_partitions(
        self, partitions: Sequence[TopicPartition], *, commit: bool, group: str | None = None
    ) -> None:
        """Adding a partition and ending at once writes the marker that got lost (rule R5)."""
        refused = await self._join(list(partitions))
        for tp in refused:
            raise self._wire.lacks_right(tp.topic, Operation.WRITE)
        if group is not None:
            await self._join_group(group)
        await self.end(commit=commit)

    async def _ask(self, request: Any, key: str | None = None, kind: int = TRANSACTION) -> Any:
        """A request to a coordinator: an answer, or doubt."""
        key = self._id if key is None else key
        try:
            node = await self._wire.coordinator(key, kind)
            return await self._wire.send(request, node)
        except Unreachable as cause:
            self._wire.forget_coordinator(key, kind)
            raise OutcomeUnknown(str(cause)) from cause

    def _check(self, code: int, what: str, resource: str | None = None) -> None:
        if code:
            raise_for(self._wire, code, f"{what} for {self._id}", resource or self._id)


def _offset_of(tp: TopicPartition, offset: int, metadata: str) -> Any:
    part_type = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic.TxnOffsetCommitRequestPartition
    return part_type(
        partition_index=tp.partition,
        committed_offset=offset,
        committed_leader_epoch=-1,
        committed_metadata=metadata,
    )


def _denied_topic(answer: Any) -> str:
    denied = Code.TOPIC_AUTHORIZATION_FAILED
    return str(next(t.name for t in answer.topics if any(p.error_code == denied for p in t.partitions)))
