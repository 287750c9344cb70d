"""The target of a flow on a real cluster: positions, the flows topic, the offset map, claims."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any
from uuid import UUID

from kafka.protocol.admin import DescribeGroupsRequest, DescribeProducersRequest

from causeway.brokers.transport.append_request import AppendRequest
from causeway.brokers.transport.connection import GROUP, Wire
from causeway.brokers.wire.lane_claim import PASSING, check_claim_right, init_producer
from causeway.brokers.wire.lane_transaction import LaneTransaction
from causeway.brokers.wire.log_reader import LATEST, READ_COMMITTED, READ_UNCOMMITTED
from causeway.brokers.wire.map_reader import WireMapReader
from causeway.brokers.wire.orphan_transaction import commit_for_owner, describe_transaction
from causeway.brokers.wire.positions import CommittedPositions
from causeway.core.copy.ports import (
    Appended,
    OpenTransaction,
    Owner,
    Refused,
    Unreachable,
)
from causeway.core.kernel.acl_vocabulary import Operation
from causeway.core.kernel.errors import ClusterUnreachable
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.kernel.kafka_errors import error_name
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.offsets.map_entries import MapTransaction
from causeway.core.records.compression import Codec
from causeway.core.records.records import Record, decode_records, encode_batch, in_batches
from causeway.core.state.flow_log import LogRecord
from causeway.core.state.flow_state import NOBODY, FlowState, fold
from causeway.core.state.position import ForeignPosition, Position
from causeway.core.state.unreadable_records import Odd

_BATCH_BYTES = 256 << 10
_PAUSE_SECONDS = 0.01
_LONGEST_PAUSE_SECONDS = 0.2
_TRIES = 3_000
_PLAIN_APPEND_MS = 5_000
"""A leader that is cut off never has it on all replicas: a lane, and its round, wait that long for it."""
_PROOF_SECONDS = 10.0
_FLOWS = TopicPartition(FLOWS_TOPIC, 0)


class WireTarget(WireMapReader):
    """Implements `core.ports.Target`."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire)
        self._groups = CommittedPositions(wire)
        self._flow_states: dict[str, FlowState] = {}
        self._flows_next = self._flows_least = 0
        self._flows_id: UUID | None = None

    async def flow_state(self, flow: str) -> FlowState:
        """Only what was appended since the last look is read; of a topic that was recreated, all of it."""
        end = await self._end_of_flows()
        states = self._flow_states
        async for record in self.records(_FLOWS, self._flows_next, end, topic_id=self._flows_id):
            value = record.value
            states = fold(states, LogRecord(record.offset, record.timestamp_ms, record.key or b"", value))
        self._flow_states = states
        self._flows_next = self._flows_least = max(self._flows_next, end)
        return states.get(flow, FlowState())

    def other_flows(self, flow: str) -> dict[str, FlowState]:
        """Those into this cluster that have ever run, as they were when `flow_state` was last asked."""
        return {name: state for name, state in self._flow_states.items() if name not in (flow, NOBODY)}

    @property
    def foreign_records(self) -> Odd:
        """Those in the flows topic that are no flow's, likewise."""
        return self._flow_states.get(NOBODY, FlowState()).odd

    @property
    def stepped_over(self) -> frozenset[str]:
        """Odd records of all internal topics that somebody has named, for whichever flow, likewise."""
        return frozenset(said.record for state in self._flow_states.values() for said in state.stepped_over)

    async def _end_of_flows(self) -> int:
        """Of the topic that is known here, and not before what was seen or acknowledged: a deposed leader may
        answer what it has."""
        deadline, pause = self.wire.network.monotonic() + _PROOF_SECONDS, _PAUSE_SECONDS
        while True:
            end = await self.end_of(_FLOWS)
            is_known = await self._is_the_known_topic()
            if is_known and end >= self._flows_least:
                return end
            if self.wire.network.monotonic() > deadline:
                raise Unreachable(self._why_it_has_no_end(end, is_known=is_known))
            self.wire.forget_leader(_FLOWS)
            await self.wire.network.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    def _why_it_has_no_end(self, end: int, *, is_known: bool) -> str:
        at = f"{_FLOWS} of {self.wire.endpoint}"
        if not is_known:
            return f"{at} ends at {end}, and its leader doesn't say which topic of that name it has"
        return (
            f"{at} ends at {end}, though it has taken records up to {self._flows_least}: its leader may be "
            "cut off from the other brokers"
        )

    async def _is_the_known_topic(self) -> bool:
        """Asked of its leader after the end: so that end is the known topic's, too. What was seen of a topic
        that has been recreated is forgotten; a broker that doesn't know the topic says nothing of it."""
        node = next(iter(self.wire.by_known_leader([_FLOWS])))
        described = await self.wire.topics([FLOWS_TOPIC], node=None if node < 0 else node)
        told = described[FLOWS_TOPIC]
        if told.error or told.topic_id == self._flows_id:
            return not told.error
        is_first = self._flows_id is None  # then nothing was read yet, though it may have taken a record
        self._flow_states, self._flows_next = {}, 0
        self._flows_least = self._flows_least if is_first else 0
        self._flows_id = told.topic_id
        return is_first

    async def append_plain(self, topic: str, key: bytes, value: bytes | None) -> int:
        """One record without transaction; returns its offset. An unknown outcome is an error: ask again."""
        return await self._append_batch(TopicPartition(topic, 0), [(key, value)])

    async def append_many(self, topic: str, records: Iterable[tuple[bytes, bytes | None]]) -> int:
        """Records of partition 0, in order, without transaction; how many. Of an error some may be left."""
        return len(await self.append_each(topic, records))

    async def append_each(self, topic: str, records: Iterable[tuple[bytes, bytes | None]]) -> list[int]:
        """The same, with the offset of each."""
        offsets: list[int] = []
        for batch in in_batches(records, _BATCH_BYTES):
            first = await self._append_batch(TopicPartition(topic, 0), batch)
            offsets += range(first, first + len(batch))
        return offsets

    async def visible_records(self, tp: TopicPartition) -> AsyncIterator[Record]:
        """All that a `read_committed` reader sees now, in order."""
        async for record in self.records(tp, 0, await self.end_of(tp)):
            yield record

    async def _append_batch(self, tp: TopicPartition, records: Sequence[tuple[bytes, bytes | None]]) -> int:
        topic, now_ms = tp.topic, self.wire.network.time_ms()
        batch = encode_batch(
            [Record(number, now_ms, key, value) for number, (key, value) in enumerate(records)],
            codec=Codec.NONE,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            transactional=False,
        )
        for _ in range(_TRIES):
            grouped = await self.wire.by_leader([tp])
            node = next(iter(grouped))
            if node >= 0:
                request = AppendRequest(
                    {tp: batch}, transactional_id=None, is_v2=False, timeout_ms=_PLAIN_APPEND_MS
                )
                answer = (await self.wire.send(request, node)).by_partition[tp]
                if isinstance(answer, Appended):
                    if tp == _FLOWS:
                        self._flows_least = max(self._flows_least, answer.base_offset + 1)
                    return int(answer.base_offset)
                self._give_up_on(answer.code, topic)
            elif self.wire.is_hidden(topic):
                raise self.wire.lacks_right(topic, Operation.WRITE)
            self.wire.forget_leader(tp)
            await self.wire.network.sleep(_PAUSE_SECONDS)
        raise ClusterUnreachable(f"topic {topic} of {self.wire.endpoint}", rule="has no leader")

    def _give_up_on(self, code: int, topic: str) -> None:
        if code == Code.TOPIC_AUTHORIZATION_FAILED:
            raise self.wire.lacks_right(topic, Operation.WRITE)
        passing = {Code.NOT_LEADER_OR_FOLLOWER, Code.LEADER_NOT_AVAILABLE, Code.UNKNOWN_TOPIC_OR_PARTITION}
        if code not in passing:
            raise Unreachable(f"append to {topic} of {self.wire.endpoint}: {error_name(code)}")

    async def positions(
        self, group: str, partitions: Sequence[TopicPartition], *, stable: bool, marked: bool = False
    ) -> dict[TopicPartition, Position | ForeignPosition | None]:
        return await self._groups.positions(group, partitions, stable=stable, marked=marked)

    async def all_positions(self, group: str) -> dict[TopicPartition, Position | ForeignPosition]:
        """Of whatever the group has committed offsets of."""
        return await self._groups.all_positions(group)

    async def last_stables(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int | Refused]:
        found = await self.list_offsets(dict.fromkeys(partitions, LATEST), isolation=READ_COMMITTED)
        return {tp: a if isinstance(a, Refused) else a.offset for tp, a in found.items()}

    async def open_map(
        self, map_partitions: Sequence[TopicPartition], producer_id: int
    ) -> dict[TopicPartition, MapTransaction]:
        found = await self.open_records(map_partitions, producer_id)
        return {
            tp: MapTransaction.of((r.key, r.value) for r in records if r.key and r.value)
            for tp, records in found.items()
        }

    async def open_records(
        self, partitions: Sequence[TopicPartition], producer_id: int
    ) -> dict[TopicPartition, list[Record]]:
        found: dict[TopicPartition, list[Record]] = {}
        for tp, starts in (await self._open_transactions(partitions)).items():
            if isinstance(starts, Refused):
                raise Unreachable(f"producers of {tp} on {self.wire.endpoint}: {starts}")
            if producer_id not in starts:
                continue
            found[tp], end = [], await self.end_of(tp, READ_UNCOMMITTED)
            async for head, batch, _ in self.batches(tp, starts[producer_id], end, READ_UNCOMMITTED):
                if head.producer_id == producer_id and not head.is_control:
                    found[tp] += decode_records(batch, head)
        return found

    async def open_producers(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, list[int] | Refused]:
        found = await self._open_transactions(partitions)
        return {tp: a if isinstance(a, Refused) else list(a) for tp, a in found.items()}

    async def _open_transactions(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, dict[int, int] | Refused]:
        """By producer: where its open transaction begins."""

        async def ask(
            node: int, group: list[TopicPartition]
        ) -> dict[TopicPartition, dict[int, int] | Refused]:
            topic_type = DescribeProducersRequest.TopicRequest
            topics: dict[str, list[int]] = {}
            for tp in group:
                topics.setdefault(tp.topic, []).append(tp.partition)
            request = DescribeProducersRequest(
                topics=[topic_type(name=n, partition_indexes=p) for n, p in topics.items()]
            )
            answer = await self.wire.send(request, node)
            return {
                TopicPartition(t.name, p.partition_index): _open_since(p)
                for t in answer.topics
                for p in t.partitions
            }

        return await self._ask_leaders(partitions, ask)

    async def check_group_right(self, group: str) -> None:
        """:raises NotAuthorized: positions could be read but not committed, or not even read."""
        request = DescribeGroupsRequest(
            groups=[group], include_authorized_operations=True, min_version=3, max_version=5
        )
        for _ in range(_TRIES):
            found = (await self.wire.send(request, await self.wire.coordinator(group, GROUP))).groups[0]
            if found.error_code not in PASSING:
                break
            self.wire.forget_coordinator(group, GROUP)
            await self.wire.network.sleep(_PAUSE_SECONDS)
        denied = int(Code.GROUP_AUTHORIZATION_FAILED)
        operations = found.authorized_operations
        if found.error_code == denied or (operations is not None and Operation.READ not in operations):
            raise self.wire.not_authorized(denied, group)

    async def check_claim_right(self, transactional_id: str) -> None:
        """:raises NotAuthorized: a real claim would be refused; this one changes nothing."""
        await check_claim_right(self.wire, transactional_id)

    @property
    def may_be_settled(self) -> bool:
        return self.wire.is_v2

    async def open_transaction(self, transactional_id: str) -> OpenTransaction | None:
        return await describe_transaction(self.wire, transactional_id)

    async def settle(self, transactional_id: str, transaction: OpenTransaction) -> bool:
        return await commit_for_owner(self.wire, transactional_id, transaction)

    async def claim(self, transactional_id: str, *, timeout_ms: int) -> Owner:
        producer = await init_producer(self.wire, transactional_id, timeout_ms)
        return LaneTransaction(self.wire, transactional_id, timeout_ms, producer)


def _open_since(partition: Any) -> dict[int, int] | Refused:
    if partition.error_code:
        return Refused(partition.error_code)
    producers = partition.active_producers
    return {p.producer_id: p.current_txn_start_offset for p in producers if p.current_txn_start_offset >= 0}
