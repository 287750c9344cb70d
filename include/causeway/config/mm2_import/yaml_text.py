"""The flows.yaml and the connections' file that take MirrorMaker 2's place, as text."""

from __future__ import annotations

import json
from collections.abc import Iterator

from causeway.config.flows_file.document import parse_document
from causeway.config.flows_file.load import deployment_from
from causeway.config.mm2_import.flow import Entry, Mm2Flow
from causeway.config.mm2_import.importer import Mm2Import
from causeway.core.kernel.errors import ConfigError

_UNSAID = (
    (
        "replication.factor",
        "replication.factor: 2",
        "MirrorMaker 2's default; -1 is the target's own, and ours",
    ),
    (
        "sync.topic.acls.enabled",
        "sync.topic.acls.enabled: true",
        "MirrorMaker 2's default; it needs rights of its own: docs/rights.md",
    ),
    (
        "emit.heartbeats.enabled",
        "emit.heartbeats.enabled: true",
        "MirrorMaker 2's default; the one thing that is ever written to a source",
    ),
)


def flows_yaml(found: Mm2Import) -> str:
    """What `causeway flows` accepts.

    :raises ConfigError: what MirrorMaker 2 does is refused here, a circle without prefixes for example.
    """
    text = "\n".join(_yaml_lines(found)) + "\n"
    try:
        deployment_from(parse_document(text.encode(), "flows.yaml"))
    except ConfigError as reason:
        raise ConfigError(
            f"{found.file}, as flows.yaml: {reason.what.partition(': ')[2] or reason.what}",
            value=reason.value,
            rule=reason.rule,
            remedy=reason.remedy,
        ) from None
    return text


def connections_env(found: Mm2Import) -> str:
    """For a shell to `source`. Secrets are in it: for a file that only its owner reads."""
    return "\n".join(_connection_lines(found)) + "\n"


def _connection_lines(found: Mm2Import) -> Iterator[str]:
    yield f"# How to reach the clusters, from {found.file}: `set -a; source` it, or use a secrets backend."
    for cluster in found.clusters:
        for each in cluster.not_here:
            if not each.is_harmless:
                yield f"# {cluster.connection_id} lacks {each.found.key}: {each.why}"
        yield cluster.line()


def _yaml_lines(found: Mm2Import) -> Iterator[str]:
    yield f"# What Causeway mirrors, from {found.file}. `causeway flows` checks it."
    yield "# No secrets here: each cluster is an Airflow connection."
    yield ""
    yield "clusters:"
    for cluster in found.clusters:
        yield f"  {_quoted(cluster.alias)}: {{connection: {cluster.connection_id}}}"
    yield ""
    yield "flows:"
    for flow in found.flows:
        yield from _flow_lines(flow)


def _flow_lines(flow: Mm2Flow) -> Iterator[str]:
    yield f"  {flow.name}:"
    yield f"    source: {_quoted(flow.source)}"
    yield f"    target: {_quoted(flow.target)}"
    for key, entry in flow.entries.items():
        yield f"    {key}: {_spelled(entry)}"
    for key, line, why in _UNSAID:
        if key not in flow.entries:
            yield f"    # {line}  # {why}"
    yield '    schedule: "@continuous"  # MirrorMaker 2 never ends; a cron line copies in batches'
    yield "    run_for: 10m"


def _spelled(entry: Entry) -> str:
    if isinstance(entry, bool):
        return "true" if entry else "false"
    return _quoted(entry) if isinstance(entry, str | list) else str(entry)


def _quoted(value: str | list[str]) -> str:
    """JSON is YAML."""
    return json.dumps(value, ensure_ascii=False)
