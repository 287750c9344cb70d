"""A drill on real brokers: beside a running mirror, on clones, and nothing of it is left."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.brokers.consumer_groups import ConsumerGroups
from causeway.core.failover.drill import clones_of
from causeway.flows.failover import drill as rehearsal
from causeway.flows.failover.drill import drill, history
from causeway.flows.failover.sides import open_target_side
from tests.failover.conftest import MakeStage
from tests.failover.stage import BASE_MS, FailoverStage
from tests.killing import Killed

pytestmark = pytest.mark.integration


def rehearse(stage: FailoverStage) -> Any:
    endpoints = stage.source.endpoint(), stage.target.endpoint()
    return drill(stage.flow, *endpoints, stage.rules, by="a test", say=lambda _: None)


def clones(stage: FailoverStage) -> list[str]:
    """As the brokers list them: by the wire, because the admin client leaves out groups without members."""
    with open_target_side(stage.target.endpoint()) as sides:
        listed = sides.network.run(ConsumerGroups(sides.target.wire).listed)
    return [name for name in listed if name.startswith(clones_of(stage.flow.name))]


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

    done = rehearse(made)

    assert (done.groups, done.offsets, done.as_planned, done.read) == (2, 3, 3, 3)
    assert (done.lost_records, done.rpo_seconds, done.rereads) == (7, 7, 0)
    assert (clones(made), made.there("a"), made.there("b")) == ([], {}, {})
    assert made.run().records == 7, "the mirror goes on"

    def dies(*_: Any, **__: Any) -> None:
        assert clones(made)
        raise Killed

    with monkeypatch.context() as dying:
        dying.setattr(rehearsal, "read_first", dies)
        with pytest.raises(Killed):
            rehearse(made)
    assert clones(made) == []

    with monkeypatch.context() as dying:
        dying.setattr(rehearsal, "read_first", dies)
        real, calls = rehearsal._remove, []

        def only_the_first(*arguments: Any) -> int:
            calls.append(1)
            return real(*arguments) if len(calls) == 1 else 0

        dying.setattr(rehearsal, "_remove", only_the_first)  # killed with -9: nobody cleans up
        with pytest.raises(Killed):
            rehearse(made)
    assert clones(made)
    again = rehearse(made)
    assert (clones(made), again.lost_records) == ([], 0)
    told = history(made.flow, made.target.endpoint())
    assert [run.run for run in told] == [done.run, again.run]
    assert told[0] == done
