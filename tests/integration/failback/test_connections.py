"""How often a failback connects to each cluster: where one is half dead, each time costs somebody seconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from causeway.brokers.transport.connection import Wire
from tests.integration.failback.stage import FailbackStage

pytestmark = pytest.mark.integration


def connected(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> dict[str, int]:
    """By cluster."""
    bootstrap, found = Wire._bootstrap, Counter[str]()

    async def counted(self: Wire, *given: Any) -> Any:
        done = await bootstrap(self, *given)
        found[self.endpoint.alias] += 1
        return done

    with monkeypatch.context() as patched:
        patched.setattr(Wire, "_bootstrap", counted)
        act()
    return dict(found)


MOST_TO_BEGIN = {"sf": 2, "nyc": 1}
"""The fence of the adoption is lowered over a connection of its own."""
MOST_TO_PREVIEW = {"sf": 2, "nyc": 2}
MOST_TO_COMPLETE = {"sf": 6, "nyc": 7}
"""Two of its own, the fence's, and those of the planned failover in between; each number can only fall."""


def test_a_failback_connects_no_more_often_than_it_did(
    parted: FailbackStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = connected(monkeypatch, parted.resume)
    parted.reverse.run()
    shown = connected(monkeypatch, parted.look_home)
    completed = connected(monkeypatch, parted.come_home)
    found = (began, shown, completed)
    for numbers, most in zip(found, (MOST_TO_BEGIN, MOST_TO_PREVIEW, MOST_TO_COMPLETE), strict=True):
        assert numbers.keys() == most.keys()
        assert all(numbers[cluster] <= most[cluster] for cluster in most), found
