"""Transactions of the source: copied up to the last stable offset, and reported when that doesn't move."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from causeway.core.copy import held_back_sources
from causeway.core.copy.ports import Owner
from causeway.core.kernel.identity import TopicPartition
from causeway.core.records.compression import Codec
from causeway.core.records.records import Record, encode_batch
from causeway.lab.cluster import LabCluster
from causeway.usecases.copy import held_back_sources as copy_held_back_sources
from tests.integration.fidelity.cases import NOBODY, noise
from tests.integration.fidelity.raw_log import RawLog, create
from tests.support.mirroring import Mirror, make_flow

pytestmark = pytest.mark.integration
TopicName = Callable[..., str]


class Stage:
    def __init__(self, sf: LabCluster, nyc: LabCluster, topic: str) -> None:
        self.topic, self.at = topic, TopicPartition(topic, 0)
        create(sf, topic, 1)
        self.log, self.there = RawLog(sf), RawLog(nyc)
        self.mirror = Mirror(make_flow(topic.replace("-", "_"), topic), sf, nyc)

    def write(self, *values: bytes, owner: Owner | None = None) -> None:
        records = [Record(n, 5, b"k", value) for n, value in enumerate(values)]
        if owner is None:
            self.log.append({self.at: encode_batch(records, codec=Codec.NONE, **NOBODY)})
            return
        batch = encode_batch(
            records,
            codec=Codec.NONE,
            producer_id=owner.producer.producer_id,
            producer_epoch=owner.producer.epoch,
            base_sequence=owner.producer.take_sequence(self.at, len(records)),
        )
        self.log.append_as(owner, {self.at: batch})

    def mirrored(self) -> list[bytes | None]:
        return [r.value for r in self.there.records(TopicPartition(f"sf.{self.topic}", 0))]


@pytest.fixture
def stage(sf: LabCluster, nyc: LabCluster, topic_name: TopicName) -> Iterator[Stage]:
    made = Stage(sf, nyc, topic_name("open"))
    yield made
    made.mirror.close()
    made.log.__exit__(None, None, None)
    made.there.__exit__(None, None, None)


def test_an_open_transaction_holds_the_mirror_back_and_the_report_counts_what_waits(stage: Stage) -> None:
    owner = stage.log.owner(stage.topic)
    stage.write(b"1")
    stage.write(b"open", owner=owner)
    stage.write(b"2", b"3")

    report = stage.mirror.run()

    assert (report.lag, report.as_dict()["held_back"]) == (0, 3)
    assert stage.mirrored() == [b"1"]
    stage.log.end(owner, commit=True)
    report = stage.mirror.run()
    assert (report.lag, report.as_dict()["held_back"]) == (0, 0)
    assert stage.mirrored() == [b"1", b"open", b"2", b"3"]


def test_a_hung_transaction_is_reported_once_while_the_log_grows(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy_held_back_sources, "_LOOK_AGAIN_SECONDS", 0.1)
    monkeypatch.setattr(held_back_sources, "STANDS_STILL_SECONDS", 0.5)
    owner = stage.log.owner(stage.topic)
    stage.write(b"hung", owner=owner)
    stage.mirror.run()
    stage.write(b"behind it")
    said = _said_while_growing(stage)
    stage.log.end(owner, commit=False)

    assert len(said) == 1
    assert f"{stage.at} stands at its last stable offset 0" in said[0]
    assert "kafka-transactions.sh find-hanging" in said[0]
    assert stage.mirror.run().lag == 0
    assert stage.mirrored()[0] == b"behind it"


def _said_while_growing(stage: Stage) -> list[str]:
    done = threading.Event()

    def grow() -> None:
        while not done.wait(0.2):
            stage.write(b"more")

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        stage.mirror.run(run_for_seconds=2.5)
    finally:
        done.set()
        writer.join()
    return [line for line in stage.mirror.said if "stands at" in line]


def test_aborts_that_span_fetches_and_transactions_without_a_record_leave_nothing(stage: Stage) -> None:
    """The flow fetches 256 KiB at a time; the aborted transaction is ten times as long."""
    owner = stage.log.owner(stage.topic)
    stage.write(b"1")
    for number in range(6):
        stage.write(noise(400_000), owner=owner)
        stage.write(b"between %d" % number)
    stage.log.end(owner, commit=False)
    for commit in (True, False):
        stage.log.run(partial(owner.close_partitions, [stage.at], commit=commit))
    stage.write(b"committed", owner=owner)
    stage.log.end(owner, commit=True)

    report = stage.mirror.run()

    assert (report.lag, report.records, report.parked) == (0, 8, [])
    assert stage.mirrored() == [b"1", *(b"between %d" % n for n in range(6)), b"committed"]


def test_a_partition_of_nothing_but_markers_and_aborted_records_is_caught_up(stage: Stage) -> None:
    owner = stage.log.owner(stage.topic)
    for commit in (True, False):
        stage.log.run(partial(owner.close_partitions, [stage.at], commit=commit))
    stage.write(b"aborted", owner=owner)
    stage.log.end(owner, commit=False)

    report = stage.mirror.run()

    (partition,) = report.partitions.values()
    assert (report.outcome, report.lag, report.records) == ("caught up", 0, 0)
    assert partition.source_next == partition.last_stable
    assert stage.mirrored() == []
