"""What was seen of a cluster. None always means "may not be seen by this user", never "isn't there"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from causeway.core.kernel.plurals import counted

UNLIMITED = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerFacts:
    node_id: int
    api_versions: Mapping[int, int]
    """By key of a request: the newest version that this broker takes."""
    settings: Mapping[str, str] | None
    """Broker settings that are in force, by their names in server.properties."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicView:
    """A topic that is there."""

    partitions: int
    fewest_replicas: int
    settings: Mapping[str, str] | None
    """All of them, defaults included."""
    most_replicas: int = 0
    """What a mirror gets with `replication.factor: source`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockReading:
    """The cluster's clock less ours, in the middle of a question that took `round_trip_ms`."""

    ahead_ms: int
    round_trip_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """One ALLOW of the cluster's authorizer."""

    principal: str
    resource_type: int
    name: str
    is_prefix: bool
    operation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterView:
    alias: str
    cluster_id: str
    principal: str
    brokers: tuple[BrokerFacts, ...]
    finalized: Mapping[str, int] = field(default_factory=dict)
    supported: Mapping[str, int] = field(default_factory=dict)
    operations: frozenset[int] | None = None
    """What this user may do with the cluster as a whole."""
    has_authorizer: bool = True
    grants: tuple[Grant, ...] | None = None
    clock: ClockReading | None = None

    @property
    def settings(self) -> tuple[Mapping[str, str], ...] | None:
        """Of every broker; None if one of them may not be read."""
        found = [each.settings for each in self.brokers]
        known = tuple(each for each in found if each is not None)
        return known if len(known) == len(found) else None

    @property
    def number_of_brokers(self) -> str:
        return counted(len(self.brokers), "broker")

    def values(self, name: str) -> tuple[str, ...]:
        """What the brokers say of one setting; a broker that doesn't know it says nothing."""
        return tuple(each[name] for each in self.settings or () if name in each)

    def least(self, name: str, default: int = UNLIMITED) -> int:
        return min((int(value) for value in self.values(name)), default=default)

    def most(self, name: str, default: int = 0) -> int:
        return max((int(value) for value in self.values(name)), default=default)

    def any_says(self, name: str, value: str) -> bool:
        return value in self.values(name)


def middle_reading(broker_ms: int, asked_ms: int, answered_ms: int) -> ClockReading:
    """The broker looked at its clock some time between the question and the answer."""
    return ClockReading(
        ahead_ms=broker_ms - (asked_ms + answered_ms) // 2, round_trip_ms=max(answered_ms - asked_ms, 0)
    )
