"""Over SASL_SSL with SCRAM: the rights of core/permissions/flow.py carry a flow, and each one that is missing
is named.

Each test has users of its own on both clusters, so that no other test's rights help it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from causeway.core.copy.report import RunReport
from causeway.core.kernel.acl_vocabulary import NeededRight, Operation
from causeway.core.kernel.errors import NotAuthorized
from causeway.core.model.naming import FLOWS_TOPIC, PrefixNaming
from causeway.core.permissions.flow import needed_rights
from causeway.core.state.parked import ParkReason
from causeway.lab.cluster import LabCluster
from tests.integration.copy.spark_flow import environment, finished, flows_file, submit_command
from tests.integration.permissions.guarded import (
    MAP_TOPIC,
    RECORDS,
    RIGHTS,
    Guarded,
    forget_flows_topic,
    name_of,
)
from tests.support.inline_flow import InlineFlow, everything, grow_topic, mirror_of, write

pytestmark = pytest.mark.integration
LabClusterFactory = Callable[..., LabCluster]


@pytest.fixture(scope="module")
def clusters(lab_clusters: LabClusterFactory) -> tuple[LabCluster, LabCluster]:
    return lab_clusters("sf_tls", security="SASL_SSL"), lab_clusters("nyc_tls", security="SASL_SSL")


def one_refusal(report: RunReport, topic: str) -> str:
    """The line of the one topic that was left alone."""
    assert report.leaves_something_out
    (refused,) = [each for each in report.refused_topics if each["topic"] == topic]
    return f"{refused['reason']}; {refused['remedy']}"


def test_the_least_rights_carry_a_flow_from_its_first_run_to_a_grown_topic(guarded: Guarded) -> None:
    report = guarded.runs.run()
    assert (report.outcome, report.records, report.leaves_something_out) == ("caught up", 2 * RECORDS, False)
    grow_topic(guarded.source, guarded.orders, 2)
    write(guarded.source, guarded.orders, RECORDS, partition=1)
    report = guarded.runs.run()
    assert (report.outcome, report.records, report.leaves_something_out) == ("caught up", RECORDS, False)
    guarded.assert_equal(3 * RECORDS)


ON_ONE_TOPIC = [r for r in RIGHTS if r.side == "source" or (r.is_prefix and r.resource == "topic")]
OF_THE_FLOW = [r for r in RIGHTS if r not in ON_ONE_TOPIC]


@pytest.mark.parametrize("example", ON_ONE_TOPIC, ids=name_of)
def test_a_topic_without_a_right_is_left_alone_and_reported(guarded: Guarded, example: NeededRight) -> None:
    right = guarded.like(example)
    is_for_new_topics = right.operation in (Operation.CREATE, Operation.DESCRIBE_CONFIGS)
    if not is_for_new_topics:
        guarded.runs.run()
    if right.operation is Operation.ALTER:
        grow_topic(guarded.source, guarded.orders, 2)
        write(guarded.source, guarded.orders, RECORDS, partition=1)
    guarded.write_more()
    before = guarded.mirror_ends()
    with guarded.without(right):
        report = guarded.runs.run()
    line = one_refusal(report, guarded.orders)
    resource = guarded.orders if right.side == "source" else f"{guarded.flow.source}.{guarded.orders}"
    assert f"topic {resource}" in line or f", {resource}" in line
    assert f"User:{guarded.user} has no right to {right.operation.word} (TOPIC_AUTHORIZATION_FAILED)" in line
    grant = f"kafka-acls.sh --add --allow-principal User:{guarded.user} --operation {right.operation.word}"
    assert line.endswith(f"{grant} --topic {resource}")
    after = guarded.mirror_ends()
    if right.operation is not Operation.ALTER:  # what the mirror has goes on without the new partition
        mine = (f"{guarded.flow.source}.{guarded.orders}", 0)
        assert after.get(mine) == before.get(mine)
    if right.side == "source":
        assert report.records > 0, "the other topic goes on"
    report = guarded.runs.run()
    assert not report.leaves_something_out
    grown = RECORDS if right.operation is Operation.ALTER else 0
    guarded.assert_equal(4 * RECORDS + grown)


@pytest.mark.parametrize("example", OF_THE_FLOW, ids=name_of)
def test_a_flow_without_a_right_of_its_own_does_not_begin(guarded: Guarded, example: NeededRight) -> None:
    right = guarded.like(example)
    if right.operation is Operation.CREATE:
        forget_flows_topic(guarded.target)
    else:
        guarded.runs.run()
        guarded.write_more()
    before = everything(guarded.source, guarded.target)
    with guarded.without(right), pytest.raises(NotAuthorized) as refusal:
        guarded.runs.run()
    assert refusal.value.exit_code == 3
    assert f"{right.resource} {right.name}" in str(refusal.value) or f", {right.name}" in str(refusal.value)
    assert f"User:{guarded.user} has no right to {right.operation.word}" in str(refusal.value)
    assert str(refusal.value).endswith(right.command(f"User:{guarded.user}"))
    assert everything(guarded.source, guarded.target) == before
    report = guarded.runs.run()
    assert not report.leaves_something_out
    guarded.assert_equal((2 if right.operation is Operation.CREATE else 4) * RECORDS)


IN_USE = [
    r
    for r in RIGHTS
    if r.operation in (Operation.READ, Operation.WRITE)
    and (r.name, r.operation) not in {(FLOWS_TOPIC, Operation.WRITE), (MAP_TOPIC, Operation.READ)}
]


@pytest.mark.parametrize("example", IN_USE, ids=name_of)
def test_a_right_taken_in_the_middle_of_a_run_is_named_too(guarded: Guarded, example: NeededRight) -> None:
    """After the plan, before the lanes: what the brokers refuse then has to say it."""
    right = guarded.like(example)
    guarded.runs.run()
    guarded.write_more()
    guarded.runs.before_round = lambda number: guarded.take(right) if number == 0 else None
    said = outcome_line(guarded.runs)
    guarded.runs.before_round = lambda _: None
    guarded.give(right)
    assert re.search(r"NotAuthorized|not authorized", said), said
    assert right.operation.word in said
    assert right.name in said
    assert "kafka-acls.sh --add" in said
    report = guarded.runs.run()
    assert not report.leaves_something_out
    guarded.assert_equal(4 * RECORDS)


def outcome_line(flow: InlineFlow) -> str:
    try:
        report = flow.run()
    except NotAuthorized as refusal:
        return f"NotAuthorized: {refusal}"
    assert report.leaves_something_out
    parked = [str(each.parked) for each in report.parked if each.parked]
    assert all(each.parked["reason"] == ParkReason.NOT_AUTHORIZED for each in report.parked if each.parked)
    return "; ".join([*parked, *(f"not authorized: {each}" for each in report.refused_topics)])


def test_a_run_that_can_not_sign_off_says_why(guarded: Guarded) -> None:
    """The data is safe by then, and the next run is refused before it begins."""
    right = guarded.like(
        next(r for r in OF_THE_FLOW if (r.name, r.operation) == (FLOWS_TOPIC, Operation.WRITE))
    )
    guarded.runs.after_round = lambda: guarded.take(right)
    report = guarded.runs.run()
    guarded.give(right)
    assert (report.outcome, report.records) == ("caught up", 2 * RECORDS)
    (line,) = [line for line in guarded.runs.said if "couldn't sign off" in line]
    assert line.endswith(right.command(f"User:{guarded.user}"))


def test_a_topic_that_may_be_seen_but_not_read_is_reported(guarded: Guarded) -> None:
    """Describe without Read: it is in the list, and still nothing of it can be fetched."""
    read = NeededRight(side="source", resource="topic", name=guarded.orders, operation=Operation.READ, why="")
    guarded.give(replace(read, operation=Operation.DESCRIBE))
    with guarded.without(read):
        line = one_refusal(guarded.runs.run(), guarded.orders)
    assert line.endswith(read.command(f"User:{guarded.user}"))


def test_a_mirrored_topic_that_only_a_pattern_matches_is_missed_when_its_right_goes(guarded: Guarded) -> None:
    runs = guarded.runs.over(f"orders-{guarded.user[5:]}.*", f"clicks-{guarded.user[5:]}.*")
    runs.run()
    read = guarded.like(RIGHTS[0])
    with guarded.without(read):
        line = one_refusal(runs.run(), guarded.orders)
    assert line.endswith(read.command(f"User:{guarded.user}"))


def test_on_a_target_with_transactions_of_version_one(
    lab_clusters: LabClusterFactory, clusters: tuple[LabCluster, LabCluster], topic_name: Callable[..., str]
) -> None:
    """The same list, and a right that is missing for one topic parks that topic only."""
    target = lab_clusters("nyc_v1_tls", security="SASL_SSL", kafka_version="3.9.2")
    guarded = Guarded(clusters[0], target, topic_name("x").split("-")[1])
    mirrors = [f"{guarded.flow.source}.{topic}" for topic in (guarded.orders, guarded.clicks)]
    on_prefix = next(r for r in guarded.rights if r.is_prefix and r.operation is Operation.WRITE)
    for mirror in mirrors:
        guarded.give(replace(on_prefix, name=mirror, is_prefix=False))
    guarded.take(on_prefix)
    guarded.runs.run()
    guarded.write_more()
    taken = replace(on_prefix, name=mirrors[0], is_prefix=False)
    guarded.runs.before_round = lambda number: guarded.take(taken) if number == 0 else None
    report = guarded.runs.run()
    (parked,) = report.parked
    assert parked.parked is not None
    assert parked.parked["reason"] == ParkReason.NOT_AUTHORIZED
    assert f"Write on topic {mirrors[0]}" in parked.parked["facts"]
    assert report.records == RECORDS
    guarded.runs.before_round = lambda _: None
    guarded.give(taken)
    assert not guarded.runs.run().leaves_something_out
    guarded.assert_equal(4 * RECORDS)


@pytest.mark.spark
def test_the_least_rights_through_spark_submit(
    clusters: tuple[LabCluster, LabCluster], topic_name: Callable[..., str], tmp_path: Path
) -> None:
    guarded = Guarded(*clusters, topic_name("x").split("-")[1])
    runs = guarded.runs
    runs.flow = replace(guarded.flow, source="sf", naming=PrefixNaming("sf"))
    rights = needed_rights(runs.flow, [guarded.orders, guarded.clicks])
    guarded.give(*(right for right in rights if right not in guarded.rights))
    file = flows_file(tmp_path, runs.flow.name, guarded.orders, guarded.clicks)
    connections = {
        "sf": guarded.source.connection_json(guarded.user),
        "nyc": guarded.target.connection_json(guarded.user),
    }
    report = tmp_path / "report.json"
    command = submit_command(runs.flow.name, file, "--report", str(report))
    done = finished(command, environment(connections, tmp_path), tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(report.read_text())["records"] == 2 * RECORDS
    guarded.assert_equal(2 * RECORDS)
    group = next(r for r in guarded.rights if r.resource == "group")
    with guarded.without(group):
        done = finished(command, environment(connections, tmp_path), tmp_path)
    assert done.returncode == 3, done.stdout + done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("causeway: error:")]
    assert line.endswith(group.command(f"User:{guarded.user}"))


def test_the_page_for_people_shows_the_same_list() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "rights.md").read_text(encoding="utf-8")
    flow = mirror_of("sf_to_nyc", "orders")
    for right in needed_rights(flow, ["orders"]):
        assert right.command("User:causeway") in page
        assert right.why in page
