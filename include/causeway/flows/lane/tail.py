"""What lies on the target behind the last mirrored record: nothing that anybody sees, or we stop.

Aborted attempts of this lane and transaction markers are normal there. A record that a
`read_committed` reader would see means a foreign writer. A last stable offset that stays behind the
end means a transaction that nobody closed: ours (its marker was lost) is closed here, any other parks.
"""

from __future__ import annotations

from collections.abc import Mapping

from causeway.core.batches import BatchHead, CorruptBatch
from causeway.core.identity import TargetOffset, TopicPartition
from causeway.core.isolation import Seen, read_committed
from causeway.core.lane_rules import (
    foreign_data,
    open_data_was_committed,
    refusal_of_rights,
    run_in_front_of,
    shown_again,
    tail_unmapped,
    tail_unproved,
    target_recreated,
    transaction_up_to,
)
from causeway.core.lane_task import LaneTask, Parked, ParkReason
from causeway.core.map_entries import MapOf
from causeway.core.offset_map import Run
from causeway.core.ports import Clock, Doubt, FetchAnswer, Fetched, FetchFrom, LogEnd, Owner, Refused, Target
from causeway.core.standing import taken_over_to
from causeway.flows.lane.deposed import is_unknown_id
from causeway.flows.lane.settle import Settling, Unproved
from causeway.flows.lane.survey import Ground, Rows

_FETCH_BYTES = 8 << 20
_FRUITLESS_READS = 20
_PAUSE_SECONDS = 0.05
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
        """Partitions that hold visible records of this lane's own behind the position."""

    async def settle_ends(self, grounds: dict[TopicPartition, Ground]) -> None:
        """Make each ground's `target_end` certain; park what isn't ours."""
        await self._close_hanging(grounds)
        await self._prove_last_records({tp: g for tp, g in grounds.items() if g.leader_changed})
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
                await self._clock.sleep(_PAUSE_SECONDS)
            if fruitless > _FRUITLESS_READS:
                raise Doubt(f"the tail of {next(iter(reading))} can't be read to its end")
        if self._settling is not None:
            await self._settling.take_back_notes([g for tp, g in grounds.items() if tp not in self._to_prove])
        for tp in self._to_prove:
            await self._take_settled(grounds, tp)

    def _may_be_settled(self, head: BatchHead, ground: Ground) -> bool:
        if self._settling is None or ground.position is None:
            return False
        return head.producer_id in _producers(ground, self._owner) | self._settling.seen_producers

    async def _park_trimmed(self, grounds: dict[TopicPartition, Ground], settling: Settling) -> None:
        """Behind the last record lies its marker; what was settled behind that and deleted can't be proved.
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

    async def _take_settled(self, grounds: dict[TopicPartition, Ground], tp: TopicPartition) -> None:
        """What was settled and has no position yet: proved, or nothing goes on there."""
        assert self._settling is not None
        ground = grounds[tp]
        try:
            ground.take(await self._settling.prove(ground, _producers(ground, self._owner)))
        except Unproved as cause:
            self._rows[tp].parked, self._rows[tp].later = cause.parked, "" if cause.parked else str(cause)
            del grounds[tp]

    async def _close_hanging(self, grounds: dict[TopicPartition, Ground]) -> None:
        """Also where nothing lies behind the last record: if only a marker was lost, the next transaction's
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
        raise Doubt(f"what hangs in {next(iter(stuck))} can't be closed")

    async def _prove_last_records(self, suspects: dict[TopicPartition, Ground]) -> None:
        """A new leader may have lost a marker, and an abort since then may have taken committed records with
        it. The record in front of the position tells: a transaction is visible as a whole, or not at all.
        That the log in front of it is still the one that was written, the leader epochs have told."""
        lasts = await self._last_records(suspects)
        seen = await self._look_at(suspects, lasts)
        for ground in suspects.values():
            ground.target_epoch = ground.leader_epoch  # what was proved was proved of this leader
        aborted = [tp for tp, how in seen.items() if how is Seen.ABORTED]
        maps = await self._target.map_of(self._task.map_topic, aborted) if aborted else {}
        before = await self._look_at(suspects, self._before_attempts(suspects, lasts, maps))
        for tp, how in before.items():
            if how is Seen.ABORTED:
                ground = suspects[tp]
                last = run_in_front_of(maps[tp].runs, ground.assignment, TargetOffset(lasts[tp]))
                assert last is not None
                _copy_again(ground, maps[tp].runs, last.target_next)

    def _before_attempts(
        self,
        suspects: dict[TopicPartition, Ground],
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
            last = run_in_front_of(known.runs, ground.assignment, TargetOffset(lasts[tp]))
            is_place = known.place is not None and known.place.target_next == ground.target_next
            if is_place and last is not None and last.target_next > ground.log_start:
                found[tp] = last.target_next - 1
            elif not is_place and ground.assignment.adopted_at < 0:
                self._rows[tp].parked = tail_unmapped(
                    self._task.flow, ground.assignment, ground.target_next, lasts[tp]
                )
        return found

    async def _last_records(self, suspects: dict[TopicPartition, Ground]) -> dict[TopicPartition, int]:
        """Where the last mirrored record of each is: in front of the position, or in what a cut log left."""
        cut = [tp for tp, ground in suspects.items() if ground.recopied_from is not None]
        known = await self._target.map_of(self._task.map_topic, cut) if cut else {}
        found: dict[TopicPartition, int] = {}
        for tp, ground in suspects.items():
            end = int(ground.target_next)
            if tp in known:
                run = run_in_front_of(known[tp].runs, ground.assignment, ground.target_next)
                taken = taken_over_to(known[tp].place, ground.assignment.pair, ground.assignment.adopted_at)
                ground.kept_to = min(max(run.target_next if run else 0, taken), end)
                end = min(int(run.target_next), end) if run else 0
            if end > ground.log_start:
                found[tp] = end - 1
        return found

    async def _look_at(
        self, grounds: dict[TopicPartition, Ground], offsets: dict[TopicPartition, int]
    ) -> dict[TopicPartition, Seen]:
        """What a reader sees of the batches that hold these offsets."""
        reading, found, fruitless = dict(offsets), dict[TopicPartition, Seen](), 0
        while reading:
            before = len(found)
            for tp, answer in (await self._fetch(grounds, reading)).items():
                if not isinstance(answer, Fetched):
                    raise Doubt(f"the last record of {tp} can't be read: {answer}")
                for _, _, seen in read_committed(answer.records, answer.aborted, reading[tp]):
                    found[tp] = seen
                    break
            reading = {tp: at for tp, at in reading.items() if tp not in found}
            fruitless = fruitless + 1 if len(found) == before else 0
            if fruitless:  # an answer holds so many bytes and no more; the last stable offset may trail
                await self._clock.sleep(_PAUSE_SECONDS)
            if fruitless > _FRUITLESS_READS:
                raise Doubt(f"the last record of {next(iter(reading))} can't be read")
        return found

    async def _fetch(
        self, grounds: dict[TopicPartition, Ground], reading: dict[TopicPartition, int]
    ) -> dict[TopicPartition, FetchAnswer]:
        wanted = {
            tp: FetchFrom(grounds[tp].assignment.pair.target_topic_id, offset)
            for tp, offset in reading.items()
        }
        return await self._target.fetch(wanted, max_bytes=_FETCH_BYTES, max_wait_ms=0)

    async def _read_once(
        self, grounds: dict[TopicPartition, Ground], reading: dict[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        """One fetch; returns the partitions whose last stable offset stands in the way, with that offset."""
        answers = await self._fetch(grounds, reading)
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

    def _walk(self, ground: Ground, answer: Fetched, reading: dict[TopicPartition, int]) -> Parked | None:
        tp, ours = ground.target, _producers(ground, self._owner)
        try:
            for head, _, seen in read_committed(answer.records, answer.aborted, reading[tp]):
                if seen is Seen.DATA and head.base_offset < ground.target_next and ground.kept_to is not None:
                    return shown_again(self._task.flow, ground.assignment, max(head.base_offset, reading[tp]))
                if seen is Seen.DATA:
                    if self._may_be_settled(head, ground):
                        self._to_prove.append(tp)
                        reading[tp] = ground.target_end
                        return None
                    at = max(head.base_offset, reading[tp])
                    return foreign_data(
                        self._task.flow, ground.assignment, at, had_position=ground.position is not None
                    )
                if seen is Seen.ABORTED and head.producer_id in ours:
                    ground.aborted_seen += head.record_count
                reading[tp] = head.next_offset
        except CorruptBatch as cause:
            return Parked(
                ParkReason.FOREIGN_DATA, f"the tail of {tp} can't be read: {cause}", "repair the target's log"
            )
        return None

    async def _refuse(self, tp: TopicPartition, ground: Ground, answer: object) -> None:
        old = ground.assignment.pair.target_topic_id
        if is_unknown_id(answer) and await self._target.is_gone(tp.topic, old):
            self._rows[tp].parked = target_recreated(self._task.flow, ground.assignment, old)
        elif (parked := refusal_of_rights(tp.topic, "target", answer)) is not None:
            self._rows[tp].parked = parked
        else:
            self._rows[tp].later = f"{tp}, behind the last mirrored record: {answer}"

    async def _close_ours(
        self, grounds: dict[TopicPartition, Ground], stuck: dict[TopicPartition, int]
    ) -> bool:
        """Whether anything changed: a transaction of ours was closed, or a partition left the lane."""
        if await self._drop_newly_led(grounds, stuck):
            return True
        open_by = await self._target.open_producers(list(stuck))
        to_close: dict[bool, list[TopicPartition]] = {True: [], False: []}
        ours: list[TopicPartition] = []
        changed = False
        for tp, last_stable in stuck.items():
            holders = open_by[tp]
            if isinstance(holders, Refused):
                await self._refuse(tp, grounds.pop(tp), holders)
                changed = True
            elif any(holder != self._owner.producer.producer_id for holder in holders):
                self._rows[tp].parked = _foreign_transaction(tp, last_stable, holders)
                del grounds[tp]
                changed = True
            elif holders:
                ours.append(tp)
        runs = await self._target.map_runs(self._task.map_topic, ours) if ours else {}
        for tp in ours:
            ground = grounds[tp]
            to_close[
                open_data_was_committed(
                    runs.get(tp, []),
                    ground.assignment,
                    ground.position,
                    stuck[tp],
                    ground.target_next,
                    ground.target_end,
                )
            ].append(tp)
        for commit, partitions in to_close.items():
            if partitions:
                await self._owner.close_partitions(partitions, commit=commit)
                changed = True
                for tp in partitions:
                    grounds[tp].target_end += 1  # the marker that closed it
        return changed

    async def _drop_newly_led(
        self, grounds: dict[TopicPartition, Ground], stuck: dict[TopicPartition, int]
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


def _copy_again(ground: Ground, runs: list[Run], up_to: TargetOffset) -> bool:
    """From the beginning of the transaction that holds the record before `up_to`; False: the map has none."""
    run = transaction_up_to(runs, ground.assignment, up_to)
    if run is None:
        return False
    ground.source_next, ground.source_epoch = run.source_first, -1
    ground.target_next, ground.recopied_from = run.target_first, int(run.source_first)
    return True


def _tail_start(ground: Ground) -> int:
    """A partition without position is read from its beginning: an empty one costs nothing. One that lost its
    tail, from where the map's word for it ends: what an abort had hidden after that may show again."""
    if ground.position is None:
        return ground.log_start
    return min(int(ground.target_next), ground.target_next if ground.kept_to is None else ground.kept_to)


def _producers(ground: Ground, owner: Owner) -> set[int]:
    return {owner.producer.producer_id} | ground.writers


def _foreign_transaction(tp: TopicPartition, last_stable: int, holders: list[int]) -> Parked:
    return Parked(
        ParkReason.FOREIGN_TRANSACTION,
        f"{tp} is held back at offset {last_stable} by producer {', '.join(map(str, sorted(holders)))}",
        f"end it, or `kafka-transactions.sh abort --topic {tp.topic} --partition {tp.partition} "
        f"--start-offset {last_stable}`",
    )
