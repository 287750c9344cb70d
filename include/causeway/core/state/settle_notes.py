"""What is written before settling: up to where a dead owner's records may have become visible.

A record that was settled and isn't compared yet is in no position and in no map. If the target's retention
takes it then, nothing else tells it from what was aborted there and deleted, which is nobody's loss.

Invariants
    A. A note is in the flows topic before its transaction is committed: where none reaches past a position,
       nothing was settled after it.
    B. A note speaks of offsets of one topic, and a position that has passed them knows more: so one that
       arrives late, or stays forever, does no harm.
    C. A note is taken back by who owns the lane and has read that nothing of ours is visible there. A refused
       settling alone takes none back: somebody else may have settled the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from uuid import UUID

from causeway.core.kernel.identity import TargetOffset, TopicPartition
from causeway.core.state.flow_log import as_record
from causeway.core.state.position import Position


@dataclass(frozen=True, slots=True)
class SettleNote:
    target: TopicPartition
    target_topic_id: UUID
    settled_to: TargetOffset


def note_of(target: TopicPartition, position: Position, target_end: int) -> SettleNote:
    """Past the position, also where nothing is seen: an owner that lives may append until it is settled."""
    settled_to = max(target_end, position.target_next + 1)
    return SettleNote(target, position.target_topic_id, TargetOffset(settled_to))


def may_hold_settled(notes: Iterable[SettleNote], target: TopicPartition, position: Position) -> bool:
    """Whether anything may have been settled after a position."""
    return any(_reaches_past(note, target, position) for note in notes)


def _reaches_past(note: SettleNote, target: TopicPartition, position: Position) -> bool:
    there = target, position.target_topic_id
    return (note.target, note.target_topic_id) == there and position.target_next < note.settled_to


def taken_back(
    flow: str, notes: Iterable[SettleNote], target: TopicPartition, position: Position
) -> Iterator[tuple[bytes, None]]:
    """Of a partition where nothing was settled after its position (invariant C)."""
    for note in notes:
        if _reaches_past(note, target, position):
            yield _key_of(flow, note), None


def note_records(
    flow: str, notes: Iterable[SettleNote], before: frozenset[SettleNote]
) -> Iterator[tuple[bytes, bytes | None]]:
    """`before`: those that the flow has; those of the same partitions are taken away."""
    made = {note.target: note for note in notes}
    for old in before:
        if old.target in made and old != made[old.target]:
            yield _key_of(flow, old), None
    for note in made.values():
        value = {
            "target_topic": note.target.topic,
            "partition": note.target.partition,
            "target_id": str(note.target_topic_id),
            "settled_to": note.settled_to,
        }
        yield _key_of(flow, note), as_record("settling", flow, value)[1]


def with_note(notes: frozenset[SettleNote], value: dict[str, object]) -> frozenset[SettleNote]:
    """:raises KeyError: | :raises ValueError: it isn't one."""
    partition, settled_to = value["partition"], value["settled_to"]
    if type(partition) is not int or type(settled_to) is not int:
        raise ValueError(f"{value!r} isn't a note of what is settled")
    target = TopicPartition(str(value["target_topic"]), partition)
    note = SettleNote(target, UUID(str(value["target_id"])), TargetOffset(settled_to))
    return without_note(notes, _place_of(note)) | {note}


def without_note(notes: frozenset[SettleNote], place: str) -> frozenset[SettleNote]:
    return frozenset(note for note in notes if _place_of(note) != place)


def _key_of(flow: str, note: SettleNote) -> bytes:
    return as_record("settling", flow, {})[0] + f"/{_place_of(note)}".encode()


def _place_of(note: SettleNote) -> str:
    """One for each end, or a note that comes late would take the place of the one that counts."""
    return f"{note.target.topic}/{note.target.partition}/{note.settled_to}"
