"""A flow as the rest of the package sees it: validated, frozen, with no trace of the file it came from."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

from causeway.core.model.naming import (
    NamingPolicy,
    PrefixNaming,
    checkpoints_topic,
    is_heartbeats,
    offset_syncs_topic,
    way_of,
)
from causeway.core.model.topic_filter import TopicFilter

MEBIBYTE = 1 << 20
_ROUND_TRIP_SECONDS = 0.05
"""About what an answer of 16 MiB takes on a short line."""
_MOST_TIMES_LONGER = 3
"""Brokers give no more than 55 MB at once, and a worker holds two answers."""


def group_of(flow: str) -> str:
    return f"causeway.{flow}"


def map_topic_of(source: str) -> str:
    return f"causeway-offset-map.{source}.internal"


class RefusedPolicy(StrEnum):
    """What becomes of a record that the target doesn't take."""

    PARK = "park"
    RAISE_LIMIT = "raise_limit"
    QUARANTINE = "quarantine"


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

    def fetch_bytes_over(self, round_trip_seconds: float) -> int:
        """Of one fetch from a source so far away: the next is asked for when the last has come, so a line is
        silent for a round trip between two answers, and only larger answers make up for it."""
        longer = min(1 + round_trip_seconds / _ROUND_TRIP_SECONDS, _MOST_TIMES_LONGER)
        return int(self.fetch_bytes * longer)


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """What a flow keeps up besides records. Each has a task of its own, and rights of its own."""

    sync_settings: bool = False
    use_defaults_from: Literal["target", "source"] = "target"
    """Where a setting gets its value that is at its default on the source."""
    sync_acls: bool = False
    emit_heartbeats: bool = False
    """Write them to the source."""
    mirror_heartbeats: bool = False
    """Carry them over, whatever the filter says: the source's own and those that arrive there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    name: str
    source: str
    target: str
    topics: TopicFilter
    naming: NamingPolicy
    start: Start
    lanes: int
    replication_factor: int | Literal["source"] | None
    """For topics that Causeway creates; "source": as many as the source's topic; None: the target
    broker's default."""
    config_properties_exclude: tuple[str, ...]
    limits: CopyLimits
    settle: bool = False
    """Keep what a dead worker left open, where it is proved right, so that default readers see no repeats."""
    upkeep: Upkeep = Upkeep()
    on_refused: RefusedPolicy = RefusedPolicy.PARK
    """What becomes of records that the target doesn't take."""
    failback_of: str = ""
    """The flow whose way back this one is, under the same names (`core/state/reverse_flow.py`)."""
    failback: str = ""
    """Or the flow that is the way back of this one."""

    @property
    def opposite(self) -> str:
        """The flow in the other direction under the same names; empty: there is none."""
        return self.failback_of or self.failback

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
    def own_replication_factor(self) -> int | None:
        """Of the flow's own topics, which have no source; None: the target broker's default."""
        return None if self.replication_factor == "source" else self.replication_factor

    def mirrors_heartbeats(self, topic: str) -> bool:
        return self.upkeep.mirror_heartbeats and is_heartbeats(topic, self.separator)

    def went_round(self, topic: str) -> bool:
        """Heartbeats of the source that came back to it, by whatever name the target has elsewhere."""
        return self.source in way_of(topic, self.separator)[1:]

    @property
    def map_topic(self) -> str:
        return map_topic_of(self.source)

    @property
    def quarantines(self) -> bool:
        return self.on_refused is RefusedPolicy.QUARANTINE

    @property
    def quarantine_topic(self) -> str:
        return f"causeway-quarantine.{self.name}.internal"

    @property
    def checkpoints_topic(self) -> str:
        return checkpoints_topic(self.source, self.separator)

    @property
    def syncs_topic(self) -> str:
        return offset_syncs_topic(self.source, self.separator)

    @property
    def separator(self) -> str:
        """After an alias, in names that show a way: mirrors', or only those of heartbeats and own topics."""
        return self.naming.separator if isinstance(self.naming, PrefixNaming) else "."
