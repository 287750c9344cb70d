"""Settling, on real brokers: what a dead worker left open is kept, and no reader sees a record twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from causeway.core.copy.report import RunReport
from tests.proofs.chaos.parts.frozen_copy import run_inline
from tests.proofs.chaos.stage import Content, Stage, wake

pytestmark = [pytest.mark.integration, pytest.mark.chaos]


def last_run(at: Stage) -> RunReport:
    return run_inline(at.flow, at.source.endpoint(), at.target.endpoint(), "the last one")


def twice(seen: Content) -> int:
    return sum(len(records) - len(np.unique(records)) for records in seen.records.values())


@pytest.fixture
def settling(stage: Callable[[int], Stage]) -> Stage:
    """One lane of four partitions: a death leaves all of them open."""
    at = stage(1)
    at.flow = replace(at.flow, settle=True)
    return at


@pytest.mark.parametrize("last", [("append", 9), ("positions", 4), ("end", 4)], ids=lambda last: last[0])
def test_no_record_is_seen_twice_wherever_in_a_transaction_a_worker_dies(
    settling: Stage, last: tuple[str, int]
) -> None:
    at = settling
    for step, nth in (("append", 9), ("positions", 3), ("end", 2), ("append", 4), last):
        at.start_and_freeze(step, nth).kill_all()
    report = last_run(at)
    at.assert_complete()
    seen, told = twice(at.look()), report.as_dict()
    assert seen == told["repeats_in_all"]
    if at.target.spec.kafka_version.startswith("3."):  # transactions v1 are never settled
        assert (seen > 0, told["settled"]) == (True, 0)
    else:
        assert seen == 0
        assert int(str(told["settled"])) > 0


def test_a_worker_that_wakes_after_its_successor_adds_nothing(settling: Stage) -> None:
    at = settling
    frozen = at.start_and_freeze("append", 9)
    at.start_and_freeze("end", 3).kill_all()
    last_run(at)
    before = at.look()
    wake(frozen)
    before.assert_same(at.look())
    at.assert_complete()
    if not at.target.spec.kafka_version.startswith("3."):
        assert twice(before) == 0
