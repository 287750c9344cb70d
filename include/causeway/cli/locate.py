"""Where the command line finds flows.yaml, and the clusters that it names.

A connection is looked for in the environment, then in a running lab (`causeway lab up`), then in Airflow
(secrets backends, metadata database). Airflow is imported only if nothing else has it, and only where there
is one: its import alone would make a folder in somebody's home.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from pathlib import Path

from causeway.config.connection.connections import (
    FoundConnection,
    parse_connection,
    refuse_twin,
    resolve_endpoint,
)
from causeway.config.flows_file.deployment import Deployment
from causeway.config.values.environment import environment_variable
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import ConfigError

FLOWS_VARIABLE = "CAUSEWAY_FLOWS"
_FLOWS = Path("include") / "flows.yaml"
_LAB = Path(".causeway") / "lab" / "connections.env"
Say = Callable[[str], None]


def find_flows_file(given: str | None, environ: Mapping[str, str], directory: Path) -> Path:
    """As given, else as the environment says, else include/flows.yaml here or in a folder above.

    :raises ConfigError: there is none.
    """
    if given is not None and not given.strip():
        raise ConfigError("--file", value=given, rule="names no file", remedy="name one, or leave --file out")
    named = given or environ.get(FLOWS_VARIABLE)
    if named:
        return Path(named)
    found = _upward(directory, _FLOWS)
    if found is None:
        raise ConfigError(
            str(_FLOWS),
            rule=f"isn't in {directory} nor in a folder above it",
            remedy=f"go to the project's folder, use --file, or set {FLOWS_VARIABLE}",
        )
    return found


def shown_path(path: Path, directory: Path) -> str:
    """Short where it is below the folder that the person is in."""
    absolute = path.absolute()
    return str(absolute.relative_to(directory)) if absolute.is_relative_to(directory) else str(path)


def cluster_endpoint(
    deployment: Deployment, alias: str, environ: Mapping[str, str], directory: Path, say: Say
) -> ClusterEndpoint:
    """:raises ConfigError: nobody has the connection, or it isn't fit for use."""
    reference = deployment.clusters[alias]
    known = deployment.connection_ids
    refuse_twin(reference.connection_id, known, environ)

    def elsewhere(connection_id: str) -> FoundConnection | None:
        lab = _lab_file(environ, directory)
        found = _from_lab(connection_id, lab) if lab else None
        if lab and found is not None:
            refuse_twin(connection_id, known, dict(_lab_settings(lab)))
            say(f"{alias}: connection {connection_id} from the running lab ({lab})")
            return found
        return _from_airflow(connection_id, environ, say)

    return resolve_endpoint(alias, reference.connection_id, environ, elsewhere, insecure=reference.insecure)


def _upward(directory: Path, name: Path) -> Path | None:
    return next((place / name for place in (directory, *directory.parents) if (place / name).is_file()), None)


def _lab_file(environ: Mapping[str, str], directory: Path) -> Path | None:
    home = environ.get("CAUSEWAY_HOME")
    return _upward(Path(home), _LAB) if home else _upward(directory, _LAB)


def _from_lab(connection_id: str, lab: Path) -> FoundConnection | None:
    variable = environment_variable(connection_id)
    for name, text in _lab_settings(lab):
        if name == variable:
            return parse_connection(connection_id, text, f"{lab.parent.name}/{lab.name}")
    return None


def _lab_settings(lab: Path) -> Iterator[tuple[str, str]]:
    """`NAME='value'`, as the lab writes it for `source`."""
    for line in lab.read_text(encoding="utf-8").splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and not name.startswith("#"):
            yield name.removeprefix("export ").strip(), value.strip().removeprefix("'").removesuffix("'")


def _has_airflow(home: Path, environ: Mapping[str, str]) -> bool:
    """Asking an Airflow that nobody set up would make its folder and an empty database."""
    is_set = any(name.startswith(("AIRFLOW__DATABASE__", "AIRFLOW__SECRETS__")) for name in environ)
    return is_set or (home / "airflow.cfg").is_file() or (home / "airflow.db").is_file()


def _from_airflow(connection_id: str, environ: Mapping[str, str], say: Say) -> FoundConnection | None:
    home = Path(environ.get("AIRFLOW_HOME") or Path.home() / "airflow")
    if not _has_airflow(home, environ):
        return None
    say(f"asking Airflow ({home}) for connection {connection_id}")
    try:
        with redirect_stdout(sys.stderr):  # Airflow logs to standard output, and that is for our answer
            text = _asked_of_airflow(connection_id)
    except Exception as reason:
        # Importing Airflow runs its whole set-up (settings, database driver, plugins): it fails in any way.
        raise ConfigError(
            f"connection {connection_id}",
            rule=f"Airflow ({home}) can't be asked: {type(reason).__name__}",
            remedy=f"set {environment_variable(connection_id)}, or repair Airflow (try: airflow info)",
        ) from reason
    return None if text is None else parse_connection(connection_id, text, "Airflow")


def _asked_of_airflow(connection_id: str) -> str | None:
    """As JSON; None: Airflow doesn't have it."""
    os.environ.setdefault("AIRFLOW__LOGGING__LOGGING_LEVEL", "ERROR")
    from airflow.exceptions import AirflowNotFoundException
    from airflow.models.connection import Connection

    try:
        text: str = Connection.get_connection_from_secrets(connection_id).as_json()
    except AirflowNotFoundException:
        return None
    return text
