"""What a lab cluster is, in one file of its home: what was asked for, what was given to it, what runs.

The file holds passwords: mode 600.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from causeway.lab.errors import LabTrouble, StateUnreadable
from causeway.lab.places import write_whole
from causeway.lab.processes import ProcessIdentity

Security = Literal["PLAINTEXT", "SASL_SSL"]
NEWEST_KAFKA = "4.3.1"
_FORMAT = 1
DEFAULT_JVM_OPTIONS = ("-Xms64m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSpec:
    """What is asked for. `broker_settings` go to every node; `users` are there from the start (SASL_SSL)."""

    name: str
    kafka_version: str = NEWEST_KAFKA
    nodes: int = 1
    security: Security = "PLAINTEXT"
    broker_settings: dict[str, str] = field(default_factory=dict)
    users: tuple[str, ...] = ()
    jvm_options: tuple[str, ...] = DEFAULT_JVM_OPTIONS


@dataclass(frozen=True, slots=True)
class NodePorts:
    client: int
    controller: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRecord:
    spec: ClusterSpec
    cluster_id: str
    ports: dict[int, NodePorts]
    """By node id, from 1. Given once, kept over restarts."""
    passwords: dict[str, str] = field(repr=False)
    processes: dict[int, ProcessIdentity]

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(f"127.0.0.1:{ports.client}" for ports in self.ports.values())

    def with_spec(self, spec: ClusterSpec) -> ClusterRecord:
        """The same cluster under a new wish: version, settings and JVM may change over a restart.

        :raises LabTrouble: the data in this home can't serve the wish.
        """
        for name in ("name", "nodes", "security"):
            old, new = getattr(self.spec, name), getattr(spec, name)
            if old != new:
                raise LabTrouble(
                    f"lab cluster {self.spec.name}: {name}",
                    value=new,
                    rule=f"its data was made with {old}",
                    remedy="use another home directory",
                )
        return replace(self, spec=spec)


def save_record(path: Path, record: ClusterRecord) -> None:
    write_whole(path, json.dumps({"format": _FORMAT, **asdict(record)}, indent=1), mode=0o600)


def load_record(path: Path) -> ClusterRecord:
    """:raises StateUnreadable: the file isn't what `save_record` writes."""
    try:
        return _parse(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as damage:
        raise StateUnreadable(
            str(path), value=damage, rule="not a record of a lab cluster", remedy=f"delete {path.parent}"
        ) from damage


def _parse(content: dict[str, Any]) -> ClusterRecord:
    if content["format"] != _FORMAT:
        raise ValueError(f"format {content['format']}, this version writes {_FORMAT}")
    spec = content["spec"]
    lists = {name: tuple(spec[name]) for name in ("users", "jvm_options")}
    return ClusterRecord(
        spec=ClusterSpec(**{**spec, **lists}),
        cluster_id=content["cluster_id"],
        ports={int(node): NodePorts(**ports) for node, ports in content["ports"].items()},
        passwords=content["passwords"],
        processes={int(node): ProcessIdentity(**each) for node, each in content["processes"].items()},
    )
