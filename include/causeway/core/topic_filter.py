"""Which topics a flow copies: MirrorMaker 2's lists of names and regular expressions, exclude wins."""

from __future__ import annotations

import re
from dataclasses import dataclass

DEFAULT_TOPICS_EXCLUDE = (r".*[\-\.]internal", r".*\.replica", r"__.*")


@dataclass(frozen=True, slots=True)
class TopicFilter:
    """Full matches; an empty include list matches nothing."""

    include: tuple[str, ...]
    exclude: tuple[str, ...] = DEFAULT_TOPICS_EXCLUDE

    def matches(self, topic: str) -> bool:
        return _any(self.include, topic) and not _any(self.exclude, topic)


def _any(patterns: tuple[str, ...], topic: str) -> bool:
    return any(re.fullmatch(pattern, topic) for pattern in patterns)
