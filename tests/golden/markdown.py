"""Pieces of a generated page: its first lines, links to headings, tables, fences."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence


def head(title: str, source: str) -> str:
    return f"# {title}\n\n<!-- Made by `make docs` from {source}. Changes belong there. -->\n"


def anchor(heading: str) -> str:
    """As GitHub makes it: small letters, blanks to dashes, no punctuation but dashes and underscores."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def link(text: str, heading: str) -> str:
    return f"[{text}](#{anchor(heading)})"


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(headers)} |", f"|{'---|' * len(headers)}"]
    lines += [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]
    return "\n".join(lines)


def fenced(text: str, language: str = "") -> str:
    return f"```{language}\n{text.rstrip()}\n```"


def joined(*parts: str) -> str:
    """With a blank line between parts, and one line end at the end."""
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"
