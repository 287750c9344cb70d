"""Pages of docs/ that several programs write: each keeps what the others wrote, between marks of its own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path


def sections_of(page: str) -> dict[str, str]:
    """What a page says under each mark, in its order; what comes before the first one is no section."""
    pieces = re.split(r"^<!-- ([\w-]+) -->\n", page, flags=re.MULTILINE)[1:]
    return {name: text.rstrip() + "\n" for name, text in zip(pieces[::2], pieces[1::2], strict=True)}


def joined(sections: dict[str, str], order: Sequence[str]) -> str:
    return "\n".join(f"<!-- {name} -->\n{sections[name]}" for name in order if name in sections)


def write_section(path: Path, name: str, text: str, order: Sequence[str]) -> None:
    """One section written again, the others as they are; a page without marks was its first section alone."""
    page = path.read_text(encoding="utf-8") if path.exists() else ""
    before = sections_of(page) or ({order[0]: page.rstrip() + "\n"} if page else {})
    path.write_text(joined({**before, name: text.rstrip() + "\n"}, order), encoding="utf-8")
