"""Follows one DAG run: its tasks' states from Airflow, its progress from the tasks' own logs."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from causeway.airflow.rest import AirflowRest
from causeway.core.kernel.errors import CausewayError
from causeway.demo.airflow_home import AirflowHome

Say = Callable[[str], None]
OnState = Callable[[str, str], None]

DAG_PREFIX = "mirror__"
_LOOK_EVERY_SECONDS = 0.5
_ENDED = frozenset({"success", "failed"})
_SILENT_STATES = frozenset({None, "scheduled", "queued"})
_LOUD = frozenset({"warning", "error", "critical"})


class RunFailed(CausewayError):
    """A DAG run that ended otherwise than it should; the task's log says why."""


def watch_run(
    home: AirflowHome,
    rest: AirflowRest,
    dag_id: str,
    run_id: str,
    say: Say,
    *,
    on_state: OnState = lambda _task, _state: None,
) -> None:
    """Back when the run has succeeded. `on_state` gets each task's new state, once.

    :raises RunFailed: it failed; the tasks' last lines have been shown.
    """
    watch = _Watch(home, rest, dag_id, run_id, say, on_state)
    while True:
        # The state first: what the tasks wrote before it became final is then shown below.
        state = rest.run_state(dag_id, run_id)
        watch.show_news()
        if state in _ENDED:
            break
        time.sleep(_LOOK_EVERY_SECONDS)
    if state != "success":
        raise RunFailed(
            f"run {run_id} of {dag_id}",
            value=state,
            rule=f"failed in {watch.failed or 'no task'}",
            remedy=f"read {home.task_log(dag_id, run_id, watch.failed, 1).parent}",
        )


@dataclass(slots=True)
class _Watch:
    home: AirflowHome
    rest: AirflowRest
    dag_id: str
    run_id: str
    say: Say
    on_state: OnState
    failed: str = ""
    _logs: dict[Path, _LogTail] = field(default_factory=dict)
    _shown: dict[str, str] = field(default_factory=dict)

    def show_news(self) -> None:
        for task in sorted(self.rest.tasks(self.dag_id, self.run_id), key=_started):
            name, attempt, state = task["task_id"], task["try_number"], task["state"]
            if state == "running":
                self._show_state(name, attempt, state)
            self._show_log(name, attempt)
            self._show_state(name, attempt, state)

    def _show_log(self, task: str, attempt: int) -> None:
        path = self.home.task_log(self.dag_id, self.run_id, task, attempt)
        tail = self._logs.setdefault(path, _LogTail(path, f"{self.dag_id.removeprefix(DAG_PREFIX)}: "))
        for line in tail.new_lines():
            self.say(f"{task}: {line}")

    def _show_state(self, task: str, attempt: int, state: str | None) -> None:
        news = f"{state} (try {attempt})" if attempt > 1 else str(state)
        if state not in _SILENT_STATES and self._shown.get(task) != news:
            self.say(f"[{task}] {news}")
            self._shown[task] = news
            self.on_state(task, str(state))
        if state == "failed":
            self.failed = task


def _started(task: Mapping[str, Any]) -> str:
    return str(task["start_date"] or "~")


@dataclass(slots=True)
class _LogTail:
    """What is worth showing of a task's log that grows: Causeway's own lines, and every warning."""

    path: Path
    flow_prefix: str
    _at: int = 0
    _rest: bytes = field(default=b"", repr=False)

    def new_lines(self) -> Iterator[str]:
        if not self.path.exists():
            return
        with self.path.open("rb") as log:
            log.seek(self._at)
            grown = log.read()
        self._at += len(grown)
        *whole, self._rest = (self._rest + grown).split(b"\n")
        yield from (shown for line in whole if (shown := _worth_showing(line, self.flow_prefix)))


def _worth_showing(line: bytes, flow_prefix: str) -> str:
    try:
        entry = json.loads(line)
    except ValueError:
        return ""
    said = str(entry.get("event", ""))
    errors = [f"{each['exc_type']}: {each['exc_value']}" for each in entry.get("error_detail") or []]
    if errors:
        return errors[0]
    # The driver's output comes through Spark's operator, among Spark's own lines.
    ours = entry.get("logger") == "causeway" or said.startswith(flow_prefix)
    return said if ours or entry.get("level") in _LOUD else ""
