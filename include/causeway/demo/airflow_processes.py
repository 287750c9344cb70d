"""Starts, watches and stops the processes of an Airflow home.

Invariants
  a. After `stop_airflow` no process of that Airflow is left, whoever started it and however it ended.
     Airflow puts each task into a process group of its own and orphans its children when it is killed, so
     neither groups nor parents find them all. What does is a mark in their environment, which every child
     inherits (airflow_home.MARK).
  b. A process is known by its id and its time of creation (psutil), so a reused id is never signalled.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from urllib.request import urlopen

import psutil

from causeway.core.kernel.errors import CausewayError
from causeway.demo.airflow_home import MARK, AirflowHome, airflow_environment

Say = Callable[[str], None]

COMPONENTS = {
    "api-server": ("api-server",),
    # The page reads task logs from the same disk; a log server would need a port of its own.
    "scheduler": ("scheduler", "--skip-serve-logs"),
    "dag-processor": ("dag-processor",),
    # Nothing of Causeway defers; but without it Airflow's page shows a red mark.
    "triggerer": ("triggerer", "--skip-serve-logs"),
}

_MIGRATE_SECONDS = 300
_START_SECONDS = 300
_STOP_SECONDS = 8.0
"""A scheduler waits for its running tasks as long as they take; here nobody does."""


class AirflowDied(CausewayError):
    """A component ended, or never became healthy; its log says why."""


def start_airflow(home: AirflowHome, extra: Mapping[str, str], say: Say) -> None:
    """Returns when the page answers and scheduler and DAG processor beat."""
    environment = airflow_environment(home, extra)
    say("preparing its database")
    _migrate(home, environment)
    say(f"starting {', '.join(COMPONENTS)}")
    started_at = datetime.now(UTC)
    started = {name: _start_process(home, name, command, environment) for name, command in COMPONENTS.items()}
    deadline, awaited = time.monotonic() + _START_SECONDS, ""
    while missing := _not_yet_healthy(home, started_at):
        _raise_if_ended(home, started)
        if time.monotonic() > deadline:
            raise AirflowDied(
                f"airflow {missing}",
                rule=f"must be healthy within {_START_SECONDS} s",
                remedy=f"read {home.directory}/logs",
            )
        if missing != awaited:
            say(f"waiting for {missing}, up to {deadline - time.monotonic():.0f} s")
            awaited = missing
        time.sleep(0.5)


def stop_airflow(home_directory: Path, say: Say) -> int:
    """Ends every process of this home, politely at first; returns how many there were."""
    found = marked_processes(home_directory)
    if found:
        say(f"stopping {len(found)} processes of Airflow")
    _signal(found, psutil.Process.terminate)
    deadline = time.monotonic() + _STOP_SECONDS
    while (left := marked_processes(home_directory)) and time.monotonic() < deadline:
        time.sleep(0.2)
    while left:
        _signal(left, psutil.Process.kill)
        psutil.wait_procs(left, timeout=5)
        left = marked_processes(home_directory)
    return len(found)


def marked_processes(home_directory: Path) -> list[psutil.Process]:
    """Living processes whose environment carries the mark of this home."""
    mark = str(home_directory.resolve())
    return [process for process in psutil.process_iter() if _mark_of(process) == mark]


def _mark_of(process: psutil.Process) -> str | None:
    try:
        return None if process.status() == psutil.STATUS_ZOMBIE else process.environ().get(MARK)
    except (psutil.Error, OSError):
        return None  # gone, or another user's: not ours


def _signal(processes: list[psutil.Process], send: Callable[[psutil.Process], None]) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            send(process)


def _airflow() -> str:
    return str(Path(sys.executable).with_name("airflow"))


def _log_of(home: AirflowHome, name: str) -> Path:
    return home.directory / "logs" / f"{name}.log"


def _migrate(home: AirflowHome, environment: Mapping[str, str]) -> None:
    log = _log_of(home, "db-migrate")
    with log.open("w") as output:
        ended = subprocess.run(
            [_airflow(), "db", "migrate"],
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            timeout=_MIGRATE_SECONDS,
            check=False,
        )
    if ended.returncode:
        raise AirflowDied(
            "airflow db migrate", value=ended.returncode, rule="must end with 0", remedy=f"read {log}"
        )


def _start_process(
    home: AirflowHome, name: str, command: tuple[str, ...], environment: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    with _log_of(home, name).open("ab") as output:
        # A session of its own: a Ctrl-C on the terminal is the demo's to handle, in order.
        return subprocess.Popen(
            [_airflow(), *command],
            env=environment,
            cwd=home.project,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _raise_if_ended(home: AirflowHome, started: Mapping[str, subprocess.Popen[bytes]]) -> None:
    for name, process in started.items():
        if process.poll() is not None:
            raise AirflowDied(
                f"airflow {name}",
                value=process.returncode,
                rule="must keep running",
                remedy=f"read {_log_of(home, name)}",
            )


def _not_yet_healthy(home: AirflowHome, since: datetime) -> str:
    """What hasn't beaten since then (a beat before it is of an earlier Airflow); empty: all have."""
    try:
        with urlopen(f"{home.url}/api/v2/monitor/health", timeout=5) as answer:  # noqa: S310 (own, http)
            health: dict[str, dict[str, str | None]] = json.load(answer)
    except OSError:
        return "api-server"
    beats = {name: health[name].get(f"latest_{name}_heartbeat") for name in ("scheduler", "dag_processor")}
    return ", ".join(name for name, beat in beats.items() if not beat or datetime.fromisoformat(beat) < since)
