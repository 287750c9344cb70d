from __future__ import annotations

from causeway.entrypoints.tables import table


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
