"""A return of groups that has completed its failback isn't taken back; one that hasn't may be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from causeway.config.flows_file.load import load_flows
from causeway.config.flows_file.reverse_flow import flows_ahead
from causeway.core.copy.ports import Unreachable
from causeway.core.failback.divergence import FailbackMode, FailbackRun, Step
from causeway.core.failover.request import FailoverRequest, Mode
from causeway.core.journal.journal import FailoverRun, Journal, Status
from causeway.core.kernel.errors import BadInput, ClusterUnreachable
from causeway.usecases.failover import completed_failback
from causeway.usecases.failover.completed_failback import CameFrom, refuse_home
from tests.support.mirroring import make_flow

MOVED = FailoverRun(
    run="h1",
    flow="back",
    wish=FailoverRequest(flow="back", at_ms=None, mode=Mode.HOME),
    plan_hash="p",
    by="amy",
    begun_ms=250,
    status=Status.DONE,
)
HOME = FailbackRun(
    run="b1",
    flow="ahead",
    reverse="back",
    way=FailbackMode.RESUME,
    step=Step.HOME,
    by="bob",
    begun_ms=200,
    at_ms=300,
    facts={"parted": True, "moved": "h1"},
)


class Nyc:
    alias = "nyc"


Refuse = Callable[..., None]


@pytest.fixture
def refuse(monkeypatch: pytest.MonkeyPatch) -> Refuse:
    """With these failbacks in the journal of the cluster that the groups came from."""

    def refused(run: FailoverRun, *kept: FailbackRun, silent: bool = False) -> None:
        def run_there(_cluster: object, work: Callable[[Any], Any]) -> Any:
            if silent:
                raise Unreachable("nobody answers")
            return asyncio.run(work(None))

        async def read(_sides: object, _flow: str) -> Journal:
            return Journal(failbacks={each.run: each for each in kept})

        monkeypatch.setattr(completed_failback, "run_in_target_session", run_there)
        monkeypatch.setattr(completed_failback, "read_journal", read)
        nyc: Any = Nyc()
        refuse_home(run, CameFrom(nyc, (make_flow("ahead", "orders"),)))

    return refused


def test_once_all_is_home_it_is_refused_and_names_what_moves_them_again(refuse: Refuse) -> None:
    with pytest.raises(BadInput, match=r"can't be taken back any more: .* all is home since") as told:
        refuse(MOVED, HOME)
    assert "`causeway next ahead`" in told.value.remedy
    assert "`causeway failover ahead --planned`" in told.value.remedy


@pytest.mark.parametrize(
    "kept",
    [
        (),
        (replace(HOME, step=Step.RETURNING, facts={"parted": True}),),
        (replace(HOME, facts={"moved": "another"}),),
        (replace(HOME, facts={"moved": "h1", "given_up": True}),),
    ],
)
def test_before_that_it_is_not(refuse: Refuse, kept: tuple[FailbackRun, ...]) -> None:
    refuse(MOVED, *kept)


@pytest.mark.parametrize("status", [Status.BEGUN, Status.ROLLING_BACK, Status.ROLLED_BACK])
def test_what_has_not_moved_them_all_or_is_being_put_back_comes_to_its_end(
    refuse: Refuse, status: Status
) -> None:
    refuse(replace(MOVED, status=status), HOME, silent=True)


def test_a_failover_asks_nobody(refuse: Refuse) -> None:
    refuse(replace(MOVED, wish=replace(MOVED.wish, mode=Mode.PLANNED)), HOME, silent=True)
    refuse_home(MOVED, None)


def test_where_nobody_says_whether_all_is_home_nothing_is_put_back(refuse: Refuse) -> None:
    with pytest.raises(ClusterUnreachable, match=r"needs nyc, .*nobody answers; wait until nyc answers"):
        refuse(MOVED, HOME, silent=True)


@pytest.mark.parametrize(("policy", "asked"), [("identity", ["out"]), ("prefix", ["out", "other"])])
def test_which_flows_may_have_got_their_groups_back(tmp_path: Any, policy: str, asked: list[str]) -> None:
    is_named = policy == "identity"
    named = "failback_of: out, replication.policy: identity" if is_named else "topics: [a]"
    other = "" if is_named else "  other: {source: sf, target: nyc, topics: [b]}\n"
    (tmp_path / "flows.yaml").write_text(
        "clusters:\n  sf: {connection: kafka_sf}\n  nyc: {connection: kafka_nyc}\nflows:\n"
        f"  out: {{source: sf, target: nyc, topics: [a], replication.policy: {policy}}}\n{other}"
        f"  home: {{source: nyc, target: sf, {named}}}\n"
    )
    deployment = load_flows(tmp_path / "flows.yaml")
    assert [flow.name for flow in flows_ahead(deployment, deployment.flow("home"))] == asked
