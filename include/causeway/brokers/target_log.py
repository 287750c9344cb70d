"""The target of a flow on a real cluster: positions, the flows topic, the offset map, claims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID, uuid4

from kafka.protocol.admin import DescribeGroupsRequest, DescribeProducersRequest
from kafka.protocol.consumer import OffsetCommitRequest, OffsetFetchRequest

from causeway.brokers.append_request import AppendRequest
from causeway.brokers.log_reader import LATEST, READ_COMMITTED, READ_UNCOMMITTED, WireLogReader
from causeway.brokers.owner import PASSING, WireOwner, check_claim_right, init_producer, raise_for
from causeway.brokers.settling import commit_for_owner, describe_transaction
from causeway.brokers.wire import GROUP, Wire
from causeway.core.codecs import Codec
from causeway.core.errors import ClusterUnreachable
from causeway.core.flow_state import FlowState, LogRecord, fold
from causeway.core.identity import TopicPartition
from causeway.core.isolation import Seen, Undecided, read_committed
from causeway.core.kafka_errors import KafkaErrorCode as Code
from causeway.core.kafka_errors import error_name
from causeway.core.naming import FLOWS_TOPIC
from causeway.core.offset_map import Run, decode_run, map_partition
from causeway.core.ports import (
    Appended,
    Fetched,
    FetchFrom,
    OpenTransaction,
    Owner,
    Refused,
    Unreachable,
    Unsettled,
)
from causeway.core.position import ForeignPosition, Position, parse_position
from causeway.core.records import Record, decode_records, encode_batch
from causeway.core.rights import Operation

_READ_BYTES = 8 << 20
_READ_WAIT_MS = 100
_PAUSE_SECONDS = 0.01
_TRIES = 3_000
_SETTLING_TRIES = 200
_FRUITLESS_FETCHES = 50
_FLOWS = TopicPartition(FLOWS_TOPIC, 0)


class WireTarget(WireLogReader):
    """Implements `core.ports.Target`."""

    def __init__(self, wire: Wire) -> None:
        super().__init__(wire)
        self._flow_states: dict[str, FlowState] = {}
        self._flows_next = self._flows_least = 0
        self._flows_id: UUID | None = None

    async def flow_state(self, flow: str) -> FlowState:
        """Only what was appended since the last look is read again."""
        end = await self._end_of_flows()
        async for record in self._records(_FLOWS, self._flows_next, end):
            value = record.value
            self._flow_states = fold(
                self._flow_states,
                LogRecord(record.offset, record.timestamp_ms, record.key or b"", value),
            )
        self._flows_next = self._flows_least = max(self._flows_next, end)
        return self._flow_states.get(flow, FlowState())

    async def _end_of_flows(self) -> int:
        """Not in front of what was seen or acknowledged here: a deposed leader may answer what it has."""
        if self._flows_id is None:
            self._flows_id = await self._id_of(FLOWS_TOPIC)
        for _ in range(_TRIES):
            end = await self._end_of(_FLOWS)
            if end >= self._flows_least:
                return end
            topic_id = await self._id_of(FLOWS_TOPIC)
            if topic_id != self._flows_id:  # the topic was made anew under us
                self._flow_states, self._flows_id = {}, topic_id
                self._flows_next = self._flows_least = 0
            self.wire.forget_leader(_FLOWS)
            await self.wire.network.sleep(_PAUSE_SECONDS)
        raise Unreachable(f"{_FLOWS} of {self.wire.endpoint} ends at {end}, in front of {self._flows_least}")

    async def _id_of(self, topic: str) -> UUID:
        return (await self.wire.topics([topic]))[topic].topic_id

    async def append_plain(self, topic: str, key: bytes, value: bytes | None) -> int:
        """One record without transaction; returns its offset. An unknown outcome is an error: ask again."""
        tp = TopicPartition(topic, 0)
        batch = encode_batch(
            [Record(0, self.wire.network.time_ms(), key, value)],
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
                request = AppendRequest({tp: batch}, transactional_id=None, is_v2=False)
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
        self, group: str, partitions: Sequence[TopicPartition], *, stable: bool
    ) -> dict[TopicPartition, Position | ForeignPosition | None]:
        by_topic: dict[str, list[int]] = {}
        for tp in [*partitions, *([_FLOWS] if stable else [])]:
            by_topic.setdefault(tp.topic, []).append(tp.partition)
        unsettled = 0
        for _ in range(_TRIES):
            mark = await self._mark(group) if stable else None
            found, codes = await self._offset_fetch(group, by_topic, stable=stable)
            if codes <= {0} and (mark is None or found.get(_FLOWS) == (0, mark)):
                return {tp: parse_position(*found[tp]) if tp in found else None for tp in partitions}
            if not codes <= {0, Code.UNSTABLE_OFFSET_COMMIT, *PASSING}:
                raise_for(self.wire, max(codes), f"OffsetFetch of {group}", group)
            if codes & PASSING:
                self.wire.forget_coordinator(group, GROUP)
            unsettled += Code.UNSTABLE_OFFSET_COMMIT in codes
            if unsettled > _SETTLING_TRIES:
                break
            await self.wire.network.sleep(_PAUSE_SECONDS)
        raise Unsettled(f"offsets of {group} on {self.wire.endpoint} stay unstable")

    async def _mark(self, group: str) -> str:
        """Of an offset that is written only to be read back: the metadata.

        A group coordinator that was deposed and doesn't know it still answers with the offsets that it had
        then; it can't take new ones. Another lane's mark may come in between: then ours is written again.
        """
        nonce = uuid4().hex
        topic_type = OffsetCommitRequest.OffsetCommitRequestTopic
        part_type = topic_type.OffsetCommitRequestPartition
        part = part_type(partition_index=_FLOWS.partition, committed_offset=0, committed_metadata=nonce)
        request = OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=-1,
            member_id="",
            topics=[topic_type(name=_FLOWS.topic, partitions=[part])],
            min_version=8,
            max_version=8,
        )
        for _ in range(_TRIES):
            answer = await self._ask_group(group, request)
            code = answer.topics[0].partitions[0].error_code
            if code == 0:
                return nonce
            if code == Code.TOPIC_AUTHORIZATION_FAILED:
                raise self.wire.lacks_right(FLOWS_TOPIC, Operation.READ)
            if code not in PASSING:
                raise_for(self.wire, code, f"OffsetCommit of {group}", group)
            self.wire.forget_coordinator(group, GROUP)
            await self.wire.network.sleep(_PAUSE_SECONDS)
        raise Unreachable(f"the coordinator of {group} on {self.wire.endpoint} takes no offsets")

    async def _ask_group(self, group: str, request: Any) -> Any:
        try:
            return await self.wire.send(request, await self.wire.coordinator(group, GROUP))
        except Unreachable:
            self.wire.forget_coordinator(group, GROUP)
            raise

    async def _offset_fetch(
        self, group: str, by_topic: dict[str, list[int]], *, stable: bool
    ) -> tuple[dict[TopicPartition, tuple[int, str]], set[int]]:
        topic_type = OffsetFetchRequest.OffsetFetchRequestTopic
        request = OffsetFetchRequest(
            group_id=group,
            topics=[topic_type(name=name, partition_indexes=parts) for name, parts in by_topic.items()],
            require_stable=stable,
            min_version=7,
            max_version=7,
        )
        answer = await self._ask_group(group, request)
        codes, found = {answer.error_code}, {}
        for topic in answer.topics:
            for p in topic.partitions:
                codes.add(p.error_code)
                if p.error_code == Code.TOPIC_AUTHORIZATION_FAILED:
                    raise self.wire.lacks_right(topic.name, Operation.READ)
                if p.committed_offset >= 0:
                    tp = TopicPartition(topic.name, p.partition_index)
                    found[tp] = p.committed_offset, p.metadata
        return found, codes

    async def last_stables(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int | Refused]:
        found = await self.list_offsets(dict.fromkeys(partitions, LATEST), isolation=READ_COMMITTED)
        return {tp: a if isinstance(a, Refused) else a.offset for tp, a in found.items()}

    async def map_runs(
        self, map_topic: str, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, list[Run]]:
        described = (await self.wire.topics([map_topic]))[map_topic]
        runs: dict[TopicPartition, list[Run]] = {tp: [] for tp in partitions}
        if described.error == Code.UNKNOWN_TOPIC_OR_PARTITION:
            return runs
        if described.lacks(Operation.READ):
            raise self.wire.lacks_right(map_topic, Operation.READ)
        for number in sorted({map_partition(tp, len(described.leaders)) for tp in partitions}):
            tp = TopicPartition(map_topic, number)
            async for record in self._committed_records(tp):
                if record.key is None or record.value is None:
                    continue
                run = decode_run(record.key, record.value)
                if run.target in runs:
                    runs[run.target].append(run)
        return runs

    async def open_runs(
        self, map_partitions: Sequence[TopicPartition], producer_id: int
    ) -> dict[TopicPartition, list[Run]]:
        runs: dict[TopicPartition, list[Run]] = {}
        for tp, starts in (await self._open_transactions(map_partitions)).items():
            if isinstance(starts, Refused):
                raise Unreachable(f"producers of {tp} on {self.wire.endpoint}: {starts}")
            if producer_id not in starts:
                continue
            runs[tp], end = [], await self._end_of(tp, READ_UNCOMMITTED)
            async for head, batch, _ in self._batches(tp, starts[producer_id], end, READ_UNCOMMITTED):
                if head.producer_id == producer_id and not head.is_control:
                    records = decode_records(batch, head)
                    runs[tp] += [decode_run(r.key, r.value) for r in records if r.key and r.value]
        return runs

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
        return WireOwner(self.wire, transactional_id, timeout_ms, producer)

    async def _end_of(self, tp: TopicPartition, isolation: int = READ_COMMITTED) -> int:
        """The last stable offset: what is to be read now; without isolation the end of all that is there."""
        for _ in range(_TRIES):
            end = (await self.list_offsets({tp: LATEST}, isolation=isolation))[tp]
            if not isinstance(end, Refused):
                return end.offset
            if end.code == Code.TOPIC_AUTHORIZATION_FAILED:
                raise self.wire.lacks_right(tp.topic, Operation.READ)
            await self.wire.network.sleep(_PAUSE_SECONDS)
        raise Unreachable(f"end of {tp} on {self.wire.endpoint}: {end}")

    async def _committed_records(self, tp: TopicPartition) -> Any:
        """All that is committed, in order, also behind the open transaction of another lane.

        Lanes share the map's partitions: up to the last stable offset a lane might miss its own last run.
        """
        stable = await self._end_of(tp)
        async for record in self._records(tp, 0, stable):
            yield record
        undecided, end = Undecided(), await self._end_of(tp, READ_UNCOMMITTED)
        async for head, batch, seen in self._batches(tp, stable, end, READ_UNCOMMITTED):
            for decided, content in undecided.committed_by(head, batch, seen):
                for record in decode_records(content, decided):
                    yield record

    async def _records(self, tp: TopicPartition, start: int, end: int) -> Any:
        """The visible records of `[start, end)`, in order."""
        async for head, batch, seen in self._batches(tp, start, end, READ_COMMITTED):
            if seen is Seen.DATA:
                for record in decode_records(batch, head):
                    if record.offset >= start:
                        yield record

    async def _batches(self, tp: TopicPartition, start: int, end: int, isolation: int) -> Any:
        at, fruitless = start, 0
        if at >= end:
            return
        topic_id = (await self.wire.topics([tp.topic]))[tp.topic].topic_id
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


def _open_since(partition: Any) -> dict[int, int] | Refused:
    if partition.error_code:
        return Refused(partition.error_code)
    producers = partition.active_producers
    return {p.producer_id: p.current_txn_start_offset for p in producers if p.current_txn_start_offset >= 0}
