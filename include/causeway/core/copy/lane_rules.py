"""What a lane decides from what it has read: pure, one rule a function.

Order of the questions: is the committed offset ours; are both topics still the ones it was written
about; are both logs still the ones; what lies on the target after the last mirrored record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from causeway.core.copy.lane_task import Assignment
from causeway.core.copy.park_reasons import not_adopted, position_lost, refusal_of_rights, target_recreated
from causeway.core.copy.ports import EpochEnd, Refused
from causeway.core.kernel.identity import SourceOffset, TargetOffset, TopicPartition
from causeway.core.offsets.map_entries import MapOf, MapTransaction
from causeway.core.offsets.offset_map import MappedRange, first_of_transaction, ranges_of_topics
from causeway.core.offsets.pair_position import Kept, where_it_was_left
from causeway.core.state.gaps import gap_parked, unknown_turn, unsaid_gap
from causeway.core.state.parked import Parked, ParkReason
from causeway.core.state.position import ForeignPosition, Position
from causeway.core.state.repair_commands import adopt_command, reconcile_remedy, restart_remedy
from causeway.core.state.start_ledger import StartAt


@dataclass(frozen=True, slots=True)
class Fresh:
    """No position and, as far as known, no history: begin where the start rule puts it."""


@dataclass(frozen=True, slots=True)
class LostPosition:
    """No position although the flow has begun with this partition: map or ledger must say where it stands."""


def judge_position(
    flow: str, assignment: Assignment, found: Position | ForeignPosition | None
) -> Position | Fresh | LostPosition | Parked:
    """Is what was committed a position of ours, for these two topics?"""
    pair = assignment.pair
    if isinstance(found, ForeignPosition):
        return Parked(
            ParkReason.FOREIGN_POSITION,
            f"group causeway.{flow} holds offset {found.source_next} for {pair.target}, but {found.why}",
            "delete that offset if it isn't wanted; nobody else may commit to this group",
        )
    if found is None and assignment.known:
        return LostPosition()
    if found is None:
        if assignment.opposite is not None:
            return not_adopted(flow, assignment)
        return Fresh() if assignment.start is not None else LostPosition()
    return _judge_ids(flow, assignment, found) or leads_back(flow, assignment, found.source_next) or found


def _judge_ids(flow: str, assignment: Assignment, position: Position) -> Parked | None:
    pair = assignment.pair
    if position.target_topic_id != pair.target_topic_id:
        return target_recreated(flow, assignment, position.target_topic_id)
    if position.source_topic_id != pair.source_topic_id:
        return Parked(
            ParkReason.SOURCE_RECREATED,
            f"{pair.source.topic} had id {position.source_topic_id} and has {pair.source_topic_id}; "
            f"offset {position.source_next} of the old one means nothing in the new one",
            restart_remedy(flow, pair.source.topic),
        )
    return None


def leads_back(flow: str, assignment: Assignment, source_next: int) -> Parked | None:
    """Set if what would be read next came from the target."""
    opposite, source = assignment.opposite, assignment.pair.source
    if opposite is None or source_next >= opposite.wrote_to:
        return None
    return Parked(
        ParkReason.NOT_ADOPTED,
        f"it stands at {source_next} of {source}, and flow {opposite.flow} has written there up to "
        f"{opposite.wrote_to}: its records would come back",
        adopt_command(flow, source, opposite.wrote_to) + " goes on after them",
    )


def judge_source_lineage(
    flow: str, assignment: Assignment, position: Position, end: EpochEnd | Refused | None
) -> Parked | str | None:
    """Does the source still have the history that the position was written about?

    A string is a passing reason to wait for the next round.
    """
    if end is None or position.source_epoch < 0:
        return None
    pair = assignment.pair
    if isinstance(end, Refused):
        return refusal_of_rights(pair.source.topic, "source", end) or f"{pair.source}: {end}"
    if end.end >= position.source_next:
        return None
    return source_turned(flow, pair.source, position, end)


def source_turned(
    flow: str, source: TopicPartition, position: Position, end: EpochEnd, *, log_start: int = 0
) -> Parked:
    """The log before the position isn't the one that was read any more."""
    gap = unsaid_gap(source, position.source_next, end.end, log_start=log_start)
    if end.end < 0 or gap is None:
        return unknown_turn(
            flow,
            source,
            f"{source} no longer knows leader epoch {position.source_epoch}, in which it was read to "
            f"offset {position.source_next}",
        )
    return gap_parked(
        flow,
        gap,
        f"it was read to offset {position.source_next} in leader epoch {position.source_epoch}, "
        f"and {_as_told(end, position.source_epoch)} now ends at {end.end}",
    )


def _as_told(end: EpochEnd, asked: int) -> str:
    return "that epoch" if end.epoch == asked else f"the last epoch before it ({end.epoch})"


def kept_to(runs: list[MappedRange], assignment: Assignment, position: Position, end: EpochEnd) -> int:
    """By the map, where the broker only tells of an older epoch than the position's: what was read in that
    one may have ended earlier than the log's own share of it (two unclean elections)."""
    if end.epoch >= position.source_epoch or end.end < 0:
        return end.end
    ours = ranges_of_topics(runs, assignment.pair.ids)
    elder = [run for run in ours if 0 <= run.source_epoch <= end.epoch]
    if elder:
        return min(end.end, int(elder[-1].source_next))
    return min(end.end, int(ours[0].source_first)) if ours else end.end


def source_cut(
    flow: str, assignment: Assignment, source_next: int, end: int, *, log_start: int = 0
) -> Parked:
    source = assignment.pair.source
    gap = unsaid_gap(source, source_next, end, log_start=log_start)
    assert gap is not None, "only of a log that ends before the position"
    return gap_parked(flow, gap, f"it was read to offset {source_next} and now ends at {end}")


def target_tail_is_lost(
    position: Position, end: EpochEnd | Refused | None, log_start: int, log_end: int
) -> bool:
    """Whether the target no longer has the record before `target_next` (an unclean election)."""
    if log_end < position.target_next:
        return True
    if not isinstance(end, EpochEnd) or position.target_epoch < 0:
        return False
    if log_start >= position.target_next:
        return False  # its own retention took what the epoch spoke about
    return end.end < position.target_next


def source_next_at(
    runs: list[MappedRange], assignment: Assignment, target_next: int, target_end: int
) -> SourceOffset | None:
    """By the map: where the records begin again that a log lost which now ends at `target_end`.

    None: the map doesn't tell. What it knows doesn't reach `target_next`, up to which the position says
    that records were mirrored: it lost its end too, or a person adopted that position.
    """
    ours = ranges_of_topics(runs, assignment.pair.ids)
    if not ours or ours[-1].target_next < target_next:
        return None
    for run in ours:
        if run.target_next > target_end:
            return (
                run.source_first
                if target_end <= run.target_first
                else run.source_of(TargetOffset(target_end))
            )
    return None


def range_before(runs: list[MappedRange], assignment: Assignment, target_next: int) -> MappedRange | None:
    """By the map: the last run that begins before `target_next`."""
    ours = [run for run in ranges_of_topics(runs, assignment.pair.ids) if run.target_first < target_next]
    return ours[-1] if ours else None


def transaction_up_to(
    runs: list[MappedRange], assignment: Assignment, target_next: int
) -> MappedRange | None:
    """By the map: the first run of the transaction that holds the record before `target_next`."""
    ours = ranges_of_topics(runs, assignment.pair.ids)
    for run in ours:
        if run.target_first < target_next <= run.target_next:
            return first_of_transaction(ours, run)
    return None


def open_data_was_committed(
    runs: list[MappedRange],
    assignment: Assignment,
    position: Position | None,
    last_stable: int,
    kept_to: int,
    log_end: int,
) -> bool:
    """Of a transaction of ours that a lost marker left open from `last_stable` on: how it had ended.

    The log is the one that was mirrored up to `kept_to`; after it lies what was written since. Where that
    is the position, it alone tells: it was committed with the data. A log that lost more is asked by the
    map, which has a run for all that was committed; without one it was an attempt that had been aborted.
    What was written after a cut would be committed by the same marker: then all of it is aborted, and what
    was committed of it is copied again.
    """
    if position is None:
        return False
    if position.target_next == kept_to and position.generation != assignment.adopted_at:
        return position.target_next > last_stable
    if log_end > kept_to:
        return False
    run = range_before(runs, assignment, kept_to)
    return run is not None and run.target_first >= last_stable


def was_committed(
    written: MapTransaction, positions: Mapping[TopicPartition, Position | ForeignPosition | None]
) -> bool:
    """Whether the positions say that the transaction that wrote this into the map was committed: they were
    committed with it."""
    return any(is_covered(run, positions.get(run.target)) for run in written.runs) or any(
        isinstance(position := positions.get(target), Position)
        and position.ids == place.ids
        and (position.generation, position.time_ms) >= (place.generation, place.time_ms)
        for target, place in written.places
    )


def is_covered(run: MappedRange, position: Position | ForeignPosition | None) -> bool:
    """Whether the position says that the run's records are mirrored."""
    return (
        isinstance(position, Position)
        and position.target_topic_id == run.target_topic_id
        and position.target_next >= run.target_next
        and position.source_next >= run.source_next
    )


def found_again(
    flow: str, assignment: Assignment, known: MapOf, target_end: int
) -> Position | Fresh | Parked:
    """Where a partition stands that has lost its position; parked, if that is unknown.

    It begins only in a log that nobody has written to since the start rule was asked.
    """
    left = where_it_was_left(
        assignment.pair,
        Kept(
            runs=known.runs,
            place=known.place,
            set_by_hand=assignment.set_by_hand,
            adopted_at=assignment.adopted_at,
        ),
    )
    if left is not None:  # committed again, whenever it was written
        return leads_back(flow, assignment, left.source_next) or replace(left, time_ms=0)
    start = assignment.start
    if start is None or start.generation < assignment.adopted_at or assignment.opposite is not None:
        return position_lost(flow, assignment)
    return Fresh() if start.target_end == target_end else written_since(flow, assignment, start, target_end)


def written_since(flow: str, assignment: Assignment, start: StartAt, target_end: int) -> Parked:
    """By somebody else, as far as is known: what this flow writes is in its map."""
    pair = assignment.pair
    return Parked(
        ParkReason.POSITION_LOST,
        f"{pair.target} ended at {start.target_end} when flow {flow} wrote down where to begin, and ends at "
        f"{target_end}; group causeway.{flow} and the offset map know nothing of what was written since",
        reconcile_remedy(flow, pair.source),
    )
