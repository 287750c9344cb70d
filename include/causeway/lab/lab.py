"""The lab of the command line: named clusters that stay when the command ends, until `down`.

State is in `.causeway/lab/state.json`: which clusters `up` made, each with a home of its own below. What runs
is never read from it but asked of the system, so a state that a reboot or a kill made stale does no harm.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from causeway.lab.asked import Asked, legal_names, spec_of
from causeway.lab.cluster import LabCluster
from causeway.lab.errors import StateUnreadable
from causeway.lab.places import Say, exclusive, lab_directory, project_root, write_whole
from causeway.lab.record import ClusterRecord, ClusterSpec, Security, load_record

DEFAULT_CLUSTERS = ("sf", "nyc")
_FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStatus:
    name: str
    is_running: bool
    """Every node runs."""
    bootstrap_servers: str
    kafka_version: str
    security: str
    pids: dict[int, int]
    """Process by node, of the nodes that run."""
    home: Path
    logs: tuple[Path, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabStatus:
    clusters: tuple[ClusterStatus, ...]
    connections: Path
    """A file to `source`: AIRFLOW_CONN_KAFKA_<NAME>, one line per cluster."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """What `down` ended: process by node. Empty: nothing of this cluster ran."""

    name: str
    pids: dict[int, int]


def up(
    root: Path | None = None,
    clusters: Iterable[str] = DEFAULT_CLUSTERS,
    *,
    kafka_version: str | None = None,
    security: Security | None = None,
    nodes: int | None = None,
    say: Say = print,
) -> LabStatus:
    """Bring these clusters up, all at once; the ones that are up already stay as they are.

    What isn't asked for is as the cluster was, or the newest Kafka, PLAINTEXT, 1 node. If one doesn't come
    up, the ones that this call started are stopped again.

    :raises BadInput: a name that can't be, a cluster that is there and another one than is asked for.
    :raises LabTrouble: no jars, a broker that dies.
    """
    home = project_root(root)
    names_asked = legal_names(clusters)
    with _alone(home, say):
        legal_names(dict.fromkeys((*_read_state(home), *names_asked)))  # sf is up, and SF is asked for
        asked = Asked(kafka_version, security, nodes)
        specs = [
            spec_of(name, _record_of(home, name), asked, is_up=_is_up(home, name)) for name in names_asked
        ]
        names = sorted({*_read_state(home), *(spec.name for spec in specs)})
        asleep = [cluster for cluster in (_make(home, spec, say) for spec in specs) if cluster]
        # Before the first process: whatever happens from here on, `down` knows where to look.
        _write_state(home, names)
        _start_together(asleep, say)
        _write_connections(home, names)
    return status(home)


def down(root: Path | None = None, *, say: Say = print) -> tuple[Stopped, ...]:
    """Stop every cluster that `up` made; their data stays for the next `up`."""
    home = project_root(root)
    stopped = []
    with _alone(home, say):
        for name in _read_state(home):
            cluster = _open(home, name)
            pids = _pids(cluster)
            cluster.stop()
            stopped.append(Stopped(name=name, pids=pids))
        if stopped:
            connections_path(home).unlink(missing_ok=True)
            _state_path(home).unlink()
    return tuple(stopped)


def forget(root: Path | None = None, *, say: Say = print) -> tuple[str, ...]:
    """Delete the data of every cluster that a lab, or the demo, ever made here: the next one begins empty.

    Of one that runs nothing is deleted: `down` first.
    """
    home = project_root(root)
    gone = []
    with _alone(home, say):
        for place in sorted(record.parent for record in lab_directory(home).glob("*/cluster.json")):
            cluster = _open(home, place.name)
            if _pids(cluster):
                say(f"lab: {place.name} runs; its data stays")
                continue
            shutil.rmtree(place)
            gone.append(place.name)
    return tuple(gone)


def status(root: Path | None = None) -> LabStatus:
    """What is up now, asked of the system; changes nothing."""
    home = project_root(root)
    return LabStatus(
        clusters=tuple(_status_of(_open(home, name)) for name in _read_state(home)),
        connections=connections_path(home),
    )


def connections_path(root: Path) -> Path:
    return lab_directory(root) / "connections.env"


def _status_of(cluster: LabCluster) -> ClusterStatus:
    return ClusterStatus(
        name=cluster.name,
        is_running=cluster.is_running(),
        bootstrap_servers=cluster.bootstrap_servers,
        kafka_version=cluster.spec.kafka_version,
        security=cluster.spec.security,
        pids=_pids(cluster),
        home=cluster.home,
        logs=tuple(map(cluster.log_path, cluster.node_numbers)),
    )


def _pids(cluster: LabCluster) -> dict[int, int]:
    return {node: pid for node in cluster.node_numbers if (pid := cluster.pid(node)) is not None}


def _make(home: Path, spec: ClusterSpec, say: Say) -> LabCluster | None:
    """The cluster, ready to be started; None if it is up already."""
    place = lab_directory(home) / spec.name
    if (place / "cluster.json").exists():
        old = _open(home, spec.name)
        if old.is_running():
            say(f"lab: {spec.name} is up already ({old.bootstrap_servers})")
            return None
    return LabCluster(spec, place, root=home, tied=False, say=say)


def _start_together(clusters: list[LabCluster], say: Say) -> None:
    try:
        for cluster in clusters:
            say(f"lab: starting {cluster.name} (Kafka {cluster.spec.kafka_version})")
            cluster.launch()
        for cluster in clusters:
            cluster.wait_until_ready()
            say(f"lab: {cluster.name} is up ({cluster.bootstrap_servers})")
    except BaseException:
        # Ctrl-C too: a half-started lab is nobody's wish.
        for cluster in clusters:
            cluster.stop()
        raise


def _write_connections(home: Path, names: Iterable[str]) -> None:
    """For `source`: the values hold no single quote, since none of their parts can."""
    lines = [f"AIRFLOW_CONN_KAFKA_{name.upper()}='{_open(home, name).connection_json()}'\n" for name in names]
    write_whole(connections_path(home), "".join(lines), mode=0o600)


def _open(home: Path, name: str) -> LabCluster:
    return LabCluster.open(lab_directory(home) / name, root=home)


def _alone(home: Path, say: Say) -> AbstractContextManager[None]:
    guard = lab_directory(home) / ".busy"
    return exclusive(guard, waiting=lambda: say("lab: another process is changing this lab; waiting"))


def _record_of(home: Path, name: str) -> ClusterRecord | None:
    """What was made for it, now or earlier; None: nothing was."""
    path = lab_directory(home) / name / "cluster.json"
    return load_record(path) if path.exists() else None


def _is_up(home: Path, name: str) -> bool:
    """Whether any of its nodes runs: one that died is started again as it was."""
    return _record_of(home, name) is not None and bool(_pids(_open(home, name)))


def _state_path(home: Path) -> Path:
    return lab_directory(home) / "state.json"


def _write_state(home: Path, names: list[str]) -> None:
    write_whole(_state_path(home), json.dumps({"format": _FORMAT, "clusters": names}))


def _read_state(home: Path) -> list[str]:
    """The clusters that `up` made; none if there is no state.

    :raises StateUnreadable: there is a file, and it isn't ours.
    """
    path = _state_path(home)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        names = content["clusters"] if content["format"] == _FORMAT else None
    except FileNotFoundError:
        return []
    except (ValueError, KeyError, TypeError) as damage:
        raise _unreadable(path, damage) from damage
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise _unreadable(path, content)
    return names


def _unreadable(path: Path, value: object) -> StateUnreadable:
    remedy = f"delete {path}, then `up` again: clusters that still run are found by their own records"
    return StateUnreadable(str(path), value=value, rule="not the state of a lab", remedy=remedy)
