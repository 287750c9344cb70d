"""Commands that die in the middle, at a step of the test's choosing."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


class Killed(BaseException):
    """Nothing that any code here could catch."""


def dies_after(function: Callable[..., Any]) -> Callable[..., Any]:
    """Does what it does, and never comes back; for functions that wait as for those that don't."""

    async def later(*arguments: Any, **named: Any) -> Any:
        await function(*arguments, **named)
        raise Killed

    def now(*arguments: Any, **named: Any) -> Any:
        function(*arguments, **named)
        raise Killed

    return later if inspect.iscoroutinefunction(function) else now
