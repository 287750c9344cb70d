"""The transaction coordinator of a simulated cluster, as Kafka 4.3 (v2) and 3.9 (v1) decide.

What it writes to its log takes a moment, in which it answers CONCURRENT_TRANSACTIONS; a coordinator that
moves in that moment has written it or not. Markers travel to the leaders one by one and are acknowledged
when they are replicated; only then is a transaction complete. A new coordinator sends them again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code

if TYPE_CHECKING:
    from tests.simulation.cluster.cluster import SimCluster

EMPTY, ONGOING = "empty", "ongoing"
PREPARE_COMMIT, PREPARE_ABORT = "prepare commit", "prepare abort"
COMPLETE_COMMIT, COMPLETE_ABORT = "complete commit", "complete abort"
STATE_NAMES = {
    EMPTY: "Empty",
    ONGOING: "Ongoing",
    PREPARE_COMMIT: "PrepareCommit",
    PREPARE_ABORT: "PrepareAbort",
    COMPLETE_COMMIT: "CompleteCommit",
    COMPLETE_ABORT: "CompleteAbort",
}
_PREPARING = (PREPARE_COMMIT, PREPARE_ABORT)
OFFSETS = TopicPartition("__consumer_offsets", 0)

Answer = Callable[[int, int, int], None]
"""Called with error code, producer id and epoch."""


@dataclass(slots=True)
class Transactional:
    name: str
    producer_id: int
    epoch: int
    timeout_ms: int
    state: str = EMPTY
    last_epoch: int = -1
    is_pending: bool = False
    partitions: dict[TopicPartition, None] = field(default_factory=dict)
    began: float = 0.0
    turn: int = 0
    """Grows with each transaction: a time-out is about one of them."""
    awaited: dict[TopicPartition, None] = field(default_factory=dict)
    next_producer_id: int = -1
    previous_producer_id: int = -1
    idle_since: float = 0.0


class Coordinator:
    def __init__(self, cluster: SimCluster) -> None:
        self._cluster, self._loop = cluster, cluster.loop
        self.known: dict[str, Transactional] = {}
        self.term = 0
        self.is_loading = False
        self._writing: dict[str, Callable[[], None]] = {}

    # InitProducerId

    def init(self, name: str, timeout_ms: int, held: tuple[int, int], answer: Answer) -> None:
        found = self.known.get(name)
        if found is None:
            if held[0] >= 0:
                answer(Code.INVALID_PRODUCER_ID_MAPPING, -1, -1)
                return
            found = self.known[name] = Transactional(name, self._cluster.next_producer_id(), -1, timeout_ms)
        if found.is_pending or found.state in _PREPARING:
            answer(Code.CONCURRENT_TRANSACTIONS, -1, -1)
            return
        if held[0] >= 0 and held[0] not in (found.producer_id, found.previous_producer_id):
            answer(Code.PRODUCER_FENCED, -1, -1)
            return
        if found.state == ONGOING:
            self._prepare(found, commit=False, epoch=found.epoch + 1, then=lambda: None)
            answer(Code.CONCURRENT_TRANSACTIONS, -1, -1)
            return
        self._give_epoch(found, timeout_ms, held, answer)

    def _give_epoch(
        self, found: Transactional, timeout_ms: int, held: tuple[int, int], answer: Answer
    ) -> None:
        is_exhausted = found.epoch >= self._cluster.most_epochs
        if held[0] >= 0 and held[1] != found.epoch:
            is_retry = held[1] == found.last_epoch or held[0] == found.previous_producer_id
            if is_retry:
                answer(Code.NONE, found.producer_id, found.epoch)
            else:
                answer(Code.PRODUCER_FENCED, -1, -1)
            return

        def done() -> None:
            if is_exhausted:
                found.previous_producer_id = found.producer_id if held[0] >= 0 else -1
                found.producer_id, found.epoch = self._cluster.next_producer_id(), 0
                found.last_epoch = -1
            else:
                found.last_epoch = found.epoch if held[0] >= 0 else -1
                found.epoch += 1
            found.state, found.timeout_ms, found.idle_since = EMPTY, timeout_ms, self._loop.now
            self._loop.note(lambda: f"claim {found.name}: producer {found.producer_id} epoch {found.epoch}")
            answer(Code.NONE, found.producer_id, found.epoch)

        self._write(found, done)

    # AddPartitionsToTxn, and what leaders and the group coordinator ask

    def add(
        self,
        name: str,
        producer_id: int,
        epoch: int,
        partitions: list[TopicPartition],
        answer: Callable[[int], None],
        *,
        verify_only: bool = False,
    ) -> None:
        found = self.known.get(name)
        if found is None or found.producer_id != producer_id:
            answer(Code.INVALID_PRODUCER_ID_MAPPING)
        elif found.epoch != epoch:
            answer(Code.PRODUCER_FENCED)
        elif found.is_pending or found.state in _PREPARING:
            answer(Code.CONCURRENT_TRANSACTIONS)
        elif found.state == ONGOING and all(tp in found.partitions for tp in partitions):
            answer(Code.NONE)
        elif verify_only:
            answer(Code.TRANSACTION_ABORTABLE)
        else:
            self._write(found, lambda: self._added(found, partitions, answer))

    def _added(
        self, found: Transactional, partitions: list[TopicPartition], answer: Callable[[int], None]
    ) -> None:
        if found.state != ONGOING:
            found.state, found.partitions = ONGOING, {}
            found.began, found.turn = self._loop.now, found.turn + 1
            turn, late = found.turn, self._loop.random.uniform(0, 2)
            self._loop.after(found.timeout_ms / 1000 + late, lambda: self._time_out(found, turn))
        found.partitions.update(dict.fromkeys(partitions))
        answer(Code.NONE)

    def _time_out(self, found: Transactional, turn: int) -> None:
        if found.turn != turn or found.state != ONGOING:
            return
        if found.is_pending or self.is_loading:
            self._loop.after(0.5, lambda: self._time_out(found, turn))
            return
        self._loop.note(lambda: f"transaction of {found.name} times out")
        self._prepare(found, commit=False, epoch=found.epoch + 1, then=lambda: None)

    # EndTxn

    def end(
        self, name: str, producer_id: int, epoch: int, answer: Answer, *, commit: bool, is_v2: bool
    ) -> None:
        found = self.known.get(name)
        if found is None:
            answer(Code.INVALID_PRODUCER_ID_MAPPING, -1, -1)
        elif is_v2:
            self._end_v2(found, producer_id, epoch, answer, commit=commit)
        else:
            self._end_v1(found, producer_id, epoch, answer, commit=commit)

    def _end_v1(
        self, found: Transactional, producer_id: int, epoch: int, answer: Answer, *, commit: bool
    ) -> None:
        complete, prepare = (COMPLETE_COMMIT, PREPARE_COMMIT) if commit else (COMPLETE_ABORT, PREPARE_ABORT)
        if found.producer_id != producer_id:
            answer(Code.INVALID_PRODUCER_ID_MAPPING, -1, -1)
        elif found.epoch != epoch:
            answer(Code.PRODUCER_FENCED, -1, -1)
        elif found.is_pending or found.state == prepare:
            answer(Code.CONCURRENT_TRANSACTIONS, -1, -1)
        elif found.state == complete:
            answer(Code.NONE, -1, -1)
        elif found.state == ONGOING:
            self._prepare(found, commit=commit, epoch=epoch, then=lambda: answer(Code.NONE, -1, -1))
        else:
            answer(Code.INVALID_TXN_STATE, -1, -1)

    def _end_v2(
        self, found: Transactional, producer_id: int, epoch: int, answer: Answer, *, commit: bool
    ) -> None:
        is_retry = not found.is_pending and found.epoch == epoch + 1 and found.producer_id == producer_id
        rolled = found.previous_producer_id == producer_id and epoch == self._cluster.most_epochs
        rolled = rolled and found.epoch == 0  # else somebody has claimed since
        is_retry = is_retry or (rolled and found.state in (COMPLETE_COMMIT, COMPLETE_ABORT))
        state = found.state
        if found.producer_id != producer_id and not is_retry:
            answer(Code.INVALID_PRODUCER_ID_MAPPING, -1, -1)
            return
        if state in (ONGOING, EMPTY):
            is_valid = epoch == found.epoch
        elif state in _PREPARING:
            is_valid = is_retry
        else:
            is_valid = is_retry or epoch == found.epoch
        prepare, complete = (PREPARE_COMMIT, COMPLETE_COMMIT) if commit else (PREPARE_ABORT, COMPLETE_ABORT)
        if not is_valid:
            answer(Code.PRODUCER_FENCED, -1, -1)
        elif found.is_pending or state == prepare:
            answer(Code.CONCURRENT_TRANSACTIONS, -1, -1)
        elif state == ONGOING:
            self._end_ongoing(found, answer, commit=commit)
        elif state == complete and is_retry:
            answer(Code.NONE, found.producer_id, found.epoch)
        elif not commit and not is_retry and state not in _PREPARING:
            self._end_ongoing(found, answer, commit=False)  # nothing was added: only the epoch moves
        else:
            answer(Code.INVALID_TXN_STATE, -1, -1)

    def _end_ongoing(self, found: Transactional, answer: Answer, *, commit: bool) -> None:
        if found.epoch >= self._cluster.most_epochs:
            found.next_producer_id = self._cluster.next_producer_id()

        def done() -> None:
            rolls = found.next_producer_id >= 0
            answer(
                Code.NONE,
                found.next_producer_id if rolls else found.producer_id,
                0 if rolls else found.epoch,
            )

        self._prepare(found, commit=commit, epoch=found.epoch + 1, then=done)

    # how a transaction ends

    def _prepare(self, found: Transactional, *, commit: bool, epoch: int, then: Callable[[], None]) -> None:
        def done() -> None:
            if found.state != ONGOING:
                found.partitions, found.turn = {}, found.turn + 1
            found.state = PREPARE_COMMIT if commit else PREPARE_ABORT
            found.last_epoch = found.epoch if epoch != found.epoch else -1
            found.epoch = epoch
            self._loop.note(lambda: f"{found.state} {found.name} epoch {epoch}: {_names(found)}")
            self._cluster.on_prepare(list(found.partitions), commit)
            then()
            self._send_markers(found)

        self._write(found, done)

    def _send_markers(self, found: Transactional) -> None:
        found.awaited = dict(found.partitions)
        term = self.term
        for tp in found.partitions:
            self._send_marker(found, tp, term)
        self._complete_if_done(found)

    def _send_marker(self, found: Transactional, tp: TopicPartition, term: int) -> None:
        delay = self._loop.random.uniform(0.0005, self._cluster.marker_delay)

        def arrive() -> None:
            if self.term != term or found.state not in _PREPARING:
                return
            commit = found.state == PREPARE_COMMIT

            def acknowledged(is_written: bool) -> None:
                if self.term != term:
                    return
                if is_written:
                    found.awaited.pop(tp, None)
                    self._complete_if_done(found)
                else:
                    self._loop.after(0.05, lambda: self._send_marker(found, tp, term))

            self._cluster.write_marker(tp, found.producer_id, found.epoch, acknowledged, commit=commit)

        self._loop.after(delay, arrive)

    def _complete_if_done(self, found: Transactional) -> None:
        if found.awaited or found.state not in _PREPARING or found.is_pending:
            return

        def done() -> None:
            found.state = COMPLETE_COMMIT if found.state == PREPARE_COMMIT else COMPLETE_ABORT
            found.partitions, found.idle_since = {}, self._loop.now
            if found.next_producer_id >= 0:
                found.previous_producer_id = found.producer_id
                found.producer_id, found.epoch, found.next_producer_id = found.next_producer_id, 0, -1
            self._loop.note(lambda: f"{found.state} {found.name}")
            self._cluster.on_complete()

        self._write(found, done)

    # its own log

    def _write(self, found: Transactional, done: Callable[[], None]) -> None:
        found.is_pending = True
        self._writing[found.name] = done

        def written() -> None:
            if self._writing.get(found.name) is done:
                del self._writing[found.name]
                found.is_pending = False
                done()

        self._loop.after(self._loop.random.uniform(0.0002, 0.002), written)

    def move(self) -> None:
        """Another node takes over and reads the log: what was being written is there or isn't."""
        writing, self._writing = self._writing, {}
        for name, done in writing.items():
            self.known[name].is_pending = False
            if self._loop.random.random() < 0.5:
                done()
        for name in self._writing:
            self.known[name].is_pending = False
        self._writing = {}
        self.term += 1
        self.is_loading = True
        term = self.term

        def loaded() -> None:
            if self.term != term:
                return
            self.is_loading = False
            for found in self.known.values():
                if found.state in _PREPARING:
                    self._send_markers(found)
                elif found.state == ONGOING:
                    turn = found.turn
                    self._loop.after(found.timeout_ms / 1000, partial(self._time_out, found, turn))

        self._loop.after(self._loop.random.uniform(0.01, 0.3), loaded)

    def expire_idle(self) -> None:
        """As after seven days without a transaction."""
        for name, found in list(self.known.items()):
            if found.state in (EMPTY, COMPLETE_COMMIT, COMPLETE_ABORT) and not found.is_pending:
                del self.known[name]


def _names(found: Transactional) -> str:
    return ", ".join(str(tp) for tp in found.partitions)
