"""Matches names against a regular expression in time linear in the name, whoever wrote either of them.

Python's `re` tries one way after the other: `(a+)+x` on a name of 40 letters keeps it busy for hours, and who
may create a topic on the source could so hang every run. Here the expression becomes an automaton, all ways
are followed at once, and the sets of states met before are remembered. The whole name must match.
"""

from __future__ import annotations

from functools import lru_cache

from causeway.core.model.pattern_syntax import (
    Characters,
    Choice,
    Group,
    Node,
    PatternError,
    Repeat,
    parse_pattern,
)

MOST_STATES = 2000
_MOST_REMEMBERED = 20_000


class Pattern:
    """An expression, ready to match."""

    def __init__(self, text: str) -> None:
        """:raises PatternError: not an expression that we accept, or one that would need too much memory."""
        self._automaton = _Automaton()
        self._end = self._automaton.build(parse_pattern(text), 0)
        self._start = self._automaton.closure({0})
        self._moves: dict[tuple[frozenset[int], str], frozenset[int]] = {}

    def matches(self, name: str) -> bool:
        if len(self._moves) > _MOST_REMEMBERED:
            self._moves = {}
        moves, states = self._moves, self._start
        for character in name:
            after = moves.get((states, character))
            if after is None:
                after = moves[states, character] = self._automaton.step(states, character)
            if not after:
                return False
            states = after
        return self._end in states


@lru_cache(maxsize=1024)
def compiled(text: str) -> Pattern:
    return Pattern(text)


class _Automaton:
    """States are numbers; each has free edges, and perhaps one edge that costs a character."""

    def __init__(self) -> None:
        self._free: list[list[int]] = [[]]
        self._costly: list[tuple[Characters, int] | None] = [None]

    def build(self, node: Node, start: int) -> int:
        """Adds what `node` says after `start`, and gives the state where it ends."""
        match node:
            case Characters():
                end = self._new_state()
                edge = self._new_state()
                self._free[start].append(edge)
                self._costly[edge] = (node, end)
                return end
            case Choice():
                end = self._new_state()
                for part in node.parts:
                    self._free[self.build(part, self._branch(start))].append(end)
                return end
            case Repeat():
                return self._repeat(node, start)
            case Group():
                return self.build(node.part, start)
        for part in node.parts:
            start = self.build(part, start)
        return start

    def _repeat(self, node: Repeat, start: int) -> int:
        for _ in range(node.least):  # each round costs a state, so that a count of nothing is bounded too
            start = self.build(node.part, self._branch(start))
        if node.most is None:
            loop = self._branch(start)
            self._free[self.build(node.part, self._branch(loop))].append(loop)
            return loop
        end = self._new_state()
        for _ in range(node.most - node.least):
            self._free[start].append(end)
            start = self.build(node.part, self._branch(start))
        self._free[start].append(end)
        return end

    def _new_state(self) -> int:
        if len(self._free) >= MOST_STATES:
            raise PatternError(
                "counts more than an automaton of 2000 states can", "use smaller counts, or + and *"
            )
        self._free.append([])
        self._costly.append(None)
        return len(self._free) - 1

    def _branch(self, start: int) -> int:
        """A new state reached freely from `start`: what is built after it has no way back to it."""
        state = self._new_state()
        self._free[start].append(state)
        return state

    def closure(self, states: set[int]) -> frozenset[int]:
        waiting = list(states)
        while waiting:
            for state in self._free[waiting.pop()]:
                if state not in states:
                    states.add(state)
                    waiting.append(state)
        return frozenset(states)

    def step(self, states: frozenset[int], character: str) -> frozenset[int]:
        edges = (self._costly[state] for state in states)
        return self.closure({edge[1] for edge in edges if edge is not None and character in edge[0]})
