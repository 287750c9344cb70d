"""Partitions that no record ever crossed go back from where they were to begin; others are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from causeway.brokers.wire.log_reader import WireLogReader
from causeway.core.copy.ports import Refused
from causeway.core.failback.divergence import FailbackMode, export_topic
from causeway.core.kernel.errors import BadInput
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.lab.cluster import LabCluster
from causeway.usecases.copy.worker import without_rows
from causeway.usecases.failback.start import preview_failback
from causeway.usecases.run_lock.fence import fence_flow
from tests.integration.failback.stage import FailbackStage, Log
from tests.support.janitor import forget_positions, lose_the_map

pytestmark = pytest.mark.integration


@pytest.fixture
def stage(sf: LabCluster, nyc: LabCluster, topic_name: Callable[..., str]) -> Iterator[FailbackStage]:
    made = FailbackStage(sf, nyc, topic_name("idle"), keeps_names=True, partitions=3)
    yield made
    made.close()


def put(cluster: LabCluster, topic: str, values: dict[int, list[str]]) -> None:
    producer = Producer(cluster.endpoint().settings)
    for partition, several in values.items():
        for value in several:
            producer.produce(topic, value.encode(), partition=partition)
    assert producer.flush(30) == 0


def values_of(log: Log) -> dict[int, list[str]]:
    return {p: [value for _, value in records] for p, records in log.items() if records}


def begin_without_a_record(stage: FailbackStage, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run whose first round is lost, killed then; nobody could say where partition 2 begins."""
    carried: list[int] = []

    def lost(tasks: Any) -> Any:
        carried.append(len(tasks))
        if len(carried) > 1:
            raise KeyboardInterrupt
        return [without_rows(task, "doubt", "its executor died") for task in tasks]

    log_starts = WireLogReader.log_starts

    async def one_refused(self: WireLogReader, wanted: Any) -> Any:
        found = await log_starts(self, wanted)
        return {tp: _SILENT if tp == TopicPartition(stage.stem, 2) else at for tp, at in found.items()}

    with monkeypatch.context() as half:
        half.setattr(WireLogReader, "log_starts", one_refused)
        half.setattr(stage.forward, "carry", lost)
        with pytest.raises(KeyboardInterrupt):
            stage.forward.run()


_SILENT = Refused(int(Code.REQUEST_TIMED_OUT))


@pytest.mark.parametrize("way", [FailbackMode.RESUME, FailbackMode.REBUILD])
def test_what_never_crossed_has_nothing_to_bring_home_from_before(
    stage: FailbackStage, monkeypatch: pytest.MonkeyPatch, way: FailbackMode
) -> None:
    """Partition 0 was always empty, of 1 and 2 nothing had crossed yet; 2 hadn't even begun."""
    begin_without_a_record(stage, monkeypatch)
    tail = {1: ["tail 1"], 2: ["tail 2", "tail 3"]}
    put(stage.old, stage.stem, tail)
    stage.commit(stage.old, "a", stage.stem, {1: 0})
    stage.fail_over()
    since = {p: [f"new {p} {n}" for n in range(3)] for p in range(3)}
    put(stage.new, stage.stem, since)

    done = stage.resume() if way is FailbackMode.RESUME else stage.rebuild()

    assert stage.plans[-1].tail.number == 3
    assert values_of(stage.log(stage.new, export_topic(stage.stem, done.run.begun_ms))) == tail
    assert stage.reverse.run().records == 9
    assert stage.reverse.run().parked == []
    stays = tail if way is FailbackMode.RESUME else {}
    assert values_of(stage.log(stage.old, stage.stem)) == {p: stays.get(p, []) + since[p] for p in since}
    stage.come_home()
    put(stage.old, stage.stem, {0: ["home"]})
    assert (stage.forward.run().records, stage.forward.run().parked) == (1, [])


def test_a_partition_whose_records_may_have_crossed_is_refused(stage: FailbackStage) -> None:
    """Position and map are lost: who went by the start would lead the mirror itself back."""
    stage.forward.run()
    stage.write_evenly(stage.old, 30)
    stage.forward.run()
    forget_positions(stage.new, stage.forward.flow.group)
    lose_the_map(stage.new, stage.forward.flow.map_topic, stage.stem)
    fence_flow(stage.forward.flow, stage.new.endpoint(), by="ops", because="sf is gone")
    put(stage.new, stage.stem, {0: ["new"]})
    with pytest.raises(BadInput, match=f"{stage.stem}-0 parted"):
        preview_failback(stage.ways, FailbackMode.RESUME)
