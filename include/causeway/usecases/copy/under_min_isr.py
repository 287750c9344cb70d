"""Target partitions that take nothing now, because too few of their replicas are in sync.

A batch for one would be refused; but by then it has joined the transaction, whose end can't be written there
either, and all the lane would wait for that one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from causeway.brokers.transport.connection import Wire
from causeway.brokers.transport.topic_metadata import TopicMetadata
from causeway.brokers.wire.settings import topic_settings
from causeway.core.kernel.identity import TopicPartition


async def take_nothing(
    target: Wire, topics: Mapping[str, TopicMetadata], partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, str]:
    """Why, in words. Asks only where replicas are missing; what may not be seen is tried.

    :raises Unreachable: no node of the target says what its topics ask for.
    """
    short = {
        tp: topics[tp.topic].short_of_replicas[tp.partition]
        for tp in partitions
        if tp.topic in topics and tp.partition in topics[tp.topic].short_of_replicas
    }
    if not short:
        return {}
    settings = await topic_settings(target, sorted({tp.topic for tp in short}))
    found: dict[TopicPartition, str] = {}
    for tp, (in_sync, replicas) in short.items():
        asked = int((settings.get(tp.topic) or {}).get("min.insync.replicas", 0))
        if in_sync < min(asked, replicas):
            found[tp] = (
                f"{tp} takes nothing: {in_sync} of its {replicas} replicas in sync, and its "
                f"min.insync.replicas is {asked}"
            )
    return found
