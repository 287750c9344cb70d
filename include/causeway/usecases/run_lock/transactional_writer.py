"""Records of our own in transactions of a claimed id: all of a portion is there, or nothing of it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from causeway.brokers.wire.log_reader import READ_UNCOMMITTED
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.ports import Appended, LaneFenced, OutcomeUnknown, Owner, Unreachable
from causeway.core.kernel.acl_vocabulary import Operation
from causeway.core.kernel.errors import FlowHeld
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.model.flow import Flow
from causeway.core.records.compression import Codec
from causeway.core.records.records import Record, encode_batch
from causeway.core.topics.quarantine import in_batches
from causeway.usecases.run_lock.command_fence import CommandFence

_TRIES, _PAUSE_SECONDS = 1_000, 0.02


@dataclass(frozen=True, slots=True)
class PortionWriter:
    target: WireTarget
    owner: Owner
    own: CommandFence

    @classmethod
    async def claimed(cls, flow: Flow, target: WireTarget, own: CommandFence) -> PortionWriter:
        """With the flow's id for what isn't a lane's: it disturbs none, and who fences or lifts claims it.

        :raises FlowHeld: the fence under which this is written doesn't stand any more.
        """
        timeout_ms = flow.limits.transaction_timeout_ms
        owner = await target.claim(flow.maintenance_id, timeout_ms=timeout_ms)
        await own.prove(target)
        return cls(target, owner, own)

    async def write(self, tp: TopicPartition, records: Sequence[Record]) -> None:
        """One transaction.

        :raises FlowHeld: as `claimed`; what was appended is aborted.
        """
        await self.append(tp, records)
        try:
            await self.own.check(self.target)
        except FlowHeld:
            with suppress(OutcomeUnknown, LaneFenced):  # nobody should have to wait for its time-out
                await self.owner.end(commit=False)
            raise
        await self.owner.end(commit=True)

    async def append(self, tp: TopicPartition, records: Sequence[Record]) -> None:
        """Into the open transaction."""
        for batch in in_batches(records):
            await self._append_records(tp, batch)

    async def _append_records(self, tp: TopicPartition, records: Sequence[Record]) -> None:
        producer = self.owner.producer
        batch = encode_batch(
            records,
            codec=Codec.NONE,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=producer.take_sequence(tp, len(records)),
        )
        for _ in range(_TRIES):
            answer = (await self.owner.append({tp: batch}))[tp]
            if isinstance(answer, Appended):
                return
            if answer.code == Code.TOPIC_AUTHORIZATION_FAILED:
                raise self.target.wire.lacks_right(tp.topic, Operation.WRITE)
            if answer.code != Code.CONCURRENT_TRANSACTIONS:
                raise Unreachable(f"append to {tp}: {answer}")
            await self.target.wire.network.sleep(_PAUSE_SECONDS)  # the last markers are on their way
        raise OutcomeUnknown(f"the last transaction at {tp} doesn't complete")


async def decided_end(target: WireTarget, tp: TopicPartition) -> int:
    """The log's end once nothing is open any more."""
    for _ in range(_TRIES):
        stable = await target.end_of(tp)
        if stable == await target.end_of(tp, READ_UNCOMMITTED):
            return stable
        await target.wire.network.sleep(_PAUSE_SECONDS)
    raise Unreachable(f"a transaction stays open on {tp}")
