"""Calls that block, in a use case that is a coroutine: librdkafka's clients have nothing to wait for.

A use case is alone in its loop: such a call holds up nobody else, and has its turn among the requests.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from causeway import interruption

T = TypeVar("T")


async def blocking(call: Callable[[], T]) -> T:
    """Who asks for the end meanwhile is heard after it, and before the next request."""
    result = call()
    interruption.check()
    return result
