"""The two ways in which somebody fails a flow over: Airflow's DAG, by REST, and the command line."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Protocol

from tests.integration.failover.command_line import CommandLine
from tests.integration.failover.in_airflow import FailoverDag

LATEST = "latest"


@dataclass(frozen=True, slots=True, kw_only=True)
class Through:
    """A failover that has been carried out."""

    run: str
    sheet: dict[str, Any]
    """As JSON, as it was shown before."""


class Door(Protocol):
    name: str

    def fail_over(self, at: str) -> Through:
        """`at` is a moment or `latest`. Returns once the positions are verified."""
        ...


@dataclass
class DagDoor:
    dag: FailoverDag
    name: str = "REST"
    runs: list[str] = field(default_factory=list)

    def fail_over(self, at: str) -> Through:
        run_id = f"by_rest_{len(self.runs)}"
        self.runs.append(run_id)
        self.dag.trigger(run_id, timestamp=None if at == LATEST else at, approve="auto")
        state = self.dag.wait(run_id)
        assert state == "success", self.dag.states(run_id)
        verified = self.dag.xcom(run_id, "verify")
        assert verified["as_planned"] == verified["offsets"] > 0, verified
        (kept,) = (self.dag.home.reports / f"failover-{self.dag.flow.name}").glob(f"{run_id}.*.json")
        run = self.dag.xcom(run_id, "snapshot")["run"]
        return Through(run=run, sheet=json.loads(kept.read_text(encoding="utf-8")))


@dataclass
class CommandDoor:
    command_line: CommandLine
    flow: str
    name: str = "command line"

    def fail_over(self, at: str) -> Through:
        told = self.command_line.told("failover", self.flow, "--at", at, "--yes")
        assert told["as_planned"] == told["offsets"] > 0, told
        return Through(run=told["run"], sheet=told["sheet"])

    def roll_back(self, run: str) -> None:
        told = self.command_line.told("failover", self.flow, "--rollback", run, "--yes")
        assert told["fence"] == "lifted", told
