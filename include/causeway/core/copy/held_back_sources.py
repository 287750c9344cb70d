"""Sources whose last stable offset does not move while their logs grow: somebody's transaction stays open.

A mirror ends at the last stable offset, as every `read_committed` reader does. That is right for as long as
a transaction takes; one that nobody ends holds all readers up for ever, and lag alone doesn't show it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from causeway.core.kernel.identity import TopicPartition

STANDS_STILL_SECONDS = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldBackSource:
    """A source partition with something open after its last stable offset."""

    stable: int
    end: int
    since: float
    """When it was first seen at this last stable offset, by the run's own clock."""
    end_then: int
    is_said: bool = False

    @property
    def offsets(self) -> int:
        return self.end - self.stable

    def stands_still(self, now: float) -> bool:
        return now - self.since >= STANDS_STILL_SECONDS and self.end > self.end_then


Ends = Mapping[TopicPartition, tuple[int, int]]
"""Last stable offset and end of each log."""


def look_again(
    before: Mapping[TopicPartition, HeldBackSource], ends: Ends, now: float
) -> dict[TopicPartition, HeldBackSource]:
    """What is held back now; what has moved on begins again, what holds nothing back is forgotten."""
    held: dict[TopicPartition, HeldBackSource] = {}
    for tp, (stable, end) in ends.items():
        if end <= stable:
            continue
        was = before.get(tp)
        if was is not None and was.stable == stable:
            held[tp] = replace(was, end=end)
        else:
            held[tp] = HeldBackSource(stable=stable, end=end, since=now, end_then=end)
    return held


def describe(tp: TopicPartition, held: HeldBackSource, now: float) -> str:
    return (
        f"{tp} stands at its last stable offset {held.stable} for {now - held.since:.0f} s, and its log has "
        f"grown to {held.end}: a transaction is open there; "
        f"`kafka-transactions.sh find-hanging --topic {tp.topic} --partition {tp.partition}` names it"
    )
