"""What a lane decides from what it has read: pure, one rule a function.

Order of the questions: is the committed offset ours; are both topics still the ones it was written
about; are both logs still the ones; what lies on the target behind the last mirrored record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from causeway.core.batches import BatchHead, OversizedBatch
from causeway.core.gaps import gap_parked, unknown_turn, unsaid_gap
from causeway.core.identity import Pair, SourceOffset, TargetOffset, TopicPartition
from causeway.core.kafka_errors import KafkaErrorCode
from causeway.core.lane_task import Assignment, Parked, ParkReason
from causeway.core.map_entries import MapOf, MapTransaction
from causeway.core.offset_map import Run, first_of_transaction, runs_of_topics
from causeway.core.ports import EpochEnd, Refused
from causeway.core.position import ForeignPosition, Position
from causeway.core.remedies import adopt_command, adopt_remedy, reconcile_remedy, restart_remedy
from causeway.core.rights import Operation, Side, grant_command
from causeway.core.standing import Kept, where_it_was_left
from causeway.core.start_ledger import StartAt


@dataclass(frozen=True, slots=True)
class Fresh:
    """No position and, as far as known, no history: begin where the start rule said."""


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
        adopt_command(flow, source, opposite.wrote_to) + " goes on behind them",
    )


def not_adopted(flow: str, assignment: Assignment) -> Parked:
    pair, opposite = assignment.pair, assignment.opposite
    assert opposite is not None
    return Parked(
        ParkReason.NOT_ADOPTED,
        f"flow {flow} has no position for {pair.target}, and begins nowhere by itself where flow "
        f"{opposite.flow} leads the other way: records would come back",
        adopt_remedy(flow, pair.source),
    )


def target_recreated(flow: str, assignment: Assignment, old_id: UUID) -> Parked:
    pair = assignment.pair
    return Parked(
        ParkReason.TARGET_RECREATED,
        f"{pair.target.topic} had id {old_id} when it was last written and has {pair.target_topic_id}",
        restart_remedy(flow, pair.source.topic),
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
    """The log in front of the position isn't the one that was read any more."""
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


def kept_to(runs: list[Run], assignment: Assignment, position: Position, end: EpochEnd) -> int:
    """By the map, where the broker only tells of an older epoch than the position's: what was read in that
    one may have ended earlier than the log's own share of it (two unclean elections)."""
    if end.epoch >= position.source_epoch or end.end < 0:
        return end.end
    ours = runs_of_topics(runs, assignment.pair.ids)
    elder = [run for run in ours if 0 <= run.source_epoch <= end.epoch]
    if elder:
        return min(end.end, int(elder[-1].source_next))
    return min(end.end, int(ours[0].source_first)) if ours else end.end


def source_cut(
    flow: str, assignment: Assignment, source_next: int, end: int, *, log_start: int = 0
) -> Parked:
    source = assignment.pair.source
    gap = unsaid_gap(source, source_next, end, log_start=log_start)
    assert gap is not None, "only of a log that ends in front of the position"
    return gap_parked(flow, gap, f"it was read to offset {source_next} and now ends at {end}")


def target_tail_is_lost(
    position: Position, end: EpochEnd | Refused | None, log_start: int, log_end: int
) -> bool:
    """Whether the target no longer has the record in front of `target_next` (an unclean election)."""
    if log_end < position.target_next:
        return True
    if not isinstance(end, EpochEnd) or position.target_epoch < 0:
        return False
    if log_start >= position.target_next:
        return False  # its own retention took what the epoch spoke about
    return end.end < position.target_next


def source_next_at(
    runs: list[Run], assignment: Assignment, target_next: int, target_end: int
) -> SourceOffset | None:
    """By the map: where the records begin again that a log lost which now ends at `target_end`.

    None: the map doesn't tell. What it knows doesn't reach `target_next`, up to which the position says
    that records were mirrored: it lost its end too, or a person adopted that position.
    """
    ours = runs_of_topics(runs, assignment.pair.ids)
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


def run_in_front_of(runs: list[Run], assignment: Assignment, target_next: int) -> Run | None:
    """By the map: the last run that begins in front of `target_next`."""
    ours = [run for run in runs_of_topics(runs, assignment.pair.ids) if run.target_first < target_next]
    return ours[-1] if ours else None


def transaction_up_to(runs: list[Run], assignment: Assignment, target_next: int) -> Run | None:
    """By the map: the first run of the transaction that holds the record in front of `target_next`."""
    ours = runs_of_topics(runs, assignment.pair.ids)
    for run in ours:
        if run.target_first < target_next <= run.target_next:
            return first_of_transaction(ours, run)
    return None


def open_data_was_committed(
    runs: list[Run],
    assignment: Assignment,
    position: Position | None,
    last_stable: int,
    kept_to: int,
    log_end: int,
) -> bool:
    """Of a transaction of ours that a lost marker left open from `last_stable` on: how it had ended.

    The log is the one that was mirrored up to `kept_to`; behind it lies what was written since. Where that
    is the position, it alone tells: it was committed with the data. A log that lost more is asked by the
    map, which has a run for all that was committed; without one it was an attempt that had been aborted.
    What was written behind a cut would be committed by the same marker: then all of it is aborted, and what
    was committed of it is copied again.
    """
    if position is None:
        return False
    if position.target_next == kept_to and position.generation != assignment.adopted_at:
        return position.target_next > last_stable
    if log_end > kept_to:
        return False
    run = run_in_front_of(runs, assignment, kept_to)
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


def is_covered(run: Run, position: Position | ForeignPosition | None) -> bool:
    """Whether the position says that the run's records are mirrored."""
    return (
        isinstance(position, Position)
        and position.target_topic_id == run.target_topic_id
        and position.target_next >= run.target_next
        and position.source_next >= run.source_next
    )


def tail_unmapped(flow: str, assignment: Assignment, target_next: int, end: int) -> Parked:
    pair = assignment.pair
    return Parked(
        ParkReason.TARGET_TAIL_UNMAPPED,
        f"{pair.target} was written to offset {target_next} and now ends at {end}",
        reconcile_remedy(flow, pair.source),
    )


def tail_unproved(flow: str, assignment: Assignment, target_next: int, cause: str) -> Parked:
    pair = assignment.pair
    return Parked(
        ParkReason.TARGET_TAIL_UNPROVED,
        f"this flow's own records on {pair.target} from offset {target_next} on aren't shown to be those of "
        f"{pair.source}: {cause}",
        f"look at both with kafka-dump-log.sh, then {reconcile_remedy(flow, pair.source)}",
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


def shown_again(flow: str, assignment: Assignment, offset: int) -> Parked:
    """Two unclean elections: the first lost a marker, so records were aborted and copied again; the second
    lost the abort and the copies."""
    return tail_unproved(
        flow,
        assignment,
        offset,
        "they had been aborted and copied again, and an unclean election of the target has brought them back",
    )


def position_lost(flow: str, assignment: Assignment) -> Parked:
    pair = assignment.pair
    if assignment.opposite is not None:
        return not_adopted(flow, assignment)
    return Parked(
        ParkReason.POSITION_LOST,
        f"group causeway.{flow} has no offset for {pair.target}, and neither the offset map nor the flow's "
        "state knows where it stood, though the flow has begun with it before",
        reconcile_remedy(flow, pair.source),
    )


_CURED_BY_SETTING = {
    "codec": "set compression.type of {topic} on the target to producer",
    "split": "raise max.message.bytes of {topic} on the target",
}
"""Why a batch is taken apart, and what makes that needless."""


def oversized(
    flow: str, pair: Pair, head: BatchHead, reasons: Sequence[str], found: OversizedBatch
) -> Parked:
    """It can't cross as it is for these reasons, and holds more than is taken apart; that isn't damage."""
    why = " and ".join(reasons) or "the target broke down over it"
    settings = [_CURED_BY_SETTING[reason] for reason in reasons if reason in _CURED_BY_SETTING]
    if reasons and len(settings) == len(reasons):
        remedy = "; ".join(settings).format(topic=pair.target.topic) + ": then it crosses as it is"
    else:
        remedy = (
            f"write its records again in smaller batches, if they are wanted; then "
            f"{adopt_command(flow, pair.source, head.next_offset)} goes on after this one"
        )
    return Parked(
        ParkReason.SOURCE_OVERSIZED,
        f"the batch at {pair.source} offset {head.base_offset} has to be taken apart ({why}), and its "
        f"{found.size_bytes:,} bytes are more than {found.limit_bytes:,} bytes decompressed, the most that a "
        "worker makes room for",
        remedy,
    )


def written_since(flow: str, assignment: Assignment, start: StartAt, target_end: int) -> Parked:
    """By somebody else, as far as is known: what this flow writes is in its map."""
    pair = assignment.pair
    return Parked(
        ParkReason.POSITION_LOST,
        f"{pair.target} ended at {start.target_end} when flow {flow} wrote down where to begin, and ends at "
        f"{target_end}; group causeway.{flow} and the offset map know nothing of what was written since",
        reconcile_remedy(flow, pair.source),
    )


def foreign_data(flow: str, assignment: Assignment, offset: int, *, had_position: bool) -> Parked:
    pair = assignment.pair
    remedy = reconcile_remedy(flow, pair.source)
    if had_position:
        return Parked(
            ParkReason.FOREIGN_WRITER,
            f"{pair.target} holds a record at offset {offset} that this flow didn't write",
            f"take the WRITE right from whoever did (nobody else may write a mirror), then {remedy}",
        )
    return Parked(
        ParkReason.FOREIGN_DATA,
        f"{pair.target} already holds records (first at offset {offset}), this flow has no position there",
        f"empty or rename the topic, or {remedy}, if it holds this source's records; else "
        f"{adopt_remedy(flow, pair.source)}",
    )


def not_authorized(topic: str, operation: Operation, side: Side) -> Parked:
    return Parked(
        ParkReason.NOT_AUTHORIZED,
        f"{operation.word} on topic {topic} of the {side} is not granted",
        grant_command("User:<the flow's>", operation.word, "topic", topic),
    )


def refusal_of_rights(topic: str, side: Side, refused: object) -> Parked | None:
    """Set if it is a reading right that is missing; nothing but a grant cures that."""
    if isinstance(refused, Refused) and refused.code == KafkaErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return not_authorized(topic, Operation.READ, side)
    return None
