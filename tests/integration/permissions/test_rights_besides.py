"""Over SASL_SSL: the rights that a flow needs besides those of the copy, for consumer groups and for taking
over from MirrorMaker 2. They are enough, and each one that is missing is named with its grant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from causeway.brokers.admin.record_reader import RecordReader
from causeway.core.doctor.finding import Result
from causeway.core.doctor.takeover import CHECK_TAKEOVER
from causeway.core.groups.report import GroupsReport
from causeway.core.groups.sync_rules import Outcome as GroupOutcome
from causeway.core.kernel.acl_vocabulary import NeededRight, Operation
from causeway.core.kernel.errors import NotAuthorized
from causeway.core.kernel.identity import TopicPartition
from causeway.core.model.group_filter import FlowGroups
from causeway.core.model.naming import IdentityNaming
from causeway.core.permissions.flow import group_rights, takeover_rights
from causeway.core.takeover.mm2_mirror import MirrorMakerPlaces
from causeway.lab.cluster import LabCluster
from causeway.usecases.doctor.examine import examine
from causeway.usecases.groups.sync import sync_groups
from causeway.usecases.repair.set_positions import Reason
from causeway.usecases.takeover.run import TakenOver, take_over
from tests.integration.doctor.examined import of
from tests.integration.groups.stage import commit, committed
from tests.integration.permissions.guarded import RECORDS, Guarded, name_of
from tests.support.inline_flow import create_topic, everything, mirror_of
from tests.support.quick import quick_producer

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("nobody_writes_there")]
LabClusterFactory = Callable[..., LabCluster]
RIGHTS_PAGE = Path(__file__).resolve().parents[3] / "docs" / "rights.md"


@pytest.fixture(scope="module")
def clusters(lab_clusters: LabClusterFactory) -> tuple[LabCluster, LabCluster]:
    return lab_clusters("sf_besides", security="SASL_SSL"), lab_clusters("nyc_besides", security="SASL_SSL")


SEEN_TO = FlowGroups(include=(".*",), sync_offsets=True)
GROUP_RIGHTS = group_rights(mirror_of("some_flow", "orders"), SEEN_TO, ["reader"])


class GuardedGroups(Guarded):
    """With one consumer group, and the rights to see to it."""

    def __init__(self, source: LabCluster, target: LabCluster, name: str) -> None:
        super().__init__(source, target, name)
        self.group = f"reader-{name}"
        self.rules = replace(SEEN_TO, include=(self.group,))
        self.give(*group_rights(self.flow, self.rules, [self.group]))
        self.runs.run()
        commit(source, self.group, {(self.orders, 0): 7})

    def like(self, example: NeededRight) -> NeededRight:
        return replace(
            example, name=example.name.replace("reader", self.group).replace("sf", self.flow.source)
        )

    def sync(self) -> GroupsReport:
        return sync_groups(
            self.flow, self.rules, self.runs.source, self.runs.target, lambda _: None, writes=True
        )


@pytest.fixture
def guarded_groups(clusters: tuple[LabCluster, LabCluster], topic_name: Callable[..., str]) -> GuardedGroups:
    return GuardedGroups(*clusters, topic_name("x").split("-")[1])


def test_the_least_rights_see_to_a_group(guarded_groups: GuardedGroups) -> None:
    report = guarded_groups.sync()
    assert report.outcomes == {GroupOutcome.SYNCED: 1}
    assert (report.result.checkpoints, report.result.offset_syncs, report.result.commits) == (1, 2, 1)


@pytest.mark.parametrize("example", GROUP_RIGHTS, ids=name_of)
def test_a_right_that_groups_need_is_missed_with_its_grant(
    guarded_groups: GuardedGroups, example: NeededRight
) -> None:
    right = guarded_groups.like(example)
    guarded_groups.take(right)
    try:
        report = guarded_groups.sync()
    except NotAuthorized as refusal:
        said = str(refusal)
    else:
        said = "; ".join([*report.result.refused.values(), *(row.why for row in report.result.rows)])
    assert said.endswith(right.command(f"User:{guarded_groups.user}")), said
    guarded_groups.give(right)
    assert guarded_groups.sync().outcomes == {GroupOutcome.SYNCED: 1}


def test_read_checkpoints_topic_error(guarded_groups: GuardedGroups) -> None:
    """MirrorMaker 2 goes on without what it had written before; here nothing is written until it can be
    read."""
    alias, group = guarded_groups.flow.source, guarded_groups.group
    on_mirrors = next(
        r
        for r in guarded_groups.rights
        if r.is_prefix and r.operation is Operation.READ and r.side == "target"
    )
    guarded_groups.sync()
    commit(guarded_groups.source, group, {(guarded_groups.orders, 0): 9})
    mirrors = replace(on_mirrors, name=f"{alias}.{guarded_groups.orders}", is_prefix=False)
    guarded_groups.give(mirrors)
    with guarded_groups.without(on_mirrors), pytest.raises(NotAuthorized) as refusal:
        guarded_groups.sync()
    assert f"topic {alias}.checkpoints.internal" in str(refusal.value)
    assert committed(guarded_groups.target, group) == {(mirrors.name, 0): 7}
    assert guarded_groups.sync().outcomes == {GroupOutcome.SYNCED: 1}
    assert committed(guarded_groups.target, group) == {(mirrors.name, 0): 9}


def test_the_page_for_people_shows_the_rights_that_groups_need() -> None:
    page = RIGHTS_PAGE.read_text(encoding="utf-8")
    flow = replace(mirror_of("sf_to_nyc", "orders"), naming=IdentityNaming())
    for right in group_rights(flow, SEEN_TO, ["billing"]):
        assert right.command("User:causeway") in page
        assert right.why in page


PLACES = MirrorMakerPlaces(
    connector="MirrorSourceConnector",
    offsets_topic="mm2-offsets.sf.internal",
    syncs_topic="mm2-offset-syncs.nyc.internal",
    syncs_on_source=True,
    group="sf-mm2",
    is_isolated=False,
)
TAKEOVER_RIGHTS = takeover_rights(mirror_of("sf_to_nyc", "orders"), PLACES)
HALF = RECORDS // 2


class GuardedTakeover(Guarded):
    """MirrorMaker 2 has mirrored the half of `orders` and is gone; with the rights to go on from there."""

    def __init__(self, source: LabCluster, target: LabCluster, name: str) -> None:
        super().__init__(source, target, name)
        self.places = replace(
            PLACES,
            offsets_topic=f"mm2-offsets.{name}.internal",
            syncs_topic=f"mm2-offset-syncs.{name}.internal",
            group=f"{name}-mm2",
        )
        create_topic(target, self.places.offsets_topic)
        create_topic(source, self.places.syncs_topic)
        self.besides = takeover_rights(self.flow, self.places)
        mirror = f"{self.flow.source}.{self.orders}"
        create_topic(target, mirror)
        copy(source, self.orders, target, mirror, HALF)
        self.give(*self.besides)

    def take_over(self, *, dry_run: bool = False) -> TakenOver:
        reason = Reason(by="a test", because="it is one")
        ends = self.runs.source, self.runs.target
        return take_over(self.flow, self.places, *ends, reason, lambda _: None, dry_run=dry_run)

    def doctor_says(self) -> dict[str, Result]:
        found = examine(
            self.flow,
            (),
            self.runs.source,
            self.runs.target,
            read_only=True,
            say=lambda _: None,
            taken_over_from=self.places,
        )
        return {each.remedy: each.result for each in of(found, CHECK_TAKEOVER)}


def copy(source: LabCluster, topic: str, target: LabCluster, mirror: str, count: int) -> None:
    """As MirrorMaker 2 does: key, value and time."""
    client = quick_producer(target.endpoint())
    with RecordReader(source.endpoint()) as reader:
        reader.open(TopicPartition(topic, 0), 0, count)
        for _, ((_, at_ms), key, value, _) in reader.shown():
            client.produce(mirror, value, key, timestamp=at_ms)
    assert client.flush(60) == 0


@pytest.fixture
def taking_over(clusters: tuple[LabCluster, LabCluster], topic_name: Callable[..., str]) -> GuardedTakeover:
    return GuardedTakeover(*clusters, topic_name("x").split("-")[1])


def test_the_least_rights_take_over_from_mirror_maker(taking_over: GuardedTakeover) -> None:
    assert list(taking_over.doctor_says().values()) == [Result.PASSED]
    done = taking_over.take_over()
    assert [(each.outcome, each.source_next) for each in done.partitions] == [("adopted", HALF)]
    assert taking_over.runs.run().records == 2 * RECORDS - HALF
    kept = taking_over.besides[-1]
    with taking_over.without(kept):
        found = examine(
            taking_over.flow, (), taking_over.runs.source, taking_over.runs.target, read_only=True, say=print
        )
    (finding,) = of(found, CHECK_TAKEOVER)
    assert (finding.result, finding.remedy) == (Result.WARN, kept.command(f"User:{taking_over.user}"))


def test_each_right_that_a_takeover_needs_is_missed_before_anything_is_written(
    taking_over: GuardedTakeover,
) -> None:
    before = everything(taking_over.source, taking_over.target)
    for right in taking_over.besides:
        with taking_over.without(right), pytest.raises(NotAuthorized) as refusal:
            taking_over.take_over()
        assert str(refusal.value).endswith(right.command(f"User:{taking_over.user}"))
    assert everything(taking_over.source, taking_over.target) == before


def test_doctor_names_each_right_that_a_takeover_lacks(taking_over: GuardedTakeover) -> None:
    for right in taking_over.besides:
        taking_over.take(right)
    grants = {right.command(f"User:{taking_over.user}") for right in taking_over.besides}
    assert taking_over.doctor_says() == dict.fromkeys(grants, Result.FAILED)


def test_the_page_for_people_shows_the_rights_that_a_takeover_needs() -> None:
    page = RIGHTS_PAGE.read_text(encoding="utf-8")
    for right in TAKEOVER_RIGHTS:
        assert right.command("User:causeway") in page
        assert right.why in page
