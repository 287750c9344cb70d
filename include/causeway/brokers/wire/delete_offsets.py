"""Forget committed offsets of a group: for taking back what a failover committed where nothing was before."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kafka.protocol.consumer import OffsetDeleteRequest

from causeway.brokers.transport.connection import GROUP, Wire
from causeway.core.copy.ports import Proof, Refused, Unreachable
from causeway.core.groups.commit_portions import by_topic, in_portions
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code

_PASSING = {Code.COORDINATOR_LOAD_IN_PROGRESS, Code.COORDINATOR_NOT_AVAILABLE, Code.NOT_COORDINATOR}
_TRIES, _PAUSE_SECONDS = 100, 0.1


async def forget_offsets(
    wire: Wire, group: str, partitions: Collection[TopicPartition], proof: Proof | None = None
) -> Refused | None:
    """The first refusal; a group that isn't there has nothing to forget. `proof`: as for a commit."""
    for portion in in_portions(group, dict.fromkeys(partitions, "")):
        refused = await _forget(wire, group, portion, proof)
        if refused is not None:
            return refused
    return None


async def _forget(
    wire: Wire, group: str, partitions: Sequence[TopicPartition], proof: Proof | None
) -> Refused | None:
    request = _delete_request(group, partitions)
    for _ in range(_TRIES):
        connection = await wire.ready(await wire.coordinator(group, GROUP))
        if proof is not None:
            await proof.renew()
        answer = await wire.send_on(connection, request)
        codes = [answer.error_code, *(p.error_code for topic in answer.topics for p in topic.partitions)]
        code = next((each for each in codes if each), 0)
        if code not in _PASSING:
            return None if code in (0, Code.GROUP_ID_NOT_FOUND) else Refused(code)
        wire.forget_coordinator(group, GROUP)
        await wire.network.sleep(_PAUSE_SECONDS)
    raise Unreachable(f"coordinator of {group} on {wire.endpoint} isn't ready")


def _delete_request(group: str, partitions: Sequence[TopicPartition]) -> OffsetDeleteRequest:
    topic_type = OffsetDeleteRequest.OffsetDeleteRequestTopic
    part_type = topic_type.OffsetDeleteRequestPartition
    topics = [
        topic_type(name=name, partitions=[part_type(partition_index=tp.partition) for tp in of_topic])
        for name, of_topic in by_topic(partitions).items()
    ]
    return OffsetDeleteRequest(group_id=group, topics=topics)
