"""The small campaign: every kind of fault, a hundred thousand records; nothing lost, repeated or swapped."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from causeway.lab.cluster import LabCluster
from tests.proofs.chaos.campaign import BROKER_SETTINGS, Campaign
from tests.proofs.chaos.proof import Proof
from tests.proofs.chaos.schedule import OLD_BROKER, SMALL, SMALL_SETTLING, THREE_NODES_SMALL, Size

pytestmark = [pytest.mark.integration, pytest.mark.spark, pytest.mark.chaos, pytest.mark.timeout(1800)]

LabClusterFactory = Callable[..., LabCluster]


def _play(lab_cluster: LabClusterFactory, folder: Path, size: Size, **target: Any) -> Proof:
    seed = int(os.environ.get("CAUSEWAY_CHAOS_SEED", random.SystemRandom().randrange(1_000_000)))
    source = lab_cluster("sf")
    mirror = lab_cluster("nyc", broker_settings=BROKER_SETTINGS, **target)
    return Campaign(source, mirror, folder, seed, size, print).play()


def test_every_kind_of_fault(lab_cluster: LabClusterFactory, tmp_path: Path) -> None:
    proof = _play(lab_cluster, tmp_path, SMALL)
    assert sum(proof.faults.values()) == SMALL.fault_count
    assert proof.records > 100_000
    assert proof.hits > 0, "no fault found a transaction open: the campaign proves nothing"


def test_with_settling_no_reader_sees_a_record_twice(lab_cluster: LabClusterFactory, tmp_path: Path) -> None:
    proof = _play(lab_cluster, tmp_path, SMALL_SETTLING)
    assert sum(proof.faults.values()) == SMALL_SETTLING.fault_count
    assert proof.hits > 0, "no fault found a transaction open: the campaign proves nothing"
    assert proof.repeats == 0


def test_faults_on_an_older_target(lab_cluster: LabClusterFactory, tmp_path: Path) -> None:
    proof = _play(lab_cluster, tmp_path, OLD_BROKER, kafka_version="3.9.2")
    assert sum(proof.faults.values()) == OLD_BROKER.fault_count
    assert proof.hits > 0, "no fault found a transaction open: the campaign proves nothing"


def test_faults_of_three_nodes_and_of_the_network(lab_cluster: LabClusterFactory, tmp_path: Path) -> None:
    proof = _play(lab_cluster, tmp_path, THREE_NODES_SMALL, nodes=3)
    assert sum(proof.faults.values()) == THREE_NODES_SMALL.fault_count
    assert proof.committed.is_exact
    assert proof.hits > 0, "no fault found a transaction open: the campaign proves nothing"
