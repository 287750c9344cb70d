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
from kafka.protocol.consumer import OffsetFetchRequest
from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest

from causeway.brokers.transport.connection import GROUP, Wire
from causeway.brokers.wire.offset_commits import commit_offsets
from causeway.core.copy.ports import Proof, Refused, Unreachable
from causeway.core.groups.sync_rules import Committed, Offsets
from causeway.core.kernel.acl_vocabulary import Operation
from causeway.core.kernel.errors import CausewayError
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.kernel.kafka_errors import error_name

T = TypeVar("T")
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
_MOST_QUESTION_BYTES, _PARTITION_BYTES = 8 << 20, 100
"""A broker takes 100 MiB, where nobody has changed it; its answer has offsets and metadata, too."""


@dataclass(frozen=True, slots=True)
class ListedGroup:
    name: str
    state: str

    @property
    def is_active(self) -> bool:
        """Somebody is a member, or about to be one."""
        return self.state not in _IDLE_STATES


class ConsumerGroups:
    def __init__(self, wire: Wire, *, spares_the_silent: bool = False) -> None:
        """`spares_the_silent`: for a cluster that may be half gone, and is only read. A silent node's groups
        are left out of the list, and refused; without it, one silent node is `Unreachable`."""
        self._wire, self._spares_the_silent = wire, spares_the_silent
        self._coordinators: dict[str, int] = {}
        self.silent: set[int] = set()
        """Nodes that were spared."""

    async def listed(self) -> dict[str, ListedGroup]:
        """Every group that this user may see and that can have offsets, by name."""
        brokers = (await self._wire.ask_anyone(MetadataRequest(topics=[], min_version=4))).brokers
        found: dict[str, ListedGroup] = {}
        for broker in brokers:
            try:
                groups = await self._listed_by(broker.node_id)
            except Unreachable as trouble:
                self._spare(broker.node_id, trouble)
                continue
            for group in groups:
                if (group.group_type or "").lower() not in _WITHOUT_OFFSETS:
                    found[group.group_id] = ListedGroup(group.group_id, group.group_state)
        return found

    def _spare(self, node: int, trouble: Unreachable) -> None:
        if not self._spares_the_silent:
            raise trouble
        self.silent.add(node)

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
            lambda names: [_fetch_request(some, partitions) for some in _asked_together(names, partitions)],
            lambda answers: {
                group.group_id: _offsets(group) for answer in answers for group in answer.groups
            },
        )

    async def commit(
        self, wanted: Mapping[str, Offsets], proof: Proof | None = None
    ) -> dict[str, dict[TopicPartition, int] | Refused]:
        """Commit as nobody's member, which brokers allow only while a group is empty; their codes.

        `proof` is asked for before each send, retries included; what it raises leaves the rest undone.
        """
        left = {group: dict(offsets) for group, offsets in wanted.items()}
        found: dict[str, dict[TopicPartition, int] | Refused] = {}
        for _ in range(_TRIES):
            refused = await self._find_coordinators(left)
            found |= refused
            for node, names in self._by_coordinator(group for group in left if group not in refused):
                offsets = {name: left[name] for name in names}
                for group, codes in (await commit_offsets(self._wire, node, offsets, proof)).items():
                    found[group] = _together(found.get(group), codes)
            left = {group: again for group in left if (again := _passing(left[group], found[group]))}
            if not left:
                break
            for group in left:
                self._coordinators.pop(group, None)
            await self._wire.network.sleep(_PAUSE_SECONDS)
        return found

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
                try:
                    found |= parse(await self._wire.send_in_turn(requests(names), node))
                except Unreachable as trouble:
                    self._spare(node, trouble)
                    found |= dict.fromkeys(names, self._wire.silence_of(node))
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
            answer = await self._wire.ask_anyone(request)
            if all(each.error_code not in _PASSING for each in answer.coordinators):
                break
            await self._wire.network.sleep(_PAUSE_SECONDS)
        self._coordinators |= {each.key: each.node_id for each in answer.coordinators if not each.error_code}
        return {each.key: Refused(each.error_code) for each in answer.coordinators if each.error_code}


def _is_passing(answer: object) -> bool:
    if isinstance(answer, Refused):
        return answer.code in _PASSING
    return isinstance(answer, dict) and any(code in _PASSING for code in answer.values() if type(code) is int)


def _together(
    before: dict[TopicPartition, int] | Refused | None, codes: dict[TopicPartition, int]
) -> dict[TopicPartition, int]:
    return {**before, **codes} if isinstance(before, dict) else codes


def _passing(offsets: Offsets, answer: dict[TopicPartition, int] | Refused) -> Offsets:
    """What is to be committed again: the rest of a group was taken, or refused permanently."""
    if isinstance(answer, Refused):
        return offsets if answer.code in _PASSING else {}
    return {tp: offset for tp, offset in offsets.items() if answer[tp] in _PASSING}


def _asked_together(
    groups: Sequence[str], partitions: Mapping[str, Sequence[int]] | None
) -> Iterator[Sequence[str]]:
    """The partitions are named once for each group, in the question and in its answer."""
    size_bytes = sum(len(name) + _PARTITION_BYTES * len(parts) for name, parts in (partitions or {}).items())
    at_once = max(_MOST_QUESTION_BYTES // max(size_bytes, 1), 1)
    for first in range(0, len(groups), at_once):
        yield groups[first : first + at_once]


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
