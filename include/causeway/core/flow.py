"""A flow as the rest of the package sees it: validated, frozen, with no trace of the file it came from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from causeway.core.naming import NamingPolicy
from causeway.core.topic_filter import TopicFilter

MEBIBYTE = 1 << 20


def group_of(flow: str) -> str:
    return f"causeway.{flow}"


def map_topic_of(source: str) -> str:
    return f"causeway-offset-map.{source}.internal"


@dataclass(frozen=True, slots=True)
class Start:
    """Where a partition begins that has neither position nor history on the target."""

    at: Literal["earliest", "latest", "timestamp"]
    timestamp_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CopyLimits:
    """What bounds a lane: bytes and time of a transaction, bytes of a fetch, time of a round."""

    transaction_bytes: int = 16 * MEBIBYTE
    transaction_seconds: float = 5.0
    transaction_timeout_ms: int = 60_000
    fetch_bytes: int = 16 * MEBIBYTE
    lane_seconds: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    name: str
    source: str
    target: str
    topics: TopicFilter
    naming: NamingPolicy
    start: Start
    lanes: int
    replication_factor: int | None
    """For topics that Causeway creates; None: the target broker's default."""
    config_properties_exclude: tuple[str, ...]
    limits: CopyLimits
    settle: bool = False
    """Keep what a dead worker left open, where it is proved right, so that default readers see no repeats."""

    @property
    def group(self) -> str:
        """The group whose committed offsets on the target are the flow's positions."""
        return group_of(self.name)

    def transactional_id(self, lane: int) -> str:
        """A pure function of what is written, never of who writes: that is what fences."""
        return f"causeway.{self.name}.{lane}"

    @property
    def maintenance_id(self) -> str:
        """The transactional id of whoever keeps the map small: one at a time, beside the lanes."""
        return f"causeway.{self.name}.map"

    @property
    def map_topic(self) -> str:
        return map_topic_of(self.source)
