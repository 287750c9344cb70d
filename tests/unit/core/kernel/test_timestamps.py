"""Instants and ages, as people read them."""

from __future__ import annotations

import pytest

from causeway.core.kernel.timestamps import how_long_ago


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0, "0 s ago"),
        (59, "59 s ago"),
        (60, "1 min ago"),
        (3_599, "59 min ago"),
        (3_600, "1 h ago"),
        (5 * 3_600 + 125, "5 h 2 min ago"),
        (86_400, "1 d ago"),
        (3 * 86_400 + 4 * 3_600, "3 d 4 h ago"),
        (-61, "1 min ahead of this clock"),
    ],
)
def test_an_age_is_in_the_two_largest_units(seconds: int, said: str) -> None:
    now_ms = 1_790_000_000_000
    assert how_long_ago(now_ms - seconds * 1_000, now_ms) == said
