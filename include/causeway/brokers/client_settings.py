"""One endpoint, two clients: librdkafka's settings as they are, and the same in kafka-python's words.

Invariant: a setting either reaches both clients or is refused by name. One that only one of them obeyed
would make the raw path and the admin path talk to a cluster in two ways.
"""

from __future__ import annotations

import ssl
import tempfile
from collections.abc import Callable, Mapping
from types import MappingProxyType

from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import ConfigError
from causeway.core.kernel.tls_strength import STRONG_ENOUGH, weakness

SASL_MECHANISMS = frozenset({"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"})
_PEM_TEXT = ("ssl.ca.pem", "ssl.certificate.pem", "ssl.key.pem")
_NO_CHECK = {"ssl.endpoint.identification.algorithm": "none", "enable.ssl.certificate.verification": "false"}


def _servers(text: str) -> list[str]:
    return [server.strip() for server in text.split(",")]


_TRANSLATIONS: Mapping[str, tuple[str, Callable[[str], object]]] = MappingProxyType(
    {
        "bootstrap.servers": ("bootstrap_servers", _servers),
        "client.id": ("client_id", str),
        "security.protocol": ("security_protocol", str.upper),
        "sasl.mechanism": ("sasl_mechanism", str),
        "sasl.mechanisms": ("sasl_mechanism", str),
        "sasl.username": ("sasl_plain_username", str),
        "sasl.password": ("sasl_plain_password", str),
        "ssl.ca.location": ("ssl_cafile", str),
        "ssl.certificate.location": ("ssl_certfile", str),
        "ssl.key.location": ("ssl_keyfile", str),
        "ssl.key.password": ("ssl_password", str),
        "ssl.crl.location": ("ssl_crlfile", str),
        "socket.timeout.ms": ("request_timeout_ms", int),
        "socket.connection.setup.timeout.ms": ("socket_connection_setup_timeout_ms", int),
        "connections.max.idle.ms": ("connections_max_idle_ms", int),
        "reconnect.backoff.ms": ("reconnect_backoff_ms", int),
        "reconnect.backoff.max.ms": ("reconnect_backoff_max_ms", int),
        "metadata.max.age.ms": ("metadata_max_age_ms", int),
    }
)
MILLISECOND_KEYS = frozenset(key for key in _TRANSLATIONS if key.endswith(".ms"))
UNDERSTOOD_KEYS = frozenset(_TRANSLATIONS) | frozenset(_PEM_TEXT) | frozenset(_NO_CHECK)
"""What a connection may say: what both clients understand."""


def confluent_settings(endpoint: ClusterEndpoint, **extra: object) -> dict[str, object]:
    """librdkafka's settings: the connection's, then what the caller needs (`**{"group.id": ...}`)."""
    return {"client.id": "causeway", **endpoint.settings, **extra}


def kafka_python_settings(endpoint: ClusterEndpoint) -> dict[str, object]:
    """Keyword arguments for KafkaConnectionManager.

    :raises ConfigError: a setting that kafka-python has no word for, or TLS material that can't be loaded.
    """
    strange = sorted(set(endpoint.settings) - UNDERSTOOD_KEYS)
    if strange:
        raise ConfigError(
            f"cluster {endpoint.alias}: {', '.join(strange)}",
            rule="can't be given to both Kafka clients",
            remedy=f"remove it from the connection; understood: {', '.join(sorted(UNDERSTOOD_KEYS))}",
        )
    settings: dict[str, object] = {"client_id": "causeway"}
    for key, value in endpoint.settings.items():
        if key in _TRANSLATIONS:
            word, convert = _TRANSLATIONS[key]
            settings[word] = convert(value)
    if str(settings.get("security_protocol", "PLAINTEXT")).endswith("SSL"):
        _add_tls(endpoint, settings)
    return settings


def _add_tls(endpoint: ClusterEndpoint, settings: dict[str, object]) -> None:
    """Files go as they are; text and switched-off checks need a context of our own."""
    asked = endpoint.settings
    unchecked = {key for key, off in _NO_CHECK.items() if asked.get(key, "").lower() == off}
    settings["ssl_check_hostname"] = not unchecked
    if any(key in asked for key in _PEM_TEXT) or "enable.ssl.certificate.verification" in unchecked:
        try:
            settings["ssl_context"] = _context(asked)
        except (ssl.SSLError, ValueError, OSError) as reason:
            remedy = "check that key and certificate belong together, and ssl.key.password"
            if weakness(_reason(reason)):
                remedy = f"let the certificate be issued again, with {STRONG_ENOUGH}"
            raise ConfigError(
                f"cluster {endpoint.alias}: TLS certificate or key",
                rule=f"can't be loaded: {weakness(_reason(reason)) or _reason(reason)}",
                remedy=remedy,
            ) from None


def _reason(error: Exception) -> str:
    return error.reason if isinstance(error, ssl.SSLError) and error.reason else type(error).__name__


def _context(asked: Mapping[str, str]) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if asked.get("ssl.endpoint.identification.algorithm", "").lower() == "none":
        context.check_hostname = False
    if asked.get("enable.ssl.certificate.verification", "").lower() == "false":
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if "ssl.ca.pem" in asked or "ssl.ca.location" in asked:
        context.load_verify_locations(
            cafile=asked.get("ssl.ca.location"), cadata=ascii_pem(asked.get("ssl.ca.pem"))
        )
    else:
        context.load_default_certs()
    if "ssl.crl.location" in asked:
        context.load_verify_locations(cafile=asked["ssl.crl.location"])
        context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF
    if "ssl.certificate.pem" in asked or "ssl.certificate.location" in asked:
        load_identity(context, asked)
    return context


def ascii_pem(text: str | None) -> str | None:
    """Comments between certificates may hold anything; Python's `ssl` takes ASCII only."""
    return None if text is None else text.encode("ascii", "replace").decode()


def load_identity(context: ssl.SSLContext, asked: Mapping[str, str]) -> None:
    """OpenSSL reads a private key from a file only: ours is 0600, and gone when this returns."""
    # Without a password OpenSSL would ask for one on the terminal, and a worker would wait forever.
    password = asked.get("ssl.key.password", "")
    with (
        tempfile.NamedTemporaryFile("w", suffix=".pem", encoding="utf-8") as certificate,
        tempfile.NamedTemporaryFile("w", encoding="utf-8") as key,
    ):
        for file, kind in ((certificate, "certificate"), (key, "key")):
            file.write(asked.get(f"ssl.{kind}.pem", ""))
            file.flush()
        context.load_cert_chain(
            asked.get("ssl.certificate.location", certificate.name),
            asked.get("ssl.key.location", key.name),
            password,
        )
