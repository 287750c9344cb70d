"""A drill as an operator meets it: its DAG is off until somebody switches it on, and touches nothing."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.config.flows_file.load import load_flows
from causeway.usecases.failover.drill import history
from causeway.usecases.inspect.flow_status import inspect_flow
from tests.airflow.e2e.dag_runs import DagRuns
from tests.integration.failover.stage import BASE_MS, FailoverStage

pytestmark = [pytest.mark.airflow, pytest.mark.integration]
DAG = "drill__rehearsed"
RECORDS, LEFT = 50, 7


def test_clones_are_moved_and_read_and_the_mirror_goes_on(mirror: Any) -> None:
    flow = load_flows(mirror.flows_file).flow("rehearsed")
    stage, runs = FailoverStage(mirror.source, mirror.target, "rehearsed", named=flow), DagRuns(mirror, DAG)
    for partition in (0, 1):
        stage.write([BASE_MS + n * 1_000 for n in range(RECORDS)], partition)
    stage.run()
    stage.write([BASE_MS + n * 1_000 for n in range(RECORDS, RECORDS + LEFT)])
    stage.commit("a", {0: 10, 1: RECORDS})
    stage.commit("b", {0: 3})
    mirror.eventually(lambda: DAG in mirror.rest.dag_ids())
    assert mirror.rest.is_paused(DAG), "nobody has asked for a rehearsal each week"

    mirror.rest.unpause(DAG)
    runs.trigger("by_hand")

    assert runs.wait("by_hand") == "success", runs.log("by_hand", "rehearse")
    told = runs.xcom("by_hand", "rehearse")
    assert (told["by"], told["groups"], told["offsets"], told["as_planned"]) == ("airflow by_hand", 2, 3, 3)
    assert told["probed"] == 3
    assert (told["read"], told["lost_records"], told["rpo_seconds"], told["rereads"]) == (3, LEFT, LEFT, 0)
    kept = {run.run: run.as_dict() for run in history(flow, mirror.target.endpoint())}
    assert kept[told["run"]] == {name: told[name] for name in kept[told["run"]]}
    assert (stage.there("a"), stage.there("b"), stage.clones()) == ({}, {}, [])
    assert inspect_flow(flow, mirror.source.endpoint(), mirror.target.endpoint()).state.fence is None
    assert stage.run().records == LEFT
    there = [(p, value) for p, _, _, value in sorted(stage.seen(mirror.target, stage.mirrored))]
    assert there == [(p, value) for p, _, _, value in sorted(stage.seen(mirror.source, stage.stem))]
    stage.mirror.close()
