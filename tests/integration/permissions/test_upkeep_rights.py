"""ACLs of mirrors, over SASL_SSL with real authorizers; and what keeping things up needs in rights.

`testSyncTopicACLsUseProvidedForwardingAdmin` of
MirrorMaker 2 is the first one here.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from causeway.brokers.admin.acls import AclChanges, topic_acls
from causeway.brokers.admin.topics import ClusterAdmin
from causeway.brokers.transport.connection import Wire
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.ports import Unreachable
from causeway.core.kernel.acl_vocabulary import NeededRight, Operation
from causeway.core.kernel.errors import CausewayError, ClusterUnreachable, FlowFenced, NotAuthorized
from causeway.core.model.flow import Upkeep
from causeway.core.model.naming import FLOWS_TOPIC, HEARTBEATS_TOPIC, IdentityNaming
from causeway.core.permissions.flow import needed_rights, upkeep_rights
from causeway.core.state.acl import Acl
from causeway.core.state.acl_ledger import acl_record
from causeway.lab.cluster import LabCluster
from causeway.usecases.repair.restart_topic import restart_topic
from causeway.usecases.repair.set_positions import Reason
from causeway.usecases.run_lock.fence import fence_flow, lift_fence
from causeway.usecases.session.both_clusters import open_target
from causeway.usecases.upkeep.heartbeats import write_heartbeat
from causeway.usecases.upkeep.sync import sync_flow
from tests.integration.doctor.examined import examined, of, red
from tests.integration.lab.certified import PRINCIPAL, by_certificate, listen_to_certificates
from tests.integration.permissions.guarded import (
    Guarded,
    give_doctor_its_rights,
    lab_right,
    name_of,
    on_cluster,
)
from tests.integration.permissions.upkeep import (
    ALL,
    BY_CERTIFICATE,
    Records,
    add,
    drift,
    ledger,
    of_amy,
    of_amys,
    remove,
    sync,
)
from tests.support.builders import acl
from tests.support.inline_flow import InlineFlow, create_topic, delete_topic, mirror_of, named, topic_ends
from tests.support.meanwhile import meanwhile

pytestmark = pytest.mark.integration
LabClusterFactory = Callable[..., LabCluster]
UPKEEP_RIGHTS = upkeep_rights(replace(mirror_of("some_flow", "orders"), upkeep=ALL), ["orders"])


@pytest.fixture(scope="module")
def clusters(lab_clusters: LabClusterFactory) -> tuple[LabCluster, LabCluster]:
    target = lab_clusters("nyc_acl", security="SASL_SSL", start=False)
    listen_to_certificates(target)
    target.start()
    return lab_clusters("sf_acl", security="SASL_SSL"), target


@pytest.fixture(scope="module")
def upheld(clusters: tuple[LabCluster, LabCluster]) -> Guarded:
    """A flow that has begun with its topics and keeps everything up, with the rights for that and no other.

    One for all tests: each leaves amy without rules.
    """
    made = Guarded(*clusters, uuid.uuid4().hex[:8])
    made.runs.run()
    made.flow = made.runs.flow = replace(made.flow, upkeep=ALL)
    made.give(
        *map(on_cluster, upkeep_rights(made.flow, [made.orders, made.clicks])),
        *(right for right in needed_rights(made.flow, [HEARTBEATS_TOPIC]) if right.side == "source"),
    )
    return made


def test_sync_topic_acls(upheld: Guarded) -> None:
    """Renamed on the mirror; Write never, All as Read, Deny as it is; taken away when the source's is."""
    orders, alias = upheld.orders, upheld.flow.source
    ours = [
        acl(orders, "Describe"),
        acl(orders, "All"),
        acl(orders, "Write"),
        acl(orders, "Write", "Deny"),
        acl(orders[:-2], "DescribeConfigs", pattern="prefixed"),
        acl("unmirrored", "Read"),
        replace(acl(orders, "Read", "Deny"), principal=BY_CERTIFICATE, host="10.0.0.7"),
    ]
    add(upheld.source, *ours)
    wanted = {
        acl(f"{alias}.{orders}", "Describe"),
        acl(f"{alias}.{orders}", "Read"),
        acl(f"{alias}.{orders}", "Write", "Deny"),
        acl(f"{alias}.{orders[:-2]}", "DescribeConfigs", pattern="prefixed"),
        replace(acl(f"{alias}.{orders}", "Read", "Deny"), principal=BY_CERTIFICATE, host="10.0.0.7"),
    }
    dry = sync(upheld, dry_run=True)
    assert set(dry.created) == wanted
    assert of_amy(upheld) == set(), "a dry run writes nothing"
    assert ledger(upheld) == frozenset()
    sync(upheld)
    assert ledger(upheld) == wanted
    assert of_amy(upheld) == wanted
    again = sync(upheld)
    assert (again.created, again.removed) == ((), ()), "a difference, not the whole set again"
    assert not drift(upheld).acls.would_change
    remove(upheld.source, *ours[:2])
    sync(upheld)
    assert of_amy(upheld) == wanted - {
        acl(f"{alias}.{orders}", "Describe"),
        acl(f"{alias}.{orders}", "Read"),
    }
    remove(upheld.source, *ours[2:])
    sync(upheld)
    assert of_amy(upheld) == set()
    assert ledger(upheld) == frozenset()


def test_only_what_causeway_created_is_removed(upheld: Guarded) -> None:
    """An administrator's own rule on a mirror stays, also one that the source had too."""
    alias, orders = upheld.flow.source, upheld.orders
    own, same = acl(f"{alias}.{orders}", "Describe"), acl(f"{alias}.{orders}", "Read")
    add(upheld.target, own, same)
    add(upheld.source, acl(orders, "Read"), acl(upheld.clicks, "Read"))
    sync(upheld)
    remove(upheld.source, acl(orders, "Read"), acl(upheld.clicks, "Read"))
    assert sync(upheld).removed == (acl(f"{alias}.{upheld.clicks}", "Read"),)
    assert of_amy(upheld) == {own, same}
    remove(upheld.target, own, same)


def test_two_syncs_at_once_know_of_each_others_rules(
    upheld: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each stops where it is about to write its list, and another one runs from beginning to end."""
    orders, mirror = upheld.orders, f"{upheld.flow.source}.{upheld.orders}"
    read, describe = acl(orders, "Read"), acl(orders, "Describe")
    write = WireTarget.append_each
    acts: list[Callable[[], object]] = []

    async def after_somebody_else(self: WireTarget, topic: str, records: Records) -> list[int]:
        if acts:
            meanwhile(acts.pop())
        return await write(self, topic, records)

    def add_and_sync(rule: Acl) -> None:
        add(upheld.source, rule)
        sync(upheld)

    monkeypatch.setattr(WireTarget, "append_each", after_somebody_else)
    add(upheld.source, read)
    acts.append(lambda: add_and_sync(describe))
    sync(upheld)
    assert of_amy(upheld) == {acl(mirror, "Read"), acl(mirror, "Describe")} == of_amys(ledger(upheld))

    remove(upheld.source, read)  # and it is there again when the sync that removes it says so
    acts.append(lambda: add_and_sync(read))
    sync(upheld)
    assert of_amy(upheld) == {acl(mirror, "Read"), acl(mirror, "Describe")} == of_amys(ledger(upheld))
    remove(upheld.source, read, describe)
    sync(upheld)
    assert of_amy(upheld) == set() == of_amys(ledger(upheld))


def test_an_entry_that_another_sync_has_taken_out_is_written_again(
    upheld: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To the other one it is a rule that nobody wants and nobody has: this one is about to add it."""
    read, mirror = acl(upheld.orders, "Read"), acl(f"{upheld.flow.source}.{upheld.orders}", "Read")
    create = AclChanges._create

    def takes_it_out() -> None:
        remove(upheld.source, read)
        sync(upheld)

    acts = [takes_it_out]

    def behind_the_other(self: AclChanges, rules: Sequence[Acl]) -> dict[Acl, CausewayError]:
        while acts:
            meanwhile(acts.pop())
        return create(self, rules)

    add(upheld.source, read)
    with monkeypatch.context() as patched:
        patched.setattr(AclChanges, "_create", behind_the_other)
        sync(upheld)
    assert of_amy(upheld) == {mirror} == of_amys(ledger(upheld))
    sync(upheld)
    assert of_amy(upheld) == set() == of_amys(ledger(upheld))


@pytest.mark.parametrize("act", range(5))
def test_whoever_dies_between_two_acts_leaves_no_rule_unknown(
    upheld: Guarded, monkeypatch: pytest.MonkeyPatch, act: int
) -> None:
    """Before each write to the target or to the list; the next sync ends what was begun."""
    orders, mirror = upheld.orders, f"{upheld.flow.source}.{upheld.orders}"
    old, new, own = acl(orders, "Describe"), acl(orders, "Read"), acl(mirror, "DescribeConfigs")
    add(upheld.source, old)
    add(upheld.target, own)
    sync(upheld)
    remove(upheld.source, old)
    add(upheld.source, new)
    with monkeypatch.context() as patched:
        acts = dying_before(patched, act)
        dies = act < 4  # enter, create, remove, take out
        with pytest.raises(Died) if dies else nullcontext():
            sync(upheld)
        assert len(acts) == min(act + 1, 4), acts
    made = of_amy(upheld) - {own}
    assert made <= of_amys(ledger(upheld)), "what it made is in its list"
    sync(upheld)
    assert of_amy(upheld) == {own, acl(mirror, "Read")}
    assert of_amys(ledger(upheld)) == {acl(mirror, "Read")}
    remove(upheld.source, new)
    sync(upheld)
    assert of_amy(upheld) == {own}, "an administrator's"
    assert of_amys(ledger(upheld)) == set()
    remove(upheld.target, own)


class Died(Exception):
    pass


def dying_before(patched: pytest.MonkeyPatch, number: int) -> list[str]:
    """The acts that were begun; the one of this number, counted from 0, isn't done."""
    acts: list[str] = []

    def counted(owner: type, name: str) -> None:
        do = getattr(owner, name)

        def act(*arguments: Any) -> Any:
            acts.append(name)
            if len(acts) > number:
                raise Died(name)
            return do(*arguments)

        patched.setattr(owner, name, act)

    counted(WireTarget, "append_each")
    counted(AclChanges, "_create")
    counted(AclChanges, "_remove")
    return acts


def test_a_fence_in_the_middle_of_a_sync_stops_it(upheld: Guarded, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the look, before the first rule: what was failed over to is its users'."""
    add(upheld.source, acl(upheld.orders, "Read"))
    write = WireTarget.append_each
    acts = [lambda: fence_flow(upheld.flow, upheld.runs.target, by="a test", because="failed over")]

    async def behind_a_fence(self: WireTarget, topic: str, records: Records) -> list[int]:
        while acts:
            meanwhile(acts.pop())
        return await write(self, topic, records)

    with monkeypatch.context() as patched:
        patched.setattr(WireTarget, "append_each", behind_a_fence)
        with pytest.raises(FlowFenced):
            sync(upheld)
    assert of_amy(upheld) == set() == of_amys(ledger(upheld))
    with pytest.raises(FlowFenced):
        sync(upheld, dry_run=True)
    assert drift(upheld).acls.would_change
    lift_fence(upheld.flow, upheld.runs.target, by="a test", because="back")
    assert sync(upheld).created == (acl(f"{upheld.flow.source}.{upheld.orders}", "Read"),)
    remove(upheld.source, acl(upheld.orders, "Read"))
    sync(upheld)


def test_a_rule_that_was_not_seen_is_not_forgotten_where_it_stands(
    upheld: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers may answer what was true earlier; who removes asks the controller."""
    add(upheld.source, acl(upheld.orders, "Read"))
    sync(upheld)
    remove(upheld.source, acl(upheld.orders, "Read"))

    async def of_before(wire: Wire) -> frozenset[Acl]:
        found = await topic_acls(wire)
        assert found is not None
        return frozenset(each for each in found if each.principal != "User:amy")

    with monkeypatch.context() as patched:
        patched.setattr("causeway.usecases.upkeep.acls.topic_acls", of_before)
        sync(upheld)
    assert of_amy(upheld) == set() == of_amys(ledger(upheld))


def test_a_cluster_that_goes_away_in_the_middle_is_reported_in_one_line(
    upheld: Guarded, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(upheld.source, acl(upheld.orders, "Read"))

    async def gone(self: WireTarget, topic: str, records: Records) -> list[int]:
        raise Unreachable("nobody answers")

    with monkeypatch.context() as patched:
        patched.setattr(WireTarget, "append_each", gone)
        with pytest.raises(ClusterUnreachable, match="nobody answers"):
            sync(upheld)
    remove(upheld.source, acl(upheld.orders, "Read"))
    sync(upheld)


def test_who_may_look_and_not_add_reads_it_once_and_the_list_does_not_grow(upheld: Guarded) -> None:
    add(upheld.source, acl(upheld.orders, "Read"), acl(upheld.clicks, "Read"))
    alter = next(on_cluster(r) for r in upkeep_rights(upheld.flow, []) if r.operation is Operation.ALTER)
    describe = replace(alter, operation=Operation.DESCRIBE)
    upheld.give(describe)
    with upheld.without(alter):
        before = topic_ends(upheld.target)[FLOWS_TOPIC, 0]
        done = sync(upheld)
        assert topic_ends(upheld.target)[FLOWS_TOPIC, 0] == before
    upheld.take(describe)
    assert (done.created, len(done.refused)) == ((), 1)
    assert f"User:{upheld.user} has no right to Alter" in str(done.refused[0])
    assert len(sync(upheld).created) == 2
    remove(upheld.source, acl(upheld.orders, "Read"), acl(upheld.clicks, "Read"))
    sync(upheld)


def test_a_user_with_a_certificate_is_not_shut_out(upheld: Guarded) -> None:
    """Brokers know who it is, and the target's rules tell who it may be."""
    runs = InlineFlow(upheld.flow, upheld.runs.source, by_certificate(upheld.target, "nyc"))
    every = (*upheld.rights, *upkeep_rights(upheld.flow, []))
    rights = [lab_right(on_cluster(right)) for right in every if right.side == "target"]
    upheld.target.grant(PRINCIPAL, *rights)
    denied = [acl(upheld.orders, "Write", "Deny", who=who) for who in (PRINCIPAL, "amy")]
    add(upheld.source, *denied)
    done = sync_flow(runs.flow, runs.source, runs.target, dry_run=False)
    assert {each.principal for each in done.created} == {"User:amy"}
    plan = done.drift.acls.plan
    assert plan is not None
    assert dict(plan.left_behind)[denied[0]].startswith(f"User:{PRINCIPAL} may be who mirrors the topic")
    upheld.write_more()
    assert not runs.run().leaves_something_out
    remove(upheld.source, *denied)
    sync(upheld)
    upheld.target.revoke(PRINCIPAL, *rights)


def test_what_the_other_way_made_does_not_come_back(upheld: Guarded) -> None:
    """Mirrored back it would outlive the rule that it was made from: nobody could take that right away."""
    flow = replace(upheld.flow, failback=f"back_of_{upheld.flow.name}")
    source, target = named(upheld.source, flow.source), named(upheld.target, "nyc")
    made, own = acl(upheld.orders, "Read"), acl(upheld.orders, "Describe")
    add(upheld.source, made, own)
    if (FLOWS_TOPIC, 0) not in topic_ends(upheld.source):
        create_topic(upheld.source, FLOWS_TOPIC)
    with open_target(source) as (network, there):
        network.run(lambda: there.append_each(FLOWS_TOPIC, [acl_record(flow.failback, made)]))
    done = sync_flow(flow, source, target, dry_run=False)
    assert of_amys(done.created) == {acl(f"{flow.source}.{upheld.orders}", "Describe")}
    remove(upheld.source, made, own)
    sync(upheld)
    assert of_amy(upheld) == set()


def test_more_rules_than_a_request_holds_are_added_and_removed(upheld: Guarded) -> None:
    many = [acl(upheld.orders, "Read", who=f"many-{number}") for number in range(1_200)]
    add(upheld.source, *many)
    until_known(upheld.source, len(many))
    assert len(sync(upheld).created) == len(many)
    assert {each.principal for each in ledger(upheld)} == {each.principal for each in many}
    until_known(upheld.target, len(many))
    assert sync(upheld).created == ()
    remove(upheld.source, *many)
    until_known(upheld.source, 0)
    assert len(sync(upheld).removed) == len(many)
    assert ledger(upheld) == frozenset()


def until_known(cluster: LabCluster, count: int) -> None:
    """An authorizer knows of a change a moment after it has been written."""
    found = -1
    with open_target(cluster.endpoint()) as (network, target):
        while found != count:
            acls = network.run(lambda: topic_acls(target.wire))
            found = sum(each.principal.startswith("User:many-") for each in acls or ())


def test_rules_of_a_topic_that_was_recreated_are_somebodys(upheld: Guarded) -> None:
    """On either side: none is added and none is removed until an operator has decided how to go on."""
    name, alias = f"{upheld.orders}-anew", upheld.flow.source
    runs = upheld.runs.over(upheld.orders, upheld.clicks, name)
    runs.source, runs.target = named(upheld.source, alias), named(upheld.target, "nyc")
    first, second, mine = acl(name, "Read"), acl(name, "Describe"), acl(f"{alias}.{name}", "Read")

    def synced() -> dict[Acl, str]:
        plan = sync_flow(runs.flow, runs.source, runs.target, dry_run=False).drift.acls.plan
        assert plan is not None
        return dict(plan.left_behind)

    def made_anew(cluster: LabCluster, topic: str) -> None:
        delete_topic(cluster, topic)
        create_topic(cluster, topic)

    create_topic(upheld.source, name)
    runs.run()
    made_anew(upheld.target, f"{alias}.{name}")
    add(upheld.source, first)
    assert synced()[first] == "it was recreated since the flow began with it"
    assert of_amy(upheld) == set()
    restart_topic(runs.flow, runs.source, runs.target, name, Reason(by="a test", because="made anew"))
    runs.run()
    assert first not in synced()
    assert of_amy(upheld) == {mine}
    made_anew(upheld.source, name)
    remove(upheld.source, first)
    add(upheld.source, second)
    assert synced()[second] == f"{name} was recreated since the flow began with it"
    assert of_amy(upheld) == {mine}
    remove(upheld.source, second)
    remove(upheld.target, mine)
    sync(upheld)


def test_where_names_stay_a_prefix_becomes_one_rule_per_mirror(upheld: Guarded) -> None:
    """Other topics of the target begin alike, and aren't the source's to open."""
    token = upheld.orders.removeprefix("orders-")
    runs = upheld.runs
    flow = replace(
        runs.flow,
        name=f"plain_{token}",
        naming=IdentityNaming(upheld.flow.source),
        upkeep=Upkeep(sync_acls=True),
    )
    admin = named(upheld.target, "nyc")
    source = named(upheld.source, flow.source)
    InlineFlow(flow, source, admin).run()
    add(upheld.source, acl(upheld.orders[:-1], "Read", pattern="prefixed"))
    done = sync_flow(flow, source, admin, dry_run=False)
    assert [each for each in done.created if each.principal == "User:amy"] == [acl(upheld.orders, "Read")]
    remove(upheld.source, acl(upheld.orders[:-1], "Read", pattern="prefixed"))
    sync_flow(flow, source, admin, dry_run=False)
    assert of_amy(upheld) == set()


def test_without_an_authorizer_it_is_reported_once_and_skipped(
    sf: LabCluster, clusters: tuple[LabCluster, LabCluster], topic_name: Callable[..., str]
) -> None:
    flow = replace(
        mirror_of(topic_name("flow").replace("-", "_"), topic_name()), upkeep=Upkeep(sync_acls=True)
    )
    for source, target, without in ((sf, clusters[1], "sf"), (clusters[0], sf, "nyc")):
        done = sync_flow(flow, named(source, "sf"), named(target, "nyc"), dry_run=False)
        assert (done.created, done.removed, done.refused) == ((), (), ())
        assert done.drift.acls.note == f"{without} has no authorizer: ACLs are skipped"


@pytest.mark.parametrize("example", UPKEEP_RIGHTS, ids=name_of)
def test_each_right_for_upkeep_is_needed_and_named(upheld: Guarded, example: NeededRight) -> None:
    add(upheld.source, acl(upheld.orders, "Read"))
    alter_setting(upheld)
    mine = list(upkeep_rights(upheld.flow, [upheld.orders, upheld.clicks]))
    right = mine[UPKEEP_RIGHTS.index(example)]
    if right.resource == "topic" and right.side == "source":
        forget_heartbeats(upheld)
    with upheld.without(on_cluster(right)):
        said = what_was_refused(upheld, right)
        diagnosis = examined(upheld.flow, upheld.runs.source, upheld.runs.target, read_only=True)
        assert upheld.runs.run().outcome == "caught up", "the copy needs none of it"
    looks = {Operation.ALTER_CONFIGS: Operation.DESCRIBE_CONFIGS, Operation.ALTER: Operation.DESCRIBE}
    first = looks.get(right.operation, right.operation)  # what it brings along is missed first
    assert f"User:{upheld.user} has no right to {first.word}" in said
    assert f"--operation {first.word} " in said
    warned = [each for each in of(diagnosis, "rights") if right.command(f"User:{upheld.user}") in each.remedy]
    assert [each.result for each in warned] == ["WARN"]
    remove(upheld.source, acl(upheld.orders, "Read"))
    sync(upheld)


def what_was_refused(guarded: Guarded, right: NeededRight) -> str:
    if right.resource == "topic" and right.side == "source":
        with pytest.raises(NotAuthorized) as refusal:
            write_heartbeat(guarded.flow, guarded.runs.source)
        return str(refusal.value)
    done = sync(guarded)
    acl_error = [done.drift.acls.error] if done.drift.acls.error else []
    refusals = [*done.drift.settings.unseen, *acl_error, *done.refused]
    assert refusals, done
    return str(refusals[0])


def alter_setting(guarded: Guarded) -> None:
    mirror = f"{guarded.flow.source}.{guarded.orders}"
    assert ClusterAdmin(guarded.target.endpoint()).alter_settings({mirror: {"retention.ms": "77777"}}) == {}


def forget_heartbeats(guarded: Guarded) -> None:
    if ("heartbeats", 0) in topic_ends(guarded.source):
        delete_topic(guarded.source, "heartbeats")


def test_the_rights_for_upkeep_carry_it_and_doctor_passes(upheld: Guarded) -> None:
    """The last one: doctor's own rights stay with the user."""
    add(upheld.source, acl(upheld.orders, "Read"))
    write_heartbeat(upheld.flow, upheld.runs.source)
    assert sync(upheld).refused == ()
    give_doctor_its_rights(upheld)
    diagnosis = examined(upheld.flow, upheld.runs.source, upheld.runs.target, read_only=True)
    assert [line for line in red(diagnosis) if "no rehearsal" not in line and "read-only" not in line] == []
    remove(upheld.source, acl(upheld.orders, "Read"))
    sync(upheld)


def test_the_page_for_people_shows_these_rights_too() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "rights.md").read_text(encoding="utf-8")
    for right in upkeep_rights(replace(mirror_of("sf_to_nyc", "orders"), upkeep=ALL), ["orders"]):
        assert right.command("User:causeway") in page
        assert right.why in page
