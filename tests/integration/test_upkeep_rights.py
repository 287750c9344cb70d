"""ACLs of mirrors, over SASL_SSL with real authorizers; and what keeping things up needs in rights.

`testSyncTopicACLsUseProvidedForwardingAdmin` of
MirrorMaker 2 is the first one here.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from threading import Thread

import pytest

from causeway.brokers.acls import AclChanges, topic_acls
from causeway.brokers.admin import ClusterAdmin
from causeway.brokers.target_log import WireTarget
from causeway.core.acls import Acl
from causeway.core.errors import NotAuthorized
from causeway.core.flow import Upkeep
from causeway.core.naming import HEARTBEATS_TOPIC, IdentityNaming
from causeway.core.rights import NeededRight, Operation, needed_rights, upkeep_rights
from causeway.flows.clusters import open_clusters
from causeway.flows.upkeep.heartbeats import write_heartbeat
from causeway.flows.upkeep.sync import Drift, Synced, look_at_drift, sync_flow
from causeway.lab.cluster import LabCluster
from tests.integration.examined import examined, of, red
from tests.integration.inline_flow import InlineFlow, delete_topic, mirror_of, named, topic_ends
from tests.integration.test_doctor_rights import give_doctor_its_rights, on_cluster
from tests.integration.test_least_rights import Guarded, name_of

pytestmark = pytest.mark.integration
LabClusterFactory = Callable[..., LabCluster]
ALL = Upkeep(sync_settings=True, sync_acls=True, emit_heartbeats=True, mirror_heartbeats=True)
UPKEEP_RIGHTS = upkeep_rights(replace(mirror_of("some_flow", "orders"), upkeep=ALL), ["orders"])


@pytest.fixture(scope="module")
def clusters(lab_clusters: LabClusterFactory) -> tuple[LabCluster, LabCluster]:
    return lab_clusters("sf_acl", security="SASL_SSL"), lab_clusters("nyc_acl", security="SASL_SSL")


@pytest.fixture(scope="module")
def upheld(clusters: tuple[LabCluster, LabCluster]) -> Guarded:
    """A flow that has begun with its topics and keeps everything up, with the rights for that and no other.

    One for all tests: each leaves amy without rules.
    """
    made = Guarded(*clusters, uuid.uuid4().hex[:8])
    made.runs.run()
    made.flow = made.runs.flow = replace(made.flow, upkeep=ALL)
    for right in upkeep_rights(made.flow, [made.orders, made.clicks]):
        made.give(on_cluster(right))
    for right in needed_rights(made.flow, [HEARTBEATS_TOPIC]):
        if right.side == "source":
            made.give(right)
    return made


def sync(guarded: Guarded, *, dry_run: bool = False) -> Synced:
    return sync_flow(guarded.flow, guarded.runs.source, guarded.runs.target, dry_run=dry_run)


def drift(guarded: Guarded) -> Drift:
    return look_at_drift(guarded.flow, guarded.runs.source, guarded.runs.target)


def acl(
    topic: str, operation: str, permission: str = "Allow", pattern: str = "literal", who: str = "amy"
) -> Acl:
    return Acl(topic, pattern, f"User:{who}", "*", operation, permission)  # type: ignore[arg-type]


def add(cluster: LabCluster, *acls: Acl) -> None:
    assert AclChanges(cluster.endpoint()).create(acls) == {}


def remove(cluster: LabCluster, *acls: Acl) -> None:
    assert AclChanges(cluster.endpoint()).remove(acls) == {}


def of_amy(guarded: Guarded) -> set[Acl]:
    """Her rules on mirrors of this flow."""
    with open_clusters(guarded.source.endpoint(), guarded.target.endpoint()) as both:
        found = both.network.run(lambda: topic_acls(both.target.wire))
    assert found is not None
    mine = (f"{guarded.flow.source}.", guarded.orders, guarded.clicks)
    return {each for each in found if each.principal == "User:amy" and each.topic.startswith(mine)}


def ledger(guarded: Guarded) -> frozenset[Acl]:
    with open_clusters(guarded.runs.source, guarded.runs.target) as both:
        return frozenset(both.network.run(lambda: both.flow_state(guarded.flow)).acls)


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
    ]
    add(upheld.source, *ours)
    wanted = {
        acl(f"{alias}.{orders}", "Describe"),
        acl(f"{alias}.{orders}", "Read"),
        acl(f"{alias}.{orders}", "Write", "Deny"),
        acl(f"{alias}.{orders[:-2]}", "DescribeConfigs", pattern="prefixed"),
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
    assert not {each for each in ledger(upheld) if each.principal == "User:amy"}


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
    write = WireTarget.append_plain
    meanwhile: list[Callable[[], object]] = []

    async def after_somebody_else(self: WireTarget, topic: str, key: bytes, value: bytes | None) -> int:
        if meanwhile:
            act = meanwhile.pop()
            in_a_thread(act)
        return await write(self, topic, key, value)

    monkeypatch.setattr(WireTarget, "append_plain", after_somebody_else)
    add(upheld.source, read)
    meanwhile.append(lambda: (add(upheld.source, describe), sync(upheld)))
    sync(upheld)
    assert of_amy(upheld) == {acl(mirror, "Read"), acl(mirror, "Describe")} == of_amys(ledger(upheld))

    remove(upheld.source, read)  # and it is there again when the sync that removes it says so
    meanwhile.append(lambda: (add(upheld.source, read), sync(upheld)))
    sync(upheld)
    assert of_amy(upheld) == {acl(mirror, "Read"), acl(mirror, "Describe")} == of_amys(ledger(upheld))
    remove(upheld.source, read, describe)
    sync(upheld)
    assert of_amy(upheld) == set() == of_amys(ledger(upheld))


def in_a_thread(act: Callable[[], object]) -> None:
    """A sync of its own, with a loop of its own."""
    thread = Thread(target=act)
    thread.start()
    thread.join()


def of_amys(acls: Iterable[Acl]) -> set[Acl]:
    return {each for each in acls if each.principal == "User:amy"}


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


def test_without_an_authorizer_it_is_said_once_and_skipped(
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
    page = (Path(__file__).resolve().parents[2] / "docs" / "rights.md").read_text(encoding="utf-8")
    for right in upkeep_rights(replace(mirror_of("sf_to_nyc", "orders"), upkeep=ALL), ["orders"]):
        assert right.command("User:causeway") in page
        assert right.why in page
