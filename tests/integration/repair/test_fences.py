"""Fences beside one another, and fences of single topics, on real brokers and from the command line."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from causeway.core.copy.lane_task import LaneResult, LaneTask
from causeway.core.kernel.errors import BadInput, FlowFenced, Superseded, UnknownName
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.state.flow_state import FlowState
from causeway.core.state.parked import ParkReason
from causeway.lab.cluster import LabCluster
from causeway.render.flow_status import standing
from causeway.usecases.inspect.flow_status import inspect_flow
from causeway.usecases.run_lock.fence import FenceOutcome, fence_flow, lift_fence
from causeway.usecases.session.both_clusters import open_target, state_on
from tests.proofs.gaps.loss_cases import append, shown
from tests.support.inline_flow import create_topic, grow_topic, topic_ends
from tests.support.meanwhile import meanwhile
from tests.support.mirroring import Mirror, make_flow

pytestmark = pytest.mark.integration


@pytest.fixture
def mirror(sf: LabCluster, nyc: LabCluster) -> Iterator[Mirror]:
    name = uuid.uuid4().hex[:8]
    made = Mirror(make_flow(f"fences_{name}", f"[ab]-{name}"), sf, nyc)
    for topic in topics_of(made):
        create_topic(sf, topic)
        append(sf, topic, "first", 20)
    yield made
    made.close()


def topics_of(mirror: Mirror) -> tuple[str, str]:
    name = mirror.flow.name.split("_")[1]
    return f"a-{name}", f"b-{name}"


def fence(
    mirror: Mirror, by: str, because: str = "nyc takes over", topics: tuple[str, ...] = ()
) -> FenceOutcome:
    return fence_flow(mirror.flow, mirror.target.endpoint(), by=by, because=because, topics=topics)


def lift(mirror: Mirror, number: int | None = None) -> FenceOutcome:
    return lift_fence(mirror.flow, mirror.target.endpoint(), by="ops", because="over", number=number)


def state_of(mirror: Mirror) -> FlowState:
    with open_target(mirror.target.endpoint()) as (network, target):
        return network.run(lambda: state_on(target, mirror.flow.name))


def status(mirror: Mirror) -> tuple[str, dict[str, Any]]:
    done = standing(inspect_flow(mirror.flow, mirror.source.endpoint(), mirror.target.endpoint()))
    return done.text, json.loads(json.dumps(done.payload))


def test_a_topic_that_is_fenced_is_left_out_and_the_others_go_on(mirror: Mirror) -> None:
    a, b = topics_of(mirror)
    mirror.run()
    done = fence(mirror, "ops", topics=(a,))
    assert (done.fenced, done.changed, done.lanes_claimed) == (False, True, 3)
    for topic in (a, b):
        append(mirror.source, topic, "second", 15)
    grow_topic(mirror.source, a, 2)
    before = topic_ends(mirror.target)[f"sf.{a}", 0]

    report = mirror.run()

    assert {p.source: p.parked["reason"] for p in report.parked if p.parked} == dict.fromkeys(
        [f"{a}-0", f"{a}-1"], ParkReason.FENCED
    )
    assert topic_ends(mirror.target)[f"sf.{a}", 0] == before
    assert (f"sf.{a}", 1) not in topic_ends(mirror.target), "it isn't made larger either"
    assert shown(mirror.target, f"sf.{b}") == shown(mirror.source, b)
    text, payload = status(mirror)
    assert f"PARKED {a}-0: fenced: fenced by ops since" in text
    assert f"FENCED fence {done.generation}, by ops since" in text
    assert (payload["fenced"], [f["topics"] for f in payload["fences"]]) == (None, [[f"sf.{a}"]])

    lift(mirror)
    assert "PARKED" not in status(mirror)[0]
    assert not mirror.run().parked
    assert shown(mirror.target, f"sf.{a}") == shown(mirror.source, a)


def test_a_fence_of_a_topic_ends_the_run_that_copies_it(mirror: Mirror) -> None:
    a, b = topics_of(mirror)
    carry, raised = mirror.carry, list[FenceOutcome]()

    def fence_first(tasks: Sequence[LaneTask]) -> list[LaneResult]:
        if not raised and mirror.said:
            raised.append(meanwhile(lambda: fence(mirror, "ops", topics=(a,))))
        return carry(tasks)

    mirror.run()
    append(mirror.source, a, "second", 15)
    append(mirror.source, b, "second", 15)
    mirror.said.append("from now on")
    mirror.carry = fence_first  # type: ignore[method-assign]
    with pytest.raises(Superseded):
        mirror.run()
    mirror.run()
    assert len(shown(mirror.target, f"sf.{a}")) == 20
    assert len(shown(mirror.target, f"sf.{b}")) == 35


def test_of_several_fences_a_lift_names_one(mirror: Mirror) -> None:
    a, _ = topics_of(mirror)
    mirror.run()
    whole, one = fence(mirror, "ops"), fence(mirror, "amy", "a is moved", (a,))
    with pytest.raises(BadInput, match="2 stand") as refused:
        lift(mirror)
    for outcome, who in ((whole, "ops"), (one, "amy")):
        command = f"causeway lift {mirror.flow.name} --fence {outcome.generation} --because"
        assert f"fence {outcome.generation}, by {who} since" in str(refused.value)
        assert command in str(refused.value)
    with pytest.raises(UnknownName, match="doesn't stand"):
        lift(mirror, 3)
    with pytest.raises(FlowFenced, match=f"--fence {whole.generation} "):
        mirror.run()

    done = lift(mirror, whole.generation)
    assert (done.changed, done.fenced, [f.by for f in done.standing]) == (True, False, ["amy"])
    assert [p.source for p in mirror.run().parked] == [f"{a}-0"]
    assert lift(mirror).standing == ()
    assert lift(mirror).changed is False
    assert mirror.run().parked == []


def test_what_the_same_person_fences_once_more_is_one_fence(mirror: Mirror) -> None:
    mirror.run()
    first, second = fence(mirror, "ops"), fence(mirror, "ops")
    assert (first.changed, second.changed) == (True, False)
    (stands,) = state_of(mirror).standing
    assert first.stands is not None
    assert (stands.generation, stands.since_ms) == (second.generation, first.stands.since_ms)
    with pytest.raises(UnknownName):  # a lift that was on its way opens nothing
        lift(mirror, first.generation)


def test_nobody_lifts_the_fence_of_somebody_else_with_their_own(mirror: Mirror) -> None:
    mirror.run()
    ops, amy, why = fence(mirror, "ops"), fence(mirror, "amy"), fence(mirror, "ops", "a disk is full")
    assert [one.changed for one in (ops, amy, why)] == [True, True, True]
    assert [(f.by, f.because) for f in why.standing] == [
        ("ops", "nyc takes over"),
        ("amy", "nyc takes over"),
        ("ops", "a disk is full"),
    ]
    lift(mirror, amy.generation)
    lift(mirror, ops.generation)
    with pytest.raises(FlowFenced, match="a disk is full"):
        mirror.run()
    lift(mirror)
    assert mirror.run().parked == []


def test_only_topics_that_the_flow_mirrors_are_fenced(mirror: Mirror) -> None:
    mirror.run()
    with pytest.raises(UnknownName, match="--topics = nosuch"):
        fence(mirror, "ops", topics=("nosuch",))
    assert state_of(mirror).standing == ()


def test_a_fence_of_an_earlier_version_stands_and_is_lifted(
    mirror: Mirror, of_version_1: Callable[[Mirror], None]
) -> None:
    mirror.run()
    of_version_1(mirror)
    with pytest.raises(FlowFenced, match=r"by eve since .*: before the upgrade"):
        mirror.run()
    assert lift(mirror).changed
    append(mirror.source, topics_of(mirror)[0], "second", 5)
    assert mirror.run().records == 5


@pytest.fixture
def of_version_1() -> Callable[[Mirror], None]:
    def raise_it(mirror: Mirror) -> None:
        said = {"v": 1, "by": "eve", "because": "before the upgrade", "most_lanes": 3, "at_ms": 5}
        key, value = f"1/fence/{mirror.flow.name}".encode(), json.dumps(said).encode()
        with open_target(mirror.target.endpoint()) as (network, target):
            network.run(lambda: target.append_plain(FLOWS_TOPIC, key, value))

    return raise_it
