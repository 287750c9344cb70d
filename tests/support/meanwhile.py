"""Somebody else who acts while one command stands still at a step of the test's choosing."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Found = TypeVar("Found")


def meanwhile(work: Callable[[], Found]) -> Found:
    """As by another process: in a thread, because the command that stands still has this one's event loop."""
    with ThreadPoolExecutor(1) as elsewhere:
        return elsewhere.submit(work).result()
