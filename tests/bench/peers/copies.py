"""The target's topics, for contenders that don't make them themselves."""

from __future__ import annotations

from confluent_kafka.admin import NewTopic

from causeway.lab.clients import admin_client
from tests.bench.gauge import Gauge
from tests.bench.peers.contender import Scene
from tests.proofs.chaos.parts.processes import wait_until

_SECONDS = 60.0


def make_copies(scene: Scene) -> None:
    """Back when every partition serves: its leader is announced before it takes the part."""
    work = scene.workload
    wishes = [NewTopic(copy, work.partitions_per_topic) for copy in scene.copies]
    admin = admin_client(scene.target.endpoint())
    for answer in admin.create_topics(wishes).values():
        answer.result(_SECONDS)
    with Gauge(scene.target.endpoint(), scene.copies) as gauge:
        wait_until(
            lambda: gauge.serving() == work.partitions, "new topics to serve", timeout_seconds=_SECONDS
        )
