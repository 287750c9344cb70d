"""A host among the bootstrap servers that takes connections and says nothing must not keep a worker out."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator

import pytest

from causeway.brokers.admin.probe import probe
from causeway.brokers.transport.connection import Network, Wire
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import ClusterUnreachable
from causeway.lab.cluster import LabCluster

pytestmark = pytest.mark.integration


@pytest.fixture
def silent() -> Iterator[str]:
    """The kernel takes the connection; nobody ever reads from it."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize(
    "ordered", [pytest.param(list, id="in front"), pytest.param(lambda two: [*reversed(two)], id="behind")]
)
def test_the_other_server_is_asked(
    silent: str, sf: LabCluster, ordered: Callable[[list[str]], list[str]]
) -> None:
    servers = ",".join(ordered([silent, sf.bootstrap_servers]))
    network = Network()
    wire = Wire(ClusterEndpoint("sf", {**sf.endpoint().settings, "bootstrap.servers": servers}), network)
    try:
        for _ in range(4):
            network.run(wire.connect)
            assert wire.cluster_id == sf.cluster_id
            wire.disconnect()
    finally:
        network.close()


def test_a_frozen_broker_is_not_taken_for_one_that_wants_a_password(silent: str) -> None:
    with pytest.raises(ClusterUnreachable) as told:
        probe(ClusterEndpoint("sf", {"bootstrap.servers": silent}), timeout_seconds=0.5)
    assert "takes connections and then says nothing" in str(told.value)
    assert "SASL" not in str(told.value)
    assert "TLS" not in str(told.value)
