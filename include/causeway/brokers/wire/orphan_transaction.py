"""Somebody else's transaction: what its coordinator tells of it, and committing it in its owner's place.

Only for transactions v2: there `EndTxn` moves the epoch on, so that nothing late can join what comes next.
Every outcome is either the coordinator's answer, or `OutcomeUnknown`.
"""

from __future__ import annotations

from typing import Any

from kafka.protocol.admin import DescribeTransactionsRequest
from kafka.protocol.producer import EndTxnRequest

from causeway.brokers.transport.connection import TRANSACTION, Wire
from causeway.brokers.wire.lane_claim import PASSING
from causeway.core.copy.ports import OpenTransaction, OutcomeUnknown, Unreachable
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code

_ONGOING = "Ongoing"
_PAUSE_SECONDS = 0.01
_TRIES = 500
_END_V2 = 5
_DESCRIBE_AGAIN = {
    Code.NONE,
    Code.CONCURRENT_TRANSACTIONS,
    Code.PRODUCER_FENCED,
    Code.INVALID_PRODUCER_EPOCH,
    Code.INVALID_PRODUCER_ID_MAPPING,
    *PASSING,
}


async def describe_transaction(wire: Wire, transactional_id: str) -> OpenTransaction | None:
    """None: nothing is open, or the coordinator doesn't tell."""
    for _ in range(_TRIES):
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        found = (await _ask(wire, transactional_id, request)).transaction_states[0]
        if found.error_code not in PASSING:
            break
        wire.forget_coordinator(transactional_id, TRANSACTION)
        await wire.network.sleep(_PAUSE_SECONDS)
    if found.error_code or found.transaction_state != _ONGOING:
        return None
    return OpenTransaction(
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        partitions=frozenset(TopicPartition(t.topic, p) for t in found.topics for p in t.partitions),
    )


async def commit_for_owner(wire: Wire, transactional_id: str, transaction: OpenTransaction) -> bool:
    """False: refused, for a reason that stays."""
    answer = await _ask(
        wire,
        transactional_id,
        EndTxnRequest(
            transactional_id=transactional_id,
            producer_id=transaction.producer_id,
            producer_epoch=transaction.producer_epoch,
            committed=True,
            max_version=_END_V2,
        ),
    )
    if answer.error_code in PASSING:
        wire.forget_coordinator(transactional_id, TRANSACTION)
    return answer.error_code in _DESCRIBE_AGAIN


async def _ask(wire: Wire, transactional_id: str, request: Any) -> Any:
    try:
        return await wire.send(request, await wire.coordinator(transactional_id, TRANSACTION))
    except Unreachable as cause:
        wire.forget_coordinator(transactional_id, TRANSACTION)
        raise OutcomeUnknown(str(cause)) from cause
