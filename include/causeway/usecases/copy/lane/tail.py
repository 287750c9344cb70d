"""What lies on the target after the last mirrored record: nothing that anybody sees, or we stop.

Aborted attempts of this lane and transaction markers are normal there. A record that a
`read_committed` reader would see means a foreign writer. A last stable offset that stays before the end means
a transaction that nobody closed: ours (its marker was lost) is closed here, any other parks.
"""

from __future__ import annotations

from causeway.core.copy.lane_rules import open_data_was_committed
from causeway.core.copy.lane_task import LaneTask
from causeway.core.copy.park_reasons import (
    foreign_data,
    refusal_of_rights,
    shown_again,
    tail_unproved,
    target_recreated,
)
from causeway.core.copy.ports import (
    Clock,
    Fetched,
    LogEnd,
    OutcomeUnknown,
    Owner,
    Refused,
    Target,
)
from causeway.core.kernel.identity import TopicPartition
from causeway.core.records.batches import BatchHead, CorruptBatch
from causeway.core.records.visibility import Visibility, read_committed
from causeway.core.state.parked import Parked, ParkReason
from causeway.usecases.copy.lane.inspect import PartitionState, Rows
from causeway.usecases.copy.lane.last_records import FRUITLESS_READS, PAUSE_SECONDS, LastRecords, fetch_tails
from causeway.usecases.copy.lane.settle import Settling, Unproved
from causeway.usecases.copy.lane.stale_leader import is_unknown_id

_CLOSING_TRIES = 5


class TailCheck:
    """Reads the tails of a claimed lane's partitions to their ends."""

    def __init__(
        self,
        task: LaneTask,
        target: Target,
        owner: Owner,
        clock: Clock,
        rows: Rows,
        settling: Settling | None = None,
    ) -> None:
        self._task, self._target, self._owner = task, target, owner
        self._clock, self._rows, self._settling = clock, rows, settling
        self._to_prove: list[TopicPartition] = []
        """Partitions that hold visible records of this lane's own after the position."""

    async def settle_ends(self, grounds: dict[TopicPartition, PartitionState]) -> None:
        """Make each ground's `target_end` certain; park what isn't ours."""
        await self._close_hanging(grounds)
        turned = {tp: g for tp, g in grounds.items() if g.leader_changed}
        await LastRecords(self._task, self._target, self._clock, self._rows).prove(turned)
        for tp in [tp for tp in grounds if self._rows[tp].parked]:
            del grounds[tp]
        if self._settling is not None:
            await self._park_trimmed(grounds, self._settling)
        reading = {
            tp: max(_tail_start(ground), ground.log_start)
            for tp, ground in grounds.items()
            if max(_tail_start(ground), ground.log_start) < ground.target_end
        }
        fruitless = 0
        while reading:
            before = dict(reading)
            stuck = await self._read_once(grounds, reading)
            if stuck and await self._close_ours(grounds, stuck):
                before = {}
            reading = {tp: at for tp, at in reading.items() if tp in grounds}
            fruitless = fruitless + 1 if reading == before else 0
            if fruitless:
                await self._clock.sleep(PAUSE_SECONDS)
            if fruitless > FRUITLESS_READS:
                raise OutcomeUnknown(f"the tail of {next(iter(reading))} can't be read to its end")
        if self._settling is not None:
            await self._settling.take_back_notes([g for tp, g in grounds.items() if tp not in self._to_prove])
        for tp in self._to_prove:
            await self._take_settled(grounds, tp)

    def _may_be_settled(self, head: BatchHead, ground: PartitionState) -> bool:
        if self._settling is None or ground.position is None:
            return False
        return head.producer_id in _producers(ground, self._owner) | self._settling.seen_producers

    async def _park_trimmed(self, grounds: dict[TopicPartition, PartitionState], settling: Settling) -> None:
        """After the last record lies its marker; what was settled after that and deleted can't be proved.
        Else only aborted records went, and nothing is lost."""
        trimmed = [
            ground
            for ground in grounds.values()
            if ground.recopied_from is None and ground.log_start > ground.target_next + 1
        ]
        for ground in await settling.took_away(trimmed):
            cause = f"its log begins at {ground.log_start}"
            self._rows[ground.target].parked = tail_unproved(
                self._task.flow, ground.assignment, ground.target_next, cause
            )
            del grounds[ground.target]

    async def _take_settled(self, grounds: dict[TopicPartition, PartitionState], tp: TopicPartition) -> None:
        """What was settled and has no position yet: proved, or nothing goes on there."""
        assert self._settling is not None
        ground = grounds[tp]
        try:
            ground.take(await self._settling.prove(ground, _producers(ground, self._owner)))
        except Unproved as cause:
            self._rows[tp].parked, self._rows[tp].later = cause.parked, "" if cause.parked else str(cause)
            del grounds[tp]

    async def _close_hanging(self, grounds: dict[TopicPartition, PartitionState]) -> None:
        """Also where nothing lies after the last record: if only a marker was lost, the next transaction's
        marker would decide over records that are committed (rule R5)."""
        for _ in range(_CLOSING_TRIES):
            stuck: dict[TopicPartition, int] = {}
            for tp, at in (await self._target.last_stables(list(grounds))).items():
                if isinstance(at, Refused):
                    await self._refuse(tp, grounds.pop(tp), at)
                elif at < grounds[tp].target_end:
                    stuck[tp] = at
            if not stuck or not await self._close_ours(grounds, stuck):
                return
        raise OutcomeUnknown(f"what hangs in {next(iter(stuck))} can't be closed")

    async def _read_once(
        self, grounds: dict[TopicPartition, PartitionState], reading: dict[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        """One fetch; returns the partitions whose last stable offset stands in the way, with that offset."""
        answers = await fetch_tails(self._target, grounds, reading)
        stuck: dict[TopicPartition, int] = {}
        for tp, answer in answers.items():
            ground = grounds[tp]
            if not isinstance(answer, Fetched):
                await self._refuse(tp, ground, answer)
            elif (parked := self._walk(ground, answer, reading)) is not None:
                self._rows[tp].parked = parked
            elif reading[tp] >= ground.target_end:
                del reading[tp]
                continue
            else:
                if reading[tp] >= answer.last_stable:
                    stuck[tp] = answer.last_stable
                continue
            del reading[tp], grounds[tp]
        return stuck

    def _walk(
        self, ground: PartitionState, answer: Fetched, reading: dict[TopicPartition, int]
    ) -> Parked | None:
        tp, ours = ground.target, _producers(ground, self._owner)
        try:
            for head, _, seen in read_committed(answer.records, answer.aborted, reading[tp]):
                if (
                    seen is Visibility.DATA
                    and head.base_offset < ground.target_next
                    and ground.kept_to is not None
                ):
                    return shown_again(self._task.flow, ground.assignment, max(head.base_offset, reading[tp]))
                if seen is Visibility.DATA:
                    if self._may_be_settled(head, ground):
                        self._to_prove.append(tp)
                        reading[tp] = ground.target_end
                        return None
                    at = max(head.base_offset, reading[tp])
                    return foreign_data(
                        self._task.flow, ground.assignment, at, had_position=ground.position is not None
                    )
                if seen is Visibility.ABORTED and head.producer_id in ours:
                    ground.aborted_seen += head.record_count
                reading[tp] = head.next_offset
        except CorruptBatch as cause:
            return Parked(
                ParkReason.FOREIGN_DATA, f"the tail of {tp} can't be read: {cause}", "repair the target's log"
            )
        return None

    async def _refuse(self, tp: TopicPartition, ground: PartitionState, answer: object) -> None:
        old = ground.assignment.pair.target_topic_id
        if is_unknown_id(answer) and await self._target.is_gone(tp.topic, old):
            self._rows[tp].parked = target_recreated(self._task.flow, ground.assignment, old)
        elif (parked := refusal_of_rights(tp.topic, "target", answer)) is not None:
            self._rows[tp].parked = parked
        else:
            self._rows[tp].later = f"{tp}, after the last mirrored record: {answer}"

    async def _close_ours(
        self, grounds: dict[TopicPartition, PartitionState], stuck: dict[TopicPartition, int]
    ) -> bool:
        """Whether anything changed: a transaction of ours was closed, or a partition left the lane."""
        if await self._drop_newly_led(grounds, stuck):
            return True
        ours = await self._held_by_us(grounds, stuck)
        changed = not stuck.keys() <= grounds.keys()
        runs = await self._target.map_runs(self._task.map_topic, ours) if ours else {}
        to_close: dict[bool, list[TopicPartition]] = {True: [], False: []}
        for tp in ours:
            ground = grounds[tp]
            was_committed = open_data_was_committed(
                runs.get(tp, []),
                ground.assignment,
                ground.position,
                stuck[tp],
                ground.target_next,
                ground.target_end,
            )
            to_close[was_committed].append(tp)
        for commit, partitions in to_close.items():
            if partitions:
                await self._owner.close_partitions(partitions, commit=commit)
                changed = True
                for tp in partitions:
                    grounds[tp].target_end += 1  # the marker that closed it
        return changed

    async def _held_by_us(
        self, grounds: dict[TopicPartition, PartitionState], stuck: dict[TopicPartition, int]
    ) -> list[TopicPartition]:
        """Those that an open transaction of this lane's own holds back; one of another producer parks."""
        open_by = await self._target.open_producers(list(stuck))
        ours: list[TopicPartition] = []
        for tp, last_stable in stuck.items():
            holders = open_by[tp]
            if isinstance(holders, Refused):
                await self._refuse(tp, grounds.pop(tp), holders)
            elif any(holder != self._owner.producer.producer_id for holder in holders):
                self._rows[tp].parked = _foreign_transaction(tp, last_stable, holders)
                del grounds[tp]
            elif holders:
                ours.append(tp)
        return ours

    async def _drop_newly_led(
        self, grounds: dict[TopicPartition, PartitionState], stuck: dict[TopicPartition, int]
    ) -> bool:
        """Whether a leader is another one than the look found: its log may have lost what the position speaks
        of, and what hangs there now be an attempt that had been aborted. The next round looks again."""
        dropped = False
        for tp, end in (await self._target.log_ends(list(stuck))).items():
            if isinstance(end, LogEnd) and end.leader_epoch == grounds[tp].leader_epoch:
                continue
            await self._refuse(tp, grounds.pop(tp), end if isinstance(end, Refused) else "its leader changed")
            dropped = True
        return dropped


def _tail_start(ground: PartitionState) -> int:
    """A partition without position is read from its beginning: an empty one costs nothing. One that lost its
    tail, from where the map's word for it ends: what an abort had hidden after that may show again."""
    if ground.position is None:
        return ground.log_start
    return min(int(ground.target_next), ground.target_next if ground.kept_to is None else ground.kept_to)


def _producers(ground: PartitionState, owner: Owner) -> set[int]:
    return {owner.producer.producer_id} | ground.writers


def _foreign_transaction(tp: TopicPartition, last_stable: int, holders: list[int]) -> Parked:
    return Parked(
        ParkReason.FOREIGN_TRANSACTION,
        f"{tp} is held back at offset {last_stable} by producer {', '.join(map(str, sorted(holders)))}",
        f"end it, or `kafka-transactions.sh abort --topic {tp.topic} --partition {tp.partition} "
        f"--start-offset {last_stable}`",
    )
