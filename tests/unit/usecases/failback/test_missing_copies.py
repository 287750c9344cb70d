"""How many copies the new primary has lost: as far as its log was read, and no surer than that."""

from __future__ import annotations

import pytest

from causeway.core.kernel.estimate import Estimate, at_least, exact, unknown
from causeway.usecases.failback.rebuild_impact import _There

COPIES = [(0, 10), (11, 21)]


@pytest.mark.parametrize(
    ("there", "missing"),
    [
        (_There(COPIES, start=0, end=30, read_until=30, copies=20), exact(0)),
        (_There(COPIES, start=0, end=30, read_until=30, copies=13), exact(7)),
        (_There(COPIES, start=0, end=30, read_until=15, copies=14, stopped="long", is_long=True), exact(0)),
        (
            _There(COPIES, start=0, end=30, read_until=15, copies=12, stopped="long", is_long=True),
            at_least(2, "long"),
        ),
        (_There(COPIES, start=0, end=30, read_until=15, copies=14, stopped="corrupt"), unknown("corrupt")),
        (_There([], start=0, end=30, read_until=30), exact(0)),
    ],
)
def test_what_is_missing(there: _There, missing: Estimate) -> None:
    assert there.missing == missing
