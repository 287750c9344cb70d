"""Positions and runs of the map that hang: their transaction has ended, but its marker got lost on the way.

Seen on Kafka 4.3.1: a transaction times out while its only broker comes back; the coordinator doesn't find
the partitions yet, takes them for deleted, and calls the transaction done without a marker for any of them.
Data that hangs is `tail.py`'s. After a claim nothing of this lane is open for any other reason.

Invariant: all parts of a transaction have one fate, so what can be seen of it decides over the rest. Done
before anything is appended: the next marker of this producer would decide over what hangs as well.
"""

from __future__ import annotations

from collections.abc import Mapping

from causeway.core.copy.lane_rules import was_committed
from causeway.core.copy.lane_task import LaneTask
from causeway.core.copy.ports import Clock, Fetched, FetchFrom, OutcomeUnknown, Owner, Target
from causeway.core.kernel.identity import TopicPartition
from causeway.core.offsets.map_entries import MapTransaction
from causeway.core.records.records import Record
from causeway.core.records.visibility import Visibility, read_committed
from causeway.core.state.position import Position
from causeway.core.topics.quarantine import Origin, origin_of
from causeway.usecases.copy.lane.inspect import PartitionState

_FETCH_BYTES = 8 << 20
_FRUITLESS_READS = 20
_PAUSE_SECONDS = 0.05
_TRIES = 5


class LostMarkers:
    def __init__(self, task: LaneTask, target: Target, owner: Owner, clock: Clock) -> None:
        self._task, self._target, self._owner, self._clock = task, target, owner, clock

    async def settle_positions(self, seen: Mapping[TopicPartition, PartitionState]) -> None:
        """`seen`, after the claim, with what was committed before: records of ours after it mean that this
        was, too."""
        commit = await self._shows_records_of_ours(seen)
        await self._owner.close_partitions([], commit=commit, group=self._task.group)

    async def settle_map(self) -> None:
        """A run or a place stays if the positions say that its transaction was committed."""
        map_partitions = [TopicPartition(self._task.map_topic, p) for p in range(self._task.map_partitions)]
        for _ in range(_TRIES):
            hanging = await self._target.open_map(map_partitions, self._owner.producer.producer_id)
            if not hanging:
                return
            await self._close_map(hanging)
        raise OutcomeUnknown(f"what hangs in {self._task.map_topic} can't be closed")

    async def _close_map(self, hanging: dict[TopicPartition, MapTransaction]) -> None:
        mirrored = sorted({target for written in hanging.values() for target in written.targets})
        positions = await self._target.positions(self._task.group, mirrored, stable=False, marked=True)
        for commit in (True, False):
            partitions = [
                tp for tp, written in hanging.items() if commit is was_committed(written, positions)
            ]
            if partitions:
                await self._owner.close_partitions(partitions, commit=commit)

    async def settle_quarantine(self) -> None:
        """A record stays in quarantine if the positions say that its place in the mirror was passed over."""
        if self._task.quarantine is None:
            return
        partition = TopicPartition(self._task.quarantine.topic, 0)
        for _ in range(_TRIES):
            found = await self._target.open_records([partition], self._owner.producer.producer_id)
            if partition not in found:
                return
            commit = await self._were_passed_over(found[partition])
            await self._owner.close_partitions([partition], commit=commit)
        raise OutcomeUnknown(f"what hangs in {partition} can't be closed")

    async def _were_passed_over(self, records: list[Record]) -> bool:
        origins = {origin.target: origin for r in records if (origin := _origin(r)) is not None}
        found = await self._target.positions(self._task.group, sorted(origins), stable=False, marked=True)
        return any(
            isinstance(position := found.get(tp), Position)
            and position.source_topic_id == origin.source_topic_id
            and position.source_next > origin.offset
            for tp, origin in origins.items()
        )

    async def _shows_records_of_ours(self, grounds: Mapping[TopicPartition, PartitionState]) -> bool:
        reading = {tp: max(int(g.target_next), g.log_start) for tp, g in grounds.items()}
        fruitless = 0
        while reading:
            before = dict(reading)
            wanted = {
                tp: FetchFrom(grounds[tp].assignment.pair.target_topic_id, at) for tp, at in reading.items()
            }
            answers = await self._target.fetch(wanted, max_bytes=_FETCH_BYTES, max_wait_ms=0)
            for tp, answer in answers.items():
                if not isinstance(answer, Fetched):
                    raise OutcomeUnknown(f"what lies after the position of {tp} can't be read: {answer}")
                for head, _, seen in read_committed(answer.records, answer.aborted, reading[tp]):
                    if seen is Visibility.DATA and head.producer_id == self._owner.producer.producer_id:
                        return True
                    reading[tp] = head.next_offset
                if reading[tp] >= answer.last_stable:
                    del reading[tp]
            fruitless = fruitless + 1 if reading == before else 0
            if fruitless:
                await self._clock.sleep(_PAUSE_SECONDS)
            if fruitless > _FRUITLESS_READS:
                raise OutcomeUnknown(f"what lies after the position of {next(iter(reading))} can't be read")
        return False


def _origin(record: Record) -> Origin | None:
    return origin_of((name.decode(errors="replace"), value) for name, value in record.headers)
