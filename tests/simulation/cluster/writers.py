"""Who writes the source: plain batches and transactions, some of them aborted, some open for a while."""

from __future__ import annotations

from typing import TYPE_CHECKING

from causeway.core.kernel.identity import TopicPartition
from causeway.core.records.compression import Codec
from causeway.core.records.records import Record, encode_batch
from tests.simulation.cluster.loop import START_MS

if TYPE_CHECKING:
    from tests.simulation.world import World


class SourceWriter:
    def __init__(self, world: World, tp: TopicPartition) -> None:
        self._world, self._loop, self._tp = world, world.loop, tp
        self._random = world.random_of(tp)
        self._left = max(world.scenario.records // world.scenario.partitions, 5)
        self._written = 0
        self._open: dict[int, int] = {}
        """Producer id -> next sequence, of transactions that are open."""
        self._producer_id = world.source.next_producer_id()
        self._write_next()

    def _write_next(self) -> None:
        if self._left <= 0 or self._world.is_over:
            return
        scenario, random = self._world.scenario, self._random
        pace = scenario.seconds * 0.8 / max(scenario.records / scenario.partitions / 3, 1)
        self._loop.after(random.choice((0.0, random.uniform(0, 2 * pace))), self._write_next)
        if random.random() < scenario.source_transactions:
            self._write_in_transaction()
        else:
            self._append(-1, 0)

    def _write_in_transaction(self) -> None:
        random = self._random
        if self._open and random.random() < 0.5:
            producer_id = random.choice(list(self._open))
            self._append(producer_id, self._open[producer_id])
            return
        if len(self._open) >= 2:
            self._end(random.choice(list(self._open)))
            return
        producer_id = self._producer_id = self._world.source.next_producer_id()
        self._append(producer_id, 0)
        self._loop.after(random.uniform(0.001, 0.6), lambda: self._end(producer_id))

    def _append(self, producer_id: int, sequence: int) -> None:
        if self._world.source.leaders[self._tp] < 0:
            return
        random = self._random
        count = random.choice((1, 1, 2, 5, 9))
        records = []
        for i in range(count):
            self._written += 1
            key = b"k%d" % random.randint(0, 9)
            records.append(
                Record(i, START_MS + self._written, key, b"%d/%d" % (self._tp.partition, self._written))
            )
        self._left -= count
        data = encode_batch(
            records,
            codec=random.choice((Codec.NONE, Codec.NONE, Codec.GZIP)),
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            base_sequence=sequence if producer_id >= 0 else -1,
            transactional=producer_id >= 0,
        )
        self._world.source.append_directly(self._tp, data)
        if producer_id >= 0:
            self._open[producer_id] = sequence + count

    def _end(self, producer_id: int) -> None:
        if producer_id not in self._open:
            return
        if self._world.source.leaders[self._tp] < 0:
            self._loop.after(0.2, lambda: self._end(producer_id))
            return
        del self._open[producer_id]
        commit = self._random.random() < 0.7
        self._world.source.mark_directly(self._tp, producer_id, 0, commit=commit)

    def finish(self) -> None:
        """The source's coordinator ends what is open; also what a lost marker left open."""
        self._open.clear()
        log = self._world.source.logs[self._tp]
        for producer_id, known in list(log.producers.items()):
            if known.open_from is not None:
                self._world.source.mark_directly(self._tp, producer_id, known.epoch, commit=False)
