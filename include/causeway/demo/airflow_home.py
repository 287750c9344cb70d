"""An Airflow of the project's own, for the demo and the tests: its folder, its secrets, its settings.

Duty: one private folder (mode 0700) holds everything of it: the database, the logs, the run reports, the
secrets, and the record of the processes that were started (airflow_processes.py starts and stops them).

Invariants
  a. Settings are environment variables only, and none of the caller's `AIRFLOW__*` leaks in. The folder can
     be thrown away at any time.
  b. The page is bound to 127.0.0.1.
  c. Secrets are written with mode 0600 before Airflow would write them with 0644.

SQLite and one scheduler are right for a demo on one machine; docker-compose.yaml shows production.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import socket
import sys
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from causeway.airflow.rest import AirflowRest

ADMIN = "admin"
MARK = "CAUSEWAY_AIRFLOW_PROCESS"
"""In the environment of every process of an Airflow home, and of no other: how they are found again."""
_NOT_INHERITED = ("AIRFLOW_", "PYTHONPATH", "PYTHONHOME", "SPARK_", "PYSPARK_", "CAUSEWAY_")
"""What of the caller's environment would change what runs here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AirflowHome:
    """Where an Airflow lives and how to reach it; no secret is a field, so none is in a repr."""

    directory: Path
    project: Path
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def password(self) -> str:
        passwords: dict[str, str] = json.loads(self.passwords_file.read_text())
        return passwords[ADMIN]

    def rest(self) -> AirflowRest:
        return AirflowRest(self.url, ADMIN, self.password)

    @property
    def passwords_file(self) -> Path:
        return self.directory / "passwords.json"

    @property
    def secrets_file(self) -> Path:
        return self.directory / "secrets.json"

    @property
    def reports(self) -> Path:
        return self.directory / "reports"

    @property
    def scratch(self) -> Path:
        """Of Spark's JVMs, which leave files when they are killed."""
        return self.directory / "scratch"

    def task_log(self, dag_id: str, run_id: str, task_id: str, attempt: int) -> Path:
        """Where Airflow's own template puts it; the demo follows it while the task runs."""
        folders = Path(f"dag_id={dag_id}", f"run_id={run_id}", f"task_id={task_id}")
        return self.directory / "logs" / folders / f"attempt={attempt}.log"


def prepare_home(directory: Path, project: Path) -> AirflowHome:
    """Makes the folder, its secrets and picks a free port; an existing folder keeps secrets and history."""
    home = AirflowHome(directory=directory.resolve(), project=project.resolve(), port=_free_port())
    if home.scratch.exists():
        shutil.rmtree(home.scratch)
    for folder in (home.directory, home.directory / "logs", home.reports, home.scratch):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    home.directory.chmod(0o700)
    if not home.secrets_file.exists():
        write_private(home.secrets_file, _new_secrets())
    if not home.passwords_file.exists():
        write_private(home.passwords_file, {ADMIN: secrets.token_urlsafe(12)})
    return home


def airflow_environment(home: AirflowHome, extra: Mapping[str, str]) -> dict[str, str]:
    """Everything a component needs; `extra` adds connections (AIRFLOW_CONN_*) and the deployment's files."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(_NOT_INHERITED)}
    executables = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return inherited | _settings(home) | _secret_settings(home) | {"PATH": executables} | dict(extra)


def _settings(home: AirflowHome) -> dict[str, str]:
    return {
        "AIRFLOW_HOME": str(home.directory),
        "AIRFLOW__CORE__DAGS_FOLDER": str(home.project / "dags"),
        "AIRFLOW__CORE__PLUGINS_FOLDER": str(home.project / "plugins"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{home.url}/execution/",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS": f"{ADMIN}:admin",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(home.passwords_file),
        # The masker goes by the names of keys: without these, PEM keys would be shown.
        "AIRFLOW__CORE__SENSITIVE_VAR_CONN_NAMES": "pem,jaas",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home.directory / 'airflow.db'}",
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(home.port),
        "AIRFLOW__API__BASE_URL": home.url,
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__API__INSTANCE_NAME": "Causeway demo",
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(home.directory / "logs"),
        "CAUSEWAY_REPORTS": str(home.reports),
        "SPARK_SUBMIT_OPTS": f'"-Djava.io.tmpdir={home.scratch}" -XX:-UsePerfData',
        MARK: str(home.directory),
        # Airflow renames its processes; without this that would wipe the mark from them.
        "SPT_NOENV": "1",
    }


def _secret_settings(home: AirflowHome) -> dict[str, str]:
    kept: dict[str, str] = json.loads(home.secrets_file.read_text())
    return {
        "AIRFLOW__CORE__FERNET_KEY": kept["fernet_key"],
        "AIRFLOW__API_AUTH__JWT_SECRET": kept["jwt_secret"],
        "AIRFLOW__API__SECRET_KEY": kept["session_key"],
        "AIRFLOW_CONN_AIRFLOW_API": _own_connection(home),
    }


def _own_connection(home: AirflowHome) -> str:
    """How a task asks this Airflow for what only its page can do: a failover pauses DAGs."""
    who = {"conn_type": "http", "login": ADMIN, "password": home.password}
    return json.dumps({**who, "host": "127.0.0.1", "port": home.port})


def _new_secrets() -> dict[str, str]:
    return {
        "fernet_key": urlsafe_b64encode(secrets.token_bytes(32)).decode(),
        "jwt_secret": secrets.token_urlsafe(48),
        "session_key": secrets.token_urlsafe(32),
    }


def write_private(path: Path, content: object) -> None:
    """JSON that only its owner can read, from its first byte on."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(content, file)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
