"""A topic as its cluster describes it, and one that a flow leaves alone."""

from __future__ import annotations

from dataclasses import dataclass

from causeway.core.topics.carried_settings import TopicSetting


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """A topic as its cluster describes it."""

    name: str
    partitions: int
    settings: tuple[TopicSetting, ...] = ()
    is_internal: bool = False
    replicas: int = 0
    """Of its best replicated partition; 0: not asked."""


@dataclass(frozen=True, slots=True)
class RefusedTopic:
    """A source topic that the flow leaves alone, and what a person can do about it."""

    topic: str
    reason: str
    remedy: str
