"""What counts as lost, repeated, out of order and foreign."""

from __future__ import annotations

import numpy as np
import pytest

from tests.proofs.chaos.proof import Tally, tally, tally_all


def counted(wanted: list[int], seen: list[int]) -> tuple[int, int, int, int]:
    found = tally(np.array(wanted, dtype="<u8"), np.array(seen, dtype="<u8"))
    return found.lost, found.repeated, found.out_of_order, found.foreign


@pytest.mark.parametrize(
    ("seen", "wanted"),
    [
        ([50, 20, 90, 10], (0, 0, 0, 0)),
        ([50, 20, 10], (1, 0, 0, 0)),
        ([50, 20, 50, 20, 90, 10], (0, 2, 0, 0)),
        ([50, 90, 20, 10], (0, 0, 1, 0)),
        ([50, 20, 7, 90, 10, 99], (0, 0, 0, 2)),
        ([10, 10, 50], (2, 1, 1, 0)),
        ([], (4, 0, 0, 0)),
    ],
)
def test_each_is_counted(seen: list[int], wanted: tuple[int, int, int, int]) -> None:
    assert counted([50, 20, 90, 10], seen) == wanted


def test_of_an_empty_partition_everything_is_foreign() -> None:
    assert counted([], [3, 3]) == (0, 0, 0, 2)


def test_partitions_add_up_and_one_that_is_missing_is_lost() -> None:
    source = {name: np.array([1, 2, 3], dtype="<u8") for name in ("t-0", "t-1")}
    found = tally_all(source, {"sf.t-0": np.array([1, 3, 3], dtype="<u8")})
    assert found == Tally(lost=4, repeated=1, out_of_order=0, foreign=0)
    assert not found.is_exact
