"""The proxy does to a request what it says, and nothing to the others: seen by what a real broker got of it.

One record is appended without idempotence, so that a broker which gets the request twice has it twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from causeway.brokers.transport.connection import Network, Wire
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.ports import LogEnd, Unreachable
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.identity import TopicPartition
from causeway.lab.cluster import LabCluster
from tests.proofs.proxy.heads import Api, RequestHead, parse_head
from tests.proofs.proxy.proxy import HOST, LATE, Fault, Injection, Proxy, ProxyThread

pytestmark = pytest.mark.integration

_ENOUGH_MS = "6000"
"""For an answer of a broker that shares its disk with other tests: only what is lost waits so long."""


@pytest.fixture
def proxy(proxies: ProxyThread, sf: LabCluster) -> Iterator[Proxy]:
    with proxies.proxy(int(sf.bootstrap_servers.rpartition(":")[2])) as made:
        yield made


@pytest.fixture
def through(proxy: Proxy) -> Iterator[WireTarget]:
    yield from _target({"bootstrap.servers": f"{HOST}:{proxy.port}", "socket.timeout.ms": _ENOUGH_MS})


@pytest.fixture
def direct(sf: LabCluster) -> Iterator[WireTarget]:
    yield from _target(dict(sf.endpoint().settings))


@pytest.fixture
def topic(sf_admin: AdminClient, topic_name: Callable[..., str]) -> str:
    name = topic_name("struck")
    sf_admin.create_topics([NewTopic(name, 1)])[name].result(30)
    return name


def test_a_head_is_parsed() -> None:
    frame = bytes.fromhex("0000001a 001a 0005 00000007 0008") + b"causeway" + bytes(8)
    assert parse_head(frame) == RequestHead(26, Api.END_TXN, 5, 7, "causeway")
    assert parse_head(bytes.fromhex("0000000a 0003 000c ffffffff ffff")).client_id is None


def test_everything_passes_and_clients_stay_with_the_proxy(
    proxy: Proxy, through: WireTarget, topic: str
) -> None:
    through.wire.network.run(lambda: through.append_plain(topic, b"k", b"v"))
    assert {each.head.client_id for each in proxy.requests} == {"causeway"}
    keys = [each.head.api_key for each in proxy.requests]
    assert keys[-1] == Api.PRODUCE, "the client went to the broker that the metadata named"
    assert _end(through, topic) == 1


@pytest.mark.parametrize(
    ("fault", "is_told", "arrives"),
    [
        pytest.param(Fault.REQUEST_LOST, False, 0, id="request lost"),
        pytest.param(Fault.RESPONSE_LOST, False, 1, id="response lost"),
        pytest.param(Fault.REQUEST_LATE, False, 0, id="request late"),
        pytest.param(Fault.RESPONSE_LATE, False, 1, id="response late"),
        pytest.param(Fault.REQUEST_RESET, False, 0, id="reset in the request"),
        pytest.param(Fault.RESPONSE_RESET, False, 1, id="reset in the response"),
        pytest.param(Fault.REPEATED, True, 2, id="repeated"),
    ],
)
def test_a_fault_strikes_the_second_append(
    fault: Fault,
    is_told: bool,
    arrives: int,
    proxy: Proxy,
    through: WireTarget,
    direct: WireTarget,
    topic: str,
) -> None:
    def append(value: bytes) -> int:
        return through.wire.network.run(lambda: through.append_plain(topic, b"k", value))

    proxy.injection = Injection(fault, lambda request: request.head.api_key == Api.PRODUCE, nth=2)
    assert append(b"first") == 0
    if is_told:
        assert append(b"second") == 1
    else:
        with pytest.raises(Unreachable):
            append(b"second")
    assert proxy.injection.fired.is_set()
    assert _end(direct, topic) == 1 + arrives
    if fault in LATE:
        proxy.release()
        assert _end(direct, topic) == 2
    through.wire.disconnect()
    through.wire.network.run(through.wire.connect)
    assert append(b"third") == _end(direct, topic) - 1, "a fault strikes once"


def _target(settings: dict[str, str]) -> Iterator[WireTarget]:
    network = Network()
    target = WireTarget(Wire(ClusterEndpoint("sf", settings), network))
    network.run(target.wire.connect)
    yield target
    target.wire.disconnect()
    network.close()


def _end(reader: WireTarget, topic: str) -> int:
    tp = TopicPartition(topic, 0)
    end = reader.wire.network.run(lambda: reader.log_ends([tp]))[tp]
    assert isinstance(end, LogEnd)
    return end.offset
