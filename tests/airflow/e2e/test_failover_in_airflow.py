"""A failover as an operator meets it: the DAG in a real Airflow, and a source that was killed with -9."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psutil
import pytest

from causeway.airflow.rest import AirflowRefused
from causeway.config.flows_file.load import load_flows
from causeway.core.kernel.timestamps import rfc3339
from causeway.demo.airflow_processes import marked_processes
from tests.airflow.e2e.conftest import command_of
from tests.airflow.e2e.dag_runs import DagRuns
from tests.integration.failover.stage import BASE_MS, FailoverStage

pytestmark = [pytest.mark.airflow, pytest.mark.integration]
DAG = "failover__doomed"
STEPS = ("plan", "estimate", "approve", "snapshot", "fence", "apply", "verify", "report")
MOMENT_MS = BASE_MS + 100_000
GROUPS = ("billing", "{{ 7 * 7 }}")
"""What a broker says may hold anything: no name is ever a template."""


@dataclass(frozen=True, slots=True)
class Failovers(DagRuns):
    """Runs of the DAG, and what they leave on the target."""

    stage: FailoverStage

    def states(self, run_id: str) -> dict[str, str]:
        """In the order of the steps."""
        found = DagRuns.states(self, run_id)
        return {step: found[step] for step in STEPS}

    def offsets(self) -> dict[str, dict[int, int]]:
        return {name: self.stage.there(name) for name in GROUPS}


@pytest.fixture(scope="module")
def failovers(mirror: Any) -> Iterator[Failovers]:
    """Two partitions mirrored, groups synced, then thirty records more that never arrive."""
    mirror.doomed.start()
    flow = load_flows(mirror.flows_file).flow("doomed")
    stage = FailoverStage(mirror.doomed, mirror.target, "doomed", named=flow)
    for first in (0, 100):
        for partition in (0, 1):
            stage.write([BASE_MS + n * 1_000 for n in range(first, first + 100)], partition)
        stage.run()
    for number, name in enumerate(GROUPS):
        stage.commit(name, {0: 50 + number, 1: 170})
    stage.sync()
    stage.write([BASE_MS + n * 1_000 for n in range(200, 230)])
    yield Failovers(mirror, DAG, stage)
    stage.mirror.close()


@pytest.fixture(scope="module")
def before(failovers: Failovers) -> dict[str, dict[int, int]]:
    return failovers.offsets()


@pytest.mark.parametrize(
    "answers",
    [
        {"timestamp": "yesterday"},
        {"timestamp": "2026-11-18T04:03:00"},
        {"timestamp": 1_763_438_580},
        {"safety": "30"},
        {"active": "kill"},
        {"dry_run": "true"},
        {"groups": "billing"},
        {"clamp": 1},
    ],
)
def test_an_answer_of_the_wrong_kind_is_refused_before_there_is_a_run(
    failovers: Failovers, answers: dict[str, Any]
) -> None:
    (name,) = answers
    with pytest.raises(AirflowRefused, match=rf"400.*{name}"):
        failovers.trigger("never", **answers)


def test_an_answer_that_makes_no_sense_fails_the_plan_at_once_with_the_reason(failovers: Failovers) -> None:
    failovers.trigger("tomorrow", timestamp="2226-11-18T04:03:00Z", approve="auto")
    assert failovers.wait("tomorrow") == "failed"
    assert "timestamp" in failovers.log("tomorrow", "plan")
    assert "in the future: here it is" in failovers.log("tomorrow", "plan")
    states = failovers.states("tomorrow")
    assert (states.pop("plan"), set(states.values())) == ("failed", {"upstream_failed"})


def test_a_dry_run_shows_the_sheet_and_writes_nothing(
    failovers: Failovers, before: dict[str, dict[int, int]]
) -> None:
    failovers.trigger("dry", timestamp=rfc3339(MOMENT_MS), dry_run=True, approve="auto")
    assert failovers.wait("dry") == "success"
    assert [state for step, state in failovers.states("dry").items() if step not in STEPS[:2]] == [
        "skipped"
    ] * 6
    (kept,) = (failovers.mirror.home.reports / "failover-doomed").glob("dry.*.json")
    sheet = json.loads(kept.read_text())
    assert (sheet["lost_records"]["number"], sheet["source_answers"]) == (30, True)
    assert 'content="width=device-width' in kept.with_suffix(".html").read_text()
    assert "RECORDS LOST" in failovers.log("dry", "estimate")
    assert (failovers.offsets(), failovers.stage.fence()) == (before, None)


def test_who_says_no_changes_nothing_and_no_click_gets_around_it(
    failovers: Failovers, before: dict[str, dict[int, int]]
) -> None:
    failovers.trigger("no", timestamp=rfc3339(MOMENT_MS))
    failovers.answer("no", "Reject")
    assert failovers.wait("no") == "success"
    assert set(list(failovers.states("no").values())[3:]) == {"skipped"}
    failovers.clear("no", "snapshot")
    assert failovers.states("no")["snapshot"] in {"skipped", "failed"}
    assert (failovers.offsets(), failovers.stage.fence()) == (before, None)


@pytest.fixture(scope="module")
def expected(failovers: Failovers, before: dict[str, dict[int, int]]) -> dict[str, dict[int, int]]:
    """From here on the source is gone."""
    places = {
        p: next(at for _, at, time_ms, _ in failovers.stage.mirrored_records(p) if time_ms >= MOMENT_MS)
        for p in (0, 1)
    }
    failovers.stage.source.kill()
    return dict.fromkeys(GROUPS, places)


def test_the_source_is_killed_somebody_approves_and_every_group_stands_at_its_record(
    failovers: Failovers, expected: dict[str, dict[int, int]]
) -> None:
    failovers.mirror.rest.unpause("mirror__doomed")
    failovers.trigger("four_in_the_morning", timestamp=rfc3339(MOMENT_MS))
    asked = failovers.answer("four_in_the_morning", "Approve")

    assert failovers.wait("four_in_the_morning") == "success"

    assert set(failovers.states("four_in_the_morning").values()) == {"success"}
    assert failovers.offsets() == expected
    assert "unknown records lost" in asked["body"]
    assert "can't be asked" in asked["body"]
    assert "{{ 7 * 7 }}" in asked["body"]
    done = failovers.xcom("four_in_the_morning", "report")
    assert (done["committed"], done["as_planned"], done["moved_on"], done["groups"]) == (4, 4, 0, 2)
    assert failovers.mirror.rest.is_paused("mirror__doomed")


def test_the_same_again_is_no_failover_and_says_so(
    failovers: Failovers, expected: dict[str, dict[int, int]]
) -> None:
    failovers.trigger("again", timestamp=rfc3339(MOMENT_MS), approve="auto")
    assert failovers.wait("again") == "success"
    assert "was done already: nothing to do" in failovers.log("again", "estimate")
    assert set(list(failovers.states("again").values())[2:]) == {"skipped"}
    assert failovers.offsets() == expected


def test_tasks_that_are_killed_or_cleared_end_in_the_same_state(
    failovers: Failovers, before: dict[str, dict[int, int]], expected: dict[str, dict[int, int]]
) -> None:
    first = failovers.xcom("four_in_the_morning", "snapshot")["run"]
    assert failovers.stage.roll_back(first).restored == 4
    assert failovers.offsets() == before

    failovers.trigger("killed", timestamp=rfc3339(MOMENT_MS), approve="auto")
    kill_a_task(failovers.mirror, "killed", "apply")
    assert failovers.wait("killed") == "success"
    run = failovers.xcom("killed", "snapshot")["run"]
    assert failovers.attempts("killed", "apply") == 2
    assert failovers.offsets() == expected

    assert failovers.clear("killed", "snapshot", "fence", "apply", "verify", "report") == "success"
    assert failovers.xcom("killed", "snapshot")["run"] == run
    assert failovers.xcom("killed", "apply")["committed"] == 0
    assert (failovers.offsets(), failovers.xcom("killed", "verify")["as_planned"]) == (expected, 4)


def kill_a_task(mirror: Any, run_id: str, task: str) -> None:
    """With -9, as soon as its process is known."""
    titles = {
        f"airflow worker -- {each['id']}"
        for each in mirror.rest.tasks(DAG, run_id)
        if each["task_id"] == task
    }

    def kill() -> bool:
        found = [
            each for each in marked_processes(mirror.home.directory) if command_of(each).strip() in titles
        ]
        for process in found:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        return bool(found)

    mirror.eventually(kill)
