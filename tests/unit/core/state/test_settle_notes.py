from uuid import UUID

from causeway.core.kernel.identity import TopicPartition
from causeway.core.state.flow_log import LogRecord, as_record
from causeway.core.state.flow_state import FlowState, fold
from causeway.core.state.position import Position
from causeway.core.state.settle_notes import SettleNote, may_hold_settled, note_of, note_records
from tests.support import builders

HERE, THERE = TopicPartition("sf.orders", 0), TopicPartition("sf.orders", 1)
ID = UUID(int=2)


def position(target_next: int, target_id: UUID = ID) -> Position:
    return builders.position(5, target_next, target_topic_id=target_id)


def folded(*batches: list[tuple[bytes, bytes | None]]) -> frozenset[SettleNote]:
    states: dict[str, FlowState] = {}
    for offset, (key, value) in enumerate(record for batch in batches for record in batch):
        states = fold(states, LogRecord(offset, 0, key, value))
    return states["f"].settling


def said(*notes: SettleNote, before: frozenset[SettleNote] = frozenset()) -> list[tuple[bytes, bytes | None]]:
    return list(note_records("f", notes, before))


def test_a_position_before_the_end_that_was_noted_may_hide_what_was_settled() -> None:
    notes = {note_of(HERE, position(10), 14)}
    assert may_hold_settled(notes, HERE, position(10))
    assert may_hold_settled(notes, HERE, position(13)), "of a live owner, seen late"
    assert not may_hold_settled(notes, HERE, position(14)), "that is what was settled, and has a position"


def test_a_note_speaks_of_its_partition_and_its_topic() -> None:
    notes = {note_of(HERE, position(10), 14)}
    assert not may_hold_settled(notes, THERE, position(10))
    assert not may_hold_settled(notes, HERE, position(10, UUID(int=9)))
    assert not may_hold_settled((), HERE, position(10))


def test_a_partition_that_is_in_the_transaction_and_empty_may_be_filled_until_it_is_settled() -> None:
    assert note_of(HERE, position(10), 10).settled_to == 11


def test_what_is_written_is_what_is_folded_and_the_next_takes_its_place() -> None:
    first, other = note_of(HERE, position(10), 14), note_of(THERE, position(3), 5)
    batch = said(first, other)
    assert folded(batch) == {first, other}
    second = note_of(HERE, position(20), 22)
    later = said(second, before=folded(batch))
    assert [value for _, value in later].count(None) == 1
    assert folded(batch, later) == {second, other}
    assert folded(batch, later, batch[:1]) == {first, second, other}, "one that comes late hides none"
    assert said(second, before=frozenset({second})) == said(second)


def test_a_note_that_cannot_be_read_is_odd() -> None:
    key, _ = said(note_of(HERE, position(1), 2))[0]
    for wrong in ({"target_topic": "t"}, {"target_topic": "t", "partition": True, "settled_to": 1}):
        state = fold({}, LogRecord(0, 0, key, as_record("settling", "f", wrong)[1]))["f"]
        assert (list(state.odd), state.settling) == ([0], frozenset())
