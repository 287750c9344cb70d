"""What a lane asks the source for, and whose turn it is.

Invariant E of `copying` is kept here: each partition gets its turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable

from causeway.core.copy.lane_task import LaneTask
from causeway.core.copy.ports import Diverged, FetchAnswer, Fetched, Refused, Source
from causeway.core.kernel.identity import TopicPartition
from causeway.usecases.copy.lane.partition_stream import PartitionStream
from causeway.usecases.copy.lane.refusals import fetch_refusal, is_cut
from causeway.usecases.copy.lane.stale_leader import why_it_passes

_FETCH_WAITS_MS = (250, 1_000, 4_000)
"""How long a source may hold an answer up; longer once it had none for a partition whose end is far. Kafka
3.6 and 3.7 cut off a remote read that takes longer, and begin it again when they are asked again."""


class FetchAhead:
    """The next fetch of these streams, and what its answer means to each of them."""

    def __init__(self, task: LaneTask, source: Source, turns: list[PartitionStream]) -> None:
        self._task, self._source, self._turns = task, source, turns
        self._asked: list[tuple[PartitionStream, int]] = []
        """By the last fetch, in this order, and from where on."""
        self._waits = deque(_FETCH_WAITS_MS)

    @property
    def waits_longer(self) -> bool:
        """Whether a partition gave nothing, and the source may take longer to answer now."""
        return len(self._waits) < len(_FETCH_WAITS_MS)

    def start(self) -> Awaitable[dict[TopicPartition, FetchAnswer]] | None:
        """None: no partition wants anything more."""
        wanting = [stream for stream in self._turns if stream.wants_more]
        if not wanting:
            return None
        self._asked = [(stream, stream.fetch_next) for stream in wanting]
        # A broker fills the answer in the order of the question.
        return self._source.fetch(
            {stream.assignment.pair.source: stream.fetch_from() for stream in wanting},
            max_bytes=self._task.limits.fetch_bytes_over(self._source.round_trip_seconds),
            max_wait_ms=self._waits[0],
        )

    def take_turns(self) -> None:
        """Of those that got nothing only the first one is known to have had its turn."""
        served = {stream.target for stream, at in self._asked if stream.fetch_next > at}
        first, at = self._asked[0]
        if first.wants_more and first.target not in served:
            if len(self._waits) > 1:
                self._waits.popleft()
            else:
                source, end = first.assignment.pair.source, first.assignment.end
                first.wait_for_next_round(f"{source} gives nothing from {at} on, though it ends at {end}")
        self._turns.sort(key=lambda stream: stream.target in served)

    def stop_reading(self, why: str) -> None:
        for stream in self._turns:
            if stream.wants_more:
                stream.wait_for_next_round(why)

    async def take(self, answers: dict[TopicPartition, FetchAnswer]) -> None:
        by_source = {stream.assignment.pair.source: stream for stream in self._turns}
        for tp, answer in answers.items():
            if isinstance(answer, Fetched):
                by_source[tp].take(answer)
            else:
                await self._take_refusal(by_source[tp], answer)

    async def _take_refusal(self, stream: PartitionStream, answer: Diverged | Refused) -> None:
        source = stream.assignment.pair.source
        if is_cut(stream.fetch_next, answer):
            stream.drop_what_waits()
        parked = fetch_refusal(self._task.flow, stream.assignment, stream.fetch_next, stream.consumed, answer)
        if parked is None:
            stream.wait_for_next_round(f"{source}: {answer}")
            return
        topic_id = stream.assignment.pair.source_topic_id
        passes = await why_it_passes(self._source, source, topic_id, stream.fetch_epoch, answer)
        if passes:
            stream.wait_for_next_round(f"{source}: {passes}")
        else:
            stream.row.parked, stream.closed = parked, True
