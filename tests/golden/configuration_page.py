"""docs/configuration.md: flows.yaml key by key from the model, connections from the rules of their keys."""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import annotated_types
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from causeway.brokers.client_settings import SASL_MECHANISMS
from causeway.config.connection.endpoint_rules import MEANINGS, MILLISECONDS, PROTECTED_KEYS, PROTOCOLS
from causeway.config.connection.tls_rules import CHECKS
from causeway.config.flows_file.mirror_maker import INSTEAD
from causeway.config.flows_file.model import ClusterModel, FileModel, FlowModel, RuleModel, Written
from causeway.config.mm2_import.keys import CONNECTION_KEYS, FLOW_KEYS, Fate
from causeway.config.mm2_import.yaml_text import _UNSAID
from causeway.config.values.environment import environment_variable
from causeway.config.values.units import _DURATION_SECONDS, _SIZE_BYTES
from causeway.core.model.flow import Start
from tests.golden.markdown import fenced, head, joined, link, table

GROUPS: Mapping[str, tuple[str, ...]] = {
    "Which topics": ("source", "target", "topics", "topics.exclude", "start", "failback_of"),
    "Names of mirrors": (
        *("replication.policy", "replication.policy.separator", "replication.policy.rules"),
        "replication.factor",
    ),
    "Settings, ACLs and heartbeats": (
        *("sync.topic.configs.enabled", "config.properties.exclude", "use.defaults.from"),
        *("sync.topic.acls.enabled", "emit.heartbeats.enabled", "heartbeats.replication.enabled"),
    ),
    "Consumer groups": (
        *("groups", "groups.exclude", "sync.group.offsets.enabled", "follow_rewinds"),
        *("emit.checkpoints.enabled", "emit.offset-syncs.enabled"),
    ),
    "Copying": ("lanes", "transaction.max.bytes", "transaction.max.time", "settle", "on_refused"),
    "Runs in Airflow": ("schedule", "follow", "run_for", "pool", "retries", "retry_delay"),
}
"""The keys of a flow, as an operator looks for them. Each key is in one group."""

EXAMPLE = """\
clusters:
  sf: {connection: kafka_sf}
  nyc: {connection: kafka_nyc}

flows:
  sf_to_nyc:
    source: sf
    target: nyc
    topics: [orders, "payments-.*"]
    topics.exclude: ["payments-test-.*"]
    schedule: "@continuous"
    run_for: 10m
    sync.group.offsets.enabled: true

  archive:
    source: sf
    target: nyc
    topics: ["audit-(eu|us)"]
    replication.policy: rules
    replication.policy.rules:
      - {from: "audit-(.*)", to: "archive.audit.$1"}
    start: 2026-01-31T12:00:00Z
    schedule: "0 3 * * *"
"""

CONNECTION = """\
export AIRFLOW_CONN_KAFKA_SF='{"conn_type": "kafka", "extra": {
  "bootstrap.servers": "sf-1:9092,sf-2:9092",
  "security.protocol": "SASL_SSL",
  "sasl.mechanism": "SCRAM-SHA-512",
  "sasl.username": "causeway",
  "sasl.password": "...",
  "ssl.ca.location": "/etc/ssl/sf-ca.pem"}}'
"""

MIRROR_MAKERS: Mapping[str, tuple[str, ...]] = {
    "start": ("consumer.auto.offset.reset",),
    "connection": CONNECTION_KEYS,
}
"""MirrorMaker 2's words for keys that have another name here; INSTEAD knows the rest."""

_VARIABLES = (
    ("CAUSEWAY_FLOWS", "The path of flows.yaml, for commands without `--file` and for the DAGs."),
    ("CAUSEWAY_HOME", "The folder whose `.causeway` holds a lab's data and Kafka's jars."),
    (
        "CAUSEWAY_REPORTS",
        "The folder for reports of the DAGs' runs. The default is `reports` in AIRFLOW_HOME.",
    ),
    (
        "CAUSEWAY_SCHEDULES",
        "With `off`, the DAGs `mirror__`, `groups__` and `maintain__` don't start by themselves.",
    ),
    ("CAUSEWAY_LAB_PORTS", "The range of ports for a lab's brokers, such as `16000-16999`."),
    ("AIRFLOW_HOME", "The Airflow that a command asks for connections. The default is `~/airflow`."),
)


def page() -> str:
    return joined(
        head("Configuration", "include/causeway/config"),
        "Causeway reads one file, `include/flows.yaml`, and one Airflow connection for each cluster.\n"
        "`causeway flows` checks the file, and names the line of a mistake. "
        "`causeway flows --connections` checks the connections, too.",
        _contents(),
        "## Example",
        "Two flows. The first one follows its source all day. The second one runs at night, and renames.",
        fenced(EXAMPLE, "yaml"),
        _how_to_write(),
        "## The file",
        *_keys(FileModel),
        "## A cluster",
        *_keys(ClusterModel),
        _flow_part(),
        "## A naming rule",
        "An entry of `replication.policy.rules`.",
        *_keys(RuleModel),
        _connections(),
        _variables(),
    )


def _contents() -> str:
    parts = ["Example", "How to write values", "The file", "A cluster", "A flow"]
    lines = [f"- {link(each, each)}" for each in parts]
    lines += [
        f"  - {link(each, each)}: {', '.join(link(f'`{key}`', key) for key in GROUPS[each])}"
        for each in GROUPS
    ]
    lines += [f"- {link(each, each)}" for each in ("A naming rule", "Connections", "Environment variables")]
    return "\n".join(lines)


def _how_to_write() -> str:
    durations = ", ".join(f"`{unit}`" for unit in _DURATION_SECONDS)
    sizes = ", ".join(f"`{unit}`" for unit in _SIZE_BYTES)
    return joined(
        "## How to write values",
        f"- A *duration* is a whole number and one of {durations}: `30s`.\n"
        f"- A *size* is a whole number and one of {sizes}: `16MiB`.\n"
        "- A *regular expression* must match the whole name. Quote it. Causeway refuses look-arounds and "
        "back-references.\n"
        "- A *cron line* has five fields. Quote it.\n"
        "- Causeway refuses a key that it doesn't know, and a key that is there twice.\n"
        "- Causeway refuses anchors, aliases and tags of YAML.\n"
        "- **Never write a password into this file.** Causeway refuses it. Change that password: it was in "
        "clear text.",
    )


def _flow_part() -> str:
    parts = [
        "## A flow",
        "A flow needs `source` and `target`. Every other key has a default. There is no section for defaults "
        "of all flows: each flow has its own keys.",
        "*MirrorMaker 2* names the key with the same meaning in MirrorMaker 2's file, and its default where "
        "that differs. `causeway import-mm2` translates such a file.",
        "A flow with `source` and `target` alone is the flow below. "
        f"The keys {_in_words(unset_keys())} are not set.",
        fenced(defaults(), "yaml"),
    ]
    for group, keys in GROUPS.items():
        parts += [f"### {group}", *_keys(FlowModel, keys, level="####")]
    return joined(*parts)


def unset_keys() -> list[str]:
    return [key for key, field in by_key(FlowModel).items() if not field.is_required() and not _is_set(field)]


def _is_set(field: FieldInfo) -> bool:
    return field.default is not None and field.default != []


def defaults() -> str:
    """A flow that says all of its defaults; test_pages.py loads it."""
    lines = [
        "clusters:",
        "  sf: {connection: kafka_sf}",
        "  nyc: {connection: kafka_nyc}",
        "flows:",
        "  sf_to_nyc:",
    ]
    lines += ["    source: sf", "    target: nyc"]
    for key, field in by_key(FlowModel).items():
        if not field.is_required() and _is_set(field):
            lines.append(f"    {key}: {_as_yaml(field)}")
    return "\n".join(lines) + "\n"


def _as_yaml(field: FieldInfo) -> str:
    if isinstance(field.default, list):
        return f"[{', '.join(_quoted(each) for each in field.default)}]"
    shown = _shown(field)
    return _quoted(shown) if shown in (".", "-") else shown


def _quoted(text: str) -> str:
    return f"'{text}'"


def _keys(model: type[BaseModel], keys: Iterable[str] = (), *, level: str = "###") -> Iterator[str]:
    """Some of the model's keys, or all."""
    fields = by_key(model)
    for key in keys or fields:
        field = fields[key]
        facts = [("type", kind(field)), ("default", _default(field)), ("allowed", allowed(field))]
        if model in (ClusterModel, FlowModel):
            facts.append(("MirrorMaker 2", mirror_makers_word(key)))
        yield f"{level} `{key}`"
        yield field.description or ""
        yield table([name for name, _ in facts], [[value for _, value in facts]])


def by_key(model: type[BaseModel]) -> dict[str, FieldInfo]:
    return {field.alias or name: field for name, field in model.model_fields.items()}


def mirror_makers_word(key: str) -> str:
    words = [key] if key in FLOW_KEYS and FLOW_KEYS[key].fate is Fate.TAKEN else []
    words += [word for word, said in INSTEAD.items() if said.removesuffix(":") in _remedies(key)]
    words += MIRROR_MAKERS.get(key, ())
    default = next((said.partition(": ")[2] for name, said, _ in _UNSAID if name == key), "")
    named = ", ".join(f"`{word}`" for word in words)
    return f"{named}, default `{default}`" if default else named or "-"


def _remedies(key: str) -> set[str]:
    """How INSTEAD says that a key takes the place of another one."""
    policies = f"write {key}: prefix, identity or rules"
    return {f"write {key}", f"write {key}: and the cluster's alias", policies}


# types

_PLAIN: Mapping[type, str] = {
    **{ClusterModel: "cluster", FlowModel: "flow", RuleModel: "rule"},
    **{str: "text", int: "whole number", bool: "`true` or `false`"},
}


def kind(field: FieldInfo) -> str:
    return _kind(field.annotation, field.metadata)


def _kind(annotation: Any, metadata: Sequence[object]) -> str:
    annotation, metadata = _without_none(annotation, metadata)
    written = _written(metadata)
    if written is not None:
        return written.kind
    if get_origin(annotation) is list:
        (inner,) = get_args(annotation)
        return f"list of {_plural(_kind(*_split(inner)))}"
    if get_origin(annotation) is dict:
        return f"{_kind(get_args(annotation)[1], ())}s, by name"
    if get_origin(annotation) is Literal:
        return "word"
    return _PLAIN[annotation]


def _plural(words: str) -> str:
    return words.replace("name or regular expression", "names or regular expressions").replace(
        "rule", "rules"
    )


def allowed(field: FieldInfo) -> str:
    annotation, metadata = _without_none(field.annotation, field.metadata)
    written = _written(metadata)
    parts = [written.allowed] if written is not None and written.allowed else []
    if get_origin(annotation) is Literal:
        parts.append(", ".join(f"`{word}`" for word in get_args(annotation)))
    parts += _bounds(metadata, is_said=bool(parts))
    return "; ".join(parts) or "-"


def _bounds(metadata: Sequence[object], *, is_said: bool) -> Iterator[str]:
    limits = {type(each): each for each in metadata}
    low, high = limits.get(annotated_types.Ge), limits.get(annotated_types.Le)
    if isinstance(low, annotated_types.Ge) and isinstance(high, annotated_types.Le):
        yield f"{_number(low.ge, metadata)} to {_number(high.le, metadata)}"
    least, most = limits.get(annotated_types.MinLen), limits.get(annotated_types.MaxLen)
    if isinstance(most, annotated_types.MaxLen) and not is_said:
        yield f"1 to {most.max_length} characters"
    elif isinstance(least, annotated_types.MinLen):
        yield "at least one"


def _without_none(annotation: Any, metadata: Sequence[object]) -> tuple[Any, Sequence[object]]:
    """Of `X | None`: X, and what is written of it."""
    if get_origin(annotation) in (Union, types.UnionType) and type(None) in get_args(annotation):
        (inner,) = (each for each in get_args(annotation) if each is not type(None))
        return _split(inner)
    return annotation, metadata


def _split(annotation: Any) -> tuple[Any, Sequence[object]]:
    if get_origin(annotation) is not Annotated:
        return annotation, ()
    inner, *metadata = get_args(annotation)
    return inner, [m for each in metadata for m in (each.metadata if isinstance(each, FieldInfo) else [each])]


def _written(metadata: Sequence[object]) -> Written | None:
    return next((each for each in metadata if isinstance(each, Written)), None)


# values


def _default(field: FieldInfo) -> str:
    if field.default is PydanticUndefined:
        return "none: required"
    if field.default is None or field.default == []:
        return "not set"
    if isinstance(field.default, list):
        return ", ".join(f"`{each}`" for each in field.default)
    return f"`{_shown(field)}`"


def _shown(field: FieldInfo) -> str:
    value = field.default
    if isinstance(value, Start):
        return value.at
    return _number(value, field.metadata) if isinstance(value, int | float) else str(value)


def _number(value: Any, metadata: Sequence[object]) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    written = _written(metadata)
    by_kind: Mapping[str, Mapping[str, float]] = {"duration": _DURATION_SECONDS, "size": dict(_SIZE_BYTES)}
    units = by_kind.get(written.kind if written else "", {})
    for unit, size in sorted(units.items(), key=lambda each: -each[1]):
        if round(value / size, 6) == round(value / size) > 0:
            return f"{round(value / size)}{unit}"
    return f"{value:g}"


# connections


def _connections() -> str:
    rows = [(f"`{key}`", MEANINGS[key], _accepted(key), _usual(key)) for key in sorted(MEANINGS)]
    return joined(
        "## Connections",
        "A cluster is an Airflow connection of type *Apache Kafka* (`conn_type` is `kafka`). "
        "Its extra holds librdkafka's keys. Host, login, password and port of the connection stay empty.",
        fenced(CONNECTION, "sh"),
        "Commands look for a connection in this order. The first place that has it counts:",
        "1. the environment variable `AIRFLOW_CONN_<ID>`, as JSON or as a URI; for `kafka_sf` it is "
        f"`{environment_variable('kafka_sf')}`;\n"
        "2. a lab that runs on this machine (`causeway lab up`);\n"
        "3. Airflow: its secrets backend, then its database.",
        "The DAGs ask Airflow, which looks into its secrets backend, the environment and its database.",
        "Causeway talks to a cluster with two Kafka clients. It accepts only keys that both understand:",
        table(("key", "meaning", "allowed", "default"), rows),
        "Paths are absolute, and the file is on every machine that runs Spark tasks. "
        "A certificate and its key belong together: `ssl.certificate.*` needs `ssl.key.*`.",
        "Causeway sets these keys itself, and refuses them in a connection: "
        f"{', '.join(f'`{key}`' for key in sorted(PROTECTED_KEYS))}.",
        "[Permissions](rights.md) lists the rights that the user needs on each cluster.",
    )


def _accepted(key: str) -> str:
    if key in MILLISECONDS:
        least, most = MILLISECONDS[key]
        return f"{least} to {most} ms"
    if key == "security.protocol":
        return ", ".join(f"`{each}`" for each in PROTOCOLS)
    if key.startswith("sasl.mechanism"):
        return ", ".join(f"`{each}`" for each in sorted(SASL_MECHANISMS))
    if key in CHECKS:
        checked, unchecked = CHECKS[key]
        return f"`{checked}`; `{unchecked}` only with `insecure: true`"
    return "text"


def _usual(key: str) -> str:
    if key == "bootstrap.servers":
        return "none: required"
    if key in ("sasl.mechanism", "sasl.username", "sasl.password"):
        return "none: required with SASL"
    if key in CHECKS:
        return f"`{CHECKS[key][0]}`"
    if key in MILLISECONDS:
        return "each client's own"
    return {"security.protocol": "`PLAINTEXT`", "client.id": "`causeway`"}.get(key, "not set")


def _variables() -> str:
    return joined(
        "## Environment variables",
        table(("variable", "meaning"), [(f"`{name}`", meaning) for name, meaning in _VARIABLES]),
    )


def _in_words(keys: Sequence[str]) -> str:
    named = [f"`{key}`" for key in keys]
    return f"{', '.join(named[:-1])} and {named[-1]}"
