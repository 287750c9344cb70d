"""Nodes that let a request wait in vain: each costs its time-out once.

The next requests to one fail at once, until a connection to it stands, which is tried meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from causeway.core.copy.ports import Clock, Unreachable

_SILENCE_SECONDS = 1.0
"""What fails sooner, as a refused connection, costs nothing to try again."""


class SilentNodes:
    def __init__(self, clock: Clock, stands: Callable[[int], bool], place: Callable[[int], str]) -> None:
        """`stands`: whether a connection to the node stands, which is tried by asking; it may raise
        `Unreachable` while it isn't time yet to try. `place`: where a node is, in words.
        """
        self._clock, self._stands, self._place = clock, stands, place
        self._nodes: set[int] = set()

    def __contains__(self, node: int) -> bool:
        if node in self._nodes and self._try(node):
            self._nodes.discard(node)
        return node in self._nodes

    def _try(self, node: int) -> bool:
        try:
            return self._stands(node)
        except Unreachable:
            return False

    @contextmanager
    def noting(self, node: int) -> Iterator[None]:
        """Around a request to this node.

        :raises Unreachable: it is silent.
        """
        if node in self:
            raise Unreachable(f"{self._place(node)} doesn't answer")
        asked_at = self._clock.monotonic()
        try:
            yield
        except Unreachable:
            if self._clock.monotonic() - asked_at >= _SILENCE_SECONDS:
                self._nodes.add(node)
            raise

    def forget(self) -> None:
        self._nodes.clear()
