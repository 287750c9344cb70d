"""Client errors become ours: the right kind, the fix, and never a secret."""

from __future__ import annotations

import ssl
from dataclasses import replace

import kafka.errors as kafka_python
import pytest
from confluent_kafka import KafkaError, KafkaException

from causeway.brokers.error_codes import LibrdkafkaCode
from causeway.brokers.error_map import error_of_code, error_of_right, mapped, mapped_error
from causeway.core.kernel.acl_vocabulary import NeededRight, Operation
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import (
    AuthenticationFailed,
    BadInput,
    CausewayError,
    ClusterUnreachable,
    ConfigError,
    IncompatibleBroker,
    NotAuthorized,
    ProtocolFault,
    Superseded,
    UnknownName,
)
from causeway.core.kernel.kafka_errors import KafkaErrorCode, error_name, is_retriable

ENDPOINT = ClusterEndpoint(
    "sf",
    {
        "bootstrap.servers": "broker.example:9092",
        "sasl.username": "mirror",
        "sasl.password": "canary-pass-word",
        "ssl.ca.location": "/etc/ca.pem",
    },
)


def of(code: int, text: str = "text") -> CausewayError:
    return mapped_error(
        KafkaException(KafkaError(code, text)), cluster=ENDPOINT, resource="orders", operation="Read"
    )


@pytest.mark.parametrize("code", list(LibrdkafkaCode))
def test_librdkafka_codes_are_the_librarys_own(code: LibrdkafkaCode) -> None:
    assert getattr(KafkaError, f"_{code.name}") == code


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (KafkaError._TRANSPORT, ClusterUnreachable),
        (KafkaError._RESOLVE, ClusterUnreachable),
        (KafkaError._ALL_BROKERS_DOWN, ClusterUnreachable),
        (KafkaError._TIMED_OUT, ClusterUnreachable),
        (KafkaError._BAD_MSG, ClusterUnreachable),
        (KafkaErrorCode.REQUEST_TIMED_OUT, ClusterUnreachable),
        (KafkaErrorCode.NOT_CONTROLLER, ClusterUnreachable),
        (KafkaError._AUTHENTICATION, AuthenticationFailed),
        (KafkaErrorCode.SASL_AUTHENTICATION_FAILED, AuthenticationFailed),
        (KafkaErrorCode.UNSUPPORTED_SASL_MECHANISM, AuthenticationFailed),
        (KafkaError._SSL, AuthenticationFailed),
        (KafkaErrorCode.UNSUPPORTED_VERSION, IncompatibleBroker),
        (KafkaError._UNSUPPORTED_FEATURE, IncompatibleBroker),
        (KafkaErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UnknownName),
        (KafkaErrorCode.INVALID_REPLICATION_FACTOR, BadInput),
        (KafkaErrorCode.POLICY_VIOLATION, BadInput),
        (KafkaError._INVALID_ARG, ConfigError),
        (KafkaErrorCode.INVALID_TXN_STATE, ProtocolFault),
        (KafkaError._INCONSISTENT, ProtocolFault),
    ],
)
def test_each_librdkafka_code_has_its_meaning(code: int, kind: type[CausewayError]) -> None:
    error = of(code)
    assert type(error) is kind
    assert "sf (broker.example:9092)" in str(error)


@pytest.mark.parametrize(
    ("code", "grant"),
    [
        (29, "kafka-acls.sh --add --allow-principal User:mirror --operation Read --topic orders"),
        (30, "kafka-acls.sh --add --allow-principal User:mirror --operation Read --group orders"),
        (31, "kafka-acls.sh --add --allow-principal User:mirror --operation Read --cluster"),
        (53, "kafka-acls.sh --add --allow-principal User:mirror --operation Read --transactional-id orders"),
    ],
)
def test_a_missing_right_is_answered_with_the_exact_grant(code: int, grant: str) -> None:
    for error in (
        of(code),
        error_of_code(code, cluster=ENDPOINT, resource="orders", operation="Read"),
        mapped_error(kafka_python.for_code(code)(), cluster=ENDPOINT, resource="orders", operation="Read"),
    ):
        assert type(error) is NotAuthorized
        assert error.remedy == grant


def test_a_right_that_was_asked_for_is_missed_in_the_words_of_a_refusal() -> None:
    right = NeededRight(side="source", resource="topic", name="orders", operation=Operation.READ, why="")
    asked, refused = (
        error_of_right(right, cluster=ENDPOINT),
        error_of_code(29, cluster=ENDPOINT, resource="orders", operation="Read"),
    )
    assert (type(asked), str(asked)) == (type(refused), str(refused))
    clones = replace(right, resource="group", name="causeway.drill.x/", is_prefix=True)
    assert error_of_right(clones, cluster=ENDPOINT).remedy == clones.command("User:mirror")


@pytest.mark.parametrize(
    ("exc", "kind"),
    [
        (kafka_python.KafkaConnectionError("no"), ClusterUnreachable),
        (kafka_python.KafkaTimeoutError("no"), ClusterUnreachable),
        (kafka_python.NodeNotReadyError("no"), ClusterUnreachable),
        (kafka_python.SaslAuthenticationFailedError("no"), AuthenticationFailed),
        (kafka_python.UnsupportedVersionError("no"), IncompatibleBroker),
        (kafka_python.IncompatibleBrokerVersion("no"), IncompatibleBroker),
        (kafka_python.KafkaProtocolError("no"), ProtocolFault),
        (ssl.SSLCertVerificationError("unable to get local issuer certificate"), AuthenticationFailed),
        (ConnectionRefusedError("no"), ClusterUnreachable),
        (TimeoutError("no"), ClusterUnreachable),
    ],
)
def test_kafka_pythons_errors_and_the_sockets_below_have_the_same_meanings(
    exc: Exception, kind: type[CausewayError]
) -> None:
    with pytest.raises(CausewayError) as caught, mapped(cluster=ENDPOINT):
        raise exc
    assert type(caught.value) is kind
    assert caught.value.__cause__ is exc


def test_no_message_shows_a_secret() -> None:
    told = str(of(KafkaError._AUTHENTICATION, "login mirror / canary-pass-word refused"))
    assert "canary-pass-word" not in told
    assert "***" in told


def test_a_tls_failure_names_the_ca_file() -> None:
    assert "/etc/ca.pem" in str(of(KafkaError._SSL, "certificate verify failed"))


@pytest.mark.parametrize("text", ["[SSL: EE_KEY_TOO_SMALL] ee key too small", "CA certificate key too weak"])
def test_a_certificate_that_is_too_weak_is_reported_with_its_remedy(text: str) -> None:
    with pytest.raises(AuthenticationFailed) as caught, mapped(cluster=ENDPOINT):
        raise ssl.SSLError(text)
    assert "issued again, with RSA of 2048 bits or more" in caught.value.remedy


def test_librdkafkas_bookkeeping_is_left_out_but_its_peer_stays() -> None:
    told = of(
        KafkaError._TRANSPORT,
        "sasl_ssl://broker.example:9092/bootstrap: Connect failed: refused (after 0ms in state CONNECT)",
    )
    assert told.rule == "broker.example:9092: Connect failed: refused"


@pytest.mark.parametrize(
    ("size", "spoken"),
    [
        (1213486160, "answers in HTTP: that port isn't Kafka's"),
        (1397966893, "answers in a protocol that begins with 'SSH-': that port isn't Kafka's"),
        (-1, "answers in another protocol: that port isn't Kafka's"),
        (352518400, "answers in another protocol: that port isn't Kafka's"),
    ],
)
def test_a_port_that_is_not_kafkas_is_named_and_no_limit_is_advised(size: int, spoken: str) -> None:
    text = f"h:80/bootstrap: Receive failed: Invalid response size {size} (0..100000000): increase "
    error = KafkaError(KafkaError._BAD_MSG, f"{text}receive.message.max.bytes")
    told = mapped_error(KafkaException(error), cluster=ENDPOINT)
    assert isinstance(told, ClusterUnreachable)
    assert f"h:80 {spoken}; correct host and port" in str(told)
    assert "receive.message" not in str(told)


def test_our_own_errors_pass_unchanged_and_other_exceptions_are_not_touched() -> None:
    ours = Superseded("flow x")
    with pytest.raises(Superseded) as caught, mapped(cluster=ENDPOINT):
        raise ours
    assert caught.value is ours
    with pytest.raises(ZeroDivisionError), mapped(cluster=ENDPOINT):
        raise ZeroDivisionError


RENAMED_IN_KAFKA_PYTHON = {None, -1, 0, 6, 10, 17, 39}


def test_the_table_of_codes_agrees_with_kafka_python() -> None:
    for code, theirs in kafka_python.kafka_errors.items():
        if code in RENAMED_IN_KAFKA_PYTHON:
            continue
        assert error_name(code) == theirs.message
        if code != KafkaErrorCode.CORRUPT_MESSAGE:  # retriable in Kafka's own table, not in kafka-python's
            assert is_retriable(code) == theirs.retriable


def test_a_code_that_nobody_knows_keeps_its_number() -> None:
    assert error_name(999) == "UNKNOWN_ERROR_CODE_999"
    assert not is_retriable(999)
    assert "999" in str(error_of_code(999, cluster="sf"))
