"""The few calls of Airflow's REST interface that the demo, a failover's courtesy and the tests make."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from causeway.core.kernel.errors import CausewayError, ClusterUnreachable

_ANSWER_SECONDS = 30
_PATIENCE_SECONDS = 60
_SERVER_ERROR = 500
_AS_A_PERSON_READS_SECONDS = 20


class AirflowRefused(CausewayError):
    """Airflow answered, and the answer is no."""


@dataclass(slots=True)
class AirflowRest:
    url: str
    user: str
    password: str = field(repr=False)
    _token: str = field(default="", repr=False)

    def dag_ids(self) -> set[str]:
        return {dag["dag_id"] for dag in self._call("GET", "/api/v2/dags?limit=1000")["dags"]}

    def import_errors(self) -> list[str]:
        errors = self._call("GET", "/api/v2/importErrors")["import_errors"]
        return [error["stack_trace"].strip().splitlines()[-1] for error in errors]

    def unpause(self, dag_id: str) -> None:
        self.set_paused(dag_id, is_paused=False)

    def is_paused(self, dag_id: str) -> bool:
        paused: bool = self._call("GET", f"/api/v2/dags/{dag_id}")["is_paused"]
        return paused

    def set_paused(self, dag_id: str, *, is_paused: bool) -> None:
        self._call("PATCH", f"/api/v2/dags/{dag_id}", {"is_paused": is_paused})

    def trigger(self, dag_id: str, run_id: str, conf: dict[str, Any]) -> None:
        body = {"dag_run_id": run_id, "logical_date": None, "conf": conf}
        self._call("POST", f"/api/v2/dags/{dag_id}/dagRuns", body)

    def run_state(self, dag_id: str, run_id: str) -> str:
        state: str = self._call("GET", _run_path(dag_id, run_id))["state"]
        return state

    def tasks(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        answer: list[dict[str, Any]] = self._call("GET", f"{_run_path(dag_id, run_id)}/taskInstances")[
            "task_instances"
        ]
        return answer

    def xcom(self, dag_id: str, run_id: str, task_id: str) -> Any:
        """What the task returned."""
        entry = f"taskInstances/{task_id}/xcomEntries/return_value?deserialize=true"
        return self._call("GET", f"{_run_path(dag_id, run_id)}/{entry}")["value"]

    def asset_events(self, asset: str) -> list[dict[str, Any]]:
        found = self._call("GET", f"/api/v2/assets?name_pattern={quote(asset)}")["assets"]
        number = next(each["id"] for each in found if each["name"] == asset)
        events: list[dict[str, Any]] = self._call("GET", f"/api/v2/assets/events?asset_id={number}")[
            "asset_events"
        ]
        return events

    def mark_failed(self, dag_id: str, run_id: str, task_id: str) -> None:
        """As the button on the page does: the running task is killed."""
        self._call("PATCH", f"{_run_path(dag_id, run_id)}/taskInstances/{task_id}", {"new_state": "failed"})

    def clear(self, dag_id: str, run_id: str, task_ids: list[str]) -> None:
        """These are run again, and no others."""
        body = {"dry_run": False, "dag_run_id": run_id, "task_ids": task_ids, "only_failed": False}
        self._call("POST", f"/api/v2/dags/{dag_id}/clearTaskInstances", body)

    def asked(self, dag_id: str, run_id: str, task_id: str) -> dict[str, str]:
        """What a human in the loop is asked: `subject` and `body`."""
        found: dict[str, str] = self._call("GET", _question(dag_id, run_id, task_id))
        return found

    def answer(self, dag_id: str, run_id: str, task_id: str, option: str) -> None:
        """Not at once: Airflow 3.3.2 fails a task that is answered before its scheduler saw that it waits.

        An idle scheduler looks at its executor every six seconds or so; five were too few.
        """
        time.sleep(_AS_A_PERSON_READS_SECONDS)
        body = {"chosen_options": [option], "params_input": {}}
        self._call("PATCH", _question(dag_id, run_id, task_id), body)

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        if not self._token:
            login = {"username": self.user, "password": self.password}
            self._token = self._send("POST", "/auth/token", login)["access_token"]
        if method != "GET":
            return self._send(method, path, body)
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            # Asking again changes nothing, and on a busy machine an answer may come late.
            try:
                return self._send(method, path, body)
            except ClusterUnreachable:
                if time.monotonic() > deadline:
                    raise
                time.sleep(1)

    def _send(self, method: str, path: str, body: dict[str, Any] | None) -> Any:
        headers = {"Content-Type": "application/json"}
        if self._token:
            headers["Authorization"] = f"Bearer {self._token}"
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, data, headers, method=method)  # noqa: S310 (own, http)
        try:
            with urlopen(request, timeout=_ANSWER_SECONDS) as answer:  # noqa: S310 (own, http)
                return json.load(answer)
        except HTTPError as refused:
            said = refused.read().decode(errors="replace")[:500]
            if refused.code >= _SERVER_ERROR:
                raise self._unreachable(f"{refused.code} {said}") from refused
            raise AirflowRefused(f"{method} {path}", value=refused.code, rule=said) from refused
        except (OSError, HTTPException) as trouble:
            raise self._unreachable(str(trouble)) from trouble

    def _unreachable(self, why: str) -> ClusterUnreachable:
        return ClusterUnreachable(
            "airflow", value=self.url, rule=f"doesn't answer: {why}", remedy="look into its logs"
        )


def _run_path(dag_id: str, run_id: str) -> str:
    return f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id, safe='')}"


def _question(dag_id: str, run_id: str, task_id: str) -> str:
    return f"{_run_path(dag_id, run_id)}/taskInstances/{task_id}/-1/hitlDetails"
