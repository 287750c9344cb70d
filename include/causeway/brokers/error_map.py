"""The one place where a client's error becomes one of ours.

Three sources of errors meet here: confluent-kafka (librdkafka's codes, negative for its own), kafka-python
(one class per broker code) and the sockets below both. What comes out names the cluster with host and port,
the resource, what the broker or the library reported, and the fix. Invariants:

- no secret of the endpoint is ever part of a message, whatever a client puts into its text;
- a missing right becomes the exact `kafka-acls.sh` command;
- an error that isn't known here is a `ProtocolFault` with its code: nothing is taken for harmless.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NoReturn

import kafka.errors as kafka_python
from confluent_kafka import KafkaError, KafkaException

from causeway import interruption
from causeway.brokers.error_codes import (
    ACL_RESOURCE,
    AUTHENTICATION,
    INCOMPATIBLE,
    REFUSED_REQUEST,
    UNKNOWN_NAME,
    UNREACHABLE,
    LibrdkafkaCode,
)
from causeway.core.kernel.acl_vocabulary import NeededRight, grant_command
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
    UnknownName,
)
from causeway.core.kernel.kafka_errors import KafkaErrorCode, error_name, is_retriable
from causeway.core.kernel.tls_strength import STRONG_ENOUGH, says_too_weak

_NO_SIZE = re.compile(r"Invalid response size (?P<size>-?\d{1,10}) ")
_LANE_ID = re.compile(r"(?P<prefix>causeway\..+\.)\d+")
_KAFKA_PYTHON_UNREACHABLE = (
    kafka_python.KafkaConnectionError,
    kafka_python.KafkaTimeoutError,
    kafka_python.NodeNotReadyError,
    kafka_python.MetadataEmptyBrokerList,
)


@dataclass(frozen=True, slots=True)
class _Place:
    """Where it happened, in words that may be printed."""

    cluster: str
    resource: str
    operation: str
    principal: str
    ca_location: str
    secrets: frozenset[str]

    @property
    def what(self) -> str:
        return f"cluster {self.cluster}" + (f", {self.resource}" if self.resource else "")

    def without_secrets(self, text: str) -> str:
        for secret in sorted(self.secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        return text


def raise_mapped(
    exc: BaseException, *, cluster: ClusterEndpoint | str, resource: str = "", operation: str = ""
) -> NoReturn:
    """Raise what `exc` means to us, `from exc`; `operation` is the right that the request needs (`Read`)."""
    raise mapped_error(exc, cluster=cluster, resource=resource, operation=operation) from exc


@contextmanager
def mapped(*, cluster: ClusterEndpoint | str, resource: str = "", operation: str = "") -> Iterator[None]:
    """Client errors leave this block as ours; ours pass as they are. Before a request is a place to stop."""
    interruption.check()
    try:
        yield
    except (KafkaException, kafka_python.KafkaError, OSError) as exc:
        raise_mapped(exc, cluster=cluster, resource=resource, operation=operation)


def mapped_error(
    exc: BaseException, *, cluster: ClusterEndpoint | str, resource: str = "", operation: str = ""
) -> CausewayError:
    """What `exc` means to us, as a value."""
    place = _place_of(cluster, resource, operation)
    if isinstance(exc, CausewayError):
        return exc
    if isinstance(exc, KafkaException):
        return _from_librdkafka(exc.args[0], place)
    if isinstance(exc, kafka_python.BrokerResponseError) and exc.errno is not None:
        return _from_code(exc.errno, str(exc), place)
    for classes, meaning in _MEANING_OF_CLASSES:
        if isinstance(exc, classes):
            return meaning(str(exc) or type(exc).__name__, place)
    return _fault(f"{type(exc).__name__}: {exc}", place)


def error_of_code(
    code: int,
    text: str = "",
    *,
    cluster: ClusterEndpoint | str,
    resource: str = "",
    operation: str = "",
) -> CausewayError:
    """What a numeric error code in a response means; for code that reads responses itself."""
    return _from_code(code, text or error_name(code), _place_of(cluster, resource, operation))


def error_of_right(right: NeededRight, *, cluster: ClusterEndpoint) -> CausewayError:
    """What a broker's refusal would mean, of a right that was asked for beforehand."""
    code = next(code for code, resource in ACL_RESOURCE.items() if resource == right.resource)
    return _lacking_right(
        _place_of(cluster, right.name, right.operation.word), code, is_prefix=right.is_prefix
    )


def error_of_event(error: KafkaError, *, cluster: ClusterEndpoint | str) -> CausewayError:
    """What an error that librdkafka reports outside of any call (its `error_cb`) means."""
    return _from_librdkafka(error, _place_of(cluster, "", ""))


def _place_of(cluster: ClusterEndpoint | str, resource: str, operation: str) -> _Place:
    if isinstance(cluster, str):
        return _Place(cluster, resource, operation, "<principal>", "", frozenset())
    settings = cluster.settings
    return _Place(
        cluster=str(cluster),
        resource=resource,
        operation=operation,
        principal=f"User:{settings.get('sasl.username', '<principal>')}",
        ca_location=settings.get("ssl.ca.location", ""),
        secrets=cluster.secrets,
    )


def _from_librdkafka(error: KafkaError, place: _Place) -> CausewayError:
    code, text = error.code(), _stripped(error.str())
    if found := _NO_SIZE.search(text):
        return _another_protocol(text[: found.start()], int(found["size"]), place)
    if code == LibrdkafkaCode.TRANSPORT and "connecting to a PLAINTEXT" in text:
        return _tls(f"the peer doesn't speak TLS: {text}", place)
    return _from_code(code, text, place)


def _from_code(code: int, text: str, place: _Place) -> CausewayError:
    if code in ACL_RESOURCE:
        return _not_authorized(KafkaErrorCode(code), place)
    for codes, meaning in _MEANING_OF_CODES:
        if code in codes:
            return meaning(text, place)
    if is_retriable(code):
        return _unreachable(text, place)
    return _fault(f"{error_name(code) if code >= 0 else f'librdkafka {code}'}: {text}", place)


def _not_authorized(code: KafkaErrorCode, place: _Place) -> NotAuthorized:
    lane = _LANE_ID.fullmatch(place.resource) if ACL_RESOURCE[code] == "transactional-id" else None
    if lane:  # granting one lane would only lead to the next one's refusal
        place = replace(place, resource=lane["prefix"])
    return _lacking_right(place, code, is_prefix=bool(lane))


def _lacking_right(place: _Place, code: KafkaErrorCode, *, is_prefix: bool) -> NotAuthorized:
    resource = ACL_RESOURCE[code]
    operation, name = place.operation or "<operation>", place.resource or "<name>"
    return NotAuthorized(
        f"cluster {place.cluster}" + ("" if resource == "cluster" else f", {resource} {name}"),
        rule=f"{place.principal} has no right to {operation} ({code.name})",
        remedy=grant_command(place.principal, operation, resource, name, is_prefix=is_prefix),
    )


def _incompatible(text: str, place: _Place) -> IncompatibleBroker:
    return IncompatibleBroker(
        place.what, rule=place.without_secrets(text), remedy="brokers from Kafka 3.6 on are supported"
    )


def _tls(text: str, place: _Place) -> AuthenticationFailed:
    trusted = f"ssl.ca.location = {place.ca_location or '(not set)'}"
    remedy = f"check {trusted}, the broker's certificate and security.protocol"
    if says_too_weak(text):
        remedy = (
            f"let the certificate, the broker's or this connection's, be issued again, with {STRONG_ENOUGH}"
        )
    return AuthenticationFailed(place.what, rule=place.without_secrets(text), remedy=remedy)


def _unreachable(text: str, place: _Place) -> ClusterUnreachable:
    return ClusterUnreachable(
        place.what,
        rule=place.without_secrets(text),
        remedy="check bootstrap.servers, the broker's listener and the firewall",
    )


def _stripped(text: str) -> str:
    """Librdkafka's text without its bookkeeping: transport, states, milliseconds, advice on packages."""
    text = re.sub(r" \((?:after|install)[^()]*\)", "", text)
    return re.sub(r"^(?:\w+://)?(\S+?)/(bootstrap|\d+): ", r"\1: ", text)


def _authentication(text: str, place: _Place) -> AuthenticationFailed:
    user = "" if place.principal.startswith("<") else f"{place.principal}: "
    return AuthenticationFailed(
        place.what,
        rule=place.without_secrets(f"{user}{text}"),
        remedy="check sasl.username, sasl.password and sasl.mechanism in the connection",
    )


def _unknown_name(text: str, place: _Place) -> UnknownName:
    return UnknownName(place.what, rule=place.without_secrets(text), remedy="check the name")


def _refused_request(text: str, place: _Place) -> BadInput:
    return BadInput(place.what, rule=place.without_secrets(text))


def _client_setting(text: str, place: _Place) -> ConfigError:
    if "ssl.ca.location" in text:
        text = f"ssl.ca.location = {place.ca_location}: {text}"
    return ConfigError(
        f"connection of {place.cluster}",
        rule=place.without_secrets(text),
        remedy="correct this key in the connection's extra",
    )


def _not_kafka(text: str, place: _Place) -> ClusterUnreachable:
    return _unreachable(f"the peer doesn't answer in Kafka's protocol ({text})", place)


def _another_protocol(peer: str, size: int, place: _Place) -> ClusterUnreachable:
    """Librdkafka took the first four bytes for a size, and advises a larger limit: no limit would do."""
    begins = size.to_bytes(4, "big", signed=size < 0)
    spoken = "another protocol"
    if begins.isascii() and begins.decode().isprintable():
        spoken = "HTTP" if begins == b"HTTP" else f"a protocol that begins with {begins.decode()!r}"
    address = peer.partition(": ")[0]
    return ClusterUnreachable(
        place.what,
        rule=place.without_secrets(f"{address} answers in {spoken}: that port isn't Kafka's"),
        remedy="correct host and port in bootstrap.servers",
    )


def _fault(text: str, place: _Place) -> ProtocolFault:
    return ProtocolFault(place.what, rule=place.without_secrets(text))


_Meaning = Callable[[str, _Place], CausewayError]
_MEANING_OF_CODES: tuple[tuple[frozenset[int], _Meaning], ...] = (
    (UNREACHABLE, _unreachable),
    (AUTHENTICATION, _authentication),
    (frozenset({LibrdkafkaCode.SSL}), _tls),
    (frozenset({LibrdkafkaCode.BAD_MSG}), _not_kafka),
    (frozenset({LibrdkafkaCode.INVALID_ARG, LibrdkafkaCode.CRIT_SYS_RESOURCE}), _client_setting),
    (INCOMPATIBLE, _incompatible),
    (UNKNOWN_NAME, _unknown_name),
    (REFUSED_REQUEST, _refused_request),
)
_MEANING_OF_CLASSES: tuple[tuple[tuple[type[BaseException], ...], _Meaning], ...] = (
    ((kafka_python.UnrecognizedBrokerVersion, kafka_python.UnsupportedCodecError), _incompatible),
    (_KAFKA_PYTHON_UNREACHABLE, _unreachable),
    ((kafka_python.KafkaConfigurationError,), _client_setting),
    ((ssl.SSLError,), _tls),
    ((OSError,), _unreachable),
)
