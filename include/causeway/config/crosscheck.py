"""Rules that need more than one field: names, secrets in the wrong place, aliases, cycles between flows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from causeway.config.document import Document, FieldPath
from causeway.config.model import FileModel, FlowModel
from causeway.config.refusal import suggestion
from causeway.core.errors import ConfigError
from causeway.core.topic_filter import TopicFilter

_NAME = re.compile(r"[a-z0-9_]{1,60}", re.ASCII)
_LITERAL = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_SECRET_KEY = re.compile(r"passw|secret|token|jaas|passphrase|pem$|credential|private|keytab", re.IGNORECASE)
_SECRET_VALUE = re.compile(r"-----BEGIN|://[^/\s]*:[^@\s]*@|password\s*=", re.IGNORECASE)


def check_no_secrets(document: Document) -> None:
    """:raises ConfigError: a secret is written in the file; the message never repeats it."""
    for field, value in _walk(document.content, ()):
        key = field[-1]
        is_name = len(field) == 2
        if (isinstance(key, str) and not is_name and _SECRET_KEY.search(key)) or (
            isinstance(value, str) and _SECRET_VALUE.search(value)
        ):
            raise ConfigError(
                document.place(field),
                rule="a secret must not be written in this file (it isn't repeated here)",
                remedy="put it into the cluster's Airflow connection, and change it: it was in clear text",
            )


def _walk(value: object, field: FieldPath) -> Iterator[tuple[FieldPath, object]]:
    if field:
        yield field, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _walk(inner, (*field, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _walk(inner, (*field, index))


def check_names(document: Document) -> None:
    """:raises ConfigError: an alias or a flow's name can't be part of a topic's, a group's or a DAG's."""
    content = document.content if isinstance(document.content, dict) else {}
    for section, noun in (("clusters", "an alias"), ("flows", "a flow's name")):
        names = content.get(section)
        for name in names if isinstance(names, dict) else ():
            if not _NAME.fullmatch(name):
                raise ConfigError(
                    document.place((section, name)),
                    value=name if len(name) <= 80 else f"{name[:80]}...",
                    rule=f"{noun} must be 1 to 60 of a-z, 0-9 and _",
                    remedy=f"write {_as_name(name)}",
                )


def _as_name(text: str) -> str:
    return re.sub(r"[^a-z0-9_]+", "_", text.lower(), flags=re.ASCII).strip("_")[:60] or "a_name"


def check_flows(model: FileModel, document: Document) -> None:
    for name, flow in model.flows.items():
        _check_clusters(name, flow, model, document)
        _check_naming(name, flow, document)
        _check_times(name, flow, document)
    _check_cycles(model.flows, document)


def _check_clusters(name: str, flow: FlowModel, model: FileModel, document: Document) -> None:
    for side, alias in (("source", flow.source), ("target", flow.target)):
        if alias not in model.clusters:
            raise ConfigError(
                document.place(("flows", name, side)),
                value=alias,
                rule="must be an alias under clusters",
                remedy=suggestion(alias, model.clusters),
            )
    place = document.place(("flows", name, "target"))
    if flow.source == flow.target:
        raise ConfigError(place, value=flow.target, rule="is the source too", remedy="name another cluster")
    connection = model.clusters[flow.target].connection
    if connection == model.clusters[flow.source].connection:
        raise ConfigError(
            place,
            value=flow.target,
            rule=f"has the same connection as the source ({connection})",
            remedy="a cluster isn't mirrored to itself: name another connection",
        )


def _check_naming(name: str, flow: FlowModel, document: Document) -> None:
    key = "replication.policy.separator"
    place = document.place(("flows", name, key))
    if flow.policy == "identity" and "separator" in flow.model_fields_set:
        raise ConfigError(
            place, value=flow.separator, rule="does nothing with identity naming", remedy="remove it"
        )
    for alias in (flow.source, flow.target):
        if flow.policy == "prefix" and flow.separator in alias:
            raise ConfigError(
                place,
                value=flow.separator,
                rule=f"is part of the alias {alias}: prefixes couldn't be told apart, nor cycles seen",
                remedy='write "."',
            )
    if flow.replication_factor == 0:
        raise ConfigError(
            document.place(("flows", name, "replication.factor")),
            value=0,
            rule="must be 1 or more, or -1 for the target's own default",
            remedy="write -1",
        )


def _check_times(name: str, flow: FlowModel, document: Document) -> None:
    if flow.follow and flow.schedule not in (None, "@continuous"):
        raise ConfigError(
            document.place(("flows", name, "follow")),
            value="true",
            rule=f"runs again at once, and schedule says {flow.schedule}",
            remedy="remove one of the two",
        )


def _check_cycles(flows: Mapping[str, FlowModel], document: Document) -> None:
    """Identity naming keeps no trace of where a record came from: a cycle would copy it forever."""
    plain = {name: flow for name, flow in flows.items() if flow.policy == "identity"}
    for name in plain:
        for cycle in _cycles_from(name, (name,), plain):
            if not _shares_no_topic([plain[member] for member in cycle]):
                raise ConfigError(
                    document.place(("flows", name, "replication.policy")),
                    value="identity",
                    rule=f"{' -> '.join((*cycle, name))} is a cycle: records would go round forever",
                    remedy="use prefix in one of them, or list in one only names that the others don't copy",
                )


def _cycles_from(
    first: str, path: tuple[str, ...], flows: Mapping[str, FlowModel]
) -> Iterator[tuple[str, ...]]:
    end = flows[path[-1]].target
    for name, flow in flows.items():
        if flow.source != end:
            continue
        if name == first:
            yield path
        elif name not in path:
            yield from _cycles_from(first, (*path, name), flows)


def _shares_no_topic(cycle: list[FlowModel]) -> bool:
    """Provable only when one of the flows lists plain names, none of which all the others copy."""
    filters = [TopicFilter(tuple(flow.topics), tuple(flow.topics_exclude)) for flow in cycle]
    for chosen in filters:
        if all(_LITERAL.fullmatch(text) for text in chosen.include):
            return not any(all(other.matches(topic) for other in filters) for topic in chosen.include)
    return False
