"""`causeway failback --rebuild` as it is typed: nothing is deleted without the flow's name, or `--yes`."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from causeway.cli.commands import failback as commands_failback
from causeway.cli.parser import parser
from causeway.cli.request import Request
from causeway.config.flows_file.load import load_flows
from causeway.core.failback.divergence import FailbackMode, FailbackPlan
from causeway.core.kernel.errors import BadInput
from causeway.render.outcome import Outcome
from causeway.usecases.failback import start
from tests.support.episodes import FAILBACK
from tests.support.failback_plans import cut, price
from tests.support.flows_yaml import flows_yaml

FLOWS = flows_yaml(
    "sf_to_nyc: {source: sf, target: nyc, topics: [orders], replication.policy: identity}",
    "nyc_to_sf: {source: nyc, target: sf, failback_of: sf_to_nyc, replication.policy: identity}",
)
PLAN = FailbackPlan(
    flow="sf_to_nyc", reverse="nyc_to_sf", way=FailbackMode.REBUILD, cuts=(cut(),), late=(), rebuild=price()
)
RUN = replace(FAILBACK, way=FailbackMode.REBUILD, facts={"parted": True, "exports": {"orders.diverged.T": 5}})


class Failback:
    """Types a command, and keeps what it was carried out with."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.said, self.done = folder, list[str](), list[tuple[FailbackMode, start.Operator]]()

    def type(self, *arguments: str) -> Outcome:
        file = str(self.folder / "flows.yaml")
        options = parser().parse_args(["failback", "sf_to_nyc", *arguments, "--file", file])
        request = Request(
            options=options,
            environ={},
            directory=self.folder,
            progress=self.said.append,
            say=self.said.append,
        )
        return commands_failback.failback_flow(request)

    def fail_back(self, _ways: object, way: FailbackMode, operator: start.Operator) -> start.FailedBack:
        operator.consent(PLAN)
        self.done.append((way, operator))
        return start.FailedBack(run=RUN, was_done=False, plan=PLAN)


@pytest.fixture
def failback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Failback:
    (tmp_path / "flows.yaml").write_text(FLOWS)
    deployment, made = load_flows(tmp_path / "flows.yaml"), Failback(tmp_path)

    def opened(_request: Request) -> tuple[Any, ...]:
        return deployment, deployment.flow("sf_to_nyc"), "sf", "nyc"

    monkeypatch.setattr(commands_failback, "opened", opened)
    monkeypatch.setattr(commands_failback, "with_next", lambda _request, outcome: outcome)
    monkeypatch.setattr(start, "fail_back", made.fail_back)
    monkeypatch.setattr(start, "preview_failback", lambda _ways, _way: PLAN)
    return made


def test_only_the_flows_name_empties_anything(failback: Failback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))
    with pytest.raises(BadInput, match=f"nothing was done; .* --yes --plan {PLAN.hash} in a script"):
        failback.type("--rebuild")
    assert failback.done == []
    assert any("9 records of sf are DELETED" in line for line in failback.said), "the price comes first"
    monkeypatch.setattr("sys.stdin", io.StringIO("sf_to_nyc\n"))
    assert "5 divergent records in orders.diverged.T" in failback.type("--rebuild").text
    assert [(way, operator.accepts_loss) for way, operator in failback.done] == [
        (FailbackMode.REBUILD, False)
    ]


def test_what_has_begun_names_the_run_and_then_home(failback: Failback) -> None:
    """Without the option a run lasts as long as the flow's `run_for`."""
    last = failback.type("--resume", "--yes").text.splitlines()[-1]
    assert last == (
        "sf_to_nyc: failback b1 has begun: run nyc_to_sf (`causeway run nyc_to_sf --until-caught-up`, or its "
        "DAG) until its lag is small, stop writers, then `causeway failback sf_to_nyc --home`"
    )


def test_a_script_says_what_it_agrees_to(failback: Failback) -> None:
    failback.type("--rebuild", "--yes", "--accept-loss", "--plan", PLAN.hash)
    failback.type("--resume", "--yes")
    found = [(way, operator.accepts_loss, operator.expected_plan) for way, operator in failback.done]
    assert found == [(FailbackMode.REBUILD, True, PLAN.hash), (FailbackMode.RESUME, False, "")]


def test_who_empties_topics_in_a_script_says_by_which_plan(failback: Failback) -> None:
    with pytest.raises(BadInput) as refused:
        failback.type("--rebuild", "--yes")
    assert "where it doesn't ask it needs the plan that was agreed to" in str(refused.value)
    assert "`causeway failback sf_to_nyc --rebuild --dry-run` shows the price and the plan" in str(
        refused.value
    )
    assert "name it by --plan" in str(refused.value)
    assert (failback.done, failback.said) == ([], [])
    failback.type("--rebuild", "--yes", "--dry-run")  # writes nothing
    failback.type("--rebuild", "--yes", "--plan", PLAN.hash)
    assert [operator.expected_plan for _, operator in failback.done] == [PLAN.hash]


def test_the_question_says_the_price_once_more(failback: Failback, monkeypatch: pytest.MonkeyPatch) -> None:
    """Below tables that may be long."""
    monkeypatch.setattr("sys.stdin", io.StringIO("sf_to_nyc\n"))
    failback.type("--rebuild")
    wanted = "type sf_to_nyc to delete all 9 records of 1 topic of sf, and mirror nyc into it:"
    assert failback.said[-1] == wanted


def test_a_plan_that_is_empty_agrees_to_nothing(failback: Failback) -> None:
    for step in ("--rebuild", "--resume", "--home"):
        with pytest.raises(BadInput, match=r"--plan = \(empty\)"):
            failback.type(step, "--yes", "--plan", "")
    assert failback.done == []


def test_a_dry_run_tells_the_price_and_does_nothing(failback: Failback) -> None:
    told = failback.type("--rebuild", "--dry-run")
    assert "nothing was written" in told.text
    assert isinstance(told.payload, dict)
    assert told.payload["rebuild"] == price().as_dict()
    assert failback.done == []


def test_the_ways_exclude_each_other(failback: Failback) -> None:
    with pytest.raises(BadInput, match="not allowed"):
        failback.type("--rebuild", "--resume")


@pytest.mark.parametrize("step", ["--resume", "--rebuild", "--home"])
def test_ctrl_c_before_anything_was_written_says_so(
    failback: Failback, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def pressed(_request: Request) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(commands_failback, "opened", pressed)
    with pytest.raises(
        KeyboardInterrupt, match="nothing was done: no group was moved, no record was written"
    ):
        failback.type(step)
