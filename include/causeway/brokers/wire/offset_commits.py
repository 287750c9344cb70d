"""Plain commits in the names of groups, to one coordinator: in portions, each on a proof that holds.

Nothing else commits for a group. A coordinator takes such a commit from anybody, as long as the group is
empty; so what no broker refuses is asked for right before each send.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from kafka import errors as kafka_errors
from kafka.protocol.consumer import OffsetCommitRequest

from causeway.brokers.transport.connection import Wire
from causeway.core.copy.ports import Proof, Unreachable
from causeway.core.groups.commit_portions import by_topic, in_portions
from causeway.core.groups.late_commits import COMMIT_SECONDS
from causeway.core.groups.sync_rules import Offsets
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code

_IN_FLIGHT = 20
"""More, and a coordinator that has to replicate each would answer the last one too late."""
_NO_MEMBER, _NO_GENERATION, _NO_EPOCH = "", -1, -1
_Portion = tuple[str, Offsets]


async def commit_offsets(
    wire: Wire, node: int, wanted: Mapping[str, Offsets], proof: Proof | None
) -> dict[str, dict[TopicPartition, int]]:
    """The codes, by group; REQUEST_TIMED_OUT where it isn't known whether they were committed.

    Without leader epochs: the source's mean nothing here. `proof` None: whoever comes late harms nobody.
    """
    waiting = deque(_commit_portions(wanted))
    codes: dict[str, dict[TopicPartition, int]] = {group: {} for group in wanted}
    while waiting:
        connection = await wire.ready(node)
        if proof is not None:
            await proof.renew()
        sent: list[tuple[_Portion, Any]] = []
        while waiting and len(sent) < _IN_FLIGHT and _may_send(connection, proof):
            sent.append((waiting[0], _send(connection, waiting.popleft())))
        for (group, offsets), answer in sent:
            codes[group] |= await _answered(wire, offsets, answer)
    return codes


def _may_send(connection: Any, proof: Proof | None) -> bool:
    """Asked between a look at the clock and the send: nothing is awaited there."""
    return connection.connected and not connection.paused and (proof is None or proof.is_fresh)


def _send(connection: Any, portion: _Portion) -> Any:
    return connection.send_request(_commit_request(*portion), request_timeout_ms=COMMIT_SECONDS * 1000)


async def _answered(wire: Wire, offsets: Offsets, answer: Any) -> dict[TopicPartition, int]:
    try:
        return _codes(await answer)
    except kafka_errors.RequestTimedOutError:
        return dict.fromkeys(offsets, int(Code.REQUEST_TIMED_OUT))
    except (kafka_errors.KafkaError, OSError) as cause:
        raise Unreachable(f"{wire.endpoint}: {type(cause).__name__}: {cause}") from cause


def _commit_portions(wanted: Mapping[str, Offsets]) -> list[_Portion]:
    return [
        (group, {tp: offsets[tp] for tp in portion})
        for group, offsets in wanted.items()
        for portion in in_portions(group, {tp: each.metadata for tp, each in offsets.items()})
    ]


def _commit_request(group: str, offsets: Offsets) -> OffsetCommitRequest:
    topic_type = OffsetCommitRequest.OffsetCommitRequestTopic
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=_NO_GENERATION,
        member_id=_NO_MEMBER,
        topics=[
            topic_type(name=name, partitions=_partition_commits(partitions, offsets))
            for name, partitions in by_topic(offsets).items()
        ],
        min_version=8,
        max_version=8,
    )


def _partition_commits(partitions: Sequence[TopicPartition], offsets: Offsets) -> list[Any]:
    part_type = OffsetCommitRequest.OffsetCommitRequestTopic.OffsetCommitRequestPartition
    return [
        part_type(
            partition_index=tp.partition,
            committed_offset=offsets[tp].offset,
            committed_leader_epoch=_NO_EPOCH,
            committed_metadata=offsets[tp].metadata,
        )
        for tp in partitions
    ]


def _codes(answer: Any) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic.name, part.partition_index): part.error_code
        for topic in answer.topics
        for part in topic.partitions
    }
