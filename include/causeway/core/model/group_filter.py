"""Which consumer groups a flow carries over: MirrorMaker 2's lists of names and regular expressions.

Invariant: Causeway's own groups never are, whatever the lists say. Their committed offsets are positions of
flows and mean nothing to anybody else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from causeway.core.model.pattern import compiled
from causeway.core.model.pattern_list import PatternList
from causeway.core.model.topic_filter import DEFAULT_GROUPS_EXCLUDE

OWN_GROUPS = "causeway."
_PLAIN_NAME = re.compile(r"[a-zA-Z0-9_-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class FlowGroups:
    """What a flow does for consumer groups; plain text inside, so that it travels to Spark."""

    include: tuple[str, ...] = (".*",)
    exclude: tuple[str, ...] = DEFAULT_GROUPS_EXCLUDE
    sync_offsets: bool = False
    """Commit translated offsets on the target, for groups that are idle there."""
    follow_rewinds: bool = False
    """Also backwards, where the group itself went back on the source."""
    emit_checkpoints: bool = True
    emit_offset_syncs: bool = True

    def selects(self, group: str) -> bool:
        """Full matches, exclude wins; an empty include list selects nothing."""
        return not self.why_excluded(group)

    def why_excluded(self, group: str) -> str:
        """Empty: it isn't."""
        if group.startswith(OWN_GROUPS):
            return "Causeway's own"
        if not _list_of(self.include).matches(group):
            return "groups doesn't have it"
        pattern = next((each for each in self.exclude if compiled(each).matches(group)), None)
        return "" if pattern is None else f"groups.exclude has {pattern}"

    @property
    def named(self) -> frozenset[str]:
        """Groups that are listed by their full names: a broker hides those that this user may not see."""
        plain = (name for name in self.include if _PLAIN_NAME.fullmatch(name))
        return frozenset(name for name in plain if self.selects(name))

    @property
    def is_off(self) -> bool:
        return not (self.emit_checkpoints or self.emit_offset_syncs or self.sync_offsets)


@lru_cache(maxsize=64)
def _list_of(patterns: tuple[str, ...]) -> PatternList:
    return PatternList(patterns)
