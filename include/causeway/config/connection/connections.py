"""A cluster's connection, as Airflow knows it, without Airflow: found, read, checked, made an endpoint.

Airflow keeps a connection in the environment (`AIRFLOW_CONN_<ID>`, JSON or URI), in a secrets backend or in
its database. The environment is read here; for the rest the entry point hands in a function. Of a Kafka
connection only the extra counts, and it holds librdkafka's keys. No message repeats a secret.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, urlsplit

from causeway.config.connection.endpoint_rules import checked_settings
from causeway.config.flows_file.known_words import shown_key
from causeway.config.values.environment import environment_variable
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import ConfigError

_FIELDS_OF_AIRFLOW = frozenset(
    {"conn_type", "host", "login", "password", "schema", "port", "extra", "description", "team_name"}
)
_FIELDS_UNUSED = ("host", "login", "password", "schema", "port")
_EXAMPLE = '{"conn_type": "kafka", "extra": {"bootstrap.servers": "host:9092"}}'


@dataclass(frozen=True, slots=True)
class FoundConnection:
    """A connection before it is checked; `where` says who had it."""

    connection_id: str
    where: str
    conn_type: str
    extra: Mapping[str, object] = field(repr=False)

    @property
    def place(self) -> str:
        return f"connection {self.connection_id} ({self.where})"


Fallback = Callable[[str], FoundConnection | None]


def resolve_endpoint(
    alias: str, connection_id: str, environ: Mapping[str, str], fallback: Fallback, *, insecure: bool = False
) -> ClusterEndpoint:
    """:raises ConfigError: nobody knows the connection, or it says something that isn't accepted."""
    variable = environment_variable(connection_id)
    text = environ.get(variable, "")
    found = parse_connection(connection_id, text, variable) if text.strip() else fallback(connection_id)
    if found is None:
        raise ConfigError(
            f"connection {connection_id}",
            rule=f"cluster {alias} names it, and nobody has it",
            remedy=f"set {variable}='{_EXAMPLE}', add it in Airflow, or start the lab: causeway lab up",
        )
    if found.conn_type != "kafka":
        raise ConfigError(
            f"{found.place}: conn_type",
            value=found.conn_type or None,
            rule="must be kafka",
            remedy="choose Apache Kafka as its type in Airflow",
        )
    return ClusterEndpoint(alias, checked_settings(found.place, alias, found.extra, insecure=insecure))


def refuse_twin(connection_id: str, known: Iterable[str], environ: Mapping[str, str]) -> None:
    """Names of variables have no small letters: one would stand for two connections that Airflow tells apart.

    :raises ConfigError: it is set, and another of the known connections would get it, too.
    """
    variable = environment_variable(connection_id)
    twins = (each for each in known if each != connection_id and environment_variable(each) == variable)
    if environ.get(variable, "").strip() and (twin := next(twins, None)) is not None:
        raise ConfigError(
            f"connection {connection_id}",
            rule=f"{variable} is set, and stands for {twin} too",
            remedy="unset it and keep both in Airflow, or name them apart by more than capital letters",
        )


def parse_connection(connection_id: str, text: str, where: str) -> FoundConnection:
    """:raises ConfigError: neither JSON nor a URI as Airflow takes them."""
    place = f"connection {connection_id} ({where})"
    text = text.strip()
    fields = _fields_of_json(text, place) if text.startswith("{") else _fields_of_uri(text, place)
    for name in _FIELDS_UNUSED:
        if fields.get(name):
            raise ConfigError(
                f"{place}: {name}",
                rule="is of no use to a Kafka connection (its value isn't repeated here)",
                remedy="put bootstrap.servers, sasl.username and sasl.password into extra",
            )
    extra = _extra(fields.get("extra"), place)
    return FoundConnection(connection_id, where, str(fields.get("conn_type") or "").lower(), extra)


def _fields_of_json(text: str, place: str) -> dict[str, object]:
    fields = _object(text, place)
    for name in fields:
        if name not in _FIELDS_OF_AIRFLOW:
            raise ConfigError(
                f"{place}: {shown_key(name)}",
                rule="is no field of an Airflow connection",
                remedy=f"librdkafka's keys belong in extra: {_EXAMPLE}",
            )
    return fields


def _object(text: str, place: str) -> dict[str, object]:
    try:
        value = json.loads(text, object_pairs_hook=lambda pairs: _once(pairs, place))
    except json.JSONDecodeError as reason:  # before ValueError, which it is
        # `from None`: the original quotes the document, and that may hold a password.
        raise ConfigError(
            place, rule=f"isn't JSON: {reason.msg} at character {reason.pos}", remedy=f"write {_EXAMPLE}"
        ) from None
    except ValueError:
        raise ConfigError(
            place, rule="holds a number of thousands of digits", remedy=f"write {_EXAMPLE}"
        ) from None
    except RecursionError:
        raise ConfigError(place, rule="is nested too deep", remedy=f"write {_EXAMPLE}") from None
    if not isinstance(value, dict):
        raise ConfigError(place, rule="must be a JSON object", remedy=f"write {_EXAMPLE}")
    return value


def _once(pairs: list[tuple[str, object]], place: str) -> dict[str, object]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        times = Counter(name for name, _ in pairs)
        twice = next(name for name, count in times.items() if count > 1)
        raise ConfigError(f"{place}: {shown_key(twice)}", rule="is there twice", remedy="keep one of the two")
    return fields


def _fields_of_uri(text: str, place: str) -> dict[str, object]:
    """`kafka://?bootstrap.servers=a%3A9092&...` or `kafka://?__extra__={...}`."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        parts, port = urlsplit(""), None
    if not parts.scheme or "://" not in text:
        raise ConfigError(
            place,
            rule="is neither a JSON object nor a URI (it isn't repeated here)",
            remedy=f"write {_EXAMPLE} or kafka://?bootstrap.servers=host%3A9092",
        )
    extra = _once([(name, value) for name, value in parse_qsl(parts.query, keep_blank_values=True)], place)
    return {
        "conn_type": parts.scheme,
        "host": parts.hostname,
        "login": parts.username,
        "password": parts.password,
        "schema": parts.path.strip("/"),
        "port": port,
        "extra": extra.get("__extra__", extra),
    }


def _extra(extra: object, place: str) -> Mapping[str, object]:
    if extra is None or extra == "":
        return {}
    if isinstance(extra, str):
        return _object(extra, f"{place}: extra")
    if not isinstance(extra, dict):
        raise ConfigError(f"{place}: extra", rule="must be a JSON object", remedy=f"write {_EXAMPLE}")
    return extra
