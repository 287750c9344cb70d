"""Rules that need more than one field: names, secrets in the wrong place, aliases, cycles between flows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from causeway.config.flows_file.cycles import check_cycles
from causeway.config.flows_file.document import Document, FieldPath
from causeway.config.flows_file.failback import check_failbacks
from causeway.config.flows_file.model import FileModel, FlowModel
from causeway.config.flows_file.naming import check_naming
from causeway.config.values.environment import environment_variable
from causeway.config.values.refusal import suggestion
from causeway.core.kernel.errors import ConfigError

_NAME = re.compile(r"[a-z0-9_]{1,60}", re.ASCII)
# MirrorMaker 2 allows these, and an alias is part of every mirror's name.
_ALIAS = re.compile(r"[A-Za-z0-9_-]{1,60}", re.ASCII)
_SECRET_KEY = re.compile(r"passw|secret|token|jaas|passphrase|pem$|credential|private|keytab", re.IGNORECASE)
_SECRET_VALUE = re.compile(r"-----BEGIN|://[^/\s@:]{0,200}:[^@\s]{1,1000}@|password\s*=", re.IGNORECASE)


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
    for section, noun, legal, letters in (
        ("clusters", "an alias", _ALIAS, "letters, digits, _ and -"),
        ("flows", "a flow's name", _NAME, "a-z, 0-9 and _"),
    ):
        names = content.get(section)
        for name in names if isinstance(names, dict) else ():
            if not legal.fullmatch(name):
                raise ConfigError(
                    document.place((section, name)),
                    value=name[:80],
                    rule=f"{noun} must be 1 to 60 of {letters}",
                    remedy=f"write {_as_name(name)}",
                )


def _as_name(text: str) -> str:
    return re.sub(r"[^a-z0-9_]+", "_", text.lower(), flags=re.ASCII).strip("_")[:60] or "a_name"


def check_flows(model: FileModel, document: Document) -> None:
    for name, flow in model.flows.items():
        _check_clusters(name, flow, model, document)
        check_naming(name, flow, document)
        _check_times(name, flow, document)
        _check_settling(name, flow, document)
        _check_groups(name, flow, document)
    check_failbacks(model.flows, document)
    check_cycles(model.flows, document)
    _check_heartbeats(model.flows, document)


def mirrors_heartbeats(flow: FlowModel) -> bool:
    """A flow that writes them also carries them, unless its keys say no."""
    return flow.emit_heartbeats if flow.mirror_heartbeats is None else flow.mirror_heartbeats


def _check_heartbeats(flows: Mapping[str, FlowModel], document: Document) -> None:
    """A source has one topic of heartbeats: two flows between the same clusters would write one mirror."""
    carriers: dict[tuple[str, str], str] = {}
    for name, flow in flows.items():
        if not mirrors_heartbeats(flow):
            continue
        first = carriers.setdefault((flow.source, flow.target), name)
        if first != name:
            raise ConfigError(
                document.place(("flows", name, "heartbeats.replication.enabled")),
                value="true" if flow.mirror_heartbeats else "(as emit.heartbeats.enabled)",
                rule=f"{first} carries the heartbeats of {flow.source} to {flow.target} already",
                remedy="write heartbeats.replication.enabled: false in one of them",
            )


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
    own, other = model.clusters[flow.target].connection, model.clusters[flow.source].connection
    if own == other:
        raise ConfigError(
            place,
            value=flow.target,
            rule=f"has the same connection as the source ({own})",
            remedy="a cluster isn't mirrored to itself: name another connection",
        )
    if environment_variable(own) == environment_variable(other):
        raise ConfigError(
            place,
            value=flow.target,
            rule=f"has a connection that differs from the source's ({other}) by capital letters only",
            remedy=f"a run gets both, and both would be {environment_variable(own)}: rename one of them",
        )


def _check_times(name: str, flow: FlowModel, document: Document) -> None:
    if flow.follow and flow.schedule not in (None, "@continuous"):
        raise ConfigError(
            document.place(("flows", name, "follow")),
            value="true",
            rule=f"runs again at once, and schedule says {flow.schedule}",
            remedy="remove one of the two",
        )


def _check_groups(name: str, flow: FlowModel, document: Document) -> None:
    if flow.follow_rewinds and not flow.sync_group_offsets:
        raise ConfigError(
            document.place(("flows", name, "follow_rewinds")),
            value="true",
            rule="does nothing without sync.group.offsets.enabled",
            remedy="set that to true as well, or remove this",
        )


def _check_settling(name: str, flow: FlowModel, document: Document) -> None:
    """What is settled is compared record by record with the source, and quarantine leaves records out."""
    if flow.settle and flow.on_refused == "quarantine":
        raise ConfigError(
            document.place(("flows", name, "settle")),
            value="true",
            rule="can't be proved where records go to quarantine",
            remedy="remove one of the two",
        )
