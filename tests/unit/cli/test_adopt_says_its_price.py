"""Adopting a partition that stands rightly repeats records or leaves some out: what it says of that."""

from __future__ import annotations

import pytest

from causeway.cli.commands.repair import _going_on
from causeway.core.kernel.identity import TopicPartition
from causeway.usecases.repair.adopt import Adopted


def adopted(offset: int, stood_at: int | None) -> Adopted:
    return Adopted(
        source=TopicPartition("orders", 1),
        target=TopicPartition("sf.orders", 1),
        source_offset=offset,
        target_offset=1_042,
        generation=-1,
        stood_at=stood_at,
    )


@pytest.mark.parametrize("dry_run", [True, False])
@pytest.mark.parametrize(
    ("offset", "stood_at", "price"),
    [
        (900, 1_040, "140 source offsets (900 to 1039) would be copied again, and readers see them twice"),
        (1_300, 1_222, "78 source offsets (1222 to 1299) would never be copied"),
    ],
)
def test_what_is_repeated_or_left_out_is_reported(
    offset: int, stood_at: int, price: str, *, dry_run: bool
) -> None:
    text = _going_on(adopted(offset, stood_at), dry_run=dry_run)
    assert text.endswith(f"it stood at {stood_at}: the records of {price}")


@pytest.mark.parametrize("stood_at", [None, 900])
def test_where_nothing_is_it_costs_nothing(stood_at: int | None) -> None:
    text = _going_on(adopted(900, stood_at), dry_run=True)
    assert text.endswith("appended from sf.orders-1 offset 1042 on")
