"""Two people complete a failback again at once: who leads, and what each of the two closes and opens.

The flows topics and the journals are lists; all that reads and writes them is the product's own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import pytest

from causeway.core.failback.divergence import FailbackRun, Step
from causeway.core.journal.journal_format import FAILOVERS_TOPIC
from causeway.core.journal.written_records import failback_record
from causeway.core.kernel.errors import BadInput
from causeway.core.kernel.identity import TopicPartition
from causeway.core.state.fences import Fence
from causeway.core.state.flow_state import FlowState
from causeway.usecases.failback import complete_again
from causeway.usecases.failback.complete_again import Earlier
from causeway.usecases.failback.divergence import FailbackSession
from causeway.usecases.failback.journal_store import journal_of, told
from causeway.usecases.journal.store import read_journal
from causeway.usecases.run_lock.fence import open_for
from causeway.usecases.run_lock.ownership import Terms, write_fence
from tests.support import builders
from tests.unit.usecases.failback.stage import FORWARD, REVERSE, RUN, Cluster, nothing

ID = UUID(int=1)
WORDS = {"by": "ann", "because": "home"}


class World:
    """All was home, and that was rolled back."""

    def __init__(self) -> None:
        self.new, self.old = Cluster(), Cluster()
        self.clock: Any = SimpleNamespace(time_ms=lambda: 1)
        clusters = SimpleNamespace(network=self.clock, at_source=self.new, target=self.old)
        self.pairing = FailbackSession(FORWARD, REVERSE, clusters)  # type: ignore[arg-type]
        self.new.logs[FAILOVERS_TOPIC] = [failback_record(RUN)]
        asyncio.run(self.stand_by())

    async def stand_by(self) -> None:
        await self.raise_fence(self.old, REVERSE, RUN.stand_by_words)

    async def raise_fence(self, at: Cluster, of: Any, owner: str) -> str:
        terms = Terms(token=uuid4().hex, owner=owner)
        await write_fence(at, self.clock, of, by="ann", because=owner, terms=terms)  # type: ignore[arg-type]
        return terms.token

    async def lift(self, at: Cluster, of: Any, owner: str) -> None:
        await open_for(at, self.clock, of, owner, **WORDS)  # type: ignore[arg-type]

    async def somebody_else_begins(self) -> None:
        await self.raise_fence(self.new, FORWARD, RUN.fence_words)

    async def somebody_else_goes_home(self) -> None:
        await self.somebody_else_begins()
        back = await told(self.pairing, RUN, Step.RETURNING)
        await self.lift(self.old, REVERSE, RUN.stand_by_words)
        await self.stand_by()
        await told(self.pairing, back, Step.HOME, moved="bbbbbbbbbbbb")
        await self.lift(self.new, FORWARD, RUN.fence_words)

    def go_home_again(self) -> None:
        asyncio.run(complete_again._clear(self.pairing, Earlier(run=RUN, is_taken_back=True), "bob"))

    def fences(self, of: str) -> tuple[Fence, ...]:
        at = self.new if of == FORWARD.name else self.old
        return asyncio.run(at.flow_state(of)).standing

    @property
    def run(self) -> FailbackRun | None:
        journal = asyncio.run(read_journal(journal_of(self.pairing), FORWARD.name))
        return journal.newest_failback(FORWARD.name)


@pytest.fixture
def world() -> World:
    return World()


def written(monkeypatch: pytest.MonkeyPatch, found: object, meanwhile: Callable[[], Awaitable[None]]) -> None:
    async def look(*_: object) -> object:
        await meanwhile()
        return found

    monkeypatch.setattr(complete_again, "_written_at_home", look)


def test_it_closes_the_one_and_then_opens_the_other(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    written(monkeypatch, None, nothing)
    world.go_home_again()
    assert [fence.owner for fence in world.fences(FORWARD.name)] == [RUN.fence_words]
    assert world.fences(REVERSE.name) == ()
    assert world.run is not None
    assert world.run.step is Step.RETURNING


@pytest.mark.parametrize("when", ["before its fence", "behind its fence"])
def test_who_is_held_up_while_it_closes_the_flow_leads_nobody_away_who_is_home_by_then(
    world: World, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    if when == "before its fence":
        world.new.before_a_write = world.somebody_else_goes_home
    written(monkeypatch, None, nothing if when == "before its fence" else world.somebody_else_goes_home)
    with pytest.raises(BadInput, match="went on, or is over"):
        world.go_home_again()
    assert world.fences(FORWARD.name) == ()
    assert [fence.owner for fence in world.fences(REVERSE.name)] == [RUN.stand_by_words]
    assert world.run is not None
    assert (world.run.step, world.run.facts["moved"]) == (Step.HOME, "bbbbbbbbbbbb")


def test_who_doesnt_close_the_flow_after_all_opens_nothing_that_somebody_else_has_closed(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    written(monkeypatch, TopicPartition("orders", 0), world.somebody_else_begins)
    with pytest.raises(BadInput, match="has new records since"):
        world.go_home_again()
    assert [fence.by for fence in world.fences(FORWARD.name)] == ["ann"]
    assert world.run == RUN


@pytest.mark.parametrize("step", [Step.HOME, Step.RETURNING])
@pytest.mark.parametrize("is_written", [True, False])
def test_where_something_was_written_at_home_the_way_on_is_named(
    world: World, monkeypatch: pytest.MonkeyPatch, step: Step, is_written: bool
) -> None:
    """A flow that rests can't be failed over again: the reverse flow mirrors on, and parks what it has to."""
    monkeypatch.setattr(complete_again, "read_pair_positions", stands_at(5))
    monkeypatch.setattr(complete_again, "_goes_on", always(is_written))
    monkeypatch.setattr(complete_again, "ReverseFlowReader", lambda *_: SimpleNamespace(look=always(None)))
    assert_names_the_way_on(world, replace(RUN, step=step), is_written)


def test_a_place_that_a_flow_was_given_while_it_rests_is_no_record_of_its_own(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was adopted after a record that somebody wrote on the new primary a moment before."""
    monkeypatch.setattr(complete_again, "read_pair_positions", stands_at(5))
    monkeypatch.setattr(complete_again, "_goes_on", always(False))
    adopted = SimpleNamespace(end_of=lambda _: 7)
    monkeypatch.setattr(complete_again, "ReverseFlowReader", lambda *_: SimpleNamespace(look=always(adopted)))
    assert_names_the_way_on(world, replace(RUN, step=Step.RETURNING), False)
    assert_names_the_way_on(world, RUN, True)


def assert_names_the_way_on(world: World, run: FailbackRun, is_refused: bool) -> None:
    known = SimpleNamespace(source_topic="orders", partitions=1, source_topic_id=ID, target_topic_id=ID)
    state = FlowState(pairs={"orders": known})  # type: ignore[dict-item]
    if not is_refused:
        asyncio.run(complete_again._refuse_written_at_home(world.pairing, run, state))
        return
    with pytest.raises(BadInput, match="orders-0 has new records since") as told:
        asyncio.run(complete_again._refuse_written_at_home(world.pairing, run, state))
    lead_on, fail_over = "`causeway lift nyc_to_sf --because", "`causeway failover sf_to_nyc"
    first, other = (lead_on, fail_over) if run.step is Step.RETURNING else (fail_over, lead_on)
    assert first in str(told.value)
    assert other not in str(told.value)


def stands_at(source_next: int) -> Any:
    async def look(_flow: object, _at: object, _state: object, at: list[Any], **_: object) -> dict[Any, Any]:
        return dict.fromkeys(at, builders.position(source_next, 10, target_topic_id=ID))

    return look


def always(found: object) -> Any:
    async def say(*_: object) -> object:
        return found

    return say
