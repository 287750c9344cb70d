"""Which rights of a list this user lacks, asked before anything is written. Only asks: what would come of
making a topic is a dry run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from causeway.brokers.admin.topics import ClusterAdmin
from causeway.brokers.error_map import error_of_right
from causeway.brokers.transport.connection import Wire
from causeway.brokers.wire.consumer_groups import ConsumerGroups
from causeway.brokers.wire.lane_claim import check_claim_right
from causeway.core.copy.ports import Refused
from causeway.core.kernel.acl_vocabulary import NeededRight, Operation, Side
from causeway.core.kernel.errors import NotAuthorized
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.topics.plan import NewTopicPlan

_SAMPLE = "0"
"""After a prefix: some name that it covers."""


async def refuse_without(needed: Iterable[NeededRight], wires: Mapping[Side, Wire]) -> None:
    """:raises NotAuthorized: the first of them that is missing, with its grant."""
    for right in await lacking_rights(needed, wires):
        raise error_of_right(right, cluster=wires[right.side].endpoint)


async def lacking_rights(needed: Iterable[NeededRight], wires: Mapping[Side, Wire]) -> list[NeededRight]:
    """Those that this user doesn't have, in their order. To make a topic that is there takes none."""
    rights = list(dict.fromkeys(needed))
    lacking: set[NeededRight] = set()
    for side, wire in wires.items():
        here = [right for right in rights if right.side == side]
        lacking |= await _of_topics(wire, [right for right in here if right.resource == "topic"])
        lacking |= await _of_groups(wire, [right for right in here if right.resource == "group"])
        lacking |= await _of_claims(wire, [right for right in here if right.resource == "transactional-id"])
    return [right for right in rights if right in lacking]


def _name(right: NeededRight) -> str:
    return f"{right.name}{_SAMPLE}" if right.is_prefix else right.name


async def _of_topics(wire: Wire, rights: Sequence[NeededRight]) -> set[NeededRight]:
    if not rights:
        return set()
    described = await wire.topics(sorted({_name(right) for right in rights}))
    to_make = {
        right: NewTopicPlan(_name(right), 1, (), None)
        for right in rights
        if right.operation is Operation.CREATE and not described[_name(right)].leaders
    }
    refused = ClusterAdmin(wire.endpoint).create_topics(list(to_make.values()), validate_only=True)
    denied = {right for right, plan in to_make.items() if isinstance(refused.get(plan.name), NotAuthorized)}
    in_use = (right for right in rights if right.operation is not Operation.CREATE)
    return denied | {right for right in in_use if described[_name(right)].lacks(right.operation) is not None}


async def _of_groups(wire: Wire, rights: Sequence[NeededRight]) -> set[NeededRight]:
    held = await ConsumerGroups(wire).operations(sorted({_name(right) for right in rights}))

    def is_lacking(right: NeededRight) -> bool:
        answer = held[_name(right)]
        if isinstance(answer, Refused):
            return answer.code == Code.GROUP_AUTHORIZATION_FAILED
        return answer is not None and right.operation not in answer

    return {right for right in rights if is_lacking(right)}


async def _of_claims(wire: Wire, rights: Sequence[NeededRight]) -> set[NeededRight]:
    lacking: set[NeededRight] = set()
    for right in rights:
        try:
            await check_claim_right(wire, _name(right))
        except NotAuthorized:
            lacking.add(right)
    return lacking
