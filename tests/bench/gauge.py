"""How far a cluster's topics are, and how many records they hold, asked with the product's own wire code."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self, TypeVar

from causeway.brokers.transport.connection import Network, Wire
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.ports import Fetched, FetchFrom, LogEnd, Refused, Unreachable
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.identity import TopicPartition
from causeway.core.records.visibility import Visibility, read_committed

T = TypeVar("T")
_FETCH_BYTES = 32 << 20
_WAIT_MS = 100


@dataclass(slots=True)
class Tally:
    """What a `read_committed` reader finds."""

    records: int = 0
    batches: int = 0
    log_bytes: int = 0


class Gauge:
    """Answers are sums over the topics; one that isn't there yet counts as empty."""

    def __init__(self, endpoint: ClusterEndpoint, topics: Collection[str]) -> None:
        self._topics = topics
        self._network = Network()
        self._target = WireTarget(Wire(endpoint, self._network))
        self._partitions: list[TopicPartition] = []
        self._run(self._target.wire.connect)

    def end(self) -> int:
        """Everything that was appended, committed or not."""
        return self._run(self._end)

    def stable_end(self) -> int:
        """Everything that a `read_committed` reader may read; markers of transactions count."""
        return self._run(self._stable_end)

    def serving(self) -> int:
        """How many partitions answer."""
        return self._run(self._serving)

    def tally(self) -> Tally:
        """Reads everything, checks every checksum."""
        return self._run(self._tally)

    def close(self) -> None:
        self._target.wire.disconnect()
        self._network.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, work: Callable[[], Awaitable[T]]) -> T:
        return self._network.run(work)

    async def _known(self) -> list[TopicPartition]:
        """Asked again until every topic is there: whoever copies may make them one by one."""
        if len({tp.topic for tp in self._partitions}) < len(self._topics):
            found = await self._target.wire.topics(None)
            self._partitions = [
                TopicPartition(name, p) for name in self._topics if name in found for p in found[name].leaders
            ]
        return self._partitions

    async def _end(self) -> int:
        found = await self._target.log_ends(await self._known())
        return sum(answer.offset for answer in found.values() if isinstance(answer, LogEnd))

    async def _serving(self) -> int:
        found = await self._target.log_ends(await self._known())
        return sum(isinstance(answer, LogEnd) for answer in found.values())

    async def _stable_end(self) -> int:
        found = await self._target.last_stables(await self._known())
        return sum(answer for answer in found.values() if isinstance(answer, int))

    async def _tally(self) -> Tally:
        tally, partitions = Tally(), await self._known()
        ids = {name: t.topic_id for name, t in (await self._target.wire.topics(list(self._topics))).items()}
        ends = _offsets(await self._target.last_stables(partitions))
        starts = _offsets(await self._target.log_starts(partitions))
        at = {tp: starts[tp] for tp in partitions}
        while pending := {tp for tp in partitions if at[tp] < ends[tp]}:
            wanted = {tp: FetchFrom(ids[tp.topic], at[tp]) for tp in pending}
            answers = await self._target.fetch(wanted, max_bytes=_FETCH_BYTES, max_wait_ms=_WAIT_MS)
            for tp, answer in answers.items():
                if not isinstance(answer, Fetched):
                    raise Unreachable(f"{tp}: {answer}")
                at[tp] = _count(tally, answer, at[tp])
        return tally


def _offsets(answers: Mapping[TopicPartition, int | Refused]) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for tp, answer in answers.items():
        if isinstance(answer, Refused):
            raise Unreachable(f"{tp}: {answer}")
        found[tp] = answer
    return found


def _count(tally: Tally, answer: Fetched, at: int) -> int:
    for head, _, seen in read_committed(answer.records, answer.aborted, at):
        at = head.next_offset
        if seen is Visibility.DATA:
            tally.records += head.record_count
            tally.batches += 1
            tally.log_bytes += head.size_bytes
    return at
