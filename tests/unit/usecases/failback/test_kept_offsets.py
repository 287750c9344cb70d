"""What groups leave on the new primary is kept until they may have been moved, in whatever try."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from causeway.core.groups.sync_rules import Committed
from causeway.core.journal.journal import FailoverRun, Journal, Shift, fold
from causeway.core.kernel.identity import TargetOffset, TopicPartition
from causeway.core.state.flow_state import FlowState
from causeway.usecases.failback import kept_offsets
from causeway.usecases.failback.kept_offsets import keep_left_offsets
from causeway.usecases.session.source_may_be_gone import FlowSession
from tests.support import builders
from tests.support.episodes import COMING, FAILBACK

P0 = TopicPartition("orders", 0)
RUN = replace(COMING, is_agreed=False, shifts={"a": {P0: Shift(before=None, after=TargetOffset(3))}})
PAIR = SimpleNamespace(source_topic="orders")


class Clusters:
    """Both journals, and what the group holds on the new primary."""

    def __init__(self) -> None:
        self.held = Committed(9, "")
        self.forward, self.reverse = Journal(), Journal(runs={RUN.run: RUN})

    def somebody_else_moves_them(self) -> None:
        """And a consumer goes on reading on the new primary."""
        self.reverse = Journal(runs={RUN.run: replace(RUN, is_agreed=True)})
        self.held = Committed(10, "")

    async def committed(self, _groups: object) -> dict[str, dict[TopicPartition, Committed]]:
        return {"a": {P0: self.held}}

    async def state_on(self, _target: object, _flow: str) -> FlowState:
        return FlowState(pairs={"orders": PAIR})  # type: ignore[dict-item]

    async def read_journal(self, _sides: object, name: str) -> Journal:
        return self.forward if name == "sf_to_nyc" else self.reverse

    async def write_journal(self, _sides: object, records: Any) -> None:
        for offset, (key, value) in enumerate(records):
            self.forward = fold(self.forward, offset, key, value)

    @property
    def kept(self) -> dict[str, dict[TopicPartition, int | None]]:
        return {
            group: {tp: None if shift.before is None else shift.before.offset for tp, shift in shifts.items()}
            for group, shifts in self.forward.loose.get(FAILBACK.run, {}).items()
        }


@pytest.fixture
def clusters(monkeypatch: pytest.MonkeyPatch) -> Clusters:
    made = Clusters()
    for name in ("state_on", "read_journal", "write_journal"):
        monkeypatch.setattr(kept_offsets, name, getattr(made, name))
    monkeypatch.setattr(kept_offsets, "ConsumerGroups", lambda _wire: made)
    monkeypatch.setattr(kept_offsets, "WireTarget", lambda wire: SimpleNamespace(wire=wire))
    return made


def keep(run: FailoverRun = RUN) -> None:
    forward, reverse = builders.flow("sf_to_nyc"), builders.flow("nyc_to_sf")
    sides = FlowSession(None, None, SimpleNamespace(wire=None))  # type: ignore[arg-type]
    asyncio.run(keep_left_offsets(forward, reverse, FAILBACK, sides, run))


def test_what_they_hold_is_kept_before_they_are_moved(clusters: Clusters) -> None:
    keep()
    assert clusters.kept == {"a": {P0: 9}}
    clusters.held = Committed(10, "")
    keep()
    assert clusters.kept == {"a": {P0: 10}}, "nobody was moved in between"
    clusters.held = Committed(11, "")
    keep(replace(RUN, is_agreed=True))
    assert clusters.kept == {"a": {P0: 10}}


def test_who_was_held_up_before_they_were_moved_keeps_nothing_any_more(clusters: Clusters) -> None:
    """It has seen the run before its plan was found to hold."""
    keep()
    clusters.somebody_else_moves_them()
    keep()
    assert clusters.kept == {"a": {P0: 9}}


def test_the_journal_is_asked_after_the_offsets(clusters: Clusters, monkeypatch: pytest.MonkeyPatch) -> None:
    keep()
    real = clusters.committed

    async def late(groups: object) -> dict[str, dict[TopicPartition, Committed]]:
        clusters.somebody_else_moves_them()
        return await real(groups)

    monkeypatch.setattr(clusters, "committed", late)
    keep()
    assert clusters.kept == {"a": {P0: 9}}
