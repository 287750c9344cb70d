"""Forget committed offsets of a group: for taking back what a failover committed where nothing was before."""

from __future__ import annotations

from collections.abc import Collection

from kafka.protocol.consumer import OffsetDeleteRequest

from causeway.brokers.wire import GROUP, Wire
from causeway.core.identity import TopicPartition
from causeway.core.kafka_errors import KafkaErrorCode as Code
from causeway.core.ports import Refused, Unreachable

_PASSING = {Code.COORDINATOR_LOAD_IN_PROGRESS, Code.COORDINATOR_NOT_AVAILABLE, Code.NOT_COORDINATOR}
_TRIES, _PAUSE_SECONDS = 100, 0.1


async def forget_offsets(wire: Wire, group: str, partitions: Collection[TopicPartition]) -> Refused | None:
    """The first refusal; a group that isn't there has nothing to forget."""
    request = _request(group, partitions)
    for _ in range(_TRIES):
        answer = await wire.send(request, await wire.coordinator(group, GROUP))
        codes = [answer.error_code, *(p.error_code for topic in answer.topics for p in topic.partitions)]
        code = next((each for each in codes if each), 0)
        if code not in _PASSING:
            return None if code in (0, Code.GROUP_ID_NOT_FOUND) else Refused(code)
        wire.forget_coordinator(group, GROUP)
        await wire.network.sleep(_PAUSE_SECONDS)
    raise Unreachable(f"coordinator of {group} on {wire.endpoint} isn't ready")


def _request(group: str, partitions: Collection[TopicPartition]) -> OffsetDeleteRequest:
    topic_type = OffsetDeleteRequest.OffsetDeleteRequestTopic
    part_type = topic_type.OffsetDeleteRequestPartition
    by_topic: dict[str, list[int]] = {}
    for tp in partitions:
        by_topic.setdefault(tp.topic, []).append(tp.partition)
    topics = [
        topic_type(name=name, partitions=[part_type(partition_index=number) for number in numbers])
        for name, numbers in by_topic.items()
    ]
    return OffsetDeleteRequest(group_id=group, topics=topics)
