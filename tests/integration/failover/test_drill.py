"""A drill on real brokers: beside a running mirror, on clones, and nothing of it is left."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.brokers.admin.drill_reader import read_first
from causeway.usecases.failover import drill as rehearsal
from causeway.usecases.failover.drill import history
from tests.integration.failover.conftest import MakeStage
from tests.integration.failover.stage import BASE_MS
from tests.integration.groups.stage import committed
from tests.support.killing import Killed, killed_inside

pytestmark = pytest.mark.integration


def test_readers_that_find_nothing_make_it_a_bad_drill(
    stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = stage(partitions=1)
    made.write([BASE_MS])
    made.run()
    made.commit("a", {0: 0})
    monkeypatch.setattr(rehearsal, "read_first", lambda *_, **__: {})
    assert made.rehearse().wrong == "from there consumers could read on in 0 of 1 partitions"


def test_clones_are_moved_read_and_removed_also_when_it_is_interrupted(
    stage: MakeStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = stage()
    for partition in (0, 1):
        made.write([BASE_MS + n * 1_000 for n in range(50)], partition)
    made.run()
    made.write([BASE_MS + n * 1_000 for n in range(50, 57)])
    made.commit("a", {0: 10, 1: 50})
    made.commit("b", {0: 3})

    stood, real = dict[str, dict[int, int]](), read_first

    def noting(endpoint: Any, clone: str, *places: Any, **named: Any) -> Any:
        held = committed(made.target, clone)
        stood[clone.rpartition(".")[2]] = {p: offset for (_, p), offset in held.items()}
        return real(endpoint, clone, *places, **named)

    with monkeypatch.context() as watched:
        watched.setattr(rehearsal, "read_first", noting)
        done = made.rehearse()

    logs = [[offset for _, offset, _, _ in made.mirrored_records(p)] for p in (0, 1)]
    assert stood == {"a": {0: logs[0][10], 1: logs[1][-1] + 1}, "b": {0: logs[0][3]}}
    assert (done.groups, done.offsets, done.as_planned, done.read, done.wrong) == (2, 3, 3, 3, "")
    assert (done.lost_records, done.rpo_seconds, done.rereads) == (7, 7, 0)
    assert (made.clones(), made.there("a"), made.there("b")) == ([], {}, {})
    assert made.run().records == 7, "the mirror goes on"

    def dies(*_: Any, **__: Any) -> None:
        assert made.clones()
        raise Killed

    with killed_inside(rehearsal, "read_first", dies):
        made.rehearse()
    assert made.clones() == []

    with monkeypatch.context() as dying:
        dying.setattr(rehearsal, "read_first", dies)
        remove, calls = rehearsal._remove, list[int]()

        def only_the_first(*arguments: Any) -> int:
            calls.append(1)
            return remove(*arguments) if len(calls) == 1 else 0

        dying.setattr(rehearsal, "_remove", only_the_first)  # killed with -9: nobody cleans up
        with pytest.raises(Killed):
            made.rehearse()
    assert made.clones()
    again = made.rehearse()
    assert (made.clones(), again.lost_records) == ([], 0)
    told = history(made.flow, made.target.endpoint())
    assert [run.run for run in told] == [done.run, again.run]
    assert told[0] == done
