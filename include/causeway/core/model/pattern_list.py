"""Several patterns, one question: does one of them match? Fast also with ten thousands of names.

Most lists hold names and few expressions. A name is looked up; so is one with dots that nobody escaped: a dot
stands for any character, so both names are compared with these places blanked. What is left are expressions,
asked one after the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from causeway.core.model.pattern import compiled

LONGEST_NAME = 249
_NAME = re.compile(r"(?:[A-Za-z0-9_-]|\\\.|\.)+", re.ASCII)
_LEGAL = re.compile(r"[A-Za-z0-9._-]{1,249}", re.ASCII)
_Places = tuple[int, ...]


def is_name(pattern: str) -> bool:
    """Letters, digits, `_`, `-` and dots, escaped or not: it can't be wrong as a pattern."""
    return len(pattern) <= LONGEST_NAME and _NAME.fullmatch(pattern) is not None


class PatternList:
    def __init__(self, patterns: Iterable[str]) -> None:
        self._names: dict[tuple[int, _Places], set[str]] = {}
        self._others: list[str] = []
        self._all: list[str] = []
        for pattern in patterns:
            self._all.append(pattern)
            if is_name(pattern):
                self._add_name(pattern)
            else:
                self._others.append(pattern)

    def matches(self, name: str) -> bool:
        """:raises PatternError: one of them is no pattern."""
        if not _LEGAL.fullmatch(name):  # no topic: the dot's own rules count
            return any(compiled(pattern).matches(name) for pattern in self._all)
        return self._has_name(name) or any(compiled(pattern).matches(name) for pattern in self._others)

    def _add_name(self, pattern: str) -> None:
        plain = pattern.replace("\\.", "\0")
        places = tuple(at for at, character in enumerate(plain) if character == ".")
        self._names.setdefault((len(plain), places), set()).add(plain.replace("\0", "."))

    def _has_name(self, name: str) -> bool:
        return any(
            length == len(name) and _blanked(name, places) in names
            for (length, places), names in self._names.items()
        )


def _blanked(name: str, places: _Places) -> str:
    """With a dot at each of these places, as the pattern has it there."""
    if not places:
        return name
    characters = list(name)
    for place in places:
        characters[place] = "."
    return "".join(characters)
