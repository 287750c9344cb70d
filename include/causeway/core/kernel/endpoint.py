"""How to reach a cluster: librdkafka's words, with the secrets kept out of every repr.

The one value that both clients (confluent-kafka and kafka-python) are configured from.
"""

from __future__ import annotations

from dataclasses import dataclass, field

SECRET_KEYS = frozenset(
    {
        "sasl.password",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.keystore.password",
        "sasl.oauthbearer.client.secret",
        "sasl.jaas.config",
    }
)

_NAMED_BY_A_TICKET = frozenset({"GSSAPI", "OAUTHBEARER"})
_SHOWN_SERVERS = 5
"""In messages: who reads them needs to know which cluster it is, not each of 300 nodes."""
_CERTIFICATE_KEYS = ("ssl.keystore", "ssl.certificate")


@dataclass(frozen=True, slots=True)
class ClusterEndpoint:
    """A cluster's alias and its client settings; printing one never shows a secret."""

    alias: str
    settings: dict[str, str] = field(repr=False)

    @property
    def bootstrap_servers(self) -> str:
        return self.settings["bootstrap.servers"]

    @property
    def secrets(self) -> frozenset[str]:
        """The values that must not show up in a log, an argument or a page."""
        return frozenset(v for k, v in self.settings.items() if k in SECRET_KEYS and v)

    @property
    def principal(self) -> str | None:
        """Who connects, as brokers call it; None: a certificate, a ticket or a token says it to them."""
        protocol = self.settings.get("security.protocol", "PLAINTEXT").upper()
        mechanism = self.settings.get("sasl.mechanism", self.settings.get("sasl.mechanisms", "")).upper()
        if "sasl.username" in self.settings and mechanism not in _NAMED_BY_A_TICKET:
            return f"User:{self.settings['sasl.username']}"
        has_certificate = any(key.startswith(_CERTIFICATE_KEYS) for key in self.settings)
        is_known = protocol == "PLAINTEXT" or (protocol == "SSL" and not has_certificate)
        return "User:ANONYMOUS" if is_known else None

    @property
    def shown_servers(self) -> str:
        """For people: of many the first, and how many more there are."""
        servers = self.bootstrap_servers.split(",")
        more = f" and {len(servers) - _SHOWN_SERVERS} more" if len(servers) > _SHOWN_SERVERS else ""
        return f"{','.join(servers[:_SHOWN_SERVERS])}{more}"

    def __str__(self) -> str:
        return f"{self.alias} ({self.shown_servers})"
