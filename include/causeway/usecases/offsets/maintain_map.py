"""Maintenance of the offset map beside a running mirror: merge what is old, take away what is too old.

It has a transactional id of its own, so it claims no lane and disturbs none. What it relies on:

    - a merged record and the tombstones of what it replaces are one transaction in one partition of the map:
      a reader sees both or neither, whenever the writer dies
    - before the commit, what others wrote since the map was read is looked at (first written, then read: the
      tombstones have their place in the log by then). A lane that wrote one of the keys again, because the
      target lost its tail, makes this transaction abort; one that writes it later comes after the tombstone
    - what hangs open of an earlier one, by a lost marker, is aborted first: nothing depends on it

One at a time: a second one claims the id, and the first can't commit any more. A run that begins, an
adoption or a fence ends it (the flow's generation is read again before each commit); the fence claims
the id as well. Left undone is left to the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.ports import Appended, Clock, LaneFenced, OutcomeUnknown, Owner, Refused, Unreachable
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import ClusterUnreachable, NotTheOwner, Superseded
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.model.flow import Flow
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.offsets.map_entries import Entry
from causeway.core.offsets.map_maintenance import Step, apply_step, plan_target
from causeway.core.offsets.offset_map import map_partition
from causeway.core.records.compression import Codec
from causeway.core.records.records import Record, encode_batch, in_batches
from causeway.core.state.flow_records import claimed_record
from causeway.core.state.flow_state import FlowState
from causeway.usecases.copy.lane.refusals import map_refusal
from causeway.usecases.offsets.translate import mirrored_partitions
from causeway.usecases.run_lock.ownership import refuse_fenced
from causeway.usecases.session.both_clusters import run_at_target, state_on
from causeway.usecases.session.flows_topic_health import refuse_unsound

_BATCH_BYTES = 512 << 10
"""Small enough for every broker's `max.message.bytes` by default."""
_TRIES = 1_000
_PAUSE_SECONDS = 0.01
Work = list[tuple[TopicPartition, Step]]


@dataclass(slots=True, kw_only=True)
class MaintenanceReport:
    """Sizes are those of the map's live entries: keys and values, of this flow's partitions."""

    flow: str
    partitions: int = 0
    entries_before: int = 0
    bytes_before: int = 0
    entries_after: int = 0
    bytes_after: int = 0
    transactions: int = 0
    put_off: list[str] = field(default_factory=list)
    """Partitions that a lane wrote again just then: the next maintenance takes them."""


def maintain_map(flow: Flow, target: ClusterEndpoint, say: Callable[[str], None]) -> MaintenanceReport:
    """Needs the target only. Doing it again changes nothing.

    :raises FlowFenced: nothing may be written. | :raises Superseded: a run began, or another maintenance.
    """

    async def maintain(opened: WireTarget) -> MaintenanceReport:
        try:
            return await Maintenance(flow, opened, opened.wire.network, say).run()
        except LaneFenced as beaten:
            raise Superseded(
                f"maintenance of {flow.name}",
                rule=str(beaten),
                remedy="nothing to do: another one claimed its id, or a fence did",
            ) from beaten
        except (Unreachable, OutcomeUnknown) as trouble:
            raise ClusterUnreachable(
                f"maintenance of {flow.name}",
                rule=str(trouble),
                remedy="run it again: the map is right, whatever became of this transaction",
            ) from trouble

    return run_at_target(target, maintain)


class Maintenance:
    def __init__(self, flow: Flow, target: WireTarget, clock: Clock, say: Callable[[str], None]) -> None:
        self._flow, self._target, self._clock, self._say = flow, target, clock, say
        self._state = FlowState()
        self._owner: Owner
        self._entries: dict[TopicPartition, list[Entry]] = {}
        self._put_off: set[TopicPartition] = set()
        self.report = MaintenanceReport(flow=flow.name)

    async def run(self) -> MaintenanceReport:
        flow, target = self._flow, self._target
        self._state = await state_on(target, flow.name)
        await refuse_unsound(flow, target, self._state)
        refuse_fenced(flow.name, self._state)
        count = await target.map_partitions(flow.map_topic)
        targets = mirrored_partitions(self._state)
        self.report.partitions = len(targets)
        if not count or not targets:
            return self.report
        self._owner = await target.claim(flow.maintenance_id, timeout_ms=flow.limits.transaction_timeout_ms)
        await self._prove_turn()
        await self._abort_what_hangs([TopicPartition(flow.map_topic, n) for n in range(count)])
        starts = await target.log_starts(targets)
        for number in range(count):
            here = {
                tp: start if isinstance(start := starts[tp], int) else 0
                for tp in targets
                if map_partition(tp, count) == number
            }
            if here:
                await self._maintain(TopicPartition(flow.map_topic, number), here)
        return self.report

    async def _prove_turn(self) -> None:
        """After the claim, as a lane does: a fence that a deposed leader doesn't know of counts, too."""
        key, value = claimed_record(self._flow.name, lane="map", generation=self._state.generation)
        await self._target.append_plain(FLOWS_TOPIC, key, value)
        await self._check_turn()

    async def _check_turn(self) -> None:
        state = await self._target.flow_state(self._flow.name)
        refuse_fenced(self._flow.name, state)
        if state.generation != self._state.generation:
            raise Superseded(
                f"maintenance of {self._flow.name}",
                value=f"generation {self._state.generation}",
                rule=f"generation {state.generation} began meanwhile",
                remedy="run it again",
            )

    async def _abort_unless_our_turn(self) -> None:
        try:
            await self._check_turn()
        except NotTheOwner:
            with suppress(OutcomeUnknown, LaneFenced):  # nobody should have to wait for its time-out
                await self._owner.end(commit=False)
            raise

    async def _abort_what_hangs(self, map_partitions: list[TopicPartition]) -> None:
        open_by = await self._target.open_producers(map_partitions)
        ours = self._owner.producer.producer_id
        hanging = [tp for tp, ids in open_by.items() if not isinstance(ids, Refused) and ours in ids]
        if hanging:
            self._say(f"{self._flow.name}: closing what an earlier maintenance left open in {hanging[0]}")
            await self._owner.close_partitions(hanging, commit=False)

    async def _maintain(self, place: TopicPartition, log_starts: dict[TopicPartition, int]) -> None:
        """One partition of the map, planned as it was at one moment."""
        snapshot = await self._target.map_snapshot(place, frozenset(log_starts))
        others = _OthersKeys(self._target, place, snapshot.stable)
        work: Work = []
        for tp, log_start in log_starts.items():
            entries = self._entries[tp] = snapshot.entries.entries(tp)
            self.report.entries_before += len(entries)
            self.report.bytes_before += _size(entries)
            if tp in snapshot.entries.broken:
                continue  # merged, what is known of it would look older than what can't be read
            pair = self._state.pairs[tp.topic]
            steps = plan_target(tp, entries, target_topic_id=pair.target_topic_id, log_start=log_start)
            work += [(tp, step) for step in steps]
        for portion in _by_transaction(work):
            await self._commit(place, [(tp, s) for tp, s in portion if tp not in self._put_off], others)
        for tp in log_starts:
            entries = self._entries.pop(tp)
            self.report.entries_after += len(entries)
            self.report.bytes_after += _size(entries)

    async def _commit(self, place: TopicPartition, work: Work, others: _OthersKeys) -> None:
        """All of it, but for partitions of which others wrote the same keys since they were read."""
        while work:
            records = [record for _, step in work for record in step.records]
            theirs = await others.up_to(
                await self._append_records(place, records), self._owner.producer.producer_id
            )
            await self._abort_unless_our_turn()
            contested = {tp for tp, step in work if step.keys & theirs}
            await self._owner.end(commit=not contested)
            if not contested:
                self.report.transactions += 1
                for tp, step in work:
                    self._entries[tp] = apply_step(self._entries[tp], step)
                return
            self._put_off |= contested
            self.report.put_off += sorted(map(str, contested))
            work = [(tp, step) for tp, step in work if tp not in contested]

    async def _append_records(
        self, place: TopicPartition, records: Sequence[tuple[bytes, bytes | None]]
    ) -> int:
        """Where the last of them begins: up to there the log may hold what others wrote meanwhile."""
        bases = [await self._append_batch(place, batch) for batch in in_batches(records, _BATCH_BYTES)]
        return bases[-1]

    async def _append_batch(
        self, place: TopicPartition, records: Sequence[tuple[bytes, bytes | None]]
    ) -> int:
        now, producer = self._clock.time_ms(), self._owner.producer
        batch = encode_batch(
            [Record(i, now, key, value, ()) for i, (key, value) in enumerate(records)],
            codec=Codec.NONE,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=producer.take_sequence(place, len(records)),
        )
        for _ in range(_TRIES):
            answer = (await self._owner.append({place: batch}))[place]
            if isinstance(answer, Appended):
                return answer.base_offset
            if answer.code != Code.CONCURRENT_TRANSACTIONS:
                raise map_refusal(place, answer)
            await self._clock.sleep(_PAUSE_SECONDS)  # the last transaction's markers are on their way
        raise OutcomeUnknown(f"the last transaction of {self._flow.maintenance_id} doesn't complete")


class _OthersKeys:
    """What other producers wrote into one partition of the map since it was read: committed, open or not."""

    def __init__(self, target: WireTarget, place: TopicPartition, stable: int) -> None:
        self._target, self._place, self._next = target, place, stable
        self._keys: set[bytes] = set()

    async def up_to(self, end: int, our_producer: int) -> set[bytes]:
        self._keys |= await self._target.keys_written(self._place, self._next, end, {our_producer})
        self._next = max(self._next, end)
        return self._keys


def _size(entries: Sequence[Entry]) -> int:
    return sum(entry.size_bytes for entry in entries)


def _bytes_of(records: Sequence[tuple[bytes, bytes | None]]) -> int:
    return sum(len(key) + len(value or b"") for key, value in records)


def _by_transaction(work: Work) -> Iterator[Work]:
    """A transaction each: whole steps, in order."""
    portion: Work = []
    size = 0
    for tp, step in work:
        portion.append((tp, step))
        size += _bytes_of(step.records)
        if size >= _BATCH_BYTES:
            yield portion
            portion, size = [], 0
    yield portion
