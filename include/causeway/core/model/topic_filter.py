"""Which topics a flow copies: MirrorMaker 2's lists of names and regular expressions, exclude wins.

No list ever matches the exports of a failback, `<topic>.diverged.<time>`: a pattern that somebody wrote for
`orders` would bring records to the other cluster that people have to look at first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from causeway.core.model.naming import is_export
from causeway.core.model.pattern_list import PatternList

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

    def __hash__(self) -> int:
        """Of the ends only: it is asked for with each topic, and a list may have ten thousands of names."""
        return hash((len(self.include), self.include[:1], self.include[-1:], len(self.exclude)))


@lru_cache(maxsize=65_536)
def _matches(topics: TopicFilter, topic: str) -> bool:
    """Remembered, because every round asks the same question of every topic of the source."""
    include, exclude = _lists(topics)
    return include.matches(topic) and not is_export(topic) and not exclude.matches(topic)


@lru_cache(maxsize=256)
def _lists(topics: TopicFilter) -> tuple[PatternList, PatternList]:
    return PatternList(topics.include), PatternList(topics.exclude)
