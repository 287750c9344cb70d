"""A leader that is cut off from the others, and not from us, goes on telling of a log that ended earlier."""

from __future__ import annotations

from causeway.core.identity import TopicPartition
from causeway.core.ports import LogEnd, LogReader

DEPOSED = "the leader that answers was deposed; it may be cut off from the other brokers"


async def told_by_deposed(cluster: LogReader, partition: TopicPartition, epoch: int) -> bool:
    """Whether it was elected before the epoch that was seen already: nothing was lost, and the next question
    goes to who leads now."""
    end = (await cluster.log_ends([partition]))[partition]
    return is_deposed(cluster, partition, epoch, end)


def is_deposed(cluster: LogReader, partition: TopicPartition, epoch: int, end: object) -> bool:
    if not isinstance(end, LogEnd) or end.leader_epoch >= epoch:
        return False
    cluster.ask_anew_who_leads(partition)
    return True
