"""Transactions whose part of the map is large: of many runs, or refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from unittest.mock import patch

import pytest

from causeway.core.copy import lane_rules
from causeway.core.copy.unknown_outcomes import UnknownOutcomes
from causeway.core.offsets import offset_map
from causeway.core.records.batches import parse_head
from causeway.core.records.compression import Codec
from causeway.core.records.records import Record, decode_records, encode_batch
from causeway.usecases.copy.lane.run import run_lane
from tests.simulation.cases.small_stage import Stage
from tests.simulation.cluster.partition_log import USUAL_MAX_BYTES
from tests.simulation.cluster.wire import Weather
from tests.simulation.scenario import scenario_of
from tests.simulation.world import World

SMALL_BYTES = 1


def write(at: Stage, value: bytes, *, aborted: bool = False) -> None:
    batch = encode_batch(
        [Record(0, 1_000, b"k", value)],
        codec=Codec.NONE,
        producer_id=50 if aborted else -1,
        producer_epoch=0 if aborted else -1,
        base_sequence=0 if aborted else -1,
        transactional=aborted,
    )
    at.source.append_directly(at.pair.source, batch)
    if aborted:
        at.source.mark_directly(at.pair.source, 50, 0, commit=False)
    at.settle()


def shown(at: Stage) -> list[bytes | None]:
    batches = [memoryview(stored.data) for stored in at.target.logs[at.mirror].visible()]
    return [record.value for batch in batches for record in decode_records(batch, parse_head(batch))]


@pytest.mark.parametrize("is_asked", [True, False], ids=["as it is", "the rule taken out"])
def test_what_an_abort_took_along_is_copied_again_though_it_was_of_many_runs(is_asked: bool) -> None:
    at = Stage()
    for value in (b"1", b"2", b"3"):
        write(at, value)
        write(at, b"nobody's", aborted=True)
    network, reader, target = at.worker("worker")
    generation = at.begin(network, target)
    with patch.object(offset_map, "MOST_SEGMENTS", 1):
        assert network.run(lambda: run_lane(at.task(generation), reader, target, network)).outcome == "done"
    at.settle()
    assert shown(at) == [b"1", b"2", b"3"]
    assert len(network.run(lambda: target.map_runs("map", [at.mirror]))[at.mirror]) == 3

    log = at.target.logs[at.mirror]
    data = log.batches[0].head
    log.lead_anew(log.batches[-1].base)  # without the marker
    at.target.mark_directly(at.mirror, data.producer_id, data.producer_epoch, commit=False)
    at.settle()
    assert shown(at) == []
    first_of_transaction = offset_map.first_of_transaction if is_asked else lambda _, last: last
    with patch.object(lane_rules, "first_of_transaction", first_of_transaction):
        for _ in range(2):  # the first finds out who leads now
            result = network.run(lambda: run_lane(at.task(generation, known=True), reader, target, network))
    assert result.outcome == "done"
    at.settle()
    assert shown(at) == ([b"1", b"2", b"3"] if is_asked else [b"3"])


@pytest.mark.parametrize("is_told", [True, False], ids=["as it is", "the rule taken out"])
@pytest.mark.parametrize("seed", range(4))
def test_a_lane_that_may_not_commit_appends_its_data_twice_and_then_no_more(seed: int, is_told: bool) -> None:
    """For as long as its run remembers; once the map takes it, everything crosses (`World` looks). A flow
    that settles appends it once: what is refused there waits for its part of the map."""
    scenario = replace(
        scenario_of(seed),
        troubles=[],
        weather=Weather(),
        repeats=0.0,
        partitions=1,
        lanes=1,
        seconds=12.0,
        settles=False,
    )
    world = World(scenario)
    appended: set[tuple[int, int, int]] = set()

    def note(tp, head, base):  # type: ignore[no-untyped-def]
        """From the first data on: the place where the partition begins is in the map by then."""
        look(tp, head, base)
        if tp not in world.mirrors:
            return
        if not appended:
            for place, log in world.target.logs.items():
                if place.topic == world.flow_now().map_topic:
                    log.max_bytes = SMALL_BYTES
        if any(log.max_bytes < USUAL_MAX_BYTES for log in world.target.logs.values()):
            appended.add((len(world.runs), head.producer_id, head.producer_epoch))

    look, world.target.on_append = world.target.on_append, note
    told = UnknownOutcomes._with_trial if is_told else lambda self, task: task
    with patch.object(UnknownOutcomes, "_with_trial", told):
        world.play()
    of_a_run = Counter(run for run, *_ in appended)
    assert (max(of_a_run.values()) <= 2) == is_told, of_a_run
