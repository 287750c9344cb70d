"""Which offsets are lost, and where a partition goes on once an operator has accepted that."""

import pytest

from causeway.core.kernel.identity import TopicPartition
from causeway.core.state.gaps import GapKind, gap_parked, uncopied_gap, unsaid_gap
from causeway.core.state.parked import ParkReason

ORDERS = TopicPartition("orders", 3)


@pytest.mark.parametrize("log_start", [0, 106, 107])
def test_a_log_that_begins_before_the_position_has_lost_nothing_that_is_needed(log_start: int) -> None:
    assert uncopied_gap(ORDERS, 107, log_start) is None


def test_what_is_gone_before_it_was_copied_is_passed() -> None:
    gap = uncopied_gap(ORDERS, 107, 200)
    assert gap is not None
    assert (gap.kind, gap.first, gap.end, gap.goes_on_at) == (GapKind.UNCOPIED, 107, 200, 200)


@pytest.mark.parametrize("kept_to", [107, 900])
def test_a_log_that_is_the_same_up_to_the_position_has_shown_nothing_else(kept_to: int) -> None:
    assert unsaid_gap(ORDERS, 107, kept_to) is None


def test_what_was_cut_unnoticed_is_read_from_where_the_log_is_another_one() -> None:
    gap = unsaid_gap(ORDERS, 107, 60)
    assert gap is not None
    assert (gap.kind, gap.first, gap.end, gap.goes_on_at) == (GapKind.UNSAID, 60, 107, 60)
    trimmed = unsaid_gap(ORDERS, 107, 60, log_start=80)
    assert trimmed is not None
    assert trimmed.goes_on_at == 80


def test_each_kind_parks_with_the_range_and_the_exact_command() -> None:
    gone = uncopied_gap(ORDERS, 107, 200)
    assert gone is not None
    uncopied = gap_parked("f", gone, "seen so")
    assert uncopied.reason is ParkReason.SOURCE_GAP
    assert uncopied.facts.startswith("offsets 107 to 199 of orders-3 are gone")
    assert uncopied.facts.endswith(
        "seen so; whether they held records, or only markers (each transaction leaves one), nothing "
        "tells any more"
    )
    assert uncopied.remedy.startswith('`causeway accept-gap f orders 3 107 200 --because "..."`')
    cut = unsaid_gap(ORDERS, 107, 60)
    assert cut is not None
    unsaid = gap_parked("f", cut, "seen so")
    assert unsaid.reason is ParkReason.SOURCE_TRUNCATED
    assert '`causeway accept-gap f orders 3 60 107 --because "..."`' in unsaid.remedy
