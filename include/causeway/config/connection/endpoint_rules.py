"""What a connection's extra may say, and what it must not: the rules of every endpoint.

Invariants: both clients understand every key that comes out; nothing that the protocol's safety stands on
can be set from outside; nothing crosses the network unprotected unless somebody wrote `insecure: true`;
no message shows a secret.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from causeway.brokers.client_settings import MILLISECOND_KEYS, SASL_MECHANISMS, UNDERSTOOD_KEYS
from causeway.config.connection.bootstrap import KEY as SERVERS
from causeway.config.connection.bootstrap import check_servers
from causeway.config.connection.tls_material import check_material
from causeway.config.connection.tls_rules import CHECKS, TEXTS, check_tls
from causeway.config.flows_file.known_words import shown_key
from causeway.config.values.refusal import KeyRefusal, suggestion
from causeway.core.kernel.errors import ConfigError

PROTECTED_KEYS = frozenset(
    {
        "acks",
        "allow.auto.create.topics",
        "auto.offset.reset",
        "enable.auto.commit",
        "enable.auto.offset.store",
        "enable.idempotence",
        "group.id",
        "group.instance.id",
        "isolation.level",
        "max.in.flight",
        "max.in.flight.requests.per.connection",
        "request.required.acks",
        "transaction.timeout.ms",
        "transactional.id",
    }
)
MILLISECONDS = {
    "connections.max.idle.ms": (1, 2_147_483_647),
    "metadata.max.age.ms": (1, 86_400_000),
    "reconnect.backoff.max.ms": (1, 3_600_000),
    "reconnect.backoff.ms": (1, 3_600_000),
    "socket.connection.setup.timeout.ms": (1_000, 2_147_483_647),
    "socket.timeout.ms": (10, 300_000),
}
"""What librdkafka accepts, least and most, less the 0 that kafka-python reads in another way."""
_USUAL_MILLISECONDS = {
    "connections.max.idle.ms": 300_000,
    "metadata.max.age.ms": 300_000,
    "reconnect.backoff.max.ms": 10_000,
    "reconnect.backoff.ms": 100,
    "socket.connection.setup.timeout.ms": 30_000,
    "socket.timeout.ms": 30_000,
}
MEANINGS: Mapping[str, str] = {
    "bootstrap.servers": "Brokers to ask first, as host and port. Several have commas between them.",
    "client.id": "The name under which brokers see Causeway.",
    "connections.max.idle.ms": "A client closes a connection that was idle for this time.",
    "enable.ssl.certificate.verification": "Whether the client checks the broker's certificate.",
    "metadata.max.age.ms": "A client asks again which brokers and topics there are after this time.",
    "reconnect.backoff.max.ms": "The longest pause between two tries to connect.",
    "reconnect.backoff.ms": "The first pause between two tries to connect.",
    "sasl.mechanism": "How the user logs in.",
    "sasl.mechanisms": "The same as `sasl.mechanism`; only one of the two may be there.",
    "sasl.password": "The password. Messages never show it.",
    "sasl.username": "The user.",
    "security.protocol": "Whether TLS protects the connection, and whether the user logs in.",
    "socket.connection.setup.timeout.ms": "How long a client tries to open one connection.",
    "socket.timeout.ms": "How long a client waits for one answer.",
    "ssl.ca.location": "A PEM file of the certificates that sign the brokers' ones.",
    "ssl.ca.pem": "The same as text.",
    "ssl.certificate.location": "A PEM file of the client's own certificate.",
    "ssl.certificate.pem": "The same as text.",
    "ssl.crl.location": "A PEM file of revoked certificates.",
    "ssl.endpoint.identification.algorithm": "Whether the client checks the broker's host name.",
    "ssl.key.location": "A PEM file of the client's private key.",
    "ssl.key.password": "The password of an encrypted private key.",
    "ssl.key.pem": "The same as `ssl.key.location`, as text.",
}
"""What each key of a connection means: docs/configuration.md is made from that."""
PROTOCOLS = ("PLAINTEXT", "SASL_PLAINTEXT", "SASL_SSL", "SSL")
_NOT_LIBRDKAFKAS = {
    "sasl.jaas.config": "write sasl.username and sasl.password",
    "ssl.truststore.location": "write ssl.ca.location, a PEM file",
    "ssl.truststore.password": "a PEM file in ssl.ca.location needs none: remove it",
    "ssl.truststore.certificates": "write ssl.ca.pem",
    "ssl.keystore.location": "write ssl.certificate.location and ssl.key.location, PEM files",
    "ssl.keystore.password": "write ssl.key.password",
    "ssl.keystore.key": "write ssl.key.pem",
    "ssl.keystore.certificate.chain": "write ssl.certificate.pem",
}


def checked_settings(
    place: str, alias: str, extra: Mapping[str, object], *, insecure: bool
) -> dict[str, str]:
    """:raises ConfigError: names the connection, the key, the rule and the fix."""
    try:
        settings = {key: _setting_text(key, value) for key, value in extra.items() if _is_accepted(key)}
        _normalize(settings)
        _check_protocol(settings)
        _check_servers_and_times(settings)
        _check_sasl(settings)
        _check_tls(settings)
        if not insecure:
            _check_protection(settings, alias)
    except KeyRefusal as refusal:
        raise ConfigError(
            f"{place}: {refusal.key}", value=refusal.value, rule=refusal.rule, remedy=refusal.remedy
        ) from None
    return settings


def _is_accepted(key: str) -> bool:
    if key in PROTECTED_KEYS:
        rule = "is set by Causeway: exactly once stands on it"
        raise KeyRefusal(key, rule, f"remove it; protected: {', '.join(sorted(PROTECTED_KEYS))}")
    if key in _NOT_LIBRDKAFKAS:
        raise KeyRefusal(key, "is Java's word", _NOT_LIBRDKAFKAS[key])
    if key not in UNDERSTOOD_KEYS:
        rule = "is no key that both Kafka clients take"
        raise KeyRefusal(shown_key(key), rule, suggestion(key, UNDERSTOOD_KEYS, most=len(UNDERSTOOD_KEYS)))
    return True


def _setting_text(key: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, str | int):
        raise KeyRefusal(key, "must be text, a whole number, true or false", "put it into quotes")
    text = _digits(key, value) if isinstance(value, int) else value
    if not text.strip():
        raise KeyRefusal(key, "must not be empty", "write it or leave it out")
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise KeyRefusal(key, "holds half a character (\\ud800 to \\udfff)", "write the character itself")
    if key not in TEXTS and not text.isprintable():
        raise KeyRefusal(key, "holds a line end or a control character", "remove it")
    return text


def _digits(key: str, number: int) -> str:
    try:
        return str(number)
    except ValueError:  # Python's own limit, some thousands of digits
        rule = "holds a number that is too long to be written as text"
        raise KeyRefusal(key, rule, "put it into quotes, if it is text") from None


def _normalize(settings: dict[str, str]) -> None:
    """One spelling of what librdkafka accepts in several."""
    if "sasl.mechanisms" in settings:
        if "sasl.mechanism" in settings:
            raise KeyRefusal("sasl.mechanisms", "says the same as sasl.mechanism", "keep one of the two")
        settings["sasl.mechanism"] = settings.pop("sasl.mechanisms")
    settings["security.protocol"] = settings.get("security.protocol", "PLAINTEXT").upper()
    for key in CHECKS.keys() & settings.keys():
        settings[key] = settings[key].lower()


def _check_protocol(settings: Mapping[str, str]) -> None:
    protocol = settings["security.protocol"]
    if protocol not in PROTOCOLS:
        rule = f"must be {', '.join(PROTOCOLS[:-1])} or {PROTOCOLS[-1]}"
        raise KeyRefusal("security.protocol", rule, suggestion(protocol.upper(), PROTOCOLS), value=protocol)
    for prefix, needed in (("sasl.", "SASL_"), ("ssl.", "SSL"), ("enable.ssl.", "SSL")):
        idle = sorted(key for key in settings if key.startswith(prefix))
        if idle and needed not in protocol:
            remedy = (
                f"write security.protocol: SASL_SSL{' or SSL' if needed == 'SSL' else ''}, or remove the key"
            )
            raise KeyRefusal(idle[0], f"does nothing with security.protocol = {protocol}", remedy)


def _check_servers_and_times(settings: Mapping[str, str]) -> None:
    if SERVERS not in settings:
        raise KeyRefusal(SERVERS, "is required", "write host:9092, several with commas between")
    check_servers(settings[SERVERS])
    for key in sorted(MILLISECOND_KEYS & settings.keys()):
        least, most = MILLISECONDS[key]
        is_number = re.fullmatch(r"0|[1-9][0-9]{0,11}", settings[key], re.ASCII)
        if not is_number or not least <= int(settings[key]) <= most:
            rule = f"must be {least} to {most}, a whole number of milliseconds"
            raise KeyRefusal(key, rule, f"write {_USUAL_MILLISECONDS[key]}", value=settings[key])
    first, most = (
        int(settings.get(key, _USUAL_MILLISECONDS[key]))
        for key in ("reconnect.backoff.ms", "reconnect.backoff.max.ms")
    )
    if first > most:
        said = "reconnect.backoff.ms" if "reconnect.backoff.ms" in settings else "reconnect.backoff.max.ms"
        rule = f"reconnect.backoff.ms ({first}) must not be more than reconnect.backoff.max.ms ({most})"
        raise KeyRefusal(said, rule, "write both, the larger one as reconnect.backoff.max.ms")


def _check_sasl(settings: Mapping[str, str]) -> None:
    protocol = settings["security.protocol"]
    if not protocol.startswith("SASL_"):
        return
    for key in ("sasl.mechanism", "sasl.username", "sasl.password"):
        if key not in settings:
            raise KeyRefusal(key, f"is required with security.protocol = {protocol}", "add it to extra")
    mechanism = settings["sasl.mechanism"]
    if mechanism not in SASL_MECHANISMS:
        rule = "must be a mechanism that both Kafka clients speak"
        raise KeyRefusal("sasl.mechanism", rule, suggestion(mechanism, SASL_MECHANISMS), value=mechanism)


def _check_tls(settings: Mapping[str, str]) -> None:
    if settings["security.protocol"].endswith("SSL"):
        check_tls(settings)
        check_material(settings)


def _check_protection(settings: Mapping[str, str], alias: str) -> None:
    remedy = f"use SASL_SSL with verification, or accept it in flows.yaml by insecure: true under {alias}"
    if settings["security.protocol"] == "SASL_PLAINTEXT":
        rule = "lets anybody on the network read the password and the data"
        raise KeyRefusal("security.protocol", rule, remedy, value="SASL_PLAINTEXT")
    for key, (_, unchecked) in CHECKS.items():
        if settings.get(key) == unchecked:
            raise KeyRefusal(key, "lets anybody answer in the cluster's name", remedy, value=unchecked)
