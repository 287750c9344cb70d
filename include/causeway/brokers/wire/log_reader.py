"""Reading logs of one cluster by the wire: fetch, epoch ends, log starts and ends.

Partitions are grouped by leader, the requests to all leaders run at the same time. Partition errors
are values, and so is a leader that can't be reached: the others' answers count. Only where no node
answers the cluster is out of reach. A leader that moved is forgotten, so that the next question finds
the new one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar
from uuid import UUID

from kafka.protocol.consumer import FetchRequest, ListOffsetsRequest, OffsetForLeaderEpochRequest

from causeway.brokers.transport.connection import Wire
from causeway.brokers.transport.lagging_nodes import is_gone
from causeway.brokers.wire.settings import topic_settings
from causeway.core.copy.ports import (
    Diverged,
    EpochEnd,
    FetchAnswer,
    Fetched,
    FetchFrom,
    LogEnd,
    Refused,
    Unreachable,
)
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import NODE_UNREACHABLE
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code

T = TypeVar("T")
EARLIEST, LATEST = -2, -1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
_LEAST_PARTITION_BYTES = 1 << 20
_NO_LEADER = Refused(int(Code.LEADER_NOT_AVAILABLE))
_HIDDEN = Refused(int(Code.TOPIC_AUTHORIZATION_FAILED))
_MOVED = {
    Code.NOT_LEADER_OR_FOLLOWER,
    Code.UNKNOWN_TOPIC_OR_PARTITION,
    Code.FENCED_LEADER_EPOCH,
    Code.UNKNOWN_LEADER_EPOCH,
    Code.KAFKA_STORAGE_ERROR,
    Code.REPLICA_NOT_AVAILABLE,
    Code.UNKNOWN_TOPIC_ID,
    Code.INCONSISTENT_TOPIC_ID,
    NODE_UNREACHABLE,
}


class WireLogReader:
    """Implements `core.ports.LogReader` on a real cluster."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire

    @property
    def round_trip_seconds(self) -> float:
        return self.wire.round_trip_seconds

    def fetch(
        self,
        wanted: Mapping[TopicPartition, FetchFrom],
        *,
        max_bytes: int,
        max_wait_ms: int,
        is_isolated: bool = True,
    ) -> Awaitable[dict[TopicPartition, FetchAnswer]]:
        isolation = READ_COMMITTED if is_isolated else READ_UNCOMMITTED
        started: Awaitable[dict[TopicPartition, FetchAnswer]] = (
            self.wire.network.selector.call_soon_with_future(
                self._fetch, wanted, max_bytes, max_wait_ms, isolation
            )
        )
        return started

    def ask_anew_who_leads(self, partition: TopicPartition) -> None:
        self.wire.forget_leader(partition)

    async def is_gone(self, topic: str, topic_id: UUID) -> bool:
        return await is_gone(self.wire, topic, topic_id)

    async def compacted(self, topics: Collection[str]) -> frozenset[str]:
        settings = await topic_settings(self.wire, sorted(topics))
        return frozenset(
            name
            for name in topics
            if (found := settings.get(name)) is None or found.get("cleanup.policy") != "delete"
        )

    async def _fetch(
        self,
        wanted: Mapping[TopicPartition, FetchFrom],
        max_bytes: int,
        max_wait_ms: int,
        isolation: int = READ_COMMITTED,
    ) -> dict[TopicPartition, FetchAnswer]:
        share = max(max_bytes // max(len(wanted), 1), _LEAST_PARTITION_BYTES)

        async def ask(node: int, partitions: list[TopicPartition]) -> dict[TopicPartition, FetchAnswer]:
            request = _fetch_request(wanted, partitions, max_bytes, share, max_wait_ms, isolation)
            answer = await self.wire.send(request, node)
            return self._parse_fetch(answer, wanted, partitions)

        answers = await self._ask_leaders(wanted, ask)
        await self._explain_out_of_range(wanted, answers)
        return answers

    def _parse_fetch(
        self, answer: Any, wanted: Mapping[TopicPartition, FetchFrom], partitions: list[TopicPartition]
    ) -> dict[TopicPartition, FetchAnswer]:
        if answer.error_code:
            return dict.fromkeys(partitions, Refused(answer.error_code))
        names = {wanted[tp].topic_id: tp.topic for tp in partitions}
        found: dict[TopicPartition, FetchAnswer] = {}
        for topic in answer.responses:
            for part in topic.partitions:
                found[TopicPartition(names[topic.topic_id], part.partition_index)] = _fetched(part)
        return found

    async def _explain_out_of_range(
        self, wanted: Mapping[TopicPartition, FetchFrom], answers: dict[TopicPartition, FetchAnswer]
    ) -> None:
        """ "Out of range" alone tells nobody what is gone: say what the log holds."""
        lost = [
            tp for tp, a in answers.items() if isinstance(a, Refused) and a.code == Code.OFFSET_OUT_OF_RANGE
        ]
        if not lost:
            return
        starts = await self.log_starts(lost)
        ends = await self.log_ends(lost)
        for tp in lost:
            start, end = starts[tp], ends[tp]
            if isinstance(start, int) and isinstance(end, LogEnd):
                asked = wanted[tp].offset
                is_gone = f"offsets {asked} to {start - 1} are gone, its log begins at {start}"
                detail = is_gone if asked < start else f"its log ends at {end.offset}"
                answers[tp] = Refused(int(Code.OFFSET_OUT_OF_RANGE), detail, start, end.offset)

    async def epoch_ends(
        self, epochs: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, EpochEnd | Refused]:
        topic_type = OffsetForLeaderEpochRequest.OffsetForLeaderTopic

        async def ask(
            node: int, partitions: list[TopicPartition]
        ) -> dict[TopicPartition, EpochEnd | Refused]:
            topics = [
                topic_type(
                    topic=name,
                    partitions=[
                        topic_type.OffsetForLeaderPartition(
                            partition=tp.partition, current_leader_epoch=-1, leader_epoch=epochs[tp]
                        )
                        for tp in group
                    ],
                )
                for name, group in _by_topic(partitions).items()
            ]
            answer = await self.wire.send(OffsetForLeaderEpochRequest(replica_id=-2, topics=topics), node)
            return {
                TopicPartition(topic.topic, p.partition): Refused(p.error_code)
                if p.error_code
                else EpochEnd(p.leader_epoch, p.end_offset)
                for topic in answer.topics
                for p in topic.partitions
            }

        return await self._ask_leaders(epochs, ask)

    async def log_starts(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int | Refused]:
        found = await self.list_offsets(dict.fromkeys(partitions, EARLIEST))
        return {tp: a if isinstance(a, Refused) else a.offset for tp, a in found.items()}

    async def log_ends(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, LogEnd | Refused]:
        return await self.list_offsets(dict.fromkeys(partitions, LATEST))

    async def list_offsets(
        self, timestamps: Mapping[TopicPartition, int], *, isolation: int = READ_UNCOMMITTED
    ) -> dict[TopicPartition, LogEnd | Refused]:
        """Offsets by timestamp; with `LATEST` and `READ_COMMITTED` the last stable offset."""
        topic_type = ListOffsetsRequest.ListOffsetsTopic

        async def ask(node: int, partitions: list[TopicPartition]) -> dict[TopicPartition, LogEnd | Refused]:
            topics = [
                topic_type(
                    name=name,
                    partitions=[
                        topic_type.ListOffsetsPartition(
                            partition_index=tp.partition, current_leader_epoch=-1, timestamp=timestamps[tp]
                        )
                        for tp in group
                    ],
                )
                for name, group in _by_topic(partitions).items()
            ]
            request = ListOffsetsRequest(
                replica_id=-1, isolation_level=isolation, topics=topics, min_version=5, max_version=7
            )
            answer = await self.wire.send(request, node)
            return {
                TopicPartition(topic.name, p.partition_index): Refused(p.error_code)
                if p.error_code
                else LogEnd(p.offset, p.leader_epoch)
                for topic in answer.topics
                for p in topic.partitions
            }

        return await self._ask_leaders(timestamps, ask)

    async def _ask_leaders(
        self,
        partitions: Collection[TopicPartition],
        ask: Callable[[int, list[TopicPartition]], Awaitable[dict[TopicPartition, T]]],
    ) -> dict[TopicPartition, T | Any]:
        """:raises Unreachable: no node of the cluster answers."""
        grouped = await self.wire.by_leader(partitions)
        answers: dict[TopicPartition, T | Refused] = {
            tp: _HIDDEN if self.wire.is_hidden(tp.topic) else _NO_LEADER for tp in grouped.pop(-1, [])
        }
        for tp in answers:
            self.wire.forget_leader(tp)

        async def ask_if_reachable(
            node: int, group: list[TopicPartition]
        ) -> dict[TopicPartition, T] | Unreachable:
            try:
                return await ask(node, group)
            except Unreachable as trouble:
                return trouble

        tasks = [
            self.wire.network.selector.call_soon_with_future(ask_if_reachable, node, group)
            for node, group in grouped.items()
        ]
        found = [await task for task in tasks]
        troubles = [each for each in found if isinstance(each, Unreachable)]
        if troubles and len(troubles) == len(found):
            await self._refuse_if_all_are_silent(partitions, troubles[0])
        for (node, group), of_node in zip(grouped.items(), found, strict=True):
            told = {} if isinstance(of_node, Unreachable) else of_node
            missing = self.wire.silence_of(node) if isinstance(of_node, Unreachable) else _NO_LEADER
            for tp in group:
                answers[tp] = told.get(tp, missing)
        for tp, answer in answers.items():
            if isinstance(answer, Refused) and answer.code in _MOVED:
                self.wire.forget_leader(tp)
        return answers

    async def _refuse_if_all_are_silent(
        self, partitions: Collection[TopicPartition], trouble: Unreachable
    ) -> None:
        try:
            await self.wire.topics(sorted({tp.topic for tp in partitions}))
        except Unreachable:
            raise trouble from None


def _fetch_request(
    wanted: Mapping[TopicPartition, FetchFrom],
    partitions: list[TopicPartition],
    max_bytes: int,
    share: int,
    max_wait_ms: int,
    isolation: int = READ_COMMITTED,
) -> FetchRequest:
    by_id: dict[UUID, list[FetchRequest.FetchTopic.FetchPartition]] = {}
    for tp in partitions:
        by_id.setdefault(wanted[tp].topic_id, []).append(_fetch_partition(tp, wanted[tp], share))
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=max_wait_ms,
        min_bytes=1,
        max_bytes=max_bytes,
        isolation_level=isolation,
        session_id=0,
        session_epoch=-1,
        topics=[FetchRequest.FetchTopic(topic_id=of, partitions=group) for of, group in by_id.items()],
        forgotten_topics_data=[],
        rack_id="",
        min_version=13,
        max_version=13,
    )


def _fetch_partition(
    tp: TopicPartition, fetch: FetchFrom, max_bytes: int
) -> FetchRequest.FetchTopic.FetchPartition:
    return FetchRequest.FetchTopic.FetchPartition(
        partition=tp.partition,
        current_leader_epoch=-1,
        fetch_offset=fetch.offset,
        last_fetched_epoch=fetch.last_epoch,
        log_start_offset=-1,
        partition_max_bytes=max_bytes,
    )


def _fetched(part: Any) -> FetchAnswer:
    if part.error_code:
        return Refused(part.error_code)
    diverging = part.diverging_epoch
    if diverging is not None and diverging.epoch >= 0:
        return Diverged(diverging.epoch, diverging.end_offset)
    return Fetched(
        records=memoryview(part.records or b""),
        log_start=part.log_start_offset,
        last_stable=part.last_stable_offset,
        high_watermark=part.high_watermark,
        aborted=tuple(sorted((a.first_offset, a.producer_id) for a in part.aborted_transactions or ())),
    )


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    grouped: dict[str, list[TopicPartition]] = {}
    for tp in partitions:
        grouped.setdefault(tp.topic, []).append(tp)
    return grouped
