"""Runs of one DAG by REST, as somebody on its page sees them: triggered, asked about, cleared, waited for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

APPROVE = "approve"


@dataclass(frozen=True, slots=True)
class DagRuns:
    mirror: Any
    dag: str

    def trigger(self, run_id: str, **answers: Any) -> None:
        self.mirror.rest.trigger(self.dag, run_id, answers)

    def states(self, run_id: str) -> dict[str, str]:
        return {task["task_id"]: task["state"] for task in self.mirror.rest.tasks(self.dag, run_id)}

    def asked(self, run_id: str) -> dict[str, str]:
        """What somebody is shown, as soon as somebody is asked."""
        self.mirror.eventually(lambda: self.states(run_id)[APPROVE] == "awaiting_input")
        asked: dict[str, str] = self.mirror.rest.asked(self.dag, run_id, APPROVE)
        return asked

    def answer(self, run_id: str, option: str) -> dict[str, str]:
        """As `asked`, and answered."""
        asked = self.asked(run_id)
        self.mirror.rest.answer(self.dag, run_id, APPROVE, option)
        return asked

    def wait(self, run_id: str) -> str:
        """How it ended."""
        self.mirror.eventually(lambda: self.mirror.rest.run_state(self.dag, run_id) in {"success", "failed"})
        state: str = self.mirror.rest.run_state(self.dag, run_id)
        return state

    def clear(self, run_id: str, *tasks: str) -> str:
        """And how it ended this time."""
        self.mirror.rest.clear(self.dag, run_id, list(tasks))
        return self.wait(run_id)

    def attempts(self, run_id: str, task: str) -> int:
        tasks = self.mirror.rest.tasks(self.dag, run_id)
        return next(int(each["try_number"]) for each in tasks if each["task_id"] == task)

    def xcom(self, run_id: str, task: str) -> Any:
        return self.mirror.rest.xcom(self.dag, run_id, task)

    def log(self, run_id: str, task: str, attempt: int = 1) -> str:
        path = self.mirror.home.task_log(self.dag, run_id, task, attempt)
        return path.read_text(encoding="utf-8") if path.exists() else ""
