"""Partitions of which nothing is kept but where they were to begin: whether a record of them ever crossed.

Both logs have to say it. What the new primary holds after that place was written by applications since the
failover, or it was mirrored, and the flow has lost every word about it: position, map and places.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from causeway.brokers.wire.target_log import WireTarget
from causeway.core.kernel.identity import TopicPartition
from causeway.core.records.records import Record

_LOOKED_AT = 10_000
"""Records of the old primary. What crosses first is what a log has first."""
Bounds = Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class MayBegin:
    """A partition on both sides, and where it was to begin."""

    old: TopicPartition
    new: TopicPartition
    source_next: int
    target_next: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    at: WireTarget
    starts: Bounds
    ends: Bounds


async def nothing_crossed(
    asked: Sequence[MayBegin], old: Side, new: Side, *, is_rebuilt: bool
) -> frozenset[TopicPartition]:
    """Those of which that is sure, by the new primary's partitions.

    `is_rebuilt`: the old primary's logs are emptied and mirrored again, so an empty one has nothing to tell.
    """
    sure = [each for each in asked if await _is_sure(each, old, new, is_rebuilt=is_rebuilt)]
    return frozenset(each.new for each in sure)


async def _is_sure(each: MayBegin, old: Side, new: Side, *, is_rebuilt: bool) -> bool:
    old_start, old_end = old.starts[each.old], old.ends[each.old]
    if old_end <= each.source_next or (is_rebuilt and old_start == old_end):
        return True  # the source has never had a record that could cross
    if old_start > each.source_next or new.starts[each.new] > each.target_next:
        return False  # the first records are gone, so nobody can compare them
    first = await anext(new.at.records(each.new, each.target_next, new.ends[each.new]), None)
    return first is None or not await _has(old, each, first)


async def _has(old: Side, each: MayBegin, wanted: Record) -> bool:
    """Whether the old primary has this record, too; times may differ where a broker sets them."""
    looked_at = 0
    async for record in old.at.records(each.old, each.source_next, old.ends[each.old]):
        if (record.key, record.value) == (wanted.key, wanted.value):
            return True
        looked_at += 1
        if looked_at == _LOOKED_AT:
            break
    return False
