"""What a claim is for: two owners of one lane at the same time, and an epoch for each transaction."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from causeway.brokers.transport.connection import Network, Wire
from causeway.brokers.wire.log_reader import WireLogReader
from causeway.core.copy.lane_task import LaneTask
from causeway.core.copy.ports import Fetched, FetchFrom
from causeway.core.kernel.identity import TopicPartition
from causeway.core.records.batches import split_batches
from tests.proofs.chaos.parts.frozen_copy import run_inline
from tests.proofs.chaos.stage import PARTITIONS, Stage, wake

pytestmark = [pytest.mark.integration, pytest.mark.chaos]


def test_the_position_is_read_after_the_claim(stage: Callable[[int], Stage]) -> None:
    """A repeated Spark task looks, the first one commits, and only then does the repeated one claim."""
    at = stage(1)
    tasks: list[LaneTask] = []

    def play_both(task: LaneTask) -> None:
        if tasks:
            return
        tasks.append(task)
        first = at.start_and_freeze("end", 2, task)
        repeated = at.start_and_freeze("claim", 1, task)
        wake(first)
        wake(repeated)
        assert "done" in first.output()
        assert "done" in repeated.output()

    report = run_inline(at.flow, at.source.endpoint(), at.target.endpoint(), "one run", play_both)
    assert (report.outcome, report.parked) == ("caught up", [])
    at.assert_complete()


def test_no_two_transactions_share_an_epoch(stage: Callable[[int], Stage]) -> None:
    """Then no late request of one can touch the next: by the broker on v2, by claiming again on v1."""
    at = stage(1)
    report = run_inline(at.flow, at.source.endpoint(), at.target.endpoint(), "one run")
    assert report.transactions > PARTITIONS
    for number in range(PARTITIONS):
        ended: set[tuple[int, int]] = set()
        writing: set[tuple[int, int]] = set()
        for producer_id, epoch, is_marker in _batches(at, TopicPartition(f"sf.{at.topic}", number)):
            if is_marker:
                ended |= writing
                writing = set()
            else:
                assert (producer_id, epoch) not in ended
                writing.add((producer_id, epoch))
        assert len(ended) > 1


def _batches(at: Stage, tp: TopicPartition) -> list[tuple[int, int, bool]]:
    network = Network()
    reader = WireLogReader(Wire(at.target.endpoint(), network))
    found: list[tuple[int, int, bool]] = []
    offset = 0
    try:
        network.run(reader.wire.connect)
        topic_id = network.run(lambda: reader.wire.topics([tp.topic]))[tp.topic].topic_id
        while True:
            wanted = {tp: FetchFrom(topic_id, offset)}
            answer = network.run(partial(reader.fetch, wanted, max_bytes=1 << 20, max_wait_ms=0))[tp]
            assert isinstance(answer, Fetched)
            heads = [head for head, _ in split_batches(answer.records)]
            if not heads:
                return found
            found += [(head.producer_id, head.producer_epoch, head.is_control) for head in heads]
            offset = heads[-1].next_offset
    finally:
        reader.wire.disconnect()
        network.close()
