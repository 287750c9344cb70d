"""What a transaction that doesn't complete waits for: its coordinator names the partitions."""

from __future__ import annotations

from kafka.protocol.admin import DescribeTransactionsRequest

from causeway.brokers.transport.connection import TRANSACTION, Wire
from causeway.core.copy.ports import Unreachable
from causeway.core.kernel.plurals import counted

_NAMED_AT_MOST = 3


async def awaited_markers(wire: Wire, transactional_id: str) -> str:
    """In words, for people; empty: nobody tells."""
    try:
        node = await wire.coordinator(transactional_id, TRANSACTION)
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        found = (await wire.send(request, node)).transaction_states[0]
    except Unreachable:
        return ""
    if found.error_code or not found.topics:
        return ""
    waits = sorted(f"{topic.topic}-{number}" for topic in found.topics for number in topic.partitions)
    more = f" and {counted(len(waits) - _NAMED_AT_MOST, 'partition')} more" if waits[_NAMED_AT_MOST:] else ""
    return (
        f": its end isn't written yet on {', '.join(waits[:_NAMED_AT_MOST])}{more}; a partition with fewer "
        "replicas in sync than min.insync.replicas, or without a leader, takes it when they are back"
    )
