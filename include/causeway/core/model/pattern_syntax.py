"""Reads the regular expressions that topic and group lists may use, and refuses the rest with a position.

The accepted language is what MirrorMaker 2's (Java's) and Python's expressions have in common and what an
automaton can match: literals, `.`, classes, groups, `|`, `* + ? {n,m}`, `\\d \\w \\s` and their opposites.
Look-arounds and references back are refused: they can't be matched in linear time.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

LONGEST_PATTERN = 1000
_DEEPEST = 20
_COUNT = re.compile(r"\{([0-9]{1,4})(,)?([0-9]{1,4})?\}", re.ASCII)
_DIGITS = (("0", "9"),)
_WORD = (("0", "9"), ("A", "Z"), ("_", "_"), ("a", "z"))
_SPACE = (("\t", "\r"), (" ", " "))
_SETS = {"d": _DIGITS, "w": _WORD, "s": _SPACE}
_LAST = chr(0x10FFFF)


class PatternError(ValueError):
    """`rule` says what is wrong and where, `remedy` what to write."""

    def __init__(self, rule: str, remedy: str = "") -> None:
        super().__init__(f"{rule}; {remedy}" if remedy else rule)
        self.rule, self.remedy = rule, remedy


@dataclass(frozen=True, slots=True)
class Characters:
    """Inclusive ranges of characters; `is_negated`: any character outside of them."""

    ranges: tuple[tuple[str, str], ...]
    is_negated: bool = False

    def __contains__(self, character: str) -> bool:
        return any(low <= character <= high for low, high in self.ranges) != self.is_negated


@dataclass(frozen=True, slots=True)
class Sequence:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    part: Node
    least: int
    most: int | None
    is_lazy: bool = False
    """The same names match; a group inside or after it may hold something else."""


@dataclass(frozen=True, slots=True)
class Group:
    """`( )`, numbered by where it opens, from 1; what it matched is `$1` of a mapping rule."""

    part: Node
    number: int


Node = Characters | Sequence | Choice | Repeat | Group
_ANY = Characters((("\n", "\n"),), is_negated=True)


def parse_pattern(text: str) -> Node:
    """:raises PatternError: not an expression, or one that we don't accept."""
    if not text:
        raise PatternError("an empty pattern matches nothing", "remove it")
    if len(text) > LONGEST_PATTERN:
        raise PatternError(
            f"must not be longer than {LONGEST_PATTERN} characters, this has {len(text)}",
            "use several patterns",
        )
    return _Reader(text).whole()


class _Reader:
    """Recursive descent; `_at` is the position of the next character."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._depth, self._groups = text, 0, 0, 0

    def whole(self) -> Node:
        node = self._choice()
        if self._at < len(self._text):
            raise self._error("this ) closes nothing", "remove it or escape it: \\)")
        return node

    def _next(self) -> str:
        return self._text[self._at : self._at + 1]

    def _error(self, what: str, remedy: str = "", *, at: int | None = None) -> PatternError:
        position = self._at if at is None else at
        return PatternError(
            f"isn't a regular expression that we accept: at position {position}, {what}", remedy
        )

    def _choice(self) -> Node:
        branches = [self._sequence()]
        while self._next() == "|":
            self._at += 1
            branches.append(self._sequence())
        return branches[0] if len(branches) == 1 else Choice(tuple(branches))

    def _sequence(self) -> Node:
        parts: list[Node] = []
        while (character := self._next()) and character not in "|)":
            if character in "^$":
                self._anchor(character)
            else:
                parts.append(self._repeated(self._atom()))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _anchor(self, character: str) -> None:
        """At the ends they say what is true anyhow: the whole name must match."""
        edge = 0 if character == "^" else len(self._text) - 1
        if self._at != edge:
            raise self._error(
                f"{character} can't match inside a name", f"remove it or escape it: \\{character}"
            )
        self._at += 1

    def _atom(self) -> Node:
        character, start = self._next(), self._at
        if character in "*+?":
            raise self._error(f"{character} has nothing to repeat", self._glob_hint())
        self._at += 1
        match character:
            case "(":
                return self._group(start)
            case "[":
                return self._class(start)
            case "\\":
                return self._escape(start)
            case ".":
                return _ANY
            case "{":
                raise self._error("{ has nothing to repeat", "escape it: \\{", at=start)
        return Characters(((character, character),))

    def _glob_hint(self) -> str:
        if not re.fullmatch(r"[A-Za-z0-9._*?-]+", self._text):
            return "escape it: \\" + self._next()
        meant = self._text.replace(".", "\\.").replace("*", ".*").replace("?", ".")
        return f'a glob? as a regular expression it is "{meant}"'

    def _group(self, start: int) -> Node:
        number = None
        if self._next() == "?":
            if not self._text.startswith("?:", self._at):
                raise self._error(
                    "(? begins a look-around, a flag or a named group",
                    "write a plain group; what must not match goes to the list that excludes",
                    at=start,
                )
            self._at += 2
        else:
            self._groups += 1
            number = self._groups
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._error(
                f"groups are nested more than {_DEEPEST} deep", "use several patterns", at=start
            )
        node = self._choice()
        if self._next() != ")":
            raise self._error("this ( is never closed", "close it or escape it: \\(", at=start)
        self._at += 1
        self._depth -= 1
        return node if number is None else Group(node, number)

    def _escape(self, start: int) -> Characters:
        character = self._next()
        if not character:
            raise self._error("a \\ escapes nothing", "write \\\\ or remove it", at=start)
        self._at += 1
        if character.lower() in _SETS:
            return Characters(_SETS[character.lower()], is_negated=character.isupper())
        if character.isalnum():
            raise self._error(f"\\{character} isn't known", "known: \\d \\w \\s \\D \\W \\S", at=start)
        return Characters(((character, character),))

    def _class(self, start: int) -> Characters:
        is_negated = self._next() == "^"
        self._at += is_negated
        ranges: list[tuple[str, str]] = []
        while (character := self._next()) != "]" or not ranges:
            if not character or character in "[]":
                what = (
                    "this [ is never closed"
                    if not character
                    else f"{character} in a class means different things"
                )
                raise self._error(what, "escape it: \\[ or \\]", at=start if not character else None)
            ranges += self._class_item()
        self._at += 1
        return Characters(tuple(ranges), is_negated=is_negated)

    def _class_item(self) -> tuple[tuple[str, str], ...]:
        start = self._at
        low = self._class_characters()
        if self._next() != "-" or self._text[self._at + 1 : self._at + 2] in ("]", ""):
            return low
        self._at += 1
        high = self._class_characters()
        first, last = low[0][0], high[0][0]
        if (low, high) != (((first, first),), ((last, last),)) or first > last:
            raise self._error("the range runs backwards or has no ends", "write it as in [a-z]", at=start)
        return ((first, last),)

    def _class_characters(self) -> tuple[tuple[str, str], ...]:
        start, character = self._at, self._next()
        self._at += 1
        if character != "\\":
            return ((character, character),)
        found = self._escape(start)
        return _outside(found.ranges) if found.is_negated else found.ranges

    def _repeated(self, part: Node) -> Node:
        start, character = self._at, self._next()
        if character == "{":
            least, most = self._counts()
        elif character and character in "*+?":
            self._at += 1
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}[character]
        else:
            return part
        is_lazy = self._next() == "?"
        self._at += is_lazy
        if (after := self._next()) and after in "*+?{":
            raise self._error(f"{after} repeats a repetition", "put the inner one into ( )", at=start + 1)
        return Repeat(part, least, most, is_lazy)

    def _counts(self) -> tuple[int, int | None]:
        found = _COUNT.match(self._text, self._at)
        if found is None:
            raise self._error("{ isn't followed by a count", "write {2} or {1,3}, or escape it: \\{")
        least = int(found[1])
        most = int(found[3]) if found[3] else None if found[2] else least
        if most is not None and most < least:
            raise self._error(f"the count runs backwards: {found[0]}", f"write {{{most},{least}}}")
        self._at = found.end()
        return least, most


def _outside(ranges: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """Every character that is in none of the (sorted) ranges."""
    outside, low = [], 0
    for first, last in ranges:
        if low < ord(first):
            outside.append((chr(low), chr(ord(first) - 1)))
        low = ord(last) + 1
    return (*outside, (chr(low), _LAST))
