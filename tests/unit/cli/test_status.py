"""`causeway status`: what two of its lines say of the same thing, they say by one look."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from causeway.cli.commands import next as commands_next
from causeway.cli.commands import status as commands_status
from causeway.cli.parser import parser
from causeway.cli.request import Request
from causeway.config.flows_file.load import load_flows
from causeway.core.copy.round_plan import RoundPlan
from causeway.core.episode.next_step import what_next
from causeway.core.episode.stage import Names, Next, Seen
from causeway.core.groups.unprotected import Unprotected
from causeway.core.journal.journal import Journal
from causeway.core.kernel.identity import Generation, TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.state.fences import Fence
from causeway.core.state.flow_state import FlowState, Run
from causeway.core.state.parked import Parked, ParkReason
from causeway.core.topics.plan import TopicPlan
from causeway.usecases.copy.planning import Landscape
from causeway.usecases.groups import unprotected
from causeway.usecases.inspect import episode, status_without_source
from causeway.usecases.inspect.flow_status import FlowView
from causeway.usecases.session.flows_topic_health import LogHealth

FLOWS = """\
clusters:
  sf: {connection: kafka_sf}
  nyc: {connection: kafka_nyc}
flows:
  sf_to_nyc: {source: sf, target: nyc, topics: [orders], replication.policy: identity}
"""
RUN = Run(generation=Generation(5), holder="dag 1", run_id="r", lanes=2, since_ms=50)
HELD = FlowState(generation=Generation(5), run=RUN)
ENDED = replace(HELD, ended=5)
AWAY = Fence(generation=6, by="amy", because="failover f1", since_ms=60, token="t", owner="failover f1")
RESTS = replace(ENDED, generation=Generation(6), fences={"t": AWAY})
PARKED = {TopicPartition("orders", 0): Parked(ParkReason.SOURCE_DELETED, "it is gone", "`causeway adopt`")}


def seen_first(flow: Flow, state: FlowState) -> FlowView:
    nothing = TopicPlan(mirrored=(), to_create=(), to_grow=(), refused=(), notes=())
    return FlowView(
        flow=flow,
        state=state,
        landscape=Landscape(source={}, target={}, topics=nothing, fences=()),
        plan=RoundPlan(tasks=(), partitions=(), parked=PARKED, later={}),
        to_begin=(),
        parked=PARKED,
        source_cluster_id="s",
        target_cluster_id="t",
        transaction_version=2,
        log=LogHealth(),
        map_is_gone=False,
    )


def decided_by(state: FlowState, flow: str = "sf_to_nyc") -> Next:
    names = Names(flow=flow, source="sf", target="nyc")
    seen = Seen(names=names, now_ms=9_000_000, state=state, journal=Journal())
    return replace(what_next(seen), state=state)


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    (tmp_path / "flows.yaml").write_text(FLOWS)
    deployment = load_flows(tmp_path / "flows.yaml")
    flow = deployment.flow("sf_to_nyc")
    options = parser().parse_args(["status", "sf_to_nyc", "--file", str(tmp_path / "flows.yaml")])

    def told(first: FlowState, found: Next) -> tuple[str, Any]:
        request = Request(
            options=options, environ={}, directory=tmp_path, progress=lambda _: None, say=lambda _: None
        )
        monkeypatch.setattr(commands_status, "opened", lambda _: (deployment, flow, "sf", "nyc"))
        monkeypatch.setattr(commands_next, "_find_next", lambda _: found)
        view = seen_first(flow, first)
        monkeypatch.setattr(status_without_source, "inspect_for_status", lambda *_: view)
        monkeypatch.setattr(unprotected, "find_unprotected_groups", lambda *_: Unprotected())
        outcome = commands_status.status(request)
        return outcome.text, outcome.payload

    return told


@pytest.mark.parametrize(("first", "later"), [(HELD, ENDED), (ENDED, HELD)])
def test_who_holds_the_flow_is_the_same_in_both_lines(typed: Any, first: FlowState, later: FlowState) -> None:
    """A run has begun, or ended, between two looks."""
    text, payload = typed(first, decided_by(later))
    is_held = later is HELD
    assert text.count("held by dag 1 since") == (2 if is_held else 0)
    assert ("nobody holds it" in text) is not is_held
    assert (payload["held_by"] is not None) is is_held


def test_what_has_been_failed_over_meanwhile_rests(typed: Any) -> None:
    text, payload = typed(HELD, decided_by(RESTS))
    assert "fenced by amy" in text
    assert "`causeway adopt`" not in text
    assert payload["parked"] == []


def test_the_episode_of_another_flow_says_nothing_of_this_ones_holder(typed: Any) -> None:
    text, payload = typed(HELD, decided_by(ENDED, "oak_to_nyc"))
    assert text.count("held by dag 1 since") == 1
    assert payload["held_by"]["holder"] == "dag 1"


def test_the_look_keeps_what_it_was_decided_by(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Seen(names=Names(flow="f", source="sf", target="nyc"), now_ms=9, state=HELD, journal=Journal())

    monkeypatch.setattr(episode, "in_session", lambda *_: seen)
    assert episode.find_next_step(*[None] * 4).state is HELD  # type: ignore[arg-type]
