"""Tables and lines for people: columns as wide as their longest cell, numbers to the right, no colour.

What may be read on any terminal is held to `COLUMNS`: cells and lines go on below, and nothing of a name is
cut away.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterable, Sequence
from itertools import zip_longest

COLUMNS = 100
_GAP = "  "
_LEAST_WIDTH = 12
_MOST_LINES = 40
_INDENT = 2
_COMMAND = re.compile(r"`causeway [^`]*`[,;.:]?")
_UNBROKEN = "\ufdd0"
"""No character: it stands for a blank at which no line ends."""
NUMBER = re.compile(r"\(?[-+]?\d[\d,.:TZ+-]{0,40}%?\)?,?")
"""A word that is a number or a moment; a name that looks like one, and is longer, isn't."""
IN_JSON = ": --json has them all"


def table(
    headers: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    for_pasting: Collection[str] = (),
    widest: int | None = None,
) -> str:
    """One line per row, none of which ends in blanks; without rows, the headers alone.

    Where it has to be narrower, names and words go on below. A number or a moment never does: rather a line
    is longer.

    `for_pasting`: columns whose numbers are written into commands, and so without commas.
    `widest`: a row that would be longer goes on in further lines, below its own columns.
    """
    plain = [header in for_pasting for header in headers]
    cells = [list(headers), *(list(map(_cell_text, row, plain)) for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(headers))]
    is_numeric = [
        any(_is_number(row[column]) for row in rows)
        and all(_is_number(row[column]) or row[column] is None for row in rows)
        for column in range(len(headers))
    ]
    if widest is not None:
        numbers = [max(map(_longest_number, column)) for column in zip(*cells, strict=True)]
        words = [max(map(len, header.split())) for header in headers]
        for headings in (map(len, headers), words):
            least = [max(_LEAST_WIDTH, *each) for each in zip(headings, numbers, strict=True)]
            widths = _narrowed(widths, least, widest)
    lines = [line for row in cells for line in zip_longest(*map(_cut_cell, row, widths), fillvalue="")]
    return "\n".join(
        _GAP.join(
            text.rjust(width) if numeric else text.ljust(width)
            for text, width, numeric in zip(line, widths, is_numeric, strict=True)
        ).rstrip()
        for line in lines
    )


def _narrowed(widths: Sequence[int], least: Sequence[int], widest: int) -> list[int]:
    """The widest columns give way, one character after the other, as far as each of them may."""
    found, room = list(widths), widest - len(_GAP) * (len(widths) - 1)
    while sum(found) > room:
        spare = [width - fewest for width, fewest in zip(found, least, strict=True)]
        if max(spare) <= 0:
            break
        found[max(range(len(found)), key=lambda at: (spare[at] > 0, found[at]))] -= 1
    return found


def _longest_number(text: str) -> int:
    """Or moment: what would be read as another one if a line ended in the middle of it."""
    return max((len(word) for word in text.split() if NUMBER.fullmatch(word)), default=0)


def _cut_cell(text: str, width: int) -> list[str]:
    if len(text) <= width:
        return [text]
    return textwrap.wrap(text, width, break_on_hyphens=False)


def wrapped(lines: Iterable[str]) -> list[str]:
    """Each line within `COLUMNS`; what goes on below stands two blanks further to the right. A command that
    fits on a line stays whole, so that it can be copied."""
    return [
        part.replace(_UNBROKEN, " ")
        for line in lines
        for part in (
            textwrap.wrap(_COMMAND.sub(_whole, line), COLUMNS, subsequent_indent="  ", break_on_hyphens=False)
            or [line]
        )
    ]


def _whole(command: re.Match[str]) -> str:
    return command[0].replace(" ", _UNBROKEN) if len(command[0]) <= COLUMNS - _INDENT else command[0]


class NotesBelow:
    """What a table's cells would say again and again: a number there, and the text once, below."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def marks(self, texts: Iterable[str]) -> str | None:
        """The numbers of these notes, for a cell; None: there are none."""
        found = [self._numbers.setdefault(text, len(self._numbers) + 1) for text in texts if text]
        return " ".join(map(str, sorted(set(found)))) or None

    def lines(self) -> list[str]:
        return wrapped(f"note {number}: {one_line(text)}" for text, number in self._numbers.items())


def _cell_text(value: object, is_plain: bool) -> str:  # noqa: FBT001 - for map
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


def cut_line(shown: int, of: int, where: str = "") -> list[str]:
    """Below what was cut. It says how many it leaves out, and nothing else of them."""
    return [f"{shown:,} of {of:,} shown, {of - shown:,} more{where}"] if shown < of else []


def shortened(lines: Sequence[str], most: int = _MOST_LINES, where: str = IN_JSON) -> list[str]:
    """So many that somebody still reads what stands around them; a name from a broker stays on its line."""
    return [*map(one_line, lines[:most]), *cut_line(min(most, len(lines)), len(lines), where)]


def one_line(text: str) -> str:
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
