"""The limit: the same bytes fetched, and appended, by the product's wire code and nothing else.

    python -m tests.bench.limit <source> <target> <answer file> <source topic>=<target topic> ...

Fetching and appending take turns, a piece each; each has a clock of its own, and what lies between them
(cutting into batches, a new checksum) isn't counted. Plain appends: no transaction, no map, no positions.
One process, as a lane is one.
"""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Awaitable
from pathlib import Path
from struct import Struct
from typing import Any

import google_crc32c

from causeway.brokers.transport.append_request import AppendRequest
from causeway.brokers.transport.connection import Network, Wire
from causeway.brokers.wire.log_reader import WireLogReader
from causeway.core.copy.ports import Appended, Fetched, FetchFrom, LogEnd
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.identity import TopicPartition
from causeway.core.records.batches import rebase, split_batches

_FETCH_BYTES = 16 << 20
_PIECE_BYTES = 64 << 20
_WAVE_BYTES = 8 << 20
_IN_FLIGHT = 5
_PREFIX, _LAST_DELTA = Struct(">qi"), Struct(">i")
_CRC, _ATTRIBUTES = Struct(">I"), Struct(">h")
_LAST_DELTA_AT, _ATTRIBUTES_AT, _CRC_AT, _PREFIX_BYTES = 23, 21, 17, 12
_CODEC_MASK = 0x07

Batches = dict[TopicPartition, deque[bytes]]


class LimitPass:
    def __init__(self, source: ClusterEndpoint, target: ClusterEndpoint, topics: dict[str, str]) -> None:
        self.network = Network()
        self._source = WireLogReader(Wire(source, self.network))
        self._target = Wire(target, self.network)
        self._topics = topics
        self._ids: dict[str, Any] = {}
        self._at: dict[TopicPartition, int] = {}
        self._ends: dict[TopicPartition, int] = {}
        self.fetch_seconds = self.append_seconds = 0.0
        self.fetched_bytes = 0

    async def run(self) -> None:
        await self._source.wire.connect()
        await self._target.connect()
        described = await self._source.wire.topics(list(self._topics))
        self._ids = {name: topic.topic_id for name, topic in described.items()}
        places = [TopicPartition(name, p) for name, topic in described.items() for p in topic.leaders]
        self._at = dict.fromkeys(places, 0)
        for tp, end in (await self._source.log_ends(places)).items():
            assert isinstance(end, LogEnd), f"{tp}: {end}"
            self._ends[tp] = end.offset
        while self._wanted():
            began = time.perf_counter()
            piece = await self._fetch_piece()
            self.fetch_seconds += time.perf_counter() - began
            batches = self._readdressed(piece)
            began = time.perf_counter()
            await self._append(batches)
            self.append_seconds += time.perf_counter() - began

    def _wanted(self) -> dict[TopicPartition, FetchFrom]:
        behind = [tp for tp, at in self._at.items() if at < self._ends[tp]]
        turn = self.fetched_bytes % len(behind) if behind else 0
        ordered = behind[turn:] + behind[:turn]
        return {tp: FetchFrom(self._ids[tp.topic], self._at[tp]) for tp in ordered}

    async def _fetch_piece(self) -> list[tuple[TopicPartition, memoryview]]:
        piece: list[tuple[TopicPartition, memoryview]] = []
        size = 0
        while size < _PIECE_BYTES and (wanted := self._wanted()):
            answers = await self._source.fetch(wanted, max_bytes=_FETCH_BYTES, max_wait_ms=250)
            for tp, answer in answers.items():
                assert isinstance(answer, Fetched), f"{tp}: {answer}"
                if len(answer.records):
                    piece.append((tp, answer.records))
                    size += len(answer.records)
                    self._at[tp] = max(next_offset(answer.records), self._at[tp])
        self.fetched_bytes += size
        return piece

    def _readdressed(self, piece: list[tuple[TopicPartition, memoryview]]) -> Batches:
        ready: Batches = {}
        for tp, records in piece:
            queue = ready.setdefault(TopicPartition(self._topics[tp.topic], tp.partition), deque())
            queue.extend(plain(batch) for _, batch in split_batches(records))
        return ready

    async def _append(self, ready: Batches) -> None:
        in_flight: deque[Awaitable[Any]] = deque()
        while wave := _next_wave(ready):
            if len(in_flight) >= _IN_FLIGHT:
                _check(await in_flight.popleft())
            in_flight.append(await self._send(wave))
        while in_flight:
            _check(await in_flight.popleft())

    async def _send(self, wave: dict[TopicPartition, bytes]) -> Awaitable[Any]:
        grouped = await self._target.by_leader(wave)
        node = next(iter(grouped))
        connection = self._target.connection(node)
        await connection
        request = AppendRequest(wave, transactional_id=None, is_v2=False)
        answer: Awaitable[Any] = connection.send_request(request)
        return answer


def next_offset(records: memoryview) -> int:
    """After the last whole batch, found by hopping from length to length."""
    position, found = 0, -1
    while len(records) - position > _LAST_DELTA_AT + 4:
        base, length = _PREFIX.unpack_from(records, position)
        if position + length + _PREFIX_BYTES > len(records):
            break
        found = base + _LAST_DELTA.unpack_from(records, position + _LAST_DELTA_AT)[0] + 1
        position += length + _PREFIX_BYTES
    return found


def plain(batch: memoryview) -> bytes:
    """The batch as one that anybody may append: nobody's producer, in no transaction."""
    out = rebase(batch, producer_id=-1, producer_epoch=-1, base_sequence=-1)
    _ATTRIBUTES.pack_into(out, _ATTRIBUTES_AT, out[_ATTRIBUTES_AT + 1] & _CODEC_MASK)
    _CRC.pack_into(out, _CRC_AT, google_crc32c.value(bytes(out[_ATTRIBUTES_AT:])))
    return bytes(out)


def _next_wave(ready: Batches) -> dict[TopicPartition, bytes]:
    """One batch of each partition, as a lane packs its requests."""
    wave: dict[TopicPartition, bytes] = {}
    size = 0
    for tp, queue in ready.items():
        if queue and size < _WAVE_BYTES:
            wave[tp] = queue.popleft()
            size += len(wave[tp])
    return wave


def _check(answer: Any) -> None:
    for tp, told in answer.by_partition.items():
        assert isinstance(told, Appended), f"{tp}: {told}"


def main(arguments: list[str]) -> int:
    source, target, answer, *pairs = arguments
    sf, nyc = (
        ClusterEndpoint(name, {"bootstrap.servers": at}) for name, at in (("sf", source), ("nyc", target))
    )
    work = LimitPass(sf, nyc, dict(pair.split("=") for pair in pairs))
    work.network.run(work.run)
    told = {
        "fetch_seconds": work.fetch_seconds,
        "append_seconds": work.append_seconds,
        "bytes": work.fetched_bytes,
    }
    Path(answer).write_text(json.dumps(told), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
