"""Which of the events that librdkafka reported is the reason."""

from __future__ import annotations

import socket
import threading

import pytest
from confluent_kafka import KafkaError

from causeway.brokers.admin import probe as probes
from causeway.brokers.admin.probe import probe, reason_of
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import AuthenticationFailed, ClusterUnreachable

HERE = ClusterEndpoint("sf", {"bootstrap.servers": "127.0.0.1:9092", "security.protocol": "SSL"})
CLOSED = "ssl://127.0.0.1:9092/bootstrap: Disconnected: SSL connection closed by peer (after 0ms)"
HINTED = (
    "ssl://127.0.0.1:9092/bootstrap: Disconnected: connecting to a PLAINTEXT broker listener? (after 0ms)"
)


def transport(text: str) -> KafkaError:
    return KafkaError(KafkaError._TRANSPORT, text)


def test_the_attempt_that_knows_most_is_reported_whichever_came_last() -> None:
    reason = reason_of(HERE, [transport(HINTED), transport(CLOSED)])

    assert isinstance(reason, AuthenticationFailed)
    assert "doesn't speak TLS" in reason.rule


def test_of_attempts_that_know_as_much_the_last_is_reported() -> None:
    reason = reason_of(HERE, [transport("first: refused"), transport(CLOSED)])

    assert isinstance(reason, ClusterUnreachable)
    assert "closed by peer" in reason.rule


def test_a_port_that_speaks_http_is_named_as_one_that_is_not_kafkas() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        threading.Thread(target=_answer_in_http, args=(listener,), daemon=True).start()
        endpoint = ClusterEndpoint("sf", {"bootstrap.servers": f"127.0.0.1:{port}"})
        with pytest.raises(ClusterUnreachable) as refused:
            probe(endpoint, timeout_seconds=2)
    assert f"127.0.0.1:{port} answers in HTTP: that port isn't Kafka's" in str(refused.value)
    assert "receive.message" not in str(refused.value)


@pytest.mark.parametrize(
    "verdict",
    [
        "EE certificate key too weak",
        "CA certificate key too weak",
        "CA signature digest algorithm too weak",
    ],
)
def test_a_brokers_certificate_that_is_too_weak_has_a_remedy_of_its_own(
    monkeypatch: pytest.MonkeyPatch, verdict: str
) -> None:
    """Another CA would change nothing."""
    monkeypatch.setattr(probes, "_verdict_on_certificate", lambda *_: verdict)
    text = "ssl://127.0.0.1:9092/bootstrap: SSL handshake failed: certificate verify failed (after 0ms)"
    reason = reason_of(HERE, [KafkaError(KafkaError._SSL, text)])
    assert f"the certificate of 127.0.0.1:9092 doesn't hold: {verdict}" in reason.rule
    assert "issued again, with RSA of 2048 bits or more" in reason.remedy
    assert "must hold the CA" not in reason.remedy


def _answer_in_http(listener: socket.socket) -> None:
    while True:
        try:
            peer, _ = listener.accept()
            with peer:
                peer.recv(1000)
                peer.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        except OSError:  # the test is over, or librdkafka has hung up
            if listener.fileno() < 0:
                return
