"""Partitions of one lane take turns, across rounds and runs too; a slow one is waited for, and alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial

from causeway.core.copy.lane_task import Assignment, LaneResult, PartitionRow
from causeway.core.kernel.identity import Pair, SourceOffset, TopicPartition
from causeway.core.records.compression import Codec
from causeway.core.records.records import Record, encode_batch
from causeway.core.state.position import Position
from causeway.usecases.copy.lane.run import run_lane
from tests.simulation.cases.small_stage import BEGINNING, Stage
from tests.simulation.cluster.history import records_of

PARTITIONS, BATCHES, BATCHES_OF_A_FETCH = 100, 30, 4
SECONDS = 0.2
"""Of a round: it takes far fewer batches than one partition has, times the partitions."""


class Crowd(Stage):
    """One lane with many partitions; a fetch brings a batch each of a few of them."""

    def __init__(self, partitions: int = PARTITIONS, batches: int = BATCHES) -> None:
        super().__init__()
        here, there = (
            self.source.create_topic("many", partitions),
            self.target.create_topic("sf.many", partitions),
        )
        self.target.leaders = dict.fromkeys(self.target.leaders, 1)
        self.pairs = [
            Pair(source=ours, target=theirs, source_topic_id=here.topic_id, target_topic_id=there.topic_id)
            for ours, theirs in zip(here.partitions, there.partitions, strict=True)
        ]
        self.source.most_batches_of_a_fetch = 1
        for pair in self.pairs:
            for number in range(batches):
                self.source.append_directly(pair.source, batch(pair.source, number))
        self.settle()

    def rounds(self, seconds: float = SECONDS) -> Iterator[LaneResult]:
        """Of a run that follows: each with the owner that the one before left."""
        network, reader, target = self.worker("worker")
        generation, last = self.begin(network, target), None
        limits = replace(
            self.task(0).limits,
            fetch_bytes=BATCHES_OF_A_FETCH * len(batch(self.pairs[0].source, 0)),
            lane_seconds=seconds,
        )
        while True:
            task = replace(
                self.task(generation, last),
                limits=limits,
                assignments=tuple(map(self._assignment, self.pairs)),
            )
            result = network.run(partial(run_lane, task, reader, target, network))
            assert result.outcome == "done", result.why
            last = result.last_owner
            yield result

    def _assignment(self, pair: Pair) -> Assignment:
        end = self.source.logs[pair.source].end
        return Assignment(pair=pair, end=SourceOffset(end), start=BEGINNING, known=False)

    def mirrored(self, pair: Pair) -> list[tuple[bytes | None, bytes | None]]:
        visible = self.target.logs[pair.target].visible()
        return [(r.key, r.value) for stored in visible for r in records_of(stored)]

    def written(self, pair: Pair) -> list[tuple[bytes | None, bytes | None]]:
        visible = self.source.logs[pair.source].visible()
        return [(r.key, r.value) for stored in visible for r in records_of(stored)]


def batch(tp: TopicPartition, number: int) -> bytes:
    records = [Record(n, 1_000, b"%s" % str(tp).encode(), b"%06d" % (number * 20 + n)) for n in range(20)]
    return encode_batch(
        records,
        codec=Codec.NONE,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        transactional=False,
    )


def rows_of(result: LaneResult) -> Mapping[TopicPartition, PartitionRow]:
    return {row.source: row for row in result.rows}


def test_each_of_a_hundred_busy_partitions_moves_within_a_few_rounds() -> None:
    at = Crowd()
    rounds, moved, fetched = at.rounds(), set[TopicPartition](), 0
    for _ in range(8):
        result = next(rounds)
        served = {tp for tp, row in rows_of(result).items() if row.records}
        fetched += len(served)
        moved |= served
    assert fetched > PARTITIONS, "a fair turn would have reached each"
    assert len(moved) == PARTITIONS
    assert all(row.source_next < BATCHES * 20 for row in result.rows), "else nobody had to wait"
    at.settle()
    for pair in at.pairs:
        found = at.mirrored(pair)
        assert found == at.written(pair)[: len(found)]


def test_another_run_begins_with_those_that_waited_longest() -> None:
    at = Crowd()
    moved = set[TopicPartition]()
    for _ in range(8):
        at.settle()
        moved |= {tp for tp, row in rows_of(next(at.rounds())).items() if row.records}
    assert len(moved) == PARTITIONS


def test_a_clock_that_was_ahead_puts_nobody_last() -> None:
    """The place in the turn is the time of the position: one of tomorrow isn't waited for."""
    at = Crowd(8, batches=200)
    rounds = at.rounds()
    first = next(rounds)
    assert first.last_owner is not None
    ahead = at.pairs[0].target
    positions = dict(first.last_owner.positions)
    network, _, target = at.worker("another")
    committed = network.run(lambda: target.positions("causeway.f", list(positions), stable=True))
    was = committed[ahead]
    assert isinstance(was, Position)
    late = replace(was, time_ms=was.time_ms + 86_400_000)
    owner = network.run(lambda: target.claim("causeway.f.0", timeout_ms=60_000))
    network.run(lambda: owner.commit_positions("causeway.f", {ahead: late}))
    network.run(lambda: owner.end(commit=True))
    at.settle()
    result = next(at.rounds(0.0))  # one fetch
    assert rows_of(result)[at.pairs[0].source].records > 0


def test_a_remote_read_that_takes_seconds_is_waited_for_and_comes_round_after_round() -> None:
    at = Crowd(1)
    at.source.remote_reads = {at.pairs[0].source: 1.5}
    rounds = at.rounds(5.0)
    for _ in range(40):
        row = rows_of(next(rounds))[at.pairs[0].source]
        assert row.records > 0, row.later
        if row.source_next == BATCHES * 20:
            break
    at.settle()
    assert at.mirrored(at.pairs[0]) == at.written(at.pairs[0])


def test_a_slow_partition_among_busy_ones_gets_its_turn_and_they_get_theirs() -> None:
    at = Crowd(12)
    slow = at.pairs[7].source
    at.source.remote_reads = {slow: 1.5}
    rounds = at.rounds(5.0)
    for _ in range(60):
        result = next(rounds)
        rows = rows_of(result)
        assert rows[slow].records > 0 or rows[slow].source_next == BATCHES * 20, rows[slow].later
        if all(row.source_next == BATCHES * 20 for row in rows.values()):
            break
    at.settle()
    for pair in at.pairs:
        assert at.mirrored(pair) == at.written(pair)


def test_one_that_gives_nothing_at_all_ends_its_round_and_the_others_go_on() -> None:
    at = Crowd(12, batches=3)
    dead = at.pairs[0].source
    at.source.remote_reads = {dead: 3_600.0}
    rows = rows_of(next(at.rounds(60.0)))
    assert "gives nothing from 0 on" in rows[dead].later
    assert {row.source_next for tp, row in rows.items() if tp != dead} == {60}
    assert not any(row.later for tp, row in rows.items() if tp != dead)


def test_what_others_have_is_committed_before_a_longer_wait() -> None:
    at = Crowd(3, batches=1)
    at.source.remote_reads = {at.pairs[0].source: 3_600.0}
    ended = list[float]()
    at.target.on_complete = lambda: ended.append(at.loop.now)
    rows = rows_of(next(at.rounds(60.0)))
    assert [row.source_next for row in rows.values()] == [0, 20, 20]
    over = at.loop.now
    at.settle()
    assert ended[-1] < over - 4
