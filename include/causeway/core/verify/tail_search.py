"""Find a source's records in a target's tail: where a mirror stands, by nothing but its records.

Two questions. From a place that is known, how far does the target go on as the source does (`follow`)? And
with nothing known, after which source record do the target's last ones lie (`Search`)?
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from causeway.core.verify.comparison import Content

ShownRecord = tuple[int, Content]
"""Offset and what a reader sees."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Followed:
    source_next: int
    found: int = 0
    """Records of the target that are the source's, in order."""
    foreign: int = 0
    """Records of the target that aren't."""


def follow(source_next: int, source: Iterator[ShownRecord], target: Iterable[ShownRecord]) -> Followed:
    """Each record of the target is the source's next one, or a foreign one that is left where it lies."""
    found = foreign = 0
    waiting = next(source, None)
    for _, content in target:
        if waiting is not None and waiting[1] == content:
            source_next, found = waiting[0] + 1, found + 1
            waiting = next(source, None)
        else:
            foreign += 1
    return Followed(source_next=source_next, found=found, foreign=foreign)


class Search:
    """Looks for the target's last records, one after the other, in a source that is read through."""

    def __init__(self, last: Sequence[ShownRecord]) -> None:
        """`last` of the target, in order; at least one."""
        self._wanted = [content for _, content in last]
        self._seen: deque[Content] = deque(maxlen=len(self._wanted))
        self.places: list[int] = []
        """After which source offset each occurrence ends."""

    def offer(self, record: ShownRecord) -> None:
        offset, content = record
        self._seen.append(content)
        if content == self._wanted[-1] and list(self._seen) == self._wanted:
            self.places.append(offset + 1)
