from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causeway.render.tables import COLUMNS, table, wrapped


def test_columns_are_as_wide_as_their_longest_cell_and_numbers_stand_right() -> None:
    rows = [("orders", 12, 1.25, True), ("a", 1234567, None, False)]
    assert table(("TOPIC", "RECORDS", "MB/S", "DONE"), rows) == (
        "TOPIC     RECORDS  MB/S  DONE\norders         12   1.2  yes\na       1,234,567     -  no"
    )


def test_without_rows_the_headers_stand_alone() -> None:
    assert table(("TOPIC", "LAG"), []) == "TOPIC  LAG"


def test_a_name_from_a_broker_can_not_break_the_table() -> None:
    assert table(("GROUP",), [("a\nb\x1b[31m",)]) == "GROUP\na\\nb\\x1b[31m"


def test_a_column_without_any_value_stands_left() -> None:
    assert table(("A", "LONG NAME"), [("x", None)]) == "A  LONG NAME\nx  -"


def test_what_is_wider_than_it_may_be_goes_on_below() -> None:
    text = table(("TOPIC", "LOST", "UNTIL"), [("o" * 40, 7, "2026 and so on")], widest=40)
    assert text.splitlines() == [
        f"TOPIC{' ' * 15}LOST  UNTIL",
        f"{'o' * 18}     7  2026 and so on",
        "o" * 18,
        "oooo",
    ]


@pytest.mark.parametrize("words", range(30))
def test_a_command_that_fits_on_a_line_is_never_broken(words: int) -> None:
    command = "`causeway failover sf_to_nyc --planned --groups=billing`"
    lines = wrapped([f"{'word ' * words}{command}, and on, {'word ' * 30}"])
    assert command in "\n".join(lines)
    assert max(map(len, lines)) <= COLUMNS
    too_long = wrapped([f"`causeway failover {'flow ' * words}{'f' * 99} --planned`"])
    assert max(map(len, too_long)) <= COLUMNS


MOMENT = "2026-11-19T23:16:57Z"
_OFFSETS = st.integers(0, 10**15)
_FIGURES = _OFFSETS.map(lambda n: f"at least {n:,}") | _OFFSETS.map(lambda n: f"{n:,} (end)")
_NAMES = st.from_regex(r"[a-z][a-z0-9.-]{0,80}", fullmatch=True)


@given(
    rows=st.lists(
        st.tuples(_NAMES, _OFFSETS, _FIGURES, _FIGURES, st.none() | _OFFSETS), min_size=1, max_size=3
    )
)
@settings(max_examples=50)
def test_no_number_is_ever_broken_whatever_the_width(rows: list[tuple[object, ...]]) -> None:
    text = table(("TOPIC", "PARTITIONS", "RECORDS LOST", "STANDS AT", "LAG"), rows, widest=60)
    words = text.split()
    for row in rows:
        for number in re.findall(
            r"\d[\d,]*", " ".join(f"{n:,}" if isinstance(n, int) else str(n or "") for n in row[1:])
        ):
            assert number in words


@pytest.mark.parametrize("widest", [100, 80, 60])
def test_names_and_words_give_way_to_numbers_and_moments(widest: int) -> None:
    row = ("q" * 60, 1_234_567_890_123, "at least 1,234,567,890,123", f"{MOMENT} (1,234 days ago)")
    text = table(("TOPIC", "RECORDS LEFT BEHIND", "BYTES LOST", "MIRRORED UNTIL"), [row], widest=widest)
    assert {"1,234,567,890,123", MOMENT, "(1,234"} <= set(text.split()), text
    assert text.split().count("1,234,567,890,123") == 2
    assert max(map(len, text.splitlines())) <= widest or widest < 80, text
    assert text.count("q") == 60, text
