"""What a turn needs to know of a contender."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from causeway.lab.cluster import LabCluster
from tests.bench.workloads import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """One turn's own: names that no other turn has used on these brokers."""

    source: LabCluster
    target: LabCluster
    workload: Workload
    alias: str
    """What the source is called in this turn, and what the copies' names begin with."""
    folder: Path

    def copy_of(self, topic: str) -> str:
        return f"{self.alias}.{topic}"

    @property
    def copies(self) -> tuple[str, ...]:
        return tuple(map(self.copy_of, self.workload.topic_names))


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    command: list[str]
    environment: Mapping[str, str] | None = None
    ends_by_itself: bool = True
    """Else it gets the signal to end when everything has arrived and nothing comes any more."""
    kind_of: Callable[[str], str] = field(default=lambda _: "all")
    check_log: Callable[[str], None] = field(default=lambda _: None)
    """:raises AssertionError: it didn't run as it was meant to."""


class Contender(Protocol):
    @property
    def name(self) -> str: ...

    def prepare(self, scene: Scene) -> Launch:
        """Everything that isn't measured: files, topics that it doesn't make itself."""
        ...
