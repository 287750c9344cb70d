"""The last mirrored record of each partition whose leader has changed: whether a reader still sees it.

A new leader may have lost a marker, and an abort since then may have taken committed records with it.
"""

from __future__ import annotations

from collections.abc import Mapping

from causeway.core.copy.lane_rules import range_before, transaction_up_to
from causeway.core.copy.lane_task import LaneTask
from causeway.core.copy.park_reasons import (
    tail_unmapped,
)
from causeway.core.copy.ports import (
    Clock,
    FetchAnswer,
    Fetched,
    FetchFrom,
    OutcomeUnknown,
    Target,
)
from causeway.core.kernel.identity import TargetOffset, TopicPartition
from causeway.core.offsets.map_entries import MapOf
from causeway.core.offsets.offset_map import MappedRange
from causeway.core.offsets.pair_position import taken_over_to
from causeway.core.records.visibility import Visibility, read_committed
from causeway.usecases.copy.lane.inspect import PartitionState, Rows

FRUITLESS_READS, PAUSE_SECONDS = 20, 0.05
_FETCH_BYTES = 8 << 20


class LastRecords:
    """Proves them for a claimed lane; what is gone is copied again, what can't be proved parks."""

    def __init__(self, task: LaneTask, target: Target, clock: Clock, rows: Rows) -> None:
        self._task, self._target, self._clock, self._rows = task, target, clock, rows

    async def prove(self, suspects: dict[TopicPartition, PartitionState]) -> None:
        """A new leader may have lost a marker, and an abort since then may have taken committed records with
        it. The record before the position shows: a transaction is visible as a whole, or not at all.
        That the log before it is still the one that was written, the leader epochs have shown."""
        lasts = await self._last_records(suspects)
        seen = await self._visibility_of(suspects, lasts)
        for ground in suspects.values():
            ground.target_epoch = ground.leader_epoch  # what was proved was proved of this leader
        aborted = [tp for tp, how in seen.items() if how is Visibility.ABORTED]
        maps = await self._target.map_of(self._task.map_topic, aborted) if aborted else {}
        before = await self._visibility_of(suspects, self._before_attempts(suspects, lasts, maps))
        for tp, how in before.items():
            if how is Visibility.ABORTED:
                ground = suspects[tp]
                last = range_before(maps[tp].runs, ground.assignment, TargetOffset(lasts[tp]))
                assert last is not None
                _copy_again(ground, maps[tp].runs, last.target_next)

    def _before_attempts(
        self,
        suspects: dict[TopicPartition, PartitionState],
        lasts: Mapping[TopicPartition, int],
        maps: Mapping[TopicPartition, MapOf],
    ) -> dict[TopicPartition, int]:
        """Of the partitions whose last record was aborted, those where that says nothing: their position was
        committed without records, after an attempt that had been aborted. Where the records before it end."""
        found: dict[TopicPartition, int] = {}
        for tp, known in maps.items():
            ground = suspects[tp]
            if _copy_again(ground, known.runs, TargetOffset(lasts[tp] + 1)):
                continue
            last = range_before(known.runs, ground.assignment, TargetOffset(lasts[tp]))
            is_place = known.place is not None and known.place.target_next == ground.target_next
            if is_place and last is not None and last.target_next > ground.log_start:
                found[tp] = last.target_next - 1
            elif not is_place and ground.assignment.adopted_at < 0:
                self._rows[tp].parked = tail_unmapped(
                    self._task.flow, ground.assignment, ground.target_next, lasts[tp]
                )
        return found

    async def _last_records(
        self, suspects: dict[TopicPartition, PartitionState]
    ) -> dict[TopicPartition, int]:
        """Where the last mirrored record of each is: before the position, or in what a cut log left."""
        cut = [tp for tp, ground in suspects.items() if ground.recopied_from is not None]
        known = await self._target.map_of(self._task.map_topic, cut) if cut else {}
        found: dict[TopicPartition, int] = {}
        for tp, ground in suspects.items():
            end = int(ground.target_next)
            if tp in known:
                run = range_before(known[tp].runs, ground.assignment, ground.target_next)
                taken = taken_over_to(known[tp].place, ground.assignment.pair, ground.assignment.adopted_at)
                ground.kept_to = min(max(run.target_next if run else 0, taken), end)
                end = min(int(run.target_next), end) if run else 0
            if end > ground.log_start:
                found[tp] = end - 1
        return found

    async def _visibility_of(
        self, grounds: dict[TopicPartition, PartitionState], offsets: dict[TopicPartition, int]
    ) -> dict[TopicPartition, Visibility]:
        """What a reader sees of the batches that hold these offsets."""
        reading, found, fruitless = dict(offsets), dict[TopicPartition, Visibility](), 0
        while reading:
            before = len(found)
            for tp, answer in (await fetch_tails(self._target, grounds, reading)).items():
                if not isinstance(answer, Fetched):
                    raise OutcomeUnknown(f"the last record of {tp} can't be read: {answer}")
                for _, _, seen in read_committed(answer.records, answer.aborted, reading[tp]):
                    found[tp] = seen
                    break
            reading = {tp: at for tp, at in reading.items() if tp not in found}
            fruitless = fruitless + 1 if len(found) == before else 0
            if fruitless:  # an answer holds so many bytes and no more; the last stable offset may trail
                await self._clock.sleep(PAUSE_SECONDS)
            if fruitless > FRUITLESS_READS:
                raise OutcomeUnknown(f"the last record of {next(iter(reading))} can't be read")
        return found


async def fetch_tails(
    target: Target, grounds: Mapping[TopicPartition, PartitionState], reading: Mapping[TopicPartition, int]
) -> dict[TopicPartition, FetchAnswer]:
    """One fetch from the target, of each partition from its offset in `reading`."""
    wanted = {
        tp: FetchFrom(grounds[tp].assignment.pair.target_topic_id, offset) for tp, offset in reading.items()
    }
    return await target.fetch(wanted, max_bytes=_FETCH_BYTES, max_wait_ms=0)


def _copy_again(ground: PartitionState, runs: list[MappedRange], up_to: TargetOffset) -> bool:
    """From the beginning of the transaction that holds the record before `up_to`; False: the map has none."""
    run = transaction_up_to(runs, ground.assignment, up_to)
    if run is None:
        return False
    ground.source_next, ground.source_epoch = run.source_first, -1
    ground.target_next, ground.recopied_from = run.target_first, int(run.source_first)
    return True
