"""What `causeway doctor` makes of rights, over SASL_SSL: missing ones with their grants, those in excess with
the way to take them away, and its own, without which it says what it couldn't look at."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from causeway.core.doctor.finding import Diagnosis, Finding, Result
from causeway.core.doctor.permissions import doctor_rights
from causeway.core.kernel.acl_vocabulary import NeededRight, Operation
from causeway.core.kernel.errors import NotAuthorized
from causeway.core.model.flow import Flow
from causeway.core.model.naming import FLOWS_TOPIC, SCRATCH_PREFIX, IdentityNaming
from causeway.core.permissions.flow import needed_rights
from causeway.lab.access import Right
from causeway.lab.cluster import LabCluster
from tests.integration.doctor.examined import assert_no_scratch_left, examined, of, red
from tests.integration.permissions.guarded import (
    RIGHTS,
    Guarded,
    forget_flows_topic,
    give_doctor_its_rights,
    lab_right,
    name_of,
    on_cluster,
)
from tests.support.inline_flow import (
    InlineFlow,
    create_topic,
    everything,
    mirror_of,
    named,
    write,
)

pytestmark = pytest.mark.integration
LabClusterFactory = Callable[..., LabCluster]


@pytest.fixture(scope="module")
def clusters(lab_clusters: LabClusterFactory) -> tuple[LabCluster, LabCluster]:
    return lab_clusters("sf_doctor", security="SASL_SSL"), lab_clusters("nyc_doctor", security="SASL_SSL")


def look(guarded: Guarded, *, read_only: bool = False) -> Diagnosis:
    return examined(guarded.flow, guarded.runs.source, guarded.runs.target, read_only=read_only)


def test_with_the_flows_rights_alone_nothing_fails_and_what_was_not_seen_is_reported(
    guarded: Guarded,
) -> None:
    guarded.runs.run()
    before = everything(guarded.source, guarded.target)
    diagnosis = look(guarded)
    assert diagnosis.exit_code == 0, red(diagnosis)
    assert {each.check for each in diagnosis.findings if each.result is not Result.PASSED} == {
        "rehearsal",
        "settings",
        "own topics",
        "topics",
        "clock",
        "other writers",
    }
    (rehearsal,) = of(diagnosis, "rehearsal")
    assert "nothing was written" in rehearsal.finding
    needed = [right for right in doctor_rights(guarded.flow) if right.name == SCRATCH_PREFIX]
    assert rehearsal.remedy == "; ".join(right.command(f"User:{guarded.user}") for right in needed)
    remedies = "\n".join(red(diagnosis))
    for right in doctor_rights(guarded.flow):
        assert right.command(f"User:{guarded.user}") in remedies, "each WARN says the grant that ends it"
    assert everything(guarded.source, guarded.target) == before


def test_with_doctors_own_rights_everything_is_looked_at_and_passes(guarded: Guarded) -> None:
    give_doctor_its_rights(guarded)
    for _ in range(2):
        diagnosis = look(guarded)
        assert red(diagnosis) == []
        assert len(of(diagnosis, "rehearsal")) == 3
        guarded.runs.run()
    assert_no_scratch_left(guarded.target)


@pytest.mark.parametrize("example", doctor_rights(mirror_of("some_flow", "orders")), ids=name_of)
def test_each_of_doctors_rights_is_needed(guarded: Guarded, example: NeededRight) -> None:
    rights = give_doctor_its_rights(guarded)
    guarded.runs.run()
    right = rights[list(doctor_rights(mirror_of("some_flow", "orders"))).index(example)]
    with guarded.without(on_cluster(right)):
        diagnosis = look(guarded)
    assert right.command(f"User:{guarded.user}") in "\n".join(red(diagnosis))
    assert diagnosis.exit_code == 0, "no flow needs it"
    assert_no_scratch_left(guarded.target)


@pytest.mark.parametrize("example", RIGHTS, ids=name_of)
def test_each_missing_right_of_the_flow_is_named_with_its_grant(
    guarded: Guarded, example: NeededRight
) -> None:
    right = guarded.like(example)
    is_to_make_it = right.operation in (Operation.CREATE, Operation.DESCRIBE_CONFIGS)
    if not is_to_make_it:
        guarded.runs.run()
    elif right.resource == "topic" and right.name == "causeway-flows.internal":
        forget_flows_topic(guarded.target)
    with guarded.without(right):
        diagnosis = look(guarded, read_only=True)
    (finding,) = [each for each in of(diagnosis, "rights") if each.result is not Result.PASSED]
    assert f"User:{guarded.user} lacks {right.operation.word} on {right.resource} " in finding.finding
    assert finding.remedy == right.command(f"User:{guarded.user}")
    assert of(diagnosis, "look") == [], "one missing right doesn't end the examination"
    is_for_later = right.operation is Operation.ALTER
    assert finding.result is (Result.WARN if is_for_later else Result.FAILED)
    assert diagnosis.exit_code == (0 if is_for_later else 3)
    assert [
        each for each in of(look(guarded, read_only=True), "rights") if each.result is not Result.PASSED
    ] == []


def excess(guarded: Guarded, right: NeededRight) -> Finding:
    guarded.give(on_cluster(right))
    diagnosis = look(guarded, read_only=True)
    guarded.take(on_cluster(right))
    (finding,) = [each for each in of(diagnosis, "rights in excess") if each.result is not Result.PASSED]
    assert diagnosis.exit_code == 0
    return finding


def test_rights_that_no_flow_uses_are_reported_with_the_way_to_take_them_away(guarded: Guarded) -> None:
    give_doctor_its_rights(guarded)
    guarded.runs.run()
    write = next(r for r in guarded.rights if r.side == "source" and r.name == guarded.orders)
    for right in (
        replace(write, operation=Operation.WRITE),
        replace(
            write, side="target", name=f"{guarded.flow.source}.{guarded.orders}", operation=Operation.DELETE
        ),
        replace(write, side="target", name=guarded.flow.map_topic, operation=Operation.ALTER_CONFIGS),
        replace(write, side="target", resource="group", name=guarded.flow.group, operation=Operation.DELETE),
        replace(write, resource="cluster", name="", operation=Operation.ALTER),
    ):
        finding = excess(guarded, right)
        assert finding.where == (guarded.flow.source if right.side == "source" else "nyc")
        on = "the cluster" if right.resource == "cluster" else f"{right.resource} {right.name}"
        assert finding.finding == f"User:{guarded.user} may {right.operation.word} on {on}; no flow does that"
        command = right.command(f"User:{guarded.user}").replace("--add", "--remove")
        assert finding.remedy.startswith(f"{command}; or whatever else grants it: ")


def test_somebody_else_who_may_write_the_mirrors_is_named(guarded: Guarded) -> None:
    give_doctor_its_rights(guarded)
    guarded.target.add_user("intruder")
    guarded.target.grant("intruder", Right("topic", f"{guarded.flow.source}.", "write", "prefixed"))
    try:
        (finding,) = of(look(guarded, read_only=True), "other writers")
    finally:
        guarded.target.revoke("intruder", Right("topic", f"{guarded.flow.source}.", "write", "prefixed"))
    assert finding.result is Result.WARN
    assert finding.finding.startswith("User:intruder may write mirrors of the flow")


def test_a_super_user_reads_that_it_is_one(guarded: Guarded) -> None:
    create_topic(guarded.target, f"{guarded.flow.source}.{guarded.orders}")
    diagnosis = examined(
        guarded.flow,
        replace(guarded.runs.source, settings=guarded.source.endpoint().settings),
        replace(guarded.runs.target, settings=guarded.target.endpoint().settings),
        read_only=True,
    )
    assert {each.where for each in of(diagnosis, "rights in excess") if each.result is Result.WARN} == {
        guarded.flow.source,
        "nyc",
    }
    assert diagnosis.exit_code == 0


class GuardedPair:
    """A flow and its failback, whose one user has the rights that both need, and no other."""

    def __init__(self, sf: LabCluster, nyc: LabCluster, name: str) -> None:
        self.clusters, self.user, self.topic = {"sf": sf, "nyc": nyc}, f"user-{name}", f"orders-{name}"
        there = mirror_of(f"there_{name}", self.topic)
        there = replace(there, naming=IdentityNaming("sf"), failback=f"back_{name}")
        back = replace(there, name=f"back_{name}", source="nyc", target="sf", naming=IdentityNaming("nyc"))
        self.flows = [there, replace(back, failback="", failback_of=there.name)]
        for cluster in self.clusters.values():
            cluster.add_user(self.user)
        create_topic(sf, self.topic)
        write(sf, self.topic, 5)
        needs = [(flow, right) for flow in self.flows for right in needed_rights(flow, [self.topic])]
        for cluster in self.clusters.values():
            here = (lab_right(right) for flow, right in needs if self.cluster_of(flow, right) is cluster)
            cluster.grant(self.user, *here)
        self.runs(there).run()

    def cluster_of(self, flow: Flow, right: NeededRight) -> LabCluster:
        return self.clusters[flow.source if right.side == "source" else flow.target]

    def runs(self, flow: Flow) -> InlineFlow:
        here, there = (named(self.clusters[side], side, self.user) for side in (flow.source, flow.target))
        return InlineFlow(flow, here, there)

    def look(self, flow: Flow) -> Diagnosis:
        runs = self.runs(flow)
        return examined(flow, runs.source, runs.target, others=self.flows, read_only=True)


@pytest.fixture
def pair(clusters: tuple[LabCluster, LabCluster], topic_name: Callable[..., str]) -> GuardedPair:
    return GuardedPair(*clusters, topic_name("x").split("-")[1])


def not_passed(diagnosis: Diagnosis, *checks: str) -> list[Finding]:
    return [each for check in checks for each in of(diagnosis, check) if each.result is not Result.PASSED]


def test_what_a_flow_and_its_failback_need_of_each_other_is_judged(pair: GuardedPair) -> None:
    """One user works for both: what one of them writes is no excess of the other that reads it."""
    for flow in pair.flows:
        assert not_passed(pair.look(flow), "rights", "rights in excess") == []
        for right in needed_rights(flow, [pair.topic]):
            if right.side == "target" or right.name == pair.topic:
                continue
            cluster = pair.cluster_of(flow, right)
            needs = [r for other in pair.flows for r in needed_rights(other, [pair.topic])]
            if right.operation is Operation.DESCRIBE:  # Read brings Describe with it
                (taken,) = [r for r in needs if r.name == right.name and r.operation is Operation.READ]
                cluster.revoke(pair.user, lab_right(taken))
            cluster.revoke(pair.user, lab_right(right))
            found = not_passed(pair.look(flow), "rights")
            assert [(each.result, each.remedy) for each in found if right.why in each.finding] == [
                (Result.FAILED, right.command(f"User:{pair.user}"))
            ]
            cluster.grant(pair.user, lab_right(right))
            if right.operation is Operation.DESCRIBE:
                cluster.grant(pair.user, lab_right(taken))


def test_a_flow_that_may_not_see_whether_its_failback_is_fenced_does_not_begin(pair: GuardedPair) -> None:
    there, _ = pair.flows
    right = next(r for r in needed_rights(there, []) if (r.side, r.name) == ("source", FLOWS_TOPIC))
    pair.cluster_of(there, right).revoke(pair.user, lab_right(right))
    with pytest.raises(NotAuthorized) as refused:
        pair.runs(there).run()
    assert str(refused.value).endswith(right.command(f"User:{pair.user}"))
    pair.cluster_of(there, right).grant(pair.user, lab_right(right))


def test_the_page_for_people_shows_what_a_pair_needs() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "rights.md").read_text(encoding="utf-8")
    for right in needed_rights(replace(mirror_of("sf_to_nyc", "orders"), failback="nyc_to_sf"), []):
        assert right.command("User:causeway") in page
        assert right.why in page


def test_the_page_for_people_shows_doctors_rights_too() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "rights.md").read_text(encoding="utf-8")
    for right in doctor_rights(mirror_of("sf_to_nyc", "orders")):
        assert right.command("User:causeway") in page
        assert right.why in page
