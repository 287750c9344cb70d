"""How MirrorMaker 2 reaches a cluster, in the words of an Airflow connection.

What has no counterpart is named, never guessed: Java's keystores, mechanisms that both clients don't speak,
and references to config providers, which are nobody's to resolve but their owner's. No message shows a value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from causeway.brokers.client_settings import SASL_MECHANISMS
from causeway.config.mm2_import.properties_file import Property
from causeway.config.values.environment import environment_variable

_REFERENCE = re.compile(r"\$\{[^}]*\}")
_JAAS_MODULE = re.compile(r"\s*([\w.$]+)\s+(?:required|requisite|sufficient|optional)\b(.*)", re.DOTALL)
_JAAS_OPTION = re.compile(r"([\w.]+)\s*=\s*(\"(?:[^\"\\]|\\.)*\"|[^\s;\"]+)")
_AS_THEY_ARE = {
    "bootstrap.servers": "bootstrap.servers",
    "security.protocol": "security.protocol",
    "sasl.mechanism": "sasl.mechanism",
    "ssl.key.password": "ssl.key.password",
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
}
_FILES = {
    "ssl.truststore.location": ("ssl.ca.location",),
    "ssl.keystore.location": ("ssl.certificate.location", "ssl.key.location"),
}
_TO_PEM = "a Java keystore: export it as PEM (keytool -importkeystore to PKCS12, then openssl pkcs12), and"
_PEM_NEEDS_NONE = "a PEM file needs none"


@dataclass(frozen=True, slots=True)
class NotHere:
    """A key of the connection that a person has to see to."""

    found: Property
    why: str
    is_harmless: bool = False


@dataclass(slots=True)
class Connection:
    """What the connection's extra will hold, and what is missing in it."""

    alias: str
    connection_id: str
    extra: dict[str, str] = field(default_factory=dict, repr=False)
    not_here: list[NotHere] = field(default_factory=list)
    taken: list[tuple[Property, str]] = field(default_factory=list)

    def line(self) -> str:
        """For a shell to `source`. Secrets are in it."""
        text = json.dumps({"conn_type": "kafka", "extra": self.extra})
        return f"{environment_variable(self.connection_id)}='{text.replace(chr(39), chr(92) + 'u0027')}'"

    def take(self, found: Property, key: str, value: str) -> None:
        if is_reference(value):
            why = "is a reference to a config provider, which isn't resolved here: add"
            self.not_here.append(NotHere(found, f"{why} {key} to connection {self.connection_id}"))
            return
        self.extra[key] = value
        self.taken.append((found, f"{key} of connection {self.connection_id}"))


def connection_of(alias: str, connection_id: str, said: Mapping[str, Property]) -> Connection:
    """`said`: the cluster's own keys and those that hold for all, without the alias in front."""
    made = Connection(alias, connection_id)
    for key, found in said.items():
        if key in _AS_THEY_ARE:
            _take_plain(made, key, found)
        elif key in _FILES:
            _take_file(made, key, found, said)
        elif key == "sasl.jaas.config":
            _take_login(made, found)
        elif key == "ssl.endpoint.identification.algorithm":
            made.take(found, key, found.value.strip().lower() or "none")
        else:
            made.not_here.append(_left_out(key, found))
    return made


def is_reference(value: str) -> bool:
    return bool(_REFERENCE.search(value))


def _take_plain(made: Connection, key: str, found: Property) -> None:
    if key == "sasl.mechanism" and not is_reference(found.value) and found.value not in SASL_MECHANISMS:
        known = ", ".join(sorted(SASL_MECHANISMS))
        made.not_here.append(NotHere(found, f"both Kafka clients speak {known} only"))
        return
    made.take(found, _AS_THEY_ARE[key], found.value.strip())


def _take_file(made: Connection, key: str, found: Property, said: Mapping[str, Property]) -> None:
    if not _is_pem(key, said):
        made.not_here.append(NotHere(found, f"{_TO_PEM} name it in {' and '.join(_FILES[key])}"))
        return
    for name in _FILES[key]:
        made.take(found, name, found.value)


def _is_pem(key: str, said: Mapping[str, Property]) -> bool:
    kind = said.get(f"{key.rpartition('.')[0]}.type")
    return kind is not None and kind.value.strip().upper() == "PEM"


def _take_login(made: Connection, found: Property) -> None:
    if found.value.strip().startswith("${"):
        made.take(found, "sasl.username and sasl.password", found.value)
        return
    module = _JAAS_MODULE.fullmatch(found.value)
    if module is None or not module[1].endswith((".PlainLoginModule", ".ScramLoginModule")):
        made.not_here.append(
            NotHere(found, "isn't PlainLoginModule or ScramLoginModule: only names and passwords are taken")
        )
        return
    options = dict(_options(module[2]))
    for name in ("username", "password"):
        if name in options:
            made.take(found, f"sasl.{name}", options[name])
        else:
            made.not_here.append(NotHere(found, f"has no {name}"))


def _options(text: str) -> Iterator[tuple[str, str]]:
    for name, value in _JAAS_OPTION.findall(text):
        quoted = value.startswith('"')
        yield name, re.sub(r"\\(.)", r"\1", value[1:-1]) if quoted else value


def _left_out(key: str, found: Property) -> NotHere:
    if key in ("ssl.truststore.type", "ssl.keystore.type"):
        return NotHere(found, "PEM is what is used", is_harmless=True)
    if key in ("ssl.truststore.password", "ssl.keystore.password"):
        return NotHere(found, _PEM_NEEDS_NONE, is_harmless=True)
    return NotHere(found, "has no counterpart that both Kafka clients know; they use their defaults")
