"""There and back as an operator meets it: the whole story of `tests/integration/failback`, mirrored back by
the DAG."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass, field
from typing import Any

import pytest

from causeway.config.flows_file.load import load_flows
from causeway.core.failback.divergence import FailbackMode, Step
from causeway.usecases.failback.complete import CompletedFailback
from causeway.usecases.failback.journal_store import newest_failback
from causeway.usecases.failback.start import FailedBack, preview_failback
from tests.airflow.e2e.dag_runs import DagRuns
from tests.integration.failback.rebuilding import same_on_both
from tests.integration.failback.stage import FailbackStage, values
from tests.integration.failback.trials import play
from tests.support.mirroring import end_offsets

pytestmark = [pytest.mark.airflow, pytest.mark.integration]
DAG = "failback__away"
SEED = int(os.environ.get("FAILBACK_SEED", "1"))


@dataclass
class InAirflow(FailbackStage):
    """The way back is opened by somebody who has read the price, and the way home by nobody."""

    runs: DagRuns = field(kw_only=True)

    def resume(self) -> FailedBack:
        """What was shown and agreed to is what is done; done again it is nothing."""
        plan = preview_failback(self.ways, FailbackMode.RESUME)
        self.plans.append(plan)
        logs = self._logs()
        self.runs.trigger("back", step="resume")
        asked = self.runs.asked("back")
        assert self._logs() == logs, "nothing is written before somebody says yes"
        self.runs.answer("back", "Approve")
        assert self.runs.wait("back") == "success", self.runs.log("back", "apply")
        assert asked["subject"] == "Fail away back to sf?"
        assert f"plan {plan.hash}" in asked["body"]
        assert f"{plan.written} records were written since the failover" in asked["body"]
        done = self.runs.xcom("back", "apply")
        assert (done["was_done"], sum(done["exports"].values())) == (False, plan.tail.number)
        assert self.runs.clear("back", "apply") == "success"
        assert self.runs.xcom("back", "apply") == {**done, "was_done": True}
        run, _ = newest_failback(self.ways)
        assert run is not None
        assert (run.run, run.step, run.by) == (done["run"], Step.RETURNING, "airflow back")
        return FailedBack(run=run, was_done=False)

    def rebuild(self, *, accepts_loss: bool = False, plan: str = "") -> FailedBack:
        """Not without the word that what only the old primary has may go."""
        assert accepts_loss
        shown = preview_failback(self.ways, FailbackMode.REBUILD)
        self.plans.append(shown)
        before, fences = self._logs(), self.fences()
        self.runs.trigger("keeps", step="rebuild", approve="auto")
        assert self.runs.wait("keeps") == "failed"
        assert self.runs.states("keeps")["look"] == "failed", (
            "nobody is asked for a yes to what would be refused"
        )
        assert "would be lost permanently" in self.runs.log("keeps", "look")
        self.runs.trigger("rebuild", step="rebuild", accept_loss=True)
        asked = self.runs.asked("rebuild")
        assert (self._logs(), self.fences()) == (before, fences), (
            "nothing is dropped before somebody says yes"
        )
        self.runs.answer("rebuild", "Approve")
        assert self.runs.wait("rebuild") == "success", self.runs.log("rebuild", "apply")
        assert f"plan {shown.hash}" in asked["body"]
        assert plan in ("", shown.hash)
        run, _ = newest_failback(self.ways)
        assert run is not None
        assert (run.way, run.step, run.by) == (FailbackMode.REBUILD, Step.RETURNING, "airflow rebuild")
        return FailedBack(run=run, was_done=False)

    def come_home(self) -> CompletedFailback:
        name = f"home-{len(self.plans)}"
        self.runs.trigger(name, step="home", approve="auto")
        assert self.runs.wait(name) == "success", self.runs.log(name, "apply")
        assert self.runs.states(name)["approve"] == "skipped"
        done = self.runs.xcom(name, "apply")
        assert (done["was_done"], done["as_planned"]) == (False, done["offsets"])
        run, is_fenced = newest_failback(self.ways)
        assert run is not None
        assert (run.step, is_fenced) == (Step.HOME, False)
        return CompletedFailback(run=run, moved=None)

    def _logs(self) -> list[Any]:
        return [self.log(cluster, self.stem) for cluster in (self.old, self.new)]


def rebuilt(stage: InAirflow) -> list[str]:
    """Where `play` leaves it: on the new primary, with a tail that only the old one and its export have."""
    stage.write(stage.new, 30, random.Random(SEED))
    ends = end_offsets(stage.old, of=stage.stem)
    assert any(map(values, stage.log(stage.old, stage.stem).values()))
    stage.rebuild(accepts_loss=True)
    assert end_offsets(stage.old, of=stage.stem) == {place: (end, end) for place, (_, end) in ends.items()}
    stage.reverse.run()
    stage.come_home()
    assert stage.forward.run().records == 0, "nothing loops back"
    return same_on_both(stage)


def test_each_record_is_on_both_sides_once_and_groups_go_on_exactly(mirror: Any) -> None:
    deployment = load_flows(mirror.flows_file)
    flows = deployment.flow("away"), deployment.flow("away_back")
    runs = DagRuns(mirror, DAG)
    stage = InAirflow(mirror.source, mirror.target, "away", keeps_names=True, flows=flows, runs=runs)
    try:
        mirror.eventually(lambda: DAG in mirror.rest.dag_ids())
        assert play(stage, SEED).wrong == (), f"FAILBACK_SEED={SEED}"
        assert rebuilt(stage) == [], f"FAILBACK_SEED={SEED}"
    finally:
        stage.close()
