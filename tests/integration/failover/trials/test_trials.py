"""A few random failovers; `python -m tests.proofs.prove --only failover` plays fifty."""

from __future__ import annotations

import os

import pytest

from tests.integration.failover.conftest import MakeStage
from tests.integration.failover.trials.trials import play

pytestmark = pytest.mark.integration
SEEDS = [int(seed) for seed in os.environ.get("FAILOVER_SEEDS", "1,2").split(",")]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_sheet_is_what_happens_record_by_record(stage: MakeStage, seed: int) -> None:
    verdict = play(stage(), seed)
    assert verdict.wrong == ()
