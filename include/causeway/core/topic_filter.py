"""Which topics a flow copies: MirrorMaker 2's lists of names and regular expressions, exclude wins."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from causeway.core.pattern import compiled

DEFAULT_TOPICS_EXCLUDE = (r".*[\-\.]internal", r".*\.replica", r"__.*")
DEFAULT_GROUPS_EXCLUDE = (r"console-consumer-.*", r"connect-.*", r"__.*")


@dataclass(frozen=True, slots=True)
class TopicFilter:
    """Full matches; an empty include list matches nothing. Plain text inside, so that it travels to Spark."""

    include: tuple[str, ...]
    exclude: tuple[str, ...] = DEFAULT_TOPICS_EXCLUDE

    def matches(self, topic: str) -> bool:
        """:raises PatternError: a pattern that config would have refused."""
        return _matches(self, topic)


@lru_cache(maxsize=65_536)
def _matches(topics: TopicFilter, topic: str) -> bool:
    """Remembered, because every round asks the same question of every topic of the source."""
    return _any(topics.include, topic) and not _any(topics.exclude, topic)


def _any(patterns: tuple[str, ...], topic: str) -> bool:
    return any(compiled(pattern).matches(topic) for pattern in patterns)
