"""Each translated offset leads to its record, both ways, after kills, growth, a restart and maintenance."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from unittest.mock import patch

import pytest

from causeway.core.offsets import map_maintenance, translation
from causeway.lab.cluster import LabCluster
from tests.proofs.translation.stage import Stage, play

pytestmark = pytest.mark.integration
SEED = int(os.environ.get("CAUSEWAY_TRANSLATION_SEED") or random.SystemRandom().randrange(1_000_000))


def test_every_offset_leads_to_its_record(lab_cluster: Callable[..., LabCluster]) -> None:
    print(f"CAUSEWAY_TRANSLATION_SEED={SEED}")
    source = lab_cluster("sf", broker_settings={"log.cleaner.backoff.ms": "100"})
    stage = Stage(source, lab_cluster("nyc"), "small", seed=SEED, transaction_bytes=4_096)
    with patch.multiple(map_maintenance, KEPT_RUNS=2, LEAST_TO_MERGE=4):
        tally = play(stage, records=9_000, kills=1, say=print)
    print(tally)
    assert tally.errors == []
    assert min(tally.to_target, tally.to_source) > 6_000
    assert stage.kills >= 1

    # Can it fail? Offsets taken for equally far from each other, as other mirrors do, lead elsewhere.
    with patch.object(translation, "bisect_right", lambda *_: 1):
        assert stage.check().errors
