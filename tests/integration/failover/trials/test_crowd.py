"""A small crowd, from the command line alone: `make prove` plays a large one, through Airflow too."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from causeway.config.flows_file.load import load_flows
from causeway.lab.cluster import LabCluster
from tests.integration.failover.command_line import CommandLine
from tests.integration.failover.drivers import CommandDoor
from tests.integration.failover.trials.crowd import FLOWS, Crowd, Size, beside, play
from tests.support.mirroring import Mirror

pytestmark = pytest.mark.integration
SEED = int(os.environ.get("CROWD_SEED", "1"))


@contextmanager
def following(mirror: Mirror) -> Iterator[None]:
    """In this process; ended once it can only wait for its source, after the fence."""

    def follow(over: threading.Event) -> None:
        with suppress(KeyboardInterrupt):
            mirror.run(run_for_seconds=600, is_interrupted=over.is_set)

    with beside(follow):
        yield
    mirror.close()


def test_the_source_dies_in_mid_traffic_and_nobody_skips_what_isnt_lost(
    lab_cluster: Callable[..., LabCluster], nyc: LabCluster, tmp_path: Path
) -> None:
    source = lab_cluster("dying")
    flows = tmp_path / "flows.yaml"
    flows.write_text(FLOWS)
    flow = load_flows(flows).flow("crowd")
    size = Size(topics=3, partitions=2, groups=6, traffic_seconds=2.0)
    crowd = Crowd(flow, source, nyc, size, random.Random(SEED))
    by_hand = CommandDoor(CommandLine(tmp_path, flows, {"sf": source, "nyc": nyc}), flow.name)
    played = play(crowd, [by_hand], by_hand, following(Mirror(flow, source, nyc)))
    assert played.wrong == (), f"CROWD_SEED={SEED}"
