"""Two hundred hostile cases, another choice with each seed; `make prove` plays them all."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from causeway.lab.cluster import LabCluster
from tests.hostile.player import Player
from tests.hostile.tables import sample

CASES = 200
pytestmark = pytest.mark.integration


def test_nothing_breaks_the_command_line(sf: LabCluster, nyc: LabCluster, tmp_path: Path) -> None:
    seed = int(os.environ.get("HOSTILE_SEED", random.SystemRandom().randrange(1_000_000)))
    tally = Player(tmp_path, {"sf": sf, "nyc": nyc}).play_all(sample(CASES, seed))
    assert tally.wrong == [], f"HOSTILE_SEED={seed}: " + "\n".join(map(str, tally.wrong))
