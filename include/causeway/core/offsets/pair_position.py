"""Where a pair of partitions stands: one answer for everybody who asks.

Its committed position, if there is one. Committed offsets expire (after seven days without a commit, and at
once for whoever deletes a group), so else the newest of what doesn't: the offset map, which has each run of
records and each place that was set without any; and the flow's state, which has what people set, and where
the start rule began. Nothing of these is *unknown*: a value that refuses, never 0.

Which one is the newest
    A. What is older than the partition's last adoption says nothing about where to go on.
    B. By generation; in the same one a run comes after the place where that generation began, unless it lies
       before that place on both sides: then it was handed over with it.
    C. A start counts only where there is nothing else, and while the target ends where it did then: what was
       written since may be the flow's own, of which the map has lost its word.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from causeway.core.kernel.identity import Generation, Pair, SourceOffset, TargetOffset
from causeway.core.offsets.offset_map import MappedRange, ranges_of_topics
from causeway.core.state.position import Position
from causeway.core.state.position_ledger import ManualPosition, last_manual_position
from causeway.core.state.start_ledger import StartAt

_RUN_RANK = 2
"""After what was set in the same generation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What doesn't expire of one pair."""

    runs: Sequence[MappedRange] = ()
    place: Position | None = None
    """Of the map, of whichever topics."""
    set_by_hand: Position | None = None
    start: StartAt | None = None
    adopted_at: int = -1


def where_it_stands(pair: Pair, kept: Kept, target_end: int | None) -> Position | None:
    """Without a committed position; None: unknown. `target_end`: of the log; None: not known either."""
    left = where_it_was_left(pair, kept)
    if left is None and kept.start is not None and kept.start.target_end == target_end:
        return _start_of(pair, kept)
    return left


def where_it_ended(pair: Pair, kept: Kept) -> Position | None:
    """Of a flow that is closed: up to where its own records reach, whoever has written after them since.

    No place to go on from: `where_it_stands` has that.
    """
    return where_it_was_left(pair, kept) or _start_of(pair, kept)


def where_it_was_left(pair: Pair, kept: Kept) -> Position | None:
    """By what was copied or set; None: nothing of it is known."""
    ranked = [
        (each.generation, rank, each)
        for rank, each in enumerate((kept.set_by_hand, kept.place))
        if each is not None and each.ids == pair.ids and each.generation >= kept.adopted_at
    ]
    run = last_range(kept.runs, pair, kept.adopted_at)
    if run is not None and not _is_before(run, kept.place):
        ranked.append((run.generation, _RUN_RANK, position_of(run)))
    return max(ranked, key=lambda each: each[:2])[2] if ranked else None


def _is_before(run: MappedRange, place: Position | None) -> bool:
    """A failback tells what it hands over in its adoption's generation. It lies before the adoption's place,
    also for whoever doesn't know any more which generation that was."""
    return (
        place is not None
        and place.generation == run.generation
        and place.ids == run.ids
        and run.source_next <= place.source_next
        and run.target_next <= place.target_next
    )


def last_range(runs: Iterable[MappedRange], pair: Pair, adopted_at: int) -> MappedRange | None:
    """The run that was mirrored last; None: the map has none that says where to go on.

    An adoption sets a position without data. What was mirrored before it may lie far from there.
    """
    ours = ranges_of_topics(runs, pair.ids)
    return ours[-1] if ours and ours[-1].generation > adopted_at else None


def taken_over_to(place: Position | None, pair: Pair, adopted_at: int) -> int:
    """Up to where the target's log was taken as it was when a person set the place; 0: nobody did, or a lane
    has set one since."""
    if place is None or adopted_at < 0 or place.generation != adopted_at:
        return 0
    return int(place.target_next) if place.ids == pair.ids else 0


def position_of(run: MappedRange) -> Position:
    """As it was when the run was committed, as far as the map knows."""
    return Position(
        source_next=run.source_next,
        target_next=run.target_next,
        source_topic_id=run.source_topic_id,
        target_topic_id=run.target_topic_id,
        source_epoch=run.source_epoch,
        target_epoch=run.target_epoch,
        generation=run.generation,
        producer_id=-1,
        time_ms=0,
        records=run.count,
    )


def set_position(entries: Iterable[ManualPosition], pair: Pair) -> Position | None:
    """What a person set last, by the flow's ledger."""
    found = last_manual_position(entries, pair)
    if found is None:
        return None
    entry, place = found
    return _without_records(pair, place.source_next, place.target_next, entry.generation)


def _start_of(pair: Pair, kept: Kept) -> Position | None:
    start = kept.start
    if start is None or start.generation < kept.adopted_at:
        return None
    end = TargetOffset(start.target_end)
    return _without_records(pair, start.offset, end, start.generation, epoch=start.epoch)


def _without_records(
    pair: Pair, source_next: SourceOffset, target_next: TargetOffset, generation: int, *, epoch: int = -1
) -> Position:
    return Position(
        source_next=source_next,
        target_next=target_next,
        source_topic_id=pair.source_topic_id,
        target_topic_id=pair.target_topic_id,
        source_epoch=epoch,
        target_epoch=-1,
        generation=Generation(generation),
        producer_id=-1,
        time_ms=0,
    )
