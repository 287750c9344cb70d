"""A run that follows its source delivers while the source goes on writing: all, once, in order."""

from __future__ import annotations

from pathlib import Path

import pytest

from causeway.lab.cluster import LabCluster
from tests.proofs.follow.measure import follow

pytestmark = [pytest.mark.integration, pytest.mark.spark]


def test_a_following_run_delivers_everything_in_order(
    sf: LabCluster, nyc: LabCluster, tmp_path: Path
) -> None:
    found = follow(sf, nyc, tmp_path, seconds=10, records_per_second=1_000)

    print(found)
    seen = found.numbers_by_partition
    assert all(numbers == sorted(set(numbers)) for numbers in seen.values())
    assert sorted(n for numbers in seen.values() for n in numbers) == list(range(found.delivered))
    assert found.milliseconds, "nothing arrived while the source was still writing"
