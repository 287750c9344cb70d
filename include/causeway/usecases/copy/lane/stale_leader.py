"""Nodes that tell what was: a leader that is cut off from the others, and not from us, goes on telling of a
log that ended earlier, and one whose metadata lags doesn't know a topic that is there."""

from __future__ import annotations

from uuid import UUID

from causeway.core.copy.ports import LogEnd, LogReader, Refused, is_unreachable
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code

_UNKNOWN_ID = {Code.UNKNOWN_TOPIC_ID, Code.INCONSISTENT_TOPIC_ID}
LAGS = "the node that answers is out of date: others of its cluster know the topic as it was"
DEPOSED = "the leader that answers was deposed; it may be cut off from the other brokers"


def is_unknown_id(answer: object) -> bool:
    return isinstance(answer, Refused) and answer.code in _UNKNOWN_ID


async def why_it_passes(
    cluster: LogReader, partition: TopicPartition, topic_id: UUID, epoch: int, answer: object
) -> str:
    """Of an answer that would park: why it may be another one soon; empty: it won't."""
    if is_unknown_id(answer):
        return "" if await cluster.is_gone(partition.topic, topic_id) else LAGS
    return await is_from_stale_leader(cluster, partition, epoch)


async def is_from_stale_leader(cluster: LogReader, partition: TopicPartition, epoch: int) -> str:
    """Whether it was elected before the epoch that was seen already: nothing was lost, and the next question
    goes to who leads now. In words; empty: it wasn't."""
    end = (await cluster.log_ends([partition]))[partition]
    if is_unreachable(end):
        return str(end)  # the node that reported it doesn't answer any more: another may lead soon
    return DEPOSED if is_stale_leader(cluster, partition, epoch, end) else ""


def is_stale_leader(cluster: LogReader, partition: TopicPartition, epoch: int, end: object) -> bool:
    if not isinstance(end, LogEnd) or end.leader_epoch >= epoch:
        return False
    cluster.ask_anew_who_leads(partition)
    return True
