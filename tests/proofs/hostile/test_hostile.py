"""Two hundred hostile cases, another choice with each seed; `make prove` plays them all."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from causeway.lab.cluster import LabCluster
from tests.proofs.hostile.player import Player
from tests.proofs.hostile.tables import sample

CASES = 200
pytestmark = pytest.mark.integration


def test_nothing_breaks_the_command_line(lab_cluster: Callable[..., LabCluster], tmp_path: Path) -> None:
    """On clusters of its own: what another test left there may still change, and no case must change any."""
    seed = int(os.environ.get("HOSTILE_SEED", random.SystemRandom().randrange(1_000_000)))
    clusters = {alias: lab_cluster(alias) for alias in ("sf", "nyc")}
    tally = Player(tmp_path, clusters).play_all(sample(CASES, seed))
    assert tally.wrong == [], f"HOSTILE_SEED={seed}: " + "\n".join(map(str, tally.wrong))
