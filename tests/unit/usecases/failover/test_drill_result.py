"""What a drill keeps of its sheet: a number only where it is known exactly."""

from __future__ import annotations

from dataclasses import replace

import pytest

from causeway.core.failover.impact_sheet import Sheet
from causeway.core.kernel.estimate import Estimate, at_least, at_most, exact, unknown
from causeway.usecases.failover.drill import _clones, _result
from tests.support.sheets import loss, move, sheet_of


def rehearsed(sheet: Sheet) -> tuple[int | None, int | None, int | None]:
    done = _result(_clones(sheet, "r1", "me", 1), sheet, 1, (1, 1), 5)
    return done.lost_records, done.rpo_seconds, done.rereads


@pytest.mark.parametrize(
    ("figure", "kept"),
    [
        (exact(0), 0),
        (exact(7), 7),
        (unknown("no position"), None),
        (at_least(0, "times don't rise"), None),
        (at_most(3, "not all was read"), None),
    ],
)
def test_beside_nothing_what_isnt_known_isnt_nothing(figure: Estimate, kept: int | None) -> None:
    losses = (loss(0), replace(loss(0), records=figure, size_bytes=figure, seconds=figure))
    moves = (move(0), replace(move(0), group="other", rereads=figure))
    assert rehearsed(sheet_of(losses, moves)) == (kept, kept, kept)
