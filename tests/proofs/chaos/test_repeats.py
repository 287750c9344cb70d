"""The count of repeats, against a reader without isolation: attempts that die one after the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.proofs.chaos.parts.frozen_copy import run_inline
from tests.proofs.chaos.stage import Stage

pytestmark = [pytest.mark.integration, pytest.mark.chaos]


def test_what_was_seen_twice_is_what_the_report_says(stage: Callable[[int], Stage]) -> None:
    """One lane of four partitions: a transaction may commit one of them and leave the others' tails."""
    at = stage(1)
    small = at.flow
    at.flow = replace(small, limits=replace(small.limits, transaction_bytes=1 << 20))
    at.start_and_freeze("append", 24).kill_all()  # all four have a tail now
    at.flow = small
    at.start_and_freeze("end", 2).kill_all()
    at.start_and_freeze("append", 9).kill_all()
    report = run_inline(at.flow, at.source.endpoint(), at.target.endpoint(), "the last one")
    at.assert_complete()
    told = {row.target: row.repeats_in_all for row in report.partitions.values()}
    seen = at.look().records
    twice = {place: len(records) - len(np.unique(records)) for place, records in seen.items()}
    assert sum(twice.values()) > 0
    assert told == twice
