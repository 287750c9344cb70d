from dataclasses import replace
from uuid import UUID

import pytest

from causeway.core.copy.lane_rules import (
    Fresh,
    LostPosition,
    is_covered,
    judge_position,
    judge_source_lineage,
    kept_to,
    open_data_was_committed,
    source_cut,
    source_next_at,
    target_tail_is_lost,
    transaction_up_to,
)
from causeway.core.copy.park_reasons import (
    foreign_data,
    not_authorized,
    position_lost,
    refusal_of_rights,
    target_recreated,
)
from causeway.core.copy.ports import Diverged, EpochEnd, Refused
from causeway.core.kernel.acl_vocabulary import Operation
from causeway.core.kernel.identity import Generation, SourceOffset, TargetOffset
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.offsets.offset_map import MappedRange
from causeway.core.offsets.pair_position import last_range, position_of
from causeway.core.state.parked import Parked, ParkReason
from causeway.core.state.position import ForeignPosition, Position
from causeway.core.state.repair_commands import adopt_remedy
from causeway.core.state.start_ledger import StartAt
from tests.support import builders
from tests.support.builders import SOURCE_ID, TARGET_ID

OTHER_ID = UUID(int=3)
ADOPT = '`causeway adopt f orders 3 OFFSET --because "..."`'
RECONCILE = '`causeway reconcile f orders 3 --because "..."`'
RESTART = '`causeway restart-topic f orders --because "..."`'
ASSIGNMENT = builders.assignment(start=StartAt(offset=SourceOffset(0), epoch=-1, generation=0), known=False)
POSITION = builders.position(
    107, 45, source_epoch=3, target_epoch=4, generation=Generation(5), producer_id=6, time_ms=7
)


def stretch(
    source_first: int,
    target_first: int,
    *segments: tuple[int, int],
    source_id: UUID = SOURCE_ID,
    target_id: UUID = TARGET_ID,
) -> MappedRange:
    return builders.mapped_range(
        source_first,
        target_first,
        *segments,
        target=ASSIGNMENT.pair.target,
        generation=Generation(1),
        source_topic_id=source_id,
        target_topic_id=target_id,
    )


# Is what was committed ours?


def test_a_position_for_these_two_topics_is_a_position() -> None:
    assert judge_position("f", ASSIGNMENT, POSITION) is POSITION


def test_a_foreign_offset_parks() -> None:
    parked = judge_position("f", ASSIGNMENT, ForeignPosition(9, "its metadata isn't Causeway's"))
    assert isinstance(parked, Parked)
    assert parked.reason is ParkReason.FOREIGN_POSITION
    assert (
        parked.facts == "group causeway.f holds offset 9 for sf.orders-3, but its metadata isn't Causeway's"
    )


def test_nothing_committed_is_a_beginning_only_if_the_flow_never_wrote_here() -> None:
    assert judge_position("f", ASSIGNMENT, None) == Fresh()
    assert judge_position("f", replace(ASSIGNMENT, known=True), None) == LostPosition()


def test_a_recreated_target_parks() -> None:
    parked = judge_position("f", ASSIGNMENT, replace(POSITION, target_topic_id=OTHER_ID))
    assert isinstance(parked, Parked)
    assert parked.reason is ParkReason.TARGET_RECREATED
    assert f"sf.orders had id {OTHER_ID} when it was last written and has {TARGET_ID}" == parked.facts
    assert RESTART in parked.remedy
    assert parked == target_recreated("f", ASSIGNMENT, OTHER_ID)


def test_a_recreated_source_parks() -> None:
    parked = judge_position("f", ASSIGNMENT, replace(POSITION, source_topic_id=OTHER_ID))
    assert isinstance(parked, Parked)
    assert parked.reason is ParkReason.SOURCE_RECREATED
    assert f"orders had id {OTHER_ID} and has {SOURCE_ID}; offset 107" in parked.facts
    assert RESTART in parked.remedy


def test_if_both_were_recreated_the_target_is_named_first() -> None:
    both = replace(POSITION, source_topic_id=OTHER_ID, target_topic_id=OTHER_ID)
    parked = judge_position("f", ASSIGNMENT, both)
    assert isinstance(parked, Parked)
    assert parked.reason is ParkReason.TARGET_RECREATED


# Does the source still have the history?


@pytest.mark.parametrize("end", [EpochEnd(3, 107), EpochEnd(3, 900)])
def test_an_epoch_that_reaches_the_position_is_the_same_history(end: EpochEnd) -> None:
    assert judge_source_lineage("f", ASSIGNMENT, POSITION, end) is None


def test_without_an_epoch_or_an_answer_there_is_nothing_to_judge() -> None:
    assert judge_source_lineage("f", ASSIGNMENT, POSITION, None) is None
    assert judge_source_lineage("f", ASSIGNMENT, replace(POSITION, source_epoch=-1), EpochEnd(0, 5)) is None


def test_an_epoch_that_ends_before_the_position_parks() -> None:
    parked = judge_source_lineage("f", ASSIGNMENT, POSITION, EpochEnd(3, 106))
    assert isinstance(parked, Parked)
    assert parked.reason is ParkReason.SOURCE_TRUNCATED
    assert parked.facts == (
        "offsets 106 to 106 of orders-3 were mirrored and are cut from the source: it was read to offset 107 "
        "in leader epoch 3, and that epoch now ends at 106"
    )
    assert '`causeway accept-gap f orders 3 106 107 --because "..."`' in parked.remedy
    older = judge_source_lineage("f", ASSIGNMENT, POSITION, EpochEnd(2, 90))
    assert isinstance(older, Parked)
    assert "the last epoch before it (2) now ends at 90" in older.facts
    assert "accept-gap f orders 3 90 107" in older.remedy


def test_an_epoch_that_is_not_known_any_more_parks() -> None:
    parked = judge_source_lineage("f", ASSIGNMENT, POSITION, EpochEnd(-1, -1))
    assert isinstance(parked, Parked)
    assert parked.reason is ParkReason.SOURCE_TRUNCATED
    assert "no longer knows leader epoch 3" in parked.facts
    assert ADOPT in parked.remedy, "from where on the log is another one isn't known"


def test_a_source_that_ends_before_the_position_was_cut_from_its_end_on() -> None:
    cut = source_cut("f", ASSIGNMENT, 107, 60)
    assert "it was read to offset 107 and now ends at 60" in cut.facts
    assert '`causeway accept-gap f orders 3 60 107 --because "..."`' in cut.remedy
    assert "from 60 on" in cut.remedy
    trimmed = source_cut("f", ASSIGNMENT, 107, 60, log_start=80)
    assert "from 80 on" in trimmed.remedy, "what was deleted since can't be appended"


@pytest.mark.parametrize(
    ("end", "epochs", "kept"),
    [
        (EpochEnd(3, 90), (1, 2, 3), 90),  # the position's own epoch: the broker knows
        (EpochEnd(2, 90), (1, 2, 3), 90),  # read to 114 in epoch 2: what ends at 90 is all that is shared
        (EpochEnd(2, 150), (1, 2, 3), 114),  # the log's epoch 2 went on where ours had ended
        (EpochEnd(2, 150), (3, 3, 3), 100),  # nothing of ours is of that epoch
        (EpochEnd(-1, -1), (1, 2, 3), -1),
    ],
)
def test_an_older_epoch_is_shared_no_further_than_it_was_read(
    end: EpochEnd, epochs: tuple[int, int, int], kept: int
) -> None:
    runs = [replace(run, source_epoch=epoch) for run, epoch in zip(RUNS, epochs, strict=True)]
    assert kept_to(runs, ASSIGNMENT, POSITION, end) == kept
    assert kept_to([], ASSIGNMENT, POSITION, end) == end.end


def test_a_position_of_a_run_says_what_the_map_knew() -> None:
    made = position_of(RUNS[0])
    assert (made.source_next, made.target_next, made.producer_id) == (107, 45, -1)


def test_a_refused_question_waits_and_a_missing_right_parks() -> None:
    later = judge_source_lineage("f", ASSIGNMENT, POSITION, Refused(Code.NOT_LEADER_OR_FOLLOWER))
    assert later == "orders-3: NOT_LEADER_OR_FOLLOWER"
    parked = judge_source_lineage("f", ASSIGNMENT, POSITION, Refused(Code.TOPIC_AUTHORIZATION_FAILED))
    assert parked == not_authorized("orders", Operation.READ, "source")


# Does the target still have its tail?


@pytest.mark.parametrize(
    ("end", "log_start", "log_end", "is_lost"),
    [
        (EpochEnd(4, 45), 0, 45, False),
        (EpochEnd(4, 900), 0, 900, False),
        (EpochEnd(4, 44), 0, 900, True),  # grown again under another leader: only the epoch tells
        (EpochEnd(-1, -1), 0, 900, True),
        (EpochEnd(4, 900), 0, 44, True),
        (None, 0, 44, True),
        (None, 0, 45, False),
        (Refused(Code.NOT_LEADER_OR_FOLLOWER), 0, 900, False),
        (EpochEnd(-1, -1), 45, 900, False),  # its own retention took what the epoch spoke about
        (EpochEnd(-1, -1), 44, 900, True),
        (EpochEnd(4, 44), 60, 900, False),
        (None, 44, 44, True),
    ],
)
def test_a_tail_is_lost_if_the_record_before_the_position_is_gone(
    end: EpochEnd | Refused | None, log_start: int, log_end: int, is_lost: bool
) -> None:
    assert target_tail_is_lost(POSITION, end, log_start, log_end) is is_lost


def test_a_position_without_an_epoch_is_judged_by_the_end_alone() -> None:
    rebuilt = replace(POSITION, target_epoch=-1)
    assert target_tail_is_lost(rebuilt, EpochEnd(4, 44), 0, 45) is False
    assert target_tail_is_lost(rebuilt, None, 0, 44) is True


# What the map says.

RUNS = [stretch(100, 40, (3, 2), (2, 0)), stretch(110, 46, (4, 0)), stretch(200, 51, (1, 0))]


@pytest.mark.parametrize(
    ("target_end", "source_next"),
    [
        (0, 100),
        (40, 100),
        (41, 101),
        (43, 105),
        (44, 106),
        (45, 110),  # a marker: the next record is the next run's first
        (46, 110),
        (49, 113),
        (50, 200),
        (51, 200),
        (52, None),
        (900, None),
    ],
)
def test_a_lost_tail_is_copied_again_from_the_first_record_at_or_after_the_end(
    target_end: int, source_next: int | None
) -> None:
    assert source_next_at(RUNS, ASSIGNMENT, int(RUNS[-1].target_next), target_end) == source_next


def test_the_last_run_is_the_one_that_lies_last() -> None:
    assert last_range(RUNS, ASSIGNMENT.pair, -1) is RUNS[-1]
    assert last_range([], ASSIGNMENT.pair, -1) is None
    assert source_next_at([], ASSIGNMENT, 9, 5) is None


def test_what_a_lost_tail_held_is_not_where_it_is_copied_again_from() -> None:
    """The tail from 42 on was lost; after an aborted attempt, 102 and 105 are at 46 and 47 now."""
    again = stretch(102, 46, (1, 2), (1, 0))
    runs = [*RUNS, again]
    assert last_range(runs, ASSIGNMENT.pair, -1) == again
    assert source_next_at(runs, ASSIGNMENT, 48, 47) == 105
    assert source_next_at(runs, ASSIGNMENT, 48, 44) == 102
    assert source_next_at(runs, ASSIGNMENT, 48, 41) == 101


@pytest.mark.parametrize("ids", [{"source_id": OTHER_ID}, {"target_id": OTHER_ID}])
def test_runs_of_other_topics_of_the_same_name_say_nothing(ids: dict[str, UUID]) -> None:
    other = [stretch(900, 90, (5, 0), **ids)]
    assert last_range(other, ASSIGNMENT.pair, -1) is None
    assert source_next_at(other, ASSIGNMENT, 9, 5) is None
    assert last_range(RUNS + other, ASSIGNMENT.pair, -1) is RUNS[-1]


# What parks, in words.


def test_a_lost_position_that_the_map_does_not_know_parks() -> None:
    parked = position_lost("f", replace(ASSIGNMENT, known=True))
    assert parked.reason is ParkReason.POSITION_LOST
    assert "group causeway.f has no offset for sf.orders-3" in parked.facts
    assert RECONCILE in parked.remedy


def test_foreign_data_and_a_foreign_writer_are_two_things() -> None:
    found = foreign_data("f", ASSIGNMENT, 9, had_position=False)
    assert found.reason is ParkReason.FOREIGN_DATA
    assert "first at offset 9" in found.facts
    written = foreign_data("f", ASSIGNMENT, 9, had_position=True)
    assert written.reason is ParkReason.FOREIGN_WRITER
    assert "at offset 9" in written.facts
    assert "WRITE right" in written.remedy
    assert ADOPT in found.remedy
    assert RECONCILE in found.remedy
    assert RECONCILE in written.remedy


def test_a_missing_right_comes_with_its_grant() -> None:
    parked = not_authorized("orders", Operation.READ, "source")
    assert parked.reason is ParkReason.NOT_AUTHORIZED
    assert parked.facts == "Read on topic orders of the source is not granted"
    assert parked.remedy == (
        "kafka-acls.sh --add --allow-principal User:<the flow's> --operation Read --topic orders"
    )


@pytest.mark.parametrize(
    "refused", [Refused(Code.NOT_LEADER_OR_FOLLOWER), Refused(999), Diverged(1, 2), None, "text"]
)
def test_other_refusals_are_no_question_of_rights(refused: object) -> None:
    assert refusal_of_rights("orders", "source", refused) is None


def test_every_word_of_advice_names_a_command_with_all_that_is_known() -> None:
    assert adopt_remedy("f", ASSIGNMENT.pair.source).startswith(ADOPT)


def test_a_parked_partition_says_reason_facts_and_remedy_in_one_line() -> None:
    assert str(Parked(ParkReason.REFUSED, "facts", "remedy")) == "batch refused by the target: facts; remedy"


# What did a lost marker say?


@pytest.mark.parametrize(
    ("last_stable", "kept_to", "log_end", "committed"),
    [
        (40, 45, 45, True),  # the marker alone was lost
        (40, 43, 43, True),  # with some of the last run's records
        (40, 43, 46, False),  # and an attempt was appended after the cut: one marker decides over both
        (45, 45, 48, False),  # an attempt after the position, whose abort was lost
        (30, 38, 38, False),  # an aborted attempt before the last run, which was lost with the abort
        (40, 40, 40, False),  # an attempt where the lost run began, whose abort was lost too
    ],
)
def test_the_map_tells_how_a_transaction_ended_whose_marker_was_lost(
    last_stable: int, kept_to: int, log_end: int, committed: bool
) -> None:
    runs = [stretch(90, 25, (5, 0)), stretch(102, 40, (5, 0))]
    told = open_data_was_committed(runs, ASSIGNMENT, POSITION, last_stable, kept_to, log_end)
    assert told is committed


def test_runs_of_a_tail_that_was_lost_before_say_nothing_of_what_lies_there_now() -> None:
    runs = [stretch(102, 40, (5, 0)), stretch(107, 45, (5, 0))]
    assert not open_data_was_committed(runs, ASSIGNMENT, POSITION, last_stable=45, kept_to=45, log_end=48)


@pytest.mark.parametrize(
    ("position", "covers"),
    [
        (POSITION, True),
        (replace(POSITION, source_next=SourceOffset(106)), False),
        (replace(POSITION, target_next=TargetOffset(44)), False),
        (replace(POSITION, target_topic_id=OTHER_ID), False),
        (ForeignPosition(107, "no metadata"), False),
        (None, False),
    ],
    ids=["behind it", "source in front", "target in front", "another topic now", "not ours", "none"],
)
def test_a_run_of_the_map_hangs_no_longer_if_the_position_covers_it(
    position: Position | ForeignPosition | None, covers: bool
) -> None:
    assert is_covered(stretch(100, 38, (7, 0)), position) is covers


def test_without_a_position_nothing_was_committed() -> None:
    assert not open_data_was_committed([stretch(102, 40, (5, 0))], ASSIGNMENT, None, 40, 45, 45)


def test_a_map_that_does_not_reach_the_position_says_nothing_of_a_lost_tail() -> None:
    """The position was adopted after what the map knows, or the map lost its own end."""
    assert source_next_at(RUNS, ASSIGNMENT, int(RUNS[-1].target_next) + 1, 41) is None


@pytest.mark.parametrize(
    ("target_next", "last_stable", "adopted_at", "committed"),
    [
        (50, 46, -1, True),
        (46, 46, -1, False),
        (50, 46, 7, False),
    ],
    ids=["the position lies behind it", "the position lies in front of it", "a person set the position"],
)
def test_without_a_map_the_position_tells_how_an_open_transaction_had_ended(
    target_next: int, last_stable: int, adopted_at: int, committed: bool
) -> None:
    position = replace(POSITION, target_next=TargetOffset(target_next), generation=Generation(7))
    assignment = replace(ASSIGNMENT, adopted_at=adopted_at)
    told = open_data_was_committed([], assignment, position, last_stable, target_next, target_next)
    assert told is committed


def test_an_aborted_transaction_is_copied_again_from_its_first_run_on() -> None:
    """The one look at the last record decides over all of them."""
    before, first, second, third = (
        stretch(80, 20, (5, 0)),
        stretch(100, 30, (2, 3), (2, 0)),
        stretch(108, 34, (1, 1), (1, 0)),
        stretch(112, 36, (4, 0)),
    )
    runs = [before, first, second, third]
    assert transaction_up_to(runs, ASSIGNMENT, 40) == first
    assert transaction_up_to(runs, ASSIGNMENT, 35) == first
    assert transaction_up_to(runs, ASSIGNMENT, 25) == before
    assert transaction_up_to(runs, ASSIGNMENT, 27) is None
