"""What the groups of an expression hold after a match, in time linear in the name.

The expression becomes a short program; all its ways are followed at once, the one that a reader of the
expression would try first in front, each with the places where its groups began and ended. Of two ways that
meet, the one in front goes on. So the answer is the one that Perl, Java and Python give, and no expression
can hang a run, as theirs can. The whole name must match.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from causeway.core.model.pattern import MOST_STATES, compiled
from causeway.core.model.pattern_syntax import (
    Characters,
    Choice,
    Group,
    Node,
    PatternError,
    Repeat,
    Sequence,
    parse_pattern,
)


@dataclass(slots=True)
class _Fork:
    """Ways to go on, the preferred one first; with one way only, a jump."""

    ways: list[int]


@dataclass(frozen=True, slots=True)
class _Mark:
    """Remembers where a group begins (even) or ends (odd)."""

    slot: int


_Step = Characters | _Fork | _Mark
_Places = tuple[int, ...]
_Ways = list[tuple[int, _Places]]
_NOWHERE = -1


class Capturer:
    """An expression that says what its groups matched."""

    def __init__(self, text: str) -> None:
        """:raises PatternError: not an expression that we accept, or one that would need too much memory."""
        compiled(text)  # bounds also what leaves no step, like a thousand times nothing
        self._steps: list[_Step] = []
        self.groups = 0
        self._write_node(parse_pattern(text))

    def groups_of(self, name: str) -> tuple[str, ...] | None:
        """The whole name, then what each group holds (nothing: it took no part); None: no match."""
        ways: _Ways = []
        self._follow(0, (_NOWHERE,) * (2 * self.groups), 0, set(), ways)
        for position, character in enumerate(name, start=1):
            after: _Ways = []
            met: set[int] = set()
            for at, places in ways:
                step = self._steps[at] if at < len(self._steps) else None
                if isinstance(step, Characters) and character in step:
                    self._follow(at + 1, places, position, met, after)
            ways = after
        for at, places in ways:
            if at == len(self._steps):
                return (name, *(_between(name, *places[i : i + 2]) for i in range(0, len(places), 2)))
        return None

    def _follow(self, at: int, places: _Places, position: int, met: set[int], ways: _Ways) -> None:
        """Adds every step that takes a character, and the end, as reached from here without taking one."""
        waiting = [(at, places)]
        while waiting:
            at, places = waiting.pop()
            if at in met:
                continue
            met.add(at)
            match self._steps[at] if at < len(self._steps) else None:
                case _Fork(ways=forks):
                    waiting += [(way, places) for way in reversed(forks)]
                case _Mark(slot=slot):
                    waiting.append((at + 1, (*places[:slot], position, *places[slot + 1 :])))
                case _:
                    ways.append((at, places))

    def _write_node(self, node: Node) -> None:
        match node:
            case Characters():
                self._add(node)
            case Sequence():
                for part in node.parts:
                    self._write_node(part)
            case Group():
                self.groups = max(self.groups, node.number)
                self._add(_Mark(2 * node.number - 2))
                self._write_node(node.part)
                self._add(_Mark(2 * node.number - 1))
            case Choice():
                self._write_choice(node)
            case Repeat():
                self._write_repeat(node)

    def _write_choice(self, node: Choice) -> None:
        fork, ends = self._fork(), []
        for part in node.parts:
            fork.ways.append(len(self._steps))
            self._write_node(part)
            ends.append(self._fork())
        for end in ends:
            end.ways.append(len(self._steps))

    def _write_repeat(self, node: Repeat) -> None:
        for _ in range(node.least):
            self._write_node(node.part)
        loop, forks = len(self._steps), []
        for _ in range(1 if node.most is None else node.most - node.least):
            fork = self._fork()
            fork.ways.append(len(self._steps))
            self._write_node(node.part)
            forks.append(fork)
        if node.most is None:
            self._fork().ways.append(loop)
        for fork in forks:
            fork.ways.append(len(self._steps))
            if node.is_lazy:
                fork.ways.reverse()

    def _fork(self) -> _Fork:
        fork = _Fork([])
        self._add(fork)
        return fork

    def _add(self, step: _Step) -> None:
        if len(self._steps) >= MOST_STATES:
            raise PatternError("counts more than 2000 steps can", "use smaller counts, or + and *")
        self._steps.append(step)


@lru_cache(maxsize=256)
def capturer(text: str) -> Capturer:
    return Capturer(text)


def _between(name: str, begin: int, end: int) -> str:
    return name[begin:end] if _NOWHERE not in (begin, end) else ""
