"""Consumer groups of one cluster, in bulk: who there is, what they have committed, commits in their name.

By the wire, because commit metadata has to be written and read back as it is, which librdkafka's admin client
doesn't do. Groups are asked together, by coordinator; a group that refuses is a value, never an exception.
Only `commit` changes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from kafka.protocol.admin import DescribeGroupsRequest, ListGroupsRequest
from kafka.protocol.consumer import OffsetCommitRequest, OffsetFetchRequest
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest

from causeway.brokers.wire import GROUP, Wire
from causeway.core.errors import CausewayError
from causeway.core.group_sync import Committed
from causeway.core.identity import TopicPartition
from causeway.core.kafka_errors import KafkaErrorCode as Code
from causeway.core.kafka_errors import error_name
from causeway.core.ports import Refused, Unreachable
from causeway.core.rights import Operation

T = TypeVar("T")
Offsets = dict[TopicPartition, Committed]
_PASSING = {
    Code.COORDINATOR_LOAD_IN_PROGRESS,
    Code.COORDINATOR_NOT_AVAILABLE,
    Code.NOT_COORDINATOR,
    Code.UNSTABLE_OFFSET_COMMIT,
    Code.REQUEST_TIMED_OUT,
}
_IDLE_STATES = frozenset({"Empty", "Dead"})
_WITHOUT_OFFSETS = frozenset({"share"})
_TRIES, _PAUSE_SECONDS = 30, 0.1
_AT_ONCE = 100
_NO_MEMBER, _NO_GENERATION, _NO_EPOCH = "", -1, -1


@dataclass(frozen=True, slots=True)
class ListedGroup:
    name: str
    state: str

    @property
    def is_active(self) -> bool:
        """Somebody is a member, or about to be one."""
        return self.state not in _IDLE_STATES


class ConsumerGroups:
    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._coordinators: dict[str, int] = {}

    async def listed(self) -> dict[str, ListedGroup]:
        """Every group that this user may see and that can have offsets, by name."""
        brokers = (
            await self._wire.send(MetadataRequest(topics=[], min_version=4), self._wire.any_node())
        ).brokers
        found: dict[str, ListedGroup] = {}
        for broker in brokers:
            for group in await self._listed_by(broker.node_id):
                if (group.group_type or "").lower() not in _WITHOUT_OFFSETS:
                    found[group.group_id] = ListedGroup(group.group_id, group.group_state)
        return found

    async def _listed_by(self, node: int) -> Sequence[Any]:
        request = ListGroupsRequest(states_filter=[], types_filter=[], min_version=4)
        for _ in range(_TRIES):
            answer = await self._wire.send(request, node)
            if answer.error_code not in _PASSING:
                break
            await self._wire.network.sleep(_PAUSE_SECONDS)
        if answer.error_code:
            raise Unreachable(f"groups of {self._wire.endpoint}: {error_name(answer.error_code)}")
        groups: Sequence[Any] = answer.groups
        return groups

    async def committed(
        self, groups: Iterable[str], partitions: Mapping[str, Sequence[int]] | None = None
    ) -> dict[str, Offsets | Refused]:
        """What each group has committed, for these partitions or for all; what is pending is waited for."""
        return await self._in_turns(
            groups,
            lambda names: [_fetch_request(names, partitions)],
            lambda answers: {group.group_id: _offsets(group) for group in answers[0].groups},
        )

    async def commit(self, wanted: Mapping[str, Offsets]) -> dict[str, dict[TopicPartition, int] | Refused]:
        """Commit as nobody's member, which brokers allow only while a group is empty; their codes.

        Without leader epochs: the source's mean nothing here.
        """
        asked: list[str] = []

        def requests(names: Sequence[str]) -> list[Any]:
            asked[:] = names
            return [_commit_request(name, wanted[name]) for name in names]

        return await self._in_turns(
            wanted, requests, lambda answers: dict(zip(asked, map(_codes, answers), strict=True))
        )

    async def operations(self, groups: Iterable[str]) -> dict[str, frozenset[int] | Refused | None]:
        """What this user may do with each, there or not; None: not known."""
        return await self._in_turns(
            groups,
            lambda names: [_describe_request(names)],
            lambda answers: {group.group_id: _operations(group) for group in answers[0].groups},
        )

    def denied(self, group: str, answer: object, operation: Operation) -> CausewayError | None:
        """What an answer means that is a refusal for want of a right, with its grant; None: it is another."""
        if isinstance(answer, Refused) and answer.code == Code.GROUP_AUTHORIZATION_FAILED:
            return self._wire.not_authorized(answer.code, group, operation)
        codes = answer if isinstance(answer, dict) else {}
        if Code.GROUP_AUTHORIZATION_FAILED in codes.values():
            return self._wire.not_authorized(int(Code.GROUP_AUTHORIZATION_FAILED), group, operation)
        hidden = (tp.topic for tp, code in codes.items() if code == Code.TOPIC_AUTHORIZATION_FAILED)
        return next((self._wire.lacks_right(topic, Operation.READ) for topic in hidden), None)

    async def _in_turns(
        self,
        groups: Iterable[str],
        requests: Callable[[Sequence[str]], list[Any]],
        parse: Callable[[list[Any]], dict[str, T | Refused]],
    ) -> dict[str, T | Refused]:
        """Some groups of a coordinator at a time; those it doesn't coordinate any more are asked again.

        One that stays unsettled, because a transaction of its consumer hangs, keeps its last answer: it must
        not hold up the others.
        """
        waiting, found = list(groups), dict[str, T | Refused]()
        for _ in range(_TRIES):
            refused = await self._find_coordinators(waiting)
            found |= refused
            waiting = [group for group in waiting if group not in refused]
            for node, names in self._by_coordinator(waiting):
                found |= parse(await self._wire.send_in_turn(requests(names), node))
            waiting = [group for group in waiting if _is_passing(found[group])]
            if not waiting:
                return found
            for group in waiting:
                self._coordinators.pop(group, None)
            await self._wire.network.sleep(_PAUSE_SECONDS)
        return found

    def _by_coordinator(self, groups: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
        by_node: dict[int, list[str]] = {}
        for group in groups:
            by_node.setdefault(self._coordinators[group], []).append(group)
        for node, names in by_node.items():
            for first in range(0, len(names), _AT_ONCE):
                yield node, names[first : first + _AT_ONCE]

    async def _find_coordinators(self, groups: Iterable[str]) -> dict[str, Refused]:
        refused: dict[str, Refused] = {}
        unknown = [group for group in groups if group not in self._coordinators]
        for first in range(0, len(unknown), _AT_ONCE):
            refused |= await self._ask_for_coordinators(unknown[first : first + _AT_ONCE])
        return refused

    async def _ask_for_coordinators(self, groups: Sequence[str]) -> dict[str, Refused]:
        request = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=list(groups), min_version=4)
        for _ in range(_TRIES):
            answer = await self._wire.send(request, self._wire.any_node())
            if all(each.error_code not in _PASSING for each in answer.coordinators):
                break
            await self._wire.network.sleep(_PAUSE_SECONDS)
        self._coordinators |= {each.key: each.node_id for each in answer.coordinators if not each.error_code}
        return {each.key: Refused(each.error_code) for each in answer.coordinators if each.error_code}


def _is_passing(answer: object) -> bool:
    if isinstance(answer, Refused):
        return answer.code in _PASSING
    return isinstance(answer, dict) and any(code in _PASSING for code in answer.values() if type(code) is int)


def _fetch_request(
    groups: Sequence[str], partitions: Mapping[str, Sequence[int]] | None
) -> OffsetFetchRequest:
    group_type = OffsetFetchRequest.OffsetFetchRequestGroup
    topic_type = group_type.OffsetFetchRequestTopics
    topics = None
    if partitions is not None:
        topics = [topic_type(name=name, partition_indexes=list(parts)) for name, parts in partitions.items()]
    return OffsetFetchRequest(
        groups=[group_type(group_id=group, topics=topics) for group in groups],
        require_stable=True,
        min_version=8,
        max_version=9,
    )


def _offsets(group: Any) -> Offsets | Refused:
    if group.error_code:
        return Refused(group.error_code)
    found: Offsets = {}
    for topic in group.topics:
        for part in topic.partitions:
            if part.error_code in _PASSING:
                return Refused(part.error_code)
            if part.committed_offset >= 0 and not part.error_code:
                at = TopicPartition(topic.name, part.partition_index)
                found[at] = Committed(part.committed_offset, part.metadata or "")
    return found


def _describe_request(groups: Sequence[str]) -> DescribeGroupsRequest:
    """Not of a later version: those have an error for a group that isn't there."""
    return DescribeGroupsRequest(
        groups=list(groups), include_authorized_operations=True, min_version=3, max_version=5
    )


def _operations(group: Any) -> frozenset[int] | Refused | None:
    if group.error_code:
        return Refused(group.error_code)
    return None if group.authorized_operations is None else frozenset(group.authorized_operations)


def _commit_request(group: str, offsets: Offsets) -> OffsetCommitRequest:
    topic_type = OffsetCommitRequest.OffsetCommitRequestTopic
    part_type = topic_type.OffsetCommitRequestPartition
    by_topic: dict[str, list[Any]] = {}
    for tp, wanted in offsets.items():
        part = part_type(
            partition_index=tp.partition,
            committed_offset=wanted.offset,
            committed_leader_epoch=_NO_EPOCH,
            committed_metadata=wanted.metadata,
        )
        by_topic.setdefault(tp.topic, []).append(part)
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=_NO_GENERATION,
        member_id=_NO_MEMBER,
        topics=[topic_type(name=name, partitions=parts) for name, parts in by_topic.items()],
        min_version=8,
        max_version=8,
    )


def _codes(answer: Any) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic.name, part.partition_index): part.error_code
        for topic in answer.topics
        for part in topic.partitions
    }
