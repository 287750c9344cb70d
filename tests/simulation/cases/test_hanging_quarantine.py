"""A quarantined record whose marker got lost: it shares the fate of the transaction that moved over it.

The coordinator calls the transaction done without a marker for the quarantine topic (see
test_forgotten_markers.py); what hangs there would be decided by the next marker of the same producer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from unittest.mock import patch

import pytest

from causeway.brokers.wire.lane_transaction import LaneTransaction
from causeway.core.copy.lane_task import LaneTask, Quarantine
from causeway.core.copy.ports import OutcomeUnknown
from causeway.core.copy.target_limits import TargetLimits
from causeway.core.kernel.identity import TopicPartition
from causeway.core.model.flow import RefusedPolicy
from causeway.core.topics.quarantine import OFFSET, TOPIC
from causeway.usecases.copy.lane.lost_markers import LostMarkers
from causeway.usecases.copy.lane.run import run_lane
from tests.simulation.cases.small_stage import Stage
from tests.simulation.cluster.coordinator import Coordinator, Transactional
from tests.simulation.cluster.history import records_of

_QUARANTINE = TopicPartition("quarantine", 0)
_send_marker, _end = Coordinator._send_marker, LaneTransaction.end


@pytest.fixture
def at() -> Stage:
    """Two records on the source, of which the target doesn't take the first."""
    stage = Stage()
    stage.target.create_topic(_QUARANTINE.topic, 1)
    stage.target.leaders[_QUARANTINE] = 1
    stage.write()
    stage.write()
    return stage


def task(at: Stage, generation: int) -> LaneTask:
    """As a later round gets it: the first record was refused before."""
    plain = at.task(generation)
    demands = TargetLimits(held_out={0: "too large"})
    return replace(
        plain,
        assignments=tuple(replace(each, demands=demands) for each in plain.assignments),
        on_refused=RefusedPolicy.QUARANTINE,
        quarantine=Quarantine(topic=_QUARANTINE.topic, source="sf"),
    )


def run(at: Stage, name: str) -> str:
    network, reader, target = at.worker(name)
    generation = at.begin(network, target)
    outcome = network.run(lambda: run_lane(task(at, generation), reader, target, network)).outcome
    at.settle()
    return outcome


def lose_its_marker(self: Coordinator, found: Transactional, tp: TopicPartition, term: int) -> None:
    if tp != _QUARANTINE:
        _send_marker(self, found, tp, term)
        return
    found.awaited.pop(tp, None)
    self._complete_if_done(found)


async def die_behind_the_first(self: LaneTransaction, *, commit: bool) -> None:
    """The first transaction commits the position that a fresh partition begins with."""
    if self.producer.epoch > 0:
        raise OutcomeUnknown("the worker dies with its transaction open")
    await _end(self, commit=commit)


def offsets_in_quarantine(at: Stage) -> list[tuple[bytes | None, bytes | None]]:
    """What a `read_committed` reader sees there, by its place on the source."""
    told = [
        dict(record.headers)
        for batch in at.target.logs[_QUARANTINE].visible()
        for record in records_of(batch)
    ]
    return [(headers[TOPIC.encode()], headers[OFFSET.encode()]) for headers in told]


def mirrored(at: Stage) -> int:
    return sum(len(records_of(batch)) for batch in at.target.logs[at.mirror].visible())


async def nothing(self: LostMarkers) -> None: ...


@pytest.fixture(params=[True, False], ids=["as it is", "the rule taken out"])
def settles(request: pytest.FixtureRequest) -> Iterator[bool]:
    rule = LostMarkers.settle_quarantine if request.param else nothing
    with patch.object(LostMarkers, "settle_quarantine", rule):
        yield request.param


def test_what_was_passed_over_stays_in_quarantine(at: Stage, settles: bool) -> None:
    with patch.object(Coordinator, "_send_marker", lose_its_marker):
        assert run(at, "first") == "done"
    assert (mirrored(at), offsets_in_quarantine(at)) == (1, []), "committed, but nobody can see it"
    at.write()
    assert run(at, "second") == "done"
    assert mirrored(at) == 2
    assert offsets_in_quarantine(at) == ([(b"orders", b"0")] if settles else [])


def test_what_was_aborted_comes_to_quarantine_once(at: Stage, settles: bool) -> None:
    with patch.object(LaneTransaction, "end", die_behind_the_first):
        assert run(at, "first") == "doubt"
    with patch.object(Coordinator, "_send_marker", lose_its_marker):
        at.settle(at.task(0).limits.transaction_timeout_ms / 1000 + 5)  # it times out: aborted
    assert run(at, "second") == "done"
    assert mirrored(at) == 1
    assert offsets_in_quarantine(at) == [(b"orders", b"0")] * (1 if settles else 2)
