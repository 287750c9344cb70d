"""The claim of a lane's transactional id, and what a coordinator's refusal means.

After a claim the target refuses every earlier worker of the lane.
"""

from __future__ import annotations

from typing import Any

from kafka.protocol.producer import InitProducerIdRequest

from causeway.brokers.transport.connection import TRANSACTION, Wire
from causeway.brokers.wire.awaited_markers import awaited_markers
from causeway.core.copy.ports import LaneFenced, OutcomeUnknown, Unreachable
from causeway.core.copy.producer import ProducerState
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.kernel.kafka_errors import error_name

PAUSE_SECONDS, TRIES = 0.01, 3_000
_IMPOSSIBLE_TIMEOUT_MS = 0
_COMPLETION_SECONDS = 5.0
"""A round waits for all its lanes: one that can't complete its last transaction mustn't hold it up."""
ABORTING = {Code.CONCURRENT_TRANSACTIONS}
PASSING = {Code.COORDINATOR_LOAD_IN_PROGRESS, Code.COORDINATOR_NOT_AVAILABLE, Code.NOT_COORDINATOR}
_BEATEN = {
    Code.INVALID_PRODUCER_EPOCH,
    Code.PRODUCER_FENCED,
    Code.INVALID_PRODUCER_ID_MAPPING,
    Code.INVALID_TXN_STATE,
}


async def init_producer(
    wire: Wire, transactional_id: str, timeout_ms: int, held: ProducerState | None = None
) -> ProducerState:
    """Claim, or with `held` claim again: the coordinator refuses that if somebody else has claimed since."""
    answer = await _ask_for_producer(wire, transactional_id, timeout_ms, held)
    if answer.error_code:
        raise_for(wire, answer.error_code, f"InitProducerId for {transactional_id}", transactional_id)
    return ProducerState(answer.producer_id, answer.producer_epoch)


async def check_claim_right(wire: Wire, transactional_id: str) -> None:
    """Asks for a claim that no broker grants (no time-out at all); rights are looked at before that.

    :raises NotAuthorized: a real claim would be refused.
    """
    answer = await _ask_for_producer(wire, transactional_id, _IMPOSSIBLE_TIMEOUT_MS, None)
    if answer.error_code not in (0, Code.INVALID_TRANSACTION_TIMEOUT):
        raise_for(wire, answer.error_code, f"InitProducerId for {transactional_id}", transactional_id)


async def _ask_for_producer(
    wire: Wire, transactional_id: str, timeout_ms: int, held: ProducerState | None
) -> Any:
    deadline = wire.network.monotonic() + _COMPLETION_SECONDS
    for _ in range(TRIES):
        try:
            node = await wire.coordinator(transactional_id, TRANSACTION)
            answer = await wire.send(
                InitProducerIdRequest(
                    transactional_id=transactional_id,
                    transaction_timeout_ms=timeout_ms,
                    producer_id=held.producer_id if held else -1,
                    producer_epoch=held.epoch if held else -1,
                    min_version=3,
                    max_version=4,
                ),
                node,
            )
        except Unreachable as cause:
            wire.forget_coordinator(transactional_id, TRANSACTION)
            raise OutcomeUnknown(str(cause)) from cause
        if answer.error_code not in ABORTING and answer.error_code not in PASSING:
            return answer
        if answer.error_code in PASSING:
            wire.forget_coordinator(transactional_id, TRANSACTION)
        elif wire.network.monotonic() > deadline:
            break
        await wire.network.sleep(PAUSE_SECONDS)
    waits_for = await awaited_markers(wire, transactional_id)
    raise OutcomeUnknown(
        f"{transactional_id}: the coordinator doesn't complete the last transaction{waits_for}"
    )


def raise_for(wire: Wire, code: int, what: str, resource: str) -> None:
    """What a coordinator's refusal means: beaten, not authorized, or doubt."""
    if code in _BEATEN:
        raise LaneFenced(f"{what}: {error_name(code)}")
    if code in (Code.GROUP_AUTHORIZATION_FAILED, Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED):
        raise wire.not_authorized(code, resource)
    raise OutcomeUnknown(f"{what}: {error_name(code)}", code)
