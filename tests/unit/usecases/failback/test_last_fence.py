"""Of a flow that rests during a failback one fence stands, whoever has raised it."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from causeway.core.failback.divergence import FailbackRun, Step
from causeway.core.journal.journal_format import FAILOVERS_TOPIC
from causeway.core.journal.written_records import failback_record
from causeway.core.kernel.errors import BadInput
from causeway.core.state.fences import COMMAND
from causeway.usecases.failback import lift as failback_lift
from causeway.usecases.failback.lift import lift_by_hand
from causeway.usecases.run_lock.ownership import Terms, write_fence
from causeway.usecases.session.source_may_be_gone import FlowSession
from tests.unit.usecases.failback.stage import FORWARD, RUN, Cluster

LEADS_BACK = replace(RUN, step=Step.RETURNING)
CLOCK: Any = SimpleNamespace(time_ms=lambda: 1, run=lambda work: asyncio.run(work()))


@pytest.fixture
def target(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster()

    def run(_: object, work: Any) -> object:
        return asyncio.run(work(FlowSession(CLOCK, made, None)))  # type: ignore[arg-type]

    async def lifted(*_: object, **named: Any) -> object:
        return named["number"]

    monkeypatch.setattr(failback_lift, "run_in_target_session", run)
    monkeypatch.setattr(failback_lift, "lift_fence_at", lifted)
    return made


def knows(target: Cluster, run: FailbackRun) -> None:
    target.logs[FAILOVERS_TOPIC] = [failback_record(run)]


def fenced(target: Cluster, owner: str = "", topics: frozenset[str] | None = None) -> int:
    at: Any = target
    terms = Terms(owner=owner, topics=topics)
    return int(asyncio.run(write_fence(at, CLOCK, FORWARD, by="ops", because="a flood", terms=terms)))


def lift(number: int | None = None) -> object:
    at: Any = None
    return lift_by_hand(FORWARD, at, at, by="amy", because="it may write", number=number)


def test_the_last_fence_of_a_flow_that_rests_stands_until_all_is_home(target: Cluster) -> None:
    """The failback's own was lost with the flows topic."""
    knows(target, LEADS_BACK)
    fenced(target, topics=frozenset({"orders"}))
    last = fenced(target)
    with pytest.raises(BadInput, match=r"is the only one .* while failback b1 mirrors back") as told:
        lift(last)
    assert "`causeway failback sf_to_nyc --home` comes first" in str(told.value)
    knows(target, RUN)
    assert lift(last) == last, "all is home"
    knows(target, replace(LEADS_BACK, facts={"parted": False}))
    assert lift(last) == last, "with prefixes each writes topics of its own"


def test_the_only_one_is_meant_where_none_is_named(target: Cluster) -> None:
    knows(target, LEADS_BACK)
    assert lift() is None, "none stands, and `lift_fence` says so"
    last = fenced(target)
    with pytest.raises(BadInput, match="is the only one"):
        lift()
    of_a_command = fenced(target, COMMAND)
    with pytest.raises(BadInput, match="is the only one"):
        lift(last)  # a command's goes away by itself
    assert lift(of_a_command) == of_a_command, "and a dead one holds up the other flow"


@pytest.mark.parametrize("other", ["", LEADS_BACK.fence_words])
def test_one_beside_another_may_go(target: Cluster, other: str) -> None:
    knows(target, LEADS_BACK)
    fenced(target, other)
    last = fenced(target)
    assert lift(last) == last
    assert lift() is None, "it has to be named, which `lift_fence` says"


def test_one_of_some_topics_may_go(target: Cluster) -> None:
    knows(target, LEADS_BACK)
    fenced(target)
    some = fenced(target, topics=frozenset({"orders"}))
    assert lift(some) == some
