"""The links themselves: nothing goes around them, and they are silent and cut when asked to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient

from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.lab.clients import admin_client
from causeway.lab.cluster import LabCluster
from tests.proofs.chaos.parts.links import Links
from tests.proofs.chaos.parts.processes import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.chaos]


@pytest.fixture
def links(sf: LabCluster, tmp_path: Path) -> Iterator[Links]:
    made = Links((sf,), tmp_path)
    made.start()
    yield made
    made.stop()


def through(links: Links, cluster: LabCluster) -> AdminClient:
    return admin_client(
        ClusterEndpoint(cluster.name, {"bootstrap.servers": links.bootstrap_servers(cluster)})
    )


def answers(client: AdminClient) -> list[str]:
    answer = client.describe_cluster(request_timeout=20.0).result()
    return [f"{node.host}:{node.port}" for node in answer.nodes]


def test_no_client_gets_a_way_around(links: Links, sf: LabCluster) -> None:
    assert answers(through(links, sf)) == [links.bootstrap_servers(sf)] != [sf.bootstrap_servers]


def test_silence_holds_answers_back_and_loses_none(links: Links, sf: LabCluster) -> None:
    client = through(links, sf)
    answers(client)
    silence = threading.Thread(target=links.silence, args=("sf", 3.0))
    silence.start()
    wait_until(lambda: not links.is_open("sf"), "silence")
    late = client.describe_cluster(request_timeout=20.0)
    assert not late.done()
    assert late.result().cluster_id == sf.cluster_id
    assert links.is_open("sf"), "the answer came through a silent link"
    silence.join()


def test_a_cut_link_serves_again(links: Links, sf: LabCluster) -> None:
    client = through(links, sf)
    before = answers(client)
    links.cut("sf", 0.5)
    assert answers(client) == before
