"""Tables for people: columns as wide as their longest cell, numbers to the right, no colour."""

from __future__ import annotations

from collections.abc import Collection, Sequence

_GAP = "  "


def table(
    headers: Sequence[str], rows: Sequence[Sequence[object]], *, for_pasting: Collection[str] = ()
) -> str:
    """One line per row, none of which ends in blanks; without rows, the headers alone.

    `for_pasting`: columns whose numbers are written into commands, and so without commas.
    """
    plain = [header in for_pasting for header in headers]
    cells = [list(headers), *(list(map(_shown, row, plain)) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headers))]
    is_numeric = [
        any(_is_number(row[column]) for row in rows)
        and all(_is_number(row[column]) or row[column] is None for row in rows)
        for column in range(len(headers))
    ]
    return "\n".join(
        _GAP.join(
            text.rjust(width) if numeric else text.ljust(width)
            for text, width, numeric in zip(row, widths, is_numeric, strict=True)
        ).rstrip()
        for row in cells
    )


def _shown(value: object, is_plain: bool) -> str:  # noqa: FBT001 - for map
    return str(value) if is_plain and type(value) is int else _cell(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cell(value: object) -> str:
    """A name from a broker may hold anything: here it stays on its line and sends no escape codes."""
    match value:
        case None:
            return "-"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.1f}"
    return one_line(str(value))


def one_line(text: str) -> str:
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
