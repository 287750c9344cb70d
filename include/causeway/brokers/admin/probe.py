"""A short look at a cluster that says why it can't be used, if it can't.

librdkafka tells the true reason only to its error callback, and goes on trying; a request just times out. So
the probe listens while it asks. A refused login or certificate ends it at once (no retry storm that locks an
account); an unreachable address only when the time is over, since another address may answer. Now and then
it asks again: librdkafka sticks to the broker that it was sent to, and that one may be silent while others
answer. Two reasons librdkafka doesn't know are found by a second look at the socket: a peer that speaks TLS
to a client that doesn't, and what exactly is wrong with a certificate.
"""

from __future__ import annotations

import logging
import re
import socket
import ssl
import time
from dataclasses import dataclass

from confluent_kafka import KafkaError
from confluent_kafka.admin import AdminClient, DescribeClusterResult

from causeway import interruption
from causeway.brokers.error_codes import LibrdkafkaCode
from causeway.brokers.error_map import error_of_event, mapped
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import AuthenticationFailed, CausewayError, ClusterUnreachable, ConfigError
from causeway.core.kernel.tls_strength import STRONG_ENOUGH, says_too_weak

_POLL_SECONDS = 0.005
_SOCKET_SECONDS = 2.0
_SHARES = (0.3, 0.5, 0.7, 1.0)
"""Of the time, after which each of the bootstrap servers is asked by a client of its own."""
_DECISIVE = frozenset({LibrdkafkaCode.AUTHENTICATION, LibrdkafkaCode.SSL})
_PEER = re.compile(r"^(?:\w+://)?(?P<address>\S+)/(?P<node>bootstrap|\d+): ")
_ADDRESS = re.compile(r"(?:[A-Z_]+://)?(?P<host>\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+)(?::(?P<port>\d+))?")
_DEFAULT_PORT = 9092
_API_VERSIONS = bytes.fromhex("0000000a 0012 0000 00000001 ffff")
"""Length, key, version 0, correlation id, no client id: every broker answers that, or hangs up."""

# What librdkafka would print is what the callback gets, and what the error that we raise says.
SILENT = logging.getLogger("causeway.librdkafka")
SILENT.addHandler(logging.NullHandler())
SILENT.propagate = False


@dataclass(frozen=True, slots=True)
class BrokerNode:
    node_id: int
    host: str
    port: int


@dataclass(frozen=True, slots=True)
class ClusterFacts:
    cluster_id: str
    brokers: tuple[BrokerNode, ...]
    controller_id: int | None


def probe(endpoint: ClusterEndpoint, *, timeout_seconds: float = 7.0) -> ClusterFacts:
    """Ask the cluster who it is, through its bootstrap servers and one broker that it advertises.

    :raises ClusterUnreachable: nobody answers, the peer is no broker, or it advertises what is out of reach.
    :raises AuthenticationFailed: TLS or SASL failed; found at once.
    :raises ConfigError: a client setting that can't be.
    """
    bootstrap_addresses(endpoint)  # refused here, if they can't be
    heard: list[KafkaError] = []
    began, servers = time.monotonic(), endpoint.settings["bootstrap.servers"]
    asked = [_Asked(endpoint, servers, heard, timeout_seconds)]
    for share in _SHARES:
        found = _listen(asked, heard, began + share * timeout_seconds)
        if found is not None:
            return found
        if _is_decided(heard) or all(each.is_done for each in asked):
            break
        asked += [_Asked(endpoint, each, heard, timeout_seconds) for each in servers.split(",")]
    raise reason_of(endpoint, heard)


class _Asked:
    """One client's question."""

    def __init__(
        self, endpoint: ClusterEndpoint, servers: str, heard: list[KafkaError], seconds: float
    ) -> None:
        settings = {**endpoint.settings, "bootstrap.servers": servers, "error_cb": heard.append}
        with mapped(cluster=endpoint):
            self._client = AdminClient(settings, logger=SILENT)
            self._answer = self._client.describe_cluster(request_timeout=seconds)

    @property
    def is_done(self) -> bool:
        return bool(self._answer.done())

    def listen(self) -> ClusterFacts | None:
        self._client.poll(_POLL_SECONDS)
        return (
            _cluster_facts(self._answer.result()) if self.is_done and not self._answer.exception() else None
        )


def bootstrap_addresses(endpoint: ClusterEndpoint) -> tuple[tuple[str, int], ...]:
    """Hosts and ports of `bootstrap.servers`; librdkafka would take port 70000 for 4464 without a word.

    :raises ConfigError: nothing there, or an entry that is no host:port.
    """
    entries = [entry.strip() for entry in endpoint.settings.get("bootstrap.servers", "").split(",")]
    return tuple(_address(endpoint, entry) for entry in entries)


def _address(endpoint: ClusterEndpoint, entry: str) -> tuple[str, int]:
    found = _ADDRESS.fullmatch(entry)
    port = int(found["port"] or _DEFAULT_PORT) if found else 0
    if not found or not 0 < port < 1 << 16:
        raise ConfigError(
            f"bootstrap.servers of {endpoint.alias}",
            value=entry or "(empty)",
            rule="must be host:port, port from 1 to 65535, IPv6 in brackets, commas between several",
            remedy="correct it in the cluster's connection",
        )
    return found["host"].strip("[]"), port


def _listen(asked: list[_Asked], heard: list[KafkaError], deadline: float) -> ClusterFacts | None:
    while time.monotonic() < deadline and not _is_decided(heard):
        for each in asked:
            interruption.check()
            if (found := each.listen()) is not None:
                return found
        if all(each.is_done for each in asked):
            break
    return None


def _is_decided(heard: list[KafkaError]) -> bool:
    return any(error.code() in _DECISIVE for error in heard)


def _cluster_facts(result: DescribeClusterResult) -> ClusterFacts:
    return ClusterFacts(
        cluster_id=result.cluster_id,
        brokers=tuple(sorted((BrokerNode(n.id, n.host, n.port) for n in result.nodes), key=_by_id)),
        controller_id=result.controller.id if result.controller else None,
    )


def _by_id(node: BrokerNode) -> int:
    return node.node_id


def reason_of(endpoint: ClusterEndpoint, heard: list[KafkaError]) -> CausewayError:
    """The event that says most, or what a second look at the sockets finds."""
    events = [error for error in heard if error.code() != LibrdkafkaCode.ALL_BROKERS_DOWN]
    decisive = next((error for error in events if error.code() in _DECISIVE), None)
    if decisive is not None and decisive.code() == LibrdkafkaCode.SSL:
        return _certificate_reason(endpoint, decisive)
    if decisive is not None:
        return error_of_event(decisive, cluster=endpoint)
    if events:
        return _advertised_reason(endpoint, events) or _most_telling(endpoint, events)
    return _silent_reason(endpoint, bootstrap_addresses(endpoint)[0])


def _most_telling(endpoint: ClusterEndpoint, events: list[KafkaError]) -> CausewayError:
    """That a peer doesn't speak TLS shows at most attempts, not at each: the last may know less."""
    reasons = [error_of_event(event, cluster=endpoint) for event in events]
    return next((each for each in reasons if isinstance(each, AuthenticationFailed)), reasons[-1])


def _advertised_reason(endpoint: ClusterEndpoint, events: list[KafkaError]) -> CausewayError | None:
    """The bootstrap server answered, and sent the client to an address that it can't reach."""
    for error in events:
        peer = _PEER.match(error.str())
        if peer and peer["node"] != "bootstrap":
            return ClusterUnreachable(
                f"cluster {endpoint}",
                rule=f"it answers, but its broker {peer['node']} advertises {peer['address']}: out of reach",
                remedy="correct the broker's advertised.listeners, or use another listener to bootstrap",
            )
    return None


def _silent_reason(endpoint: ClusterEndpoint, address: tuple[str, int]) -> CausewayError:
    """What the peer really speaks is found by trying; who says nothing at all has no opinion on passwords."""
    protocol = endpoint.settings.get("security.protocol", "PLAINTEXT").upper()
    host, port = address
    if _is_mute(host, port):
        return ClusterUnreachable(
            f"cluster {endpoint}",
            rule=f"{host}:{port} takes connections and then says nothing, not even to a first question",
            remedy="the broker is frozen or overloaded, or that port isn't Kafka's: look at its process",
        )
    if "SSL" not in protocol and _speaks_tls(host, port):
        return AuthenticationFailed(
            f"cluster {endpoint}, security.protocol",
            value=protocol,
            rule=f"{host}:{port} speaks TLS",
            remedy="use SSL or SASL_SSL in the connection, with ssl.ca.location",
        )
    hint = "it may want SASL or TLS" if protocol == "PLAINTEXT" else "it closes the connection"
    return ClusterUnreachable(
        f"cluster {endpoint}",
        rule=f"{host}:{port} gives no answer to a {protocol} client; {hint}",
        remedy="check bootstrap.servers and security.protocol, the broker's listener and the firewall",
    )


def _is_mute(host: str, port: int) -> bool:
    """Whether the peer takes a connection, and neither answers Kafka's first question nor hangs up."""
    try:
        with socket.create_connection((host, port), timeout=_SOCKET_SECONDS) as raw:
            raw.sendall(_API_VERSIONS)
            raw.recv(1)
    except TimeoutError:
        return True
    except OSError:
        return False
    return False


def _certificate_reason(endpoint: ClusterEndpoint, error: KafkaError) -> CausewayError:
    """Librdkafka has one text for all bad certificates; OpenSSL's own verdict says which it is."""
    peer = _PEER.match(error.str())
    found = _ADDRESS.fullmatch(peer["address"]) if peer else None
    if not found:
        return error_of_event(error, cluster=endpoint)
    host, port = found["host"].strip("[]"), int(found["port"] or _DEFAULT_PORT)
    verdict = _verdict_on_certificate(host, port, endpoint)
    if not verdict:
        return error_of_event(error, cluster=endpoint)
    return AuthenticationFailed(
        f"cluster {endpoint}",
        rule=f"the certificate of {host}:{port} doesn't hold: {verdict.rstrip('.')}",
        remedy=_remedy_of(verdict, endpoint.settings.get("ssl.ca.location") or "(not set: the system's)"),
    )


def _remedy_of(verdict: str, trusted: str) -> str:
    if "mismatch" in verdict:
        return "use a host name that the certificate holds"
    if says_too_weak(verdict):
        return f"let the broker's certificate be issued again, with {STRONG_ENOUGH}"
    return f"ssl.ca.location = {trusted} must hold the CA that signed it"


def _verdict_on_certificate(host: str, port: int, endpoint: ClusterEndpoint) -> str:
    settings = endpoint.settings
    try:
        context = ssl.create_default_context(
            cafile=settings.get("ssl.ca.location"), cadata=settings.get("ssl.ca.pem")
        )
        with (
            socket.create_connection((host, port), timeout=_SOCKET_SECONDS) as raw,
            context.wrap_socket(raw, server_hostname=host),
        ):
            return ""
    except ssl.SSLCertVerificationError as exc:
        return str(exc.verify_message)
    except OSError:
        return ""


def _speaks_tls(host: str, port: int) -> bool:
    """Whether a TLS handshake is answered in TLS; nothing is sent over it, so nothing must be trusted."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with (
            socket.create_connection((host, port), timeout=_SOCKET_SECONDS) as raw,
            context.wrap_socket(raw, server_hostname=host),
        ):
            return True
    except OSError:
        return False
