"""A maintenance whose marker got lost: what hangs of it counts for nobody, and the next one aborts it."""

from __future__ import annotations

from unittest.mock import patch
from uuid import UUID

import pytest

from causeway.core.kernel.identity import Generation, SourceOffset, TargetOffset, TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.offsets.map_format import encode_range
from causeway.core.offsets.offset_map import MappedRange
from causeway.core.records.compression import Codec
from causeway.core.records.records import Record, encode_batch
from causeway.core.state.flow_records import pair_record
from causeway.core.state.known_pairs import KnownPair
from causeway.usecases.offsets.maintain_map import Maintenance
from tests.simulation.cases.small_stage import Stage
from tests.simulation.cluster.coordinator import Coordinator, Transactional
from tests.support.mirroring import make_flow

RUNS = 60


def runs_of(mirror: TopicPartition, source_id: UUID, target_id: UUID) -> list[MappedRange]:
    return [
        MappedRange(
            target=mirror,
            source_first=SourceOffset(n * 5),
            target_first=TargetOffset(n * 6),
            segments=((5, 0),),
            first_timestamp_ms=n,
            last_timestamp_ms=n,
            generation=Generation(0),
            source_topic_id=source_id,
            target_topic_id=target_id,
        )
        for n in range(RUNS)
    ]


@pytest.fixture
def flow() -> Flow:
    return make_flow("f", "orders", lanes=1)


class MapStage(Stage):
    def __init__(self, flow: Flow) -> None:
        super().__init__()
        self.flow = flow
        self.place = self.target.create_topic(flow.map_topic, 1).partitions[0]
        self.target.leaders[self.place] = 1
        self.network, _, self.reader = self.worker("worker")
        self.begin(self.network, self.reader)
        pair = KnownPair(
            source_topic="orders",
            source_topic_id=self.pair.source_topic_id,
            target_topic_id=self.pair.target_topic_id,
            partitions=1,
        )
        record = pair_record("f", self.mirror.topic, pair)
        self.network.run(lambda: self.reader.append_plain(FLOWS_TOPIC, *record))
        self.network.run(lambda: self._write_runs("causeway.f.0"))

    async def _write_runs(self, transactional_id: str) -> None:
        runs = runs_of(self.mirror, self.pair.source_topic_id, self.pair.target_topic_id)
        owner = await self.reader.claim(transactional_id, timeout_ms=60_000)
        batch = encode_batch(
            [Record(n, 1, *encode_range(run)) for n, run in enumerate(runs)],
            codec=Codec.NONE,
            producer_id=owner.producer.producer_id,
            producer_epoch=owner.producer.epoch,
            base_sequence=owner.producer.take_sequence(self.place, RUNS),
        )
        await owner.append({self.place: batch})
        await owner.end(commit=True)

    def maintain(self) -> Maintenance:
        network, _, target = self.worker("maintenance")
        maintenance = Maintenance(self.flow, target, network, lambda _: None)
        network.run(maintenance.run)
        self.settle()
        return maintenance

    def read(self) -> list[tuple[int, int]]:
        found = self.network.run(lambda: self.reader.map_runs(self.flow.map_topic, [self.mirror]))
        return [(run.source_first, run.target_first) for run in found[self.mirror]]

    @property
    def ends(self) -> list[bool]:
        """How the transactions in the map ended, in order."""
        return [batch.commits for batch in self.target.logs[self.place].batches if batch.commits is not None]


def test_what_hangs_of_a_maintenance_is_aborted_by_the_next(flow: Flow) -> None:
    at, send = MapStage(flow), Coordinator._send_markers
    said = at.read()
    assert len(said) == RUNS

    def forget(self: Coordinator, found: Transactional) -> None:
        if found.name != flow.maintenance_id:
            send(self, found)
            return
        found.awaited = {}
        self._complete_if_done(found)

    with patch.object(Coordinator, "_send_markers", forget):
        assert at.maintain().report.transactions == 1  # so it was reported
    log = at.target.logs[at.place]
    assert log.last_stable < log.end
    assert at.read() == said

    assert at.maintain().report.entries_after == 17
    assert at.ends == [True, False, True]
    assert at.read() == said
