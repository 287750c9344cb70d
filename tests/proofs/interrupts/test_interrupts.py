"""Ctrl-C and SIGTERM at some moments by seed, one for each verb; `make prove` plays 200."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from causeway.lab.cluster import LabCluster
from tests.proofs.interrupts.stage import Stage
from tests.proofs.interrupts.trials import VERBS, Trials

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def trials(sf: LabCluster, nyc: LabCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trials]:
    folder: Path = tmp_path_factory.mktemp("interrupts")
    made = Trials(Stage(sf, nyc, folder, f"struck{os.getpid()}x"))
    yield made
    made.close()


@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "home"])  # a long way to get there
def test_a_command_ends_with_one_line_and_leaves_nothing(trials: Trials, verb: str) -> None:
    seed = int(os.environ.get("CAUSEWAY_INTERRUPTS_SEED") or random.SystemRandom().randrange(1_000_000))
    played = trials.play(verb, seed)
    assert played.wrong == (), f"{played}\n{played.ended.err}"
