"""Which of the events that librdkafka told is the reason."""

from __future__ import annotations

from confluent_kafka import KafkaError

from causeway.brokers.probe import reason_of
from causeway.core.endpoint import ClusterEndpoint
from causeway.core.errors import AuthenticationFailed, ClusterUnreachable

HERE = ClusterEndpoint("sf", {"bootstrap.servers": "127.0.0.1:9092", "security.protocol": "SSL"})
CLOSED = "ssl://127.0.0.1:9092/bootstrap: Disconnected: SSL connection closed by peer (after 0ms)"
HINTED = (
    "ssl://127.0.0.1:9092/bootstrap: Disconnected: connecting to a PLAINTEXT broker listener? (after 0ms)"
)


def transport(text: str) -> KafkaError:
    return KafkaError(KafkaError._TRANSPORT, text)


def test_the_attempt_that_knows_most_is_told_whichever_came_last() -> None:
    reason = reason_of(HERE, [transport(HINTED), transport(CLOSED)])

    assert isinstance(reason, AuthenticationFailed)
    assert "doesn't speak TLS" in reason.rule


def test_of_attempts_that_know_as_much_the_last_is_told() -> None:
    reason = reason_of(HERE, [transport("first: refused"), transport(CLOSED)])

    assert isinstance(reason, ClusterUnreachable)
    assert "closed by peer" in reason.rule
