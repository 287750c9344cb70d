"""Positions of a flow as the coordinator of its group tells them.

A coordinator that was deposed and doesn't know it still tells the offsets that it had; it can't take new
ones, because all replicas in sync have to have them. So what has to be true now is read *marked*: beside an
offset that was committed just before, on the partition of the flows topic, and is found among the answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from kafka.protocol.consumer import OffsetCommitRequest, OffsetFetchRequest

from causeway.brokers.transport.connection import GROUP, Wire
from causeway.brokers.wire.lane_claim import PASSING, raise_for
from causeway.core.copy.ports import OutcomeUnknown, PositionsPending, Unreachable
from causeway.core.kernel.acl_vocabulary import Operation
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.kernel.kafka_errors import error_name
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.state.position import ForeignPosition, Position, parse_position

_TRIES, _SETTLING_TRIES = 3_000, 200
_PROOF_SECONDS = 10.0
_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.01, 0.2
_UNEVEN = 997.0
_FLOWS = TopicPartition(FLOWS_TOPIC, 0)
_WAITED_FOR = {0, Code.UNSTABLE_OFFSET_COMMIT, *PASSING}
Offsets = dict[TopicPartition, tuple[int, str]]
"""With their metadata."""


class CommittedPositions:
    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    async def positions(
        self, group: str, partitions: Sequence[TopicPartition], *, stable: bool, marked: bool = False
    ) -> dict[TopicPartition, Position | ForeignPosition | None]:
        by_topic: dict[str, list[int]] = {}
        for tp in partitions:
            by_topic.setdefault(tp.topic, []).append(tp.partition)
        ask = self._marked if marked else self._offsets
        found = await ask(group, by_topic, stable=stable)
        return {tp: parse_position(*found[tp]) if tp in found else None for tp in partitions}

    async def all_positions(self, group: str) -> dict[TopicPartition, Position | ForeignPosition]:
        """As they are now, but for the mark of `_marked`: that one is no position."""
        found = await self._offsets(group, None, stable=False)
        return {tp: parse_position(*held) for tp, held in found.items() if tp != _FLOWS}

    async def _offsets(self, group: str, by_topic: dict[str, list[int]] | None, *, stable: bool) -> Offsets:
        unsettled = 0
        for _ in range(_TRIES):
            answer = await self._ask(group, [_offsets_request(group, by_topic, stable=stable)])
            found, code = self._parse(answer[0])
            if not code:
                return found
            unsettled += code == Code.UNSTABLE_OFFSET_COMMIT
            if unsettled > _SETTLING_TRIES:
                raise PositionsPending(f"offsets of {group} on {self._wire.endpoint} stay unstable")
            await self._wait(code, group, "OffsetFetch")
        raise Unreachable(f"offsets of {group} on {self._wire.endpoint}: {error_name(code)}")

    async def _marked(self, group: str, by_topic: dict[str, list[int]], *, stable: bool) -> Offsets:
        """Another lane's mark may come in between: then ours is written again, a bit later."""
        mark = (0, uuid4().hex)
        asked = {**by_topic, FLOWS_TOPIC: [_FLOWS.partition]}
        clock, why = self._wire.network, ""
        deadline, pause = clock.monotonic() + _PROOF_SECONDS, _PAUSE_SECONDS
        while clock.monotonic() < deadline:
            both = [_mark_request(group, mark), _offsets_request(group, asked, stable=stable)]
            committed, fetched = await self._ask(group, both)
            refused = committed.topics[0].partitions[0].error_code
            if not refused:
                found, code = self._parse(fetched)
                if not code and found.pop(_FLOWS, None) == mark:
                    return found
                why = error_name(code) if code else "other lanes' marks came in between"
                if code:
                    await self._wait(code, group, "OffsetFetch")
            elif refused == Code.UNKNOWN_MEMBER_ID:
                raise OutcomeUnknown(
                    f"group {group} on {self._wire.endpoint} has members: some consumer joined the flow's "
                    "own group; stop it, or give it another group.id"
                )
            elif refused == Code.TOPIC_AUTHORIZATION_FAILED:
                raise self._wire.lacks_right(FLOWS_TOPIC, Operation.READ)
            else:
                why = error_name(refused)
                if refused != Code.UNKNOWN_TOPIC_OR_PARTITION:  # a leader that is new here learns of it
                    await self._wait(refused, group, "OffsetCommit")
            # Of lanes that met once, each waits for another time.
            await clock.sleep(pause * (0.5 + clock.monotonic() * _UNEVEN % 1))
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
        raise OutcomeUnknown(
            f"positions of {group} on {self._wire.endpoint} can't be proved ({why}); unless lanes stand in "
            "each other's way, its coordinator may be cut off from the other brokers"
        )

    async def _wait(self, code: int, group: str, what: str) -> None:
        """:raises LaneFenced, OutcomeUnknown, NotAuthorized: waiting wouldn't help."""
        if code in PASSING:
            self._wire.forget_coordinator(group, GROUP)
        elif code != Code.UNSTABLE_OFFSET_COMMIT:
            raise_for(self._wire, code, f"{what} of {group}", group)
        await self._wire.network.sleep(_PAUSE_SECONDS)

    async def _ask(self, group: str, requests: list[Any]) -> list[Any]:
        try:
            return await self._wire.send_in_turn(requests, await self._wire.coordinator(group, GROUP))
        except Unreachable:
            self._wire.forget_coordinator(group, GROUP)
            raise

    def _parse(self, answer: Any) -> tuple[Offsets, int]:
        """What was found, or the gravest reason why it wasn't."""
        codes, found = {answer.error_code}, {}
        for topic in answer.topics:
            for p in topic.partitions:
                codes.add(p.error_code)
                if p.error_code == Code.TOPIC_AUTHORIZATION_FAILED:
                    raise self._wire.lacks_right(topic.name, Operation.READ)
                if p.committed_offset >= 0:
                    found[TopicPartition(topic.name, p.partition_index)] = (p.committed_offset, p.metadata)
        return found, max(codes, key=lambda code: (code not in _WAITED_FOR, code))


def _offsets_request(
    group: str, by_topic: dict[str, list[int]] | None, *, stable: bool
) -> OffsetFetchRequest:
    """`by_topic` None: of all that there are."""
    topic_type = OffsetFetchRequest.OffsetFetchRequestTopic
    topics = (
        None if by_topic is None else [topic_type(name=n, partition_indexes=p) for n, p in by_topic.items()]
    )
    return OffsetFetchRequest(
        group_id=group,
        topics=topics,
        require_stable=stable,
        min_version=7,
        max_version=7,
    )


def _mark_request(group: str, mark: tuple[int, str]) -> OffsetCommitRequest:
    topic_type = OffsetCommitRequest.OffsetCommitRequestTopic
    part = topic_type.OffsetCommitRequestPartition(
        partition_index=_FLOWS.partition, committed_offset=mark[0], committed_metadata=mark[1]
    )
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[topic_type(name=_FLOWS.topic, partitions=[part])],
        min_version=8,
        max_version=8,
    )
