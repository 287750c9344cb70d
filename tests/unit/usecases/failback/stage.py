"""A cluster whose topics are lists, and a failback whose flow is home on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

from causeway.core.kernel.identity import TopicPartition
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.records.records import Record
from causeway.core.state.flow_log import LogRecord
from causeway.core.state.flow_state import FlowState, fold
from tests.support import builders
from tests.support.episodes import HOME

FORWARD = builders.flow(HOME.flow, failback=HOME.reverse)
REVERSE = builders.flow(HOME.reverse, failback_of=HOME.flow)
RUN = replace(HOME, facts={"parted": True, "moved": "aaaaaaaaaaaa"})


async def nothing() -> None:
    """Nobody comes in between."""


@dataclass
class Cluster:
    logs: dict[str, list[tuple[bytes, bytes | None]]] = field(default_factory=dict)
    before_a_write: Callable[[], Awaitable[None]] = nothing
    """Once."""
    stepped_over: frozenset[str] = frozenset()

    @property
    def wire(self) -> Any:
        return self

    async def topics(self, names: list[str]) -> dict[str, Any]:
        return dict.fromkeys(names, SimpleNamespace(error=0, lacks=lambda _: False))

    async def end_of(self, at: TopicPartition) -> int:
        return len(self.logs.get(at.topic, []))

    async def records(self, at: TopicPartition, start: int, end: int) -> AsyncIterator[Record]:
        for offset in range(start, end):
            yield Record(offset, 0, *self.logs[at.topic][offset])

    async def flow_state(self, name: str) -> FlowState:
        states: dict[str, FlowState] = {}
        for offset, (key, value) in enumerate(self.logs.get(FLOWS_TOPIC, [])):
            states = fold(states, LogRecord(offset, 0, key, value))
        return states.get(name, FlowState())

    async def append_plain(self, topic: str, key: bytes, value: bytes | None) -> int:
        first, self.before_a_write = self.before_a_write, nothing
        await first()
        self.logs.setdefault(topic, []).append((key, value))
        return len(self.logs[topic]) - 1

    async def append_many(self, topic: str, records: Any) -> int:
        return len([await self.append_plain(topic, key, value) for key, value in records])

    async def claim(self, *_: object, **__: object) -> None:
        """Each lane is free."""
