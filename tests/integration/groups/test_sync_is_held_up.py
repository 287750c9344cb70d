"""Syncs of settings and ACLs that are held up, on targets of both kinds: nothing changes after a fence, or
by what was seen long ago; what slips through is reported.

Each test leaves amy without rules, and the settings of mirrors as they are on the source.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from causeway.brokers.admin.acls import AclChanges, topic_acls
from causeway.brokers.admin.topics import ClusterAdmin
from causeway.brokers.transport.connection import Network, Wire
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.kernel.errors import BadInput, CausewayError, ClusterUnreachable, FlowFenced
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.permissions.flow import needed_rights, upkeep_rights
from causeway.core.state.acl import Acl
from causeway.core.state.acl_ledger import acl_gone_record, acl_record
from causeway.lab.cluster import LabCluster
from causeway.usecases.run_lock.fence import fence_flow, lift_fence
from causeway.usecases.run_lock.ownership import refuse_fenced
from causeway.usecases.session.both_clusters import open_target
from causeway.usecases.upkeep import settings as settings_upkeep
from causeway.usecases.upkeep import sync as syncing
from causeway.usecases.upkeep.sync import sync_flow
from tests.integration.permissions.guarded import Guarded, on_cluster
from tests.integration.permissions.upkeep import ALL, Records, add, ledger, of_amy, of_amys, remove, sync
from tests.support.builders import acl
from tests.support.inline_flow import create_topic, named, topic_ends
from tests.support.meanwhile import meanwhile

pytestmark = pytest.mark.integration
LabClusterFactory = Callable[..., LabCluster]
RETENTION = "90000000"
LONG_AGO_SECONDS = 3_600.0


@pytest.fixture(scope="module", params=["4.3.1", "3.9.2"])
def flow(request: pytest.FixtureRequest, lab_clusters: LabClusterFactory) -> Guarded:
    """A flow that has begun with its topics and keeps everything up."""
    source = lab_clusters(f"sf_{request.param[0]}", security="SASL_SSL")
    target = lab_clusters(f"nyc_{request.param[0]}", security="SASL_SSL", kafka_version=request.param)
    made = Guarded(source, target, uuid.uuid4().hex[:8])
    made.runs.run()
    made.flow = made.runs.flow = replace(made.flow, upkeep=replace(ALL, emit_heartbeats=False))
    rights = (*upkeep_rights(made.flow, [made.orders, made.clicks]), *needed_rights(made.flow, []))
    made.give(*map(on_cluster, rights))
    return made


@pytest.fixture
def held_up(flow: Guarded) -> Iterator[Guarded]:
    yield flow
    lift_fence(flow.flow, flow.runs.target, by="a test", because="over")
    with open_target(flow.source.endpoint()) as (network, source):
        left = network.run(lambda: topic_acls(source.wire))
    remove(flow.source, *of_amys(left or ()))
    sync(flow)
    assert of_amy(flow) == set() == of_amys(ledger(flow))
    assert retentions(flow) == {RETENTION}


def mirrors(held: Guarded) -> list[str]:
    return [f"{held.flow.source}.{topic}" for topic in (held.clicks, held.orders)]


def retentions(held: Guarded) -> set[str | None]:
    return set(retention(held).values())


def retention(held: Guarded) -> dict[str, str | None]:
    found = ClusterAdmin(held.target.endpoint()).topic_settings(mirrors(held))
    return {
        mirror: next(each.value for each in settings if each.name == "retention.ms")
        for mirror, settings in found.items()
        if not isinstance(settings, CausewayError)
    }


def alter(cluster: Any, value: str, *topics: str) -> None:
    wanted = {topic: {"retention.ms": value} for topic in topics}
    assert ClusterAdmin(cluster.endpoint()).alter_settings(wanted) == {}


def fence(held: Guarded) -> None:
    meanwhile(lambda: fence_flow(held.flow, held.runs.target, by="bob", because="failed over"))


def lift(held: Guarded) -> None:
    meanwhile(lambda: lift_fence(held.flow, held.runs.target, by="bob", because="back"))


def test_a_setting_that_slips_after_a_fence_is_named_and_no_other_follows(
    held_up: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever failed over wants his records for longer; the sync's first request is on its way then."""
    first, second = mirrors(held_up)
    alter(held_up.target, "77777", first, second)
    real, asked = ClusterAdmin.alter_settings, list[Sequence[str]]()

    def behind_a_fence(self: ClusterAdmin, wanted: Mapping[str, Any], **how: bool) -> Any:
        if not asked:
            fence(held_up)
        asked.append(list(wanted))
        return real(self, wanted, **how)

    monkeypatch.setattr(settings_upkeep, "_TOPICS_IN_A_REQUEST", 1)
    with monkeypatch.context() as patched:
        patched.setattr(ClusterAdmin, "alter_settings", behind_a_fence)
        with pytest.raises(FlowFenced) as reported:
            sync(held_up)
    assert retention(held_up) == {first: RETENTION, second: "77777"}
    assert (
        f"bob while a change was on its way, which may have come after the fence: retention.ms of {first}"
        in (str(reported.value))
    )
    assert second not in str(reported.value)


def test_rules_after_a_fence_stay_as_they_are(held_up: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    """One request slips through and is named; nothing is allowed or removed after it."""
    old, deny, allow = (
        acl(held_up.clicks, "Read"),
        acl(held_up.orders, "Describe", "Deny"),
        acl(held_up.orders, "Read"),
    )
    there = {each: replace(each, topic=f"{held_up.flow.source}.{each.topic}") for each in (old, deny, allow)}
    add(held_up.source, old)
    sync(held_up)
    remove(held_up.source, old)
    add(held_up.source, deny, allow)
    create = AclChanges._create
    acts = [lambda: fence(held_up)]

    def behind_a_fence(self: AclChanges, rules: Sequence[Acl]) -> dict[Acl, CausewayError]:
        while acts:
            acts.pop()()
        return create(self, rules)

    with monkeypatch.context() as patched:
        patched.setattr(AclChanges, "_create", behind_a_fence)
        with pytest.raises(FlowFenced) as reported:
            sync(held_up)
    assert of_amy(held_up) == {there[old], there[deny]}
    assert of_amys(ledger(held_up)) == {there[old], there[deny]}, "what it made, and nothing else"
    assert str(there[deny]) in str(reported.value)
    assert str(there[allow]) not in str(reported.value)
    lift(held_up)
    sync(held_up)
    assert of_amy(held_up) == {there[deny], there[allow]} == of_amys(ledger(held_up))


def test_nothing_is_changed_by_what_was_seen_long_ago(
    held_up: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sync sleeps between its look and its changes. Meanwhile the source keeps its records for longer and
    takes amy's right away, and another sync has carried that over."""
    read, describe = acl(held_up.orders, "Read"), acl(held_up.orders, "Describe")
    mirror = f"{held_up.flow.source}.{held_up.orders}"
    add(held_up.source, read)
    alter(held_up.source, "80000000", held_up.orders)
    real = refuse_fenced

    def another_sync() -> None:
        remove(held_up.source, read)
        add(held_up.source, describe)
        alter(held_up.source, RETENTION, held_up.orders)
        sync(held_up)

    acts = [another_sync]

    def asleep(*arguments: Any) -> None:
        real(*arguments)
        while acts:
            meanwhile(acts.pop())

    with monkeypatch.context() as patched:
        patched.setattr(syncing, "refuse_fenced", asleep)
        done = sync(held_up)
    assert retention(held_up)[mirror] == RETENTION
    assert of_amy(held_up) == {replace(describe, topic=mirror)}
    assert (done.settings, done.created, done.removed) == ((), (), ())


def test_a_sync_that_sleeps_before_its_request_sends_none(
    held_up: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The machine sleeps: `monotonic` does not move then. A failover comes and goes."""
    add(held_up.source, acl(held_up.orders, "Read"))
    slept = asleep(monkeypatch)
    write = WireTarget.append_each

    def failover_comes_and_goes() -> None:
        fence(held_up)
        lift(held_up)
        slept.append(LONG_AGO_SECONDS)

    acts = [failover_comes_and_goes]

    async def and_sleeps(self: WireTarget, topic: str, records: Records) -> list[int]:
        entered = await write(self, topic, records)
        while acts:
            meanwhile(acts.pop())
        return entered

    with monkeypatch.context() as patched:
        patched.setattr(WireTarget, "append_each", and_sleeps)
        with pytest.raises(ClusterUnreachable, match="looked at more than 60 s ago"):
            sync(held_up)
    assert of_amy(held_up) == set()
    assert len(sync(held_up).created) == 1


def test_a_sync_that_sleeps_through_a_failover_with_a_request_in_hand_reports_it(
    held_up: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(held_up.source, acl(held_up.orders, "Read"))
    slept = asleep(monkeypatch)
    create = AclChanges._create

    def failover_comes_and_goes() -> None:
        fence(held_up)
        lift(held_up)
        slept.append(LONG_AGO_SECONDS)

    acts = [failover_comes_and_goes]

    def asleep_first(self: AclChanges, rules: Sequence[Acl]) -> dict[Acl, CausewayError]:
        while acts:
            meanwhile(acts.pop())
        return create(self, rules)

    with monkeypatch.context() as patched:
        patched.setattr(AclChanges, "_create", asleep_first)
        with pytest.raises(
            FlowFenced, match=r"held up for 36.. s, and a fence may have come and gone.*User:amy"
        ):
            sync(held_up)


def asleep(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long the machine slept, so far."""
    real, slept = Network.boottime, list[float]()
    monkeypatch.setattr(Network, "boottime", lambda self: real(self) + sum(slept))
    return slept


def test_an_empty_list_of_rules_takes_nothing_away(held_up: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    """As of an authorizer that has lost its rules, or shows them to nobody."""
    read, mirror = acl(held_up.orders, "Read"), f"{held_up.flow.source}.{held_up.orders}"
    add(held_up.source, read)
    sync(held_up)

    async def nothing_of_the_source(wire: Wire) -> frozenset[Acl] | None:
        found = await topic_acls(wire)
        return frozenset() if wire.endpoint.alias == held_up.flow.source else found

    with monkeypatch.context() as patched:
        patched.setattr("causeway.usecases.upkeep.acls.topic_acls", nothing_of_the_source)
        done = sync(held_up)
    assert of_amy(held_up) == {replace(read, topic=mirror)} == of_amys(ledger(held_up))
    assert (done.removed, done.refused) == ((), ())
    assert "shows no rule about any topic, and that is no reason to take away 1 rule" in str(
        done.drift.acls.error
    )


def test_a_denial_stays_while_the_one_that_comes_in_its_place_is_refused(
    held_up: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else amy could read for a while what both sides deny her."""
    old = acl(held_up.orders, "All", "Deny")
    new, mirror = replace(old, operation="Read"), f"{held_up.flow.source}.{held_up.orders}"
    add(held_up.source, old)
    sync(held_up)
    remove(held_up.source, old)
    add(held_up.source, new)

    def refusing(self: AclChanges, rules: Sequence[Acl]) -> dict[Acl, CausewayError]:
        return {each: BadInput("rule", rule="isn't taken here") for each in rules}

    with monkeypatch.context() as patched:
        patched.setattr(AclChanges, "_create", refusing)
        done = sync(held_up)
    assert of_amy(held_up) == {replace(old, topic=mirror)} == of_amys(ledger(held_up))
    assert (done.created, done.removed, len(done.refused)) == ((), (), 1)
    sync(held_up)
    assert of_amy(held_up) == {replace(new, topic=mirror)}


def test_what_the_other_way_takes_back_meanwhile_does_not_come_back(
    held_up: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rule goes, and then its entry, between the two questions about them."""
    other = f"back_of_{held_up.flow.name}"
    flow = replace(held_up.flow, failback=other)
    source, made = named(held_up.source, flow.source), acl(held_up.orders, "Read")
    add(held_up.source, made)
    if (FLOWS_TOPIC, 0) not in topic_ends(held_up.source):
        create_topic(held_up.source, FLOWS_TOPIC)
    with open_target(source) as (network, there):
        (at,) = network.run(lambda: there.append_each(FLOWS_TOPIC, [acl_record(other, made)]))

    def takes_back() -> None:
        remove(held_up.source, made)
        with open_target(source) as (network, there):
            gone = [acl_gone_record(other, made, entry=at)]
            network.run(lambda: there.append_each(FLOWS_TOPIC, gone))

    acts: list[Callable[[], None]] = [takes_back]

    async def then_it_goes(wire: Wire) -> frozenset[Acl] | None:
        found = await topic_acls(wire)
        while acts and wire.endpoint.alias == flow.source:
            meanwhile(acts.pop())
        return found

    with monkeypatch.context() as patched:
        patched.setattr("causeway.usecases.upkeep.acls.topic_acls", then_it_goes)
        done = sync_flow(flow, source, named(held_up.target, "nyc"), dry_run=False)
    assert of_amys(done.created) == set()
    assert of_amys(sync_flow(flow, source, named(held_up.target, "nyc"), dry_run=False).created) == set()
