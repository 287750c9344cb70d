"""The two things the copy protocol talks to: a source to read and a target to append to.

Everything that crosses these seams is wire truth (offsets, epochs, codes, raw batches), so that a simulated
cluster can implement them as well as a real one. Awaitables may be started before they are awaited: `append`
and `fetch` send at once, their answers are awaited later; that is how requests overlap.

What an implementation promises
    - Partition-level refusals are values (`Refused`), never exceptions.
    - Whatever leaves the outcome of a transactional request unknown raises `OutcomeUnknown`; what says that
      somebody else owns the lane raises `LaneFenced`. It never retries such a request by itself.
    - Between `claim` and the end of a transaction all appends to one broker use one connection; if
      it is lost the owner raises `OutcomeUnknown` from then on (rule R4).
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from causeway.core.copy.producer import ProducerState
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import NODE_UNREACHABLE, error_name
from causeway.core.offsets.map_entries import MapOf, MapTransaction
from causeway.core.offsets.offset_map import MappedRange
from causeway.core.records.records import Record
from causeway.core.state.flow_state import FlowState
from causeway.core.state.position import ForeignPosition, Position


class OutcomeUnknown(Exception):
    """An outcome that isn't known. Nothing is guessed: the attempt ends, the next one reads what is true."""

    def __init__(self, why: str, code: int = 0) -> None:
        """`code`: the error with which a broker refused; 0: no answer yet."""
        super().__init__(why)
        self.code = code


class LaneFenced(Exception):
    """Somebody else claimed the lane, or ended our transaction. Only a new task may claim it again."""


class PositionsPending(OutcomeUnknown):
    """Positions of a transaction that ended stay pending: its marker for them didn't come."""


class Unreachable(Exception):
    """The cluster can't be asked now. Nothing was changed by asking."""


def unknown_partitions(map_topic: str, why: str = "") -> Unreachable:
    """Of an offset map: where a mirror's runs belong is a matter of how many partitions it has."""
    return Unreachable(f"{map_topic}: how many partitions the offset map has isn't known{why and ': ' + why}")


@dataclass(frozen=True, slots=True)
class Refused:
    """One partition's error, as the broker gave it."""

    code: int
    detail: str = ""
    log_start: int = -1
    """Of a question out of range: what the log holds instead; -1: not known."""
    log_end: int = -1
    at_fault: tuple[int, ...] = ()
    """Of a refused batch: the records that the broker named, counted from 0."""

    def __str__(self) -> str:
        return f"{error_name(self.code)}{f' ({self.detail})' if self.detail else ''}"


def is_unreachable(answer: object) -> bool:
    """Whether it is no broker's word: the partition's leader didn't answer, and others of its cluster did."""
    return isinstance(answer, Refused) and answer.code == NODE_UNREACHABLE


@dataclass(frozen=True, slots=True)
class EpochEnd:
    """The answer to "where does this leader epoch end": -1, -1 if the broker doesn't know it any more."""

    epoch: int
    end: int


@dataclass(frozen=True, slots=True)
class LogEnd:
    """The end of a log as a reader without isolation sees it, and the epoch of its leader."""

    offset: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class FetchFrom:
    topic_id: UUID
    offset: int
    last_epoch: int = -1
    """Epoch of the record before `offset`: lets the broker notice that its log took another turn."""


@dataclass(frozen=True, slots=True)
class Fetched:
    records: memoryview
    log_start: int
    last_stable: int
    high_watermark: int
    aborted: tuple[tuple[int, int], ...]
    """(first offset, producer id) of the aborted transactions in this stretch, by first offset."""


@dataclass(frozen=True, slots=True)
class Diverged:
    """The source's log took another turn: `epoch` ends at `end`, before what was asked for."""

    epoch: int
    end: int


FetchAnswer = Fetched | Diverged | Refused


@dataclass(frozen=True, slots=True)
class Appended:
    base_offset: int
    log_start: int


AppendAnswer = Appended | Refused


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """What a lane's id has open, as its coordinator tells it to anybody."""

    producer_id: int
    producer_epoch: int
    partitions: frozenset[TopicPartition]


class LogReader(Protocol):
    def ask_anew_who_leads(self, partition: TopicPartition) -> None:
        """The next question about it goes to the leader that the cluster names then."""
        ...

    async def is_gone(self, topic: str, topic_id: UUID) -> bool:
        """Whether no node that answers knows the topic under this id: one alone may be out of date.

        :raises Unreachable: none answers.
        """
        ...

    def fetch(
        self,
        wanted: Mapping[TopicPartition, FetchFrom],
        *,
        max_bytes: int,
        max_wait_ms: int,
        is_isolated: bool = True,
    ) -> Awaitable[dict[TopicPartition, FetchAnswer]]:
        """Read with isolation `read_committed`, asked now; empty answers are left in.

        Without isolation what is open is read, too, and nothing tells what was aborted.
        """
        ...

    async def compacted(self, topics: Collection[str]) -> frozenset[str]:
        """Those whose cleaner takes records out of the middle, and those whose settings may not be seen."""
        ...

    async def epoch_ends(
        self, epochs: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, EpochEnd | Refused]: ...

    async def log_starts(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, int | Refused]: ...

    async def log_ends(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, LogEnd | Refused]: ...


class Source(LogReader, Protocol):
    """The cluster that is only read."""

    @property
    def round_trip_seconds(self) -> float:
        """How far away it is: the quickest of its answers so far; 0.0 before the first."""
        ...


class Owner(Protocol):
    """A claimed lane: the only one whose appends, commits and ends the coordinator accepts."""

    @property
    def producer(self) -> ProducerState: ...

    def append(
        self, batches: Mapping[TopicPartition, bytes | bytearray]
    ) -> Awaitable[dict[TopicPartition, AppendAnswer]]:
        """One batch per partition, sent now. Partitions of the flow's topics or of the map topic."""
        ...

    async def commit_positions(self, group: str, positions: Mapping[TopicPartition, Position]) -> None:
        """Add the positions to the open transaction."""
        ...

    async def end(self, *, commit: bool) -> None:
        """End the transaction and be ready for the next one, in an epoch of its own."""
        ...

    async def close_partitions(
        self, partitions: Sequence[TopicPartition], *, commit: bool, group: str | None = None
    ) -> None:
        """An empty transaction over these partitions, and the positions of `group`: its marker closes what a
        lost marker left open."""
        ...


class Target(LogReader, Protocol):
    """The cluster that is appended to."""

    async def flow_state(self, flow: str) -> FlowState:
        """The flows topic, read to its end: never less than what was read or appended here before."""
        ...

    async def append_plain(self, topic: str, key: bytes, value: bytes | None) -> int:
        """One record without transaction, on all replicas in sync; returns its offset."""
        ...

    async def append_many(self, topic: str, records: Iterable[tuple[bytes, bytes | None]]) -> int:
        """As many as there are, in order; how many."""
        ...

    async def positions(
        self, group: str, partitions: Sequence[TopicPartition], *, stable: bool, marked: bool = False
    ) -> dict[TopicPartition, Position | ForeignPosition | None]:
        """`stable`: those that no open transaction changes any more. `marked`: of a coordinator that is one
        now, proved by an offset that is written only to be found among them.

        :raises PositionsPending: some stay pending. | :raises OutcomeUnknown: nothing is proved.
        """
        ...

    async def last_stables(self, partitions: Sequence[TopicPartition]) -> dict[TopicPartition, int | Refused]:
        """The last stable offsets: after them a transaction is open."""
        ...

    async def map_runs(
        self, map_topic: str, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, list[MappedRange]]:
        """All committed runs of these partitions, in the order of their commits: newer correct older."""
        ...

    async def map_of(
        self, map_topic: str, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, MapOf]:
        """The same, with the places that were committed without records."""
        ...

    async def open_map(
        self, map_partitions: Sequence[TopicPartition], producer_id: int
    ) -> dict[TopicPartition, MapTransaction]:
        """What the transaction that this producer has open there wrote, if it has one."""
        ...

    async def open_records(
        self, partitions: Sequence[TopicPartition], producer_id: int
    ) -> dict[TopicPartition, list[Record]]:
        """The records of the transaction that this producer has open there, if it has one."""
        ...

    async def open_producers(
        self, partitions: Sequence[TopicPartition]
    ) -> dict[TopicPartition, list[int] | Refused]:
        """The ids of producers that have a transaction open there."""
        ...

    @property
    def may_be_settled(self) -> bool:
        """Whether each transaction has an epoch of its own (v2): nothing late can join the next one."""
        ...

    async def open_transaction(self, transactional_id: str) -> OpenTransaction | None: ...

    async def settle(self, transactional_id: str, transaction: OpenTransaction) -> bool:
        """Commit it in its owner's place. False: refused, and asking again wouldn't help.

        True says no more than that: whoever wants to know describes it again, or claims.
        """
        ...

    async def claim(self, transactional_id: str, *, timeout_ms: int) -> Owner:
        """Take the lane: whatever an older owner had open is aborted, and it can't act any more."""
        ...


class Proof(Protocol):
    """That a plain commit may be sent now, which no broker refuses to whoever comes too late."""

    @property
    def is_fresh(self) -> bool:
        """Asked for no longer than `PROOF_SECONDS` ago. False: nothing may be sent before it is renewed."""
        ...

    async def renew(self) -> None:
        """Ask again, unless it is fresh.

        :raises CausewayError: it isn't so any more. | :raises Unreachable: nobody can prove it in time.
        """
        ...


class Clock(Protocol):
    def monotonic(self) -> float: ...

    def boottime(self) -> float:
        """As `monotonic`, but it goes on while the machine sleeps."""
        ...

    def time_ms(self) -> int: ...

    async def sleep(self, seconds: float) -> None: ...
