"""Commands that die in the middle, at a step of the test's choosing."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest


class Killed(BaseException):
    """Nothing that any code here could catch."""


@contextmanager
def killed_inside(owner: Any, step: str, dying: Callable[..., Any]) -> Iterator[None]:
    """What runs in here is killed while `dying` stands in for this step; it has to come there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, step, dying)
        with pytest.raises(Killed):
            yield


def killed_after(owner: Any, step: str) -> Any:
    """The step is done, and never comes back."""
    return killed_inside(owner, step, _dies_after(getattr(owner, step)))


def killed_in_front_of(owner: Any, step: str) -> Any:
    """The step is never begun."""
    return killed_inside(owner, step, _dies)


def _dies(*_: Any, **__: Any) -> None:
    raise Killed


def _dies_after(function: Callable[..., Any]) -> Callable[..., Any]:
    """For functions that wait as for those that don't."""

    async def later(*arguments: Any, **named: Any) -> Any:
        await function(*arguments, **named)
        raise Killed

    def now(*arguments: Any, **named: Any) -> Any:
        function(*arguments, **named)
        raise Killed

    return later if inspect.iscoroutinefunction(function) else now
