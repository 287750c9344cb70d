"""One endpoint, given to both clients: every key reaches both or is refused."""

from __future__ import annotations

import re
import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from kafka.net.manager import KafkaConnectionManager

from causeway.brokers.client_settings import UNDERSTOOD_KEYS, confluent_settings, kafka_python_settings
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import ConfigError

CANARY = "hunter2-canary"


def identity(password: bytes | None = None) -> tuple[str, str]:
    """A certificate that signs itself, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(datetime.now(UTC) - timedelta(days=1))
        .not_valid_after(datetime.now(UTC) + timedelta(days=1))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    how = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    pem = serialization.Encoding.PEM
    return (
        certificate.public_bytes(pem).decode(),
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, how).decode(),
    )


def endpoint(**settings: str) -> ClusterEndpoint:
    spelled = {key.replace("__", "."): value for key, value in settings.items()}
    return ClusterEndpoint("sf", {"bootstrap.servers": "a:9092", **spelled})


def test_plain_settings_become_kafka_pythons_words() -> None:
    told = ClusterEndpoint(
        "sf",
        {
            "bootstrap.servers": "a:9092, [::1]:9093",
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "u",
            "sasl.password": CANARY,
            "ssl.ca.location": "/ca.pem",
            "ssl.certificate.location": "/c.pem",
            "ssl.key.location": "/k.pem",
            "ssl.key.password": "p",
            "client.id": "me",
            "socket.timeout.ms": "5000",
            "reconnect.backoff.max.ms": "700",
        },
    )
    assert kafka_python_settings(told) == {
        "bootstrap_servers": ["a:9092", "[::1]:9093"],
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "SCRAM-SHA-512",
        "sasl_plain_username": "u",
        "sasl_plain_password": CANARY,
        "ssl_cafile": "/ca.pem",
        "ssl_certfile": "/c.pem",
        "ssl_keyfile": "/k.pem",
        "ssl_password": "p",
        "ssl_check_hostname": True,
        "client_id": "me",
        "request_timeout_ms": 5000,
        "reconnect_backoff_max_ms": 700,
    }


def test_every_word_is_one_that_kafka_python_listens_to() -> None:
    """It ignores what it doesn't know, so a typing error here would be a silent loss of TLS."""
    certificate, key = identity()
    texts = {"ssl.ca.pem": certificate, "ssl.certificate.pem": certificate, "ssl.key.pem": key}
    numbers = {name: "1000" for name in UNDERSTOOD_KEYS if name.endswith(".ms")}
    told = kafka_python_settings(endpoint(security__protocol="SASL_SSL", **texts, **numbers, client__id="x"))
    assert told.keys() <= KafkaConnectionManager.DEFAULT_CONFIG.keys()


def test_every_key_that_we_understand_is_one_of_librdkafka() -> None:
    """It refuses what it doesn't know. No servers are named, so nothing is connected to."""
    certificate, key = identity()
    values = {
        "ssl.ca.pem": certificate,
        "ssl.certificate.pem": certificate,
        "ssl.key.pem": key,
        "security.protocol": "SASL_SSL",
        "ssl.endpoint.identification.algorithm": "https",
        "enable.ssl.certificate.verification": "true",
        "sasl.mechanism": "PLAIN",
        "sasl.mechanisms": "PLAIN",
    }
    of_files = {name for name in UNDERSTOOD_KEYS if name.endswith(".location")}
    asked = UNDERSTOOD_KEYS - of_files - {"bootstrap.servers"}
    AdminClient({name: values.get(name, "1000") for name in asked})
    for name in sorted(of_files):
        with pytest.raises(KafkaException, match=f"{re.escape(name)} failed"):
            AdminClient({"security.protocol": "SSL", name: "/no/such/file"})


@pytest.mark.parametrize(
    "key", ["acks", "statistics.interval.ms", "sasl.oauthbearer.config", "ssl.keystore.location"]
)
def test_what_only_one_client_would_obey_is_refused_by_name(key: str) -> None:
    with pytest.raises(
        ConfigError, match=rf"cluster sf: {key}, zzz: can't be given to both Kafka clients"
    ) as caught:
        kafka_python_settings(ClusterEndpoint("sf", {"bootstrap.servers": "a:1", "zzz": CANARY, key: CANARY}))
    assert CANARY not in str(caught.value)


def test_pem_texts_become_a_context_that_verifies() -> None:
    certificate, key = identity()
    told = kafka_python_settings(
        endpoint(
            security__protocol="SSL",
            **{"ssl.ca.pem": certificate, "ssl.certificate.pem": certificate, "ssl.key.pem": key},
        )
    )
    context = told["ssl_context"]
    assert isinstance(context, ssl.SSLContext)
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert [found["subject"] for found in context.get_ca_certs()] == [((("commonName", "localhost"),),)]


def test_an_encrypted_key_is_opened_with_its_password(tmp_path: Path) -> None:
    certificate, key = identity(b"secret-canary")
    settings = {"ssl.certificate.pem": certificate, "ssl.key.pem": key}
    told = endpoint(security__protocol="SSL", **settings, **{"ssl.key.password": "secret-canary"})
    assert "ssl_context" in kafka_python_settings(told)
    for wrong in ({"ssl.key.password": "other-canary"}, {}):
        with pytest.raises(
            ConfigError, match="cluster sf: TLS certificate or key: can't be loaded"
        ) as caught:
            kafka_python_settings(endpoint(security__protocol="SSL", **settings, **wrong))
        assert "canary" not in str(caught.value)


def test_a_key_of_another_certificate_is_refused() -> None:
    (certificate, _), (_, other) = identity(), identity()
    with pytest.raises(ConfigError, match="KEY_VALUES_MISMATCH"):
        kafka_python_settings(
            endpoint(security__protocol="SSL", **{"ssl.certificate.pem": certificate, "ssl.key.pem": other})
        )


@pytest.mark.parametrize(
    ("key", "off", "mode"),
    [
        ("ssl.endpoint.identification.algorithm", "none", ssl.CERT_REQUIRED),
        ("enable.ssl.certificate.verification", "false", ssl.CERT_NONE),
    ],
)
def test_checks_are_switched_off_one_by_one_and_only_when_asked(
    key: str, off: str, mode: ssl.VerifyMode
) -> None:
    certificate, _ = identity()
    told = kafka_python_settings(endpoint(security__protocol="SSL", **{"ssl.ca.pem": certificate, key: off}))
    context = told["ssl_context"]
    assert isinstance(context, ssl.SSLContext)
    assert (context.check_hostname, context.verify_mode) == (False, mode)
    assert told["ssl_check_hostname"] is False


def test_confluent_gets_the_settings_as_they_are_and_what_the_caller_needs() -> None:
    told = endpoint(client__id="mine")
    assert confluent_settings(told, **{"group.id": "g"}) == {
        "bootstrap.servers": "a:9092",
        "client.id": "mine",
        "group.id": "g",
    }
    assert confluent_settings(endpoint())["client.id"] == "causeway"
