"""Over SASL_SSL: failover, rollback, drill, resume, rebuild and home by a user that has the rights of
`core/permissions/failover.py` and those of the two flows, and no other. Each that is missing is named with
its grant before anything is written; where one goes in the middle, the same command goes on once it is back.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from causeway.core.doctor.failover import CHECK_FAILOVER
from causeway.core.doctor.finding import Diagnosis, Result
from causeway.core.failback.divergence import FailbackMode
from causeway.core.failover.impact_sheet import Sheet
from causeway.core.failover.request import FailoverRequest, Mode
from causeway.core.journal.journal_format import FAILOVERS_TOPIC
from causeway.core.kernel.acl_vocabulary import NeededRight, Operation
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import NotAuthorized
from causeway.core.model.flow import Flow
from causeway.core.model.group_filter import FlowGroups
from causeway.core.model.naming import IdentityNaming, PrefixNaming
from causeway.core.permissions.failback import (
    emptying_rights,
    export_rights,
    failback_rights,
    widening_rights,
)
from causeway.core.permissions.failover import (
    closing_rights,
    drill_rights,
    failover_rights,
    forgetting_rights,
    journal_rights,
    moving_rights,
    writing_rights,
)
from causeway.core.permissions.flow import needed_rights
from causeway.lab.cluster import LabCluster
from causeway.usecases.doctor.examine import examine
from causeway.usecases.failback import start
from causeway.usecases.failback.complete import CompletedFailback, complete_failback
from causeway.usecases.failback.journal_store import FlowPair
from causeway.usecases.failover import execute
from causeway.usecases.failover.drill import drill
from causeway.usecases.failover.rollback import RolledBack, roll_back
from tests.integration.doctor.examined import of
from tests.integration.groups.stage import commit, committed
from tests.integration.permissions.guarded import lab_right
from tests.support.inline_flow import (
    InlineFlow,
    create_topic,
    delete_topic,
    everything,
    mirror_of,
    named,
    topic_ends,
    write,
)

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("nobody_is_held_up")]
LabClusterFactory = Callable[..., LabCluster]
RECORDS = 10
Act = Callable[[], object]
_BRINGS = {
    Operation.DESCRIBE: {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
    Operation.DESCRIBE_CONFIGS: {Operation.ALTER_CONFIGS},
}
"""What a right comes with, so that it is only missing without those, too."""


def yes(_shown: object) -> None:
    """Somebody types the flow's name."""


@dataclass
class GuardedWays:
    """A flow and its failback over two topics, one of them compacted, and a group on the old primary."""

    old: LabCluster
    new: LabCluster
    stem: str
    keeps_names: bool = True
    said: list[str] = field(default_factory=list)
    consent: Callable[[object], None] = yes

    def __post_init__(self) -> None:
        self.user, self.group = f"user-{self.stem}", f"reader-{self.stem}"
        self.topics = [f"orders-{self.stem}", f"state-{self.stem}"]
        self.orders, self.state = self.topics
        self.rules = FlowGroups(include=(self.group,), emit_checkpoints=False, emit_offset_syncs=False)
        self.forward, self.reverse = self.flows()
        for cluster in (self.old,) if self.keeps_names else (self.old, self.new):
            create_topic(cluster, self.orders)
            create_topic(cluster, self.state, cleanup_policy="compact")
        self.needs = [
            *((self.forward, right) for right in self.of_forward()),
            *((self.reverse, right) for right in self.of_reverse()),
        ]
        for cluster in (self.old, self.new):
            cluster.add_user(self.user)
            rights = {lab_right(right) for flow, right in self.needs if self.at(flow, right) is cluster}
            cluster.grant(self.user, *rights)
        self.write(self.old)
        commit(self.old, self.group, {(self.orders, 0): 3})
        self.run(self.forward)

    def flows(self) -> tuple[Flow, Flow]:
        there = mirror_of(f"there_{self.stem}", *self.topics)
        turned = replace(there, name=f"back_{self.stem}", source="nyc", target="sf")
        if not self.keeps_names:
            return there, replace(turned, naming=PrefixNaming("nyc"))
        return (
            replace(there, naming=IdentityNaming("sf"), failback=turned.name),
            replace(turned, naming=IdentityNaming("nyc"), failback_of=there.name),
        )

    # rights

    def of_forward(self) -> list[NeededRight]:
        return [
            *needed_rights(self.forward, self.topics),
            *failover_rights(self.forward, [self.group]),
            *drill_rights(self.forward, [self.group]),
            *(failback_rights(self.topics, [self.state]) if self.keeps_names else ()),
        ]

    def of_reverse(self) -> list[NeededRight]:
        return [*needed_rights(self.reverse, self.topics), *failover_rights(self.reverse, [self.group])]

    def at(self, flow: Flow, right: NeededRight) -> LabCluster:
        return self.old if (flow.source if right.side == "source" else flow.target) == "sf" else self.new

    @contextmanager
    def without(self, flow: Flow, *rights: NeededRight) -> Iterator[None]:
        """And without whatever brings them along."""
        cluster = self.at(flow, rights[0])
        taken = {
            lab_right(held)
            for each, held in self.needs
            if self.at(each, held) is cluster and any(_grants(held, right) for right in rights)
        }
        cluster.revoke(self.user, *taken)
        try:
            yield
        finally:
            cluster.grant(self.user, *taken)

    def refused(self, flow: Flow, rights: Iterable[NeededRight], act: Act) -> None:
        """Each alone: named with its grant, and nothing is otherwise than before."""
        rights = list(rights)
        everything(self.old, self.new)  # what is on its way arrives
        before = self.stands()
        for right in rights:
            with self.without(flow, right), pytest.raises(NotAuthorized) as refusal:
                act()
            self.assert_names(flow, right, str(refusal.value))
            assert self.stands() == before, right

    def assert_names(self, flow: Flow, right: NeededRight, said: str) -> None:
        alias = flow.source if right.side == "source" else flow.target
        assert f"cluster {alias} (" in said
        assert f"{right.resource} {right.name}" in said or f", {right.name}" in said, (said, right)
        assert f"User:{self.user} has no right to {right.operation.word} " in said, (said, right)
        assert said.endswith(right.command(f"User:{self.user}")), (said, right)

    def stands(self) -> list[object]:
        """Whatever a command could have written or moved."""
        return [
            (topic_ends(cluster), committed(cluster, self.group), cluster.name)
            for cluster in (self.old, self.new)
        ]

    # commands, as that user

    def endpoint(self, alias: str) -> ClusterEndpoint:
        return named(self.old if alias == "sf" else self.new, alias, self.user)

    @property
    def ways(self) -> FlowPair:
        return FlowPair(self.forward, self.reverse, self.endpoint("sf"), self.endpoint("nyc"))

    @property
    def operator(self) -> execute.Operator:
        return execute.Operator(by="a test", consent=self.ask, say=self.said.append, still_seconds=0.1)

    def ask(self, shown: object) -> None:
        self.consent(shown)

    def run(self, flow: Flow) -> int:
        report = InlineFlow(flow, self.endpoint(flow.source), self.endpoint(flow.target)).run()
        assert not report.leaves_something_out, report
        return report.records

    def wish(self, mode: Mode = Mode.UNPLANNED) -> FailoverRequest:
        return FailoverRequest(flow=self.forward.name, at_ms=None, mode=mode)

    def fail_over(self) -> execute.FailedOver:
        ends = self.endpoint("sf"), self.endpoint("nyc")
        return execute.fail_over(self.forward, *ends, self.wish(), self.rules, self.operator)

    def roll_back(self, run: str) -> RolledBack:
        end, consent = self.endpoint("nyc"), lambda _run, _left: None
        return roll_back(self.forward, end, run, by="a test", consent=consent, say=self.said.append)

    def drill(self) -> str:
        ends = self.endpoint("sf"), self.endpoint("nyc")
        return drill(self.forward, *ends, self.rules, by="a test", say=self.said.append).wrong

    def fail_back(self, way: FailbackMode) -> start.FailedBack:
        operator = start.Operator(by="a test", consent=self.ask, say=self.said.append, accepts_loss=True)
        return start.fail_back(self.ways, way, operator)

    def come_home(self) -> CompletedFailback:
        return complete_failback(self.ways, self.rules, self.operator)

    def doctor(self, flow: Flow) -> Diagnosis:
        ends = self.endpoint(flow.source), self.endpoint(flow.target)
        others = (self.forward, self.reverse)
        return examine(flow, others, *ends, read_only=True, say=self.said.append, groups=self.rules)

    # the world

    def write(self, cluster: LabCluster) -> None:
        for topic in self.topics:
            write(cluster, topic, RECORDS)

    def at_new(self) -> dict[tuple[str, int], int]:
        return committed(self.new, self.group)

    def part(self) -> None:
        """Failed over, with a tail that never crossed and records that were written since."""
        self.write(self.old)
        self.fail_over()
        self.write(self.new)

    def go_home(self, group_reads_on_to: int) -> None:
        """From a way back that is open; the group returns exactly, and nothing loops back."""
        commit(self.new, self.group, {(self.orders, 0): group_reads_on_to})
        self.run(self.reverse)
        self.come_home()
        begins = topic_ends(self.old)[self.orders, 0][0]  # a rebuilt log holds the same records further on
        assert committed(self.old, self.group) == {(self.orders, 0): begins + group_reads_on_to}
        assert self.run(self.forward) == 0


def _grants(held: NeededRight, right: NeededRight) -> bool:
    is_same = (held.resource, held.name, held.is_prefix) == (right.resource, right.name, right.is_prefix)
    return is_same and held.operation in {right.operation} | _BRINGS.get(right.operation, set())


@pytest.fixture(scope="module")
def ways(lab_clusters: LabClusterFactory) -> GuardedWays:
    """One for all tests: each leaves everything at home and the flow open."""
    sf, nyc = (lab_clusters(name, security="SASL_SSL") for name in ("sf_ways", "nyc_ways"))
    return GuardedWays(sf, nyc, uuid.uuid4().hex[:8])


def taking(ways: GuardedWays, flow: Flow, right: NeededRight) -> Callable[[object], None]:
    """A yes, while somebody takes a right away."""

    def consent(_shown: object) -> None:
        ways.at(flow, right).revoke(ways.user, lab_right(right))

    return consent


def refused_in_the_middle(ways: GuardedWays, flow: Flow, right: NeededRight, act: Act) -> None:
    """Taken away once the operator has agreed: named, and the same command goes on once it is back."""
    ways.consent = taking(ways, flow, right)
    try:
        with pytest.raises(NotAuthorized) as refusal:
            act()
    finally:
        ways.consent = yes
        ways.at(flow, right).grant(ways.user, lab_right(right))
    said = str(refusal.value)
    assert f"User:{ways.user} has no right to {right.operation.word} " in said, said
    assert f"--operation {right.operation.word} --{right.resource} {right.name}" in said, said


def test_a_failover_and_its_rollback(ways: GuardedWays) -> None:
    forward, group = ways.forward, [ways.group]
    asked = (
        *failover_rights(forward, group)[1:2],
        *journal_rights(),
        *moving_rights(group),
        *closing_rights(forward),
    )
    if (FAILOVERS_TOPIC, 0) in topic_ends(ways.new):
        delete_topic(ways.new, FAILOVERS_TOPIC)
    ways.refused(forward, asked, ways.fail_over)
    (move,) = moving_rights(group)
    refused_in_the_middle(ways, forward, move, ways.fail_over)
    assert ways.at_new() == {}
    done = ways.fail_over()
    assert (done.moved, ways.at_new()) == (1, {(ways.orders, 0): 3})
    ways.refused(
        forward, (*forgetting_rights(group), *journal_rights()[2:]), lambda: ways.roll_back(done.run)
    )
    taken_back = ways.roll_back(done.run)
    assert (taken_back.restored, taken_back.fence, ways.at_new()) == (1, "lifted", {})


def test_a_source_that_hides_a_group_is_reported_on_the_sheet_and_stops_a_planned_failover(
    ways: GuardedWays,
) -> None:
    (hidden,) = (r for r in failover_rights(ways.forward, [ways.group]) if r.side == "source")
    ends = ways.endpoint("sf"), ways.endpoint("nyc")

    def look(mode: Mode) -> Sheet:
        return execute.preview_failover(ways.forward, *ends, ways.wish(mode), ways.rules)

    ways.refused(ways.forward, [hidden], lambda: look(Mode.PLANNED))
    with ways.without(ways.forward, hidden):
        sheet = look(Mode.UNPLANNED)
    (note,) = sheet.notes
    ways.assert_names(ways.forward, hidden, note)
    assert ways.group not in sheet.plan.groups


def test_a_drill(ways: GuardedWays) -> None:
    """Without what only a failover needs."""
    moving = (*moving_rights([ways.group]), *forgetting_rights([ways.group]))
    clones = [r for r in drill_rights(ways.forward, [ways.group]) if r.is_prefix]
    seen = [
        r for r in drill_rights(ways.forward, [ways.group]) if r.side == "target" and r.name == ways.group
    ]
    with ways.without(ways.forward, *moving):
        assert ways.drill() == ""
    ways.refused(ways.forward, [*clones, *seen], ways.drill)


def test_a_resume_and_the_way_home(ways: GuardedWays) -> None:
    forward, reverse, group = ways.forward, ways.reverse, [ways.group]
    ways.part()
    exports = export_rights([ways.orders])
    ways.refused(forward, exports, lambda: ways.fail_back(FailbackMode.RESUME))
    to_write = [r for r in writing_rights(reverse, ways.topics) if r.operation is Operation.WRITE]
    ways.refused(reverse, to_write[:1], lambda: ways.fail_back(FailbackMode.RESUME))
    refused_in_the_middle(ways, forward, exports[1], lambda: ways.fail_back(FailbackMode.RESUME))
    assert ways.fail_back(FailbackMode.RESUME).run.facts["exports"]
    at_home = failover_rights(reverse, group)
    ways.refused(reverse, [r for r in at_home if r.operation is not Operation.DELETE], ways.come_home)
    ways.refused(forward, closing_rights(forward)[-1:], ways.come_home)
    ways.go_home(5)


def test_a_rebuild(ways: GuardedWays) -> None:
    forward = ways.forward
    ways.part()
    rights = (*emptying_rights([ways.orders]), *widening_rights([ways.state]))
    ways.refused(forward, rights, lambda: ways.fail_back(FailbackMode.REBUILD))
    delete, *_ = emptying_rights([ways.state])
    refused_in_the_middle(ways, forward, delete, lambda: ways.fail_back(FailbackMode.REBUILD))
    assert not ways.fail_back(FailbackMode.REBUILD).was_done
    ways.go_home(7)
    proof = InlineFlow(forward, ways.endpoint("sf"), ways.endpoint("nyc")).verify()
    assert proof.exit_code == 0, list(map(str, proof.unequal))


def test_with_prefixes_the_rights_of_both_flows_and_their_failovers_lead_home(ways: GuardedWays) -> None:
    prefixed = GuardedWays(ways.old, ways.new, uuid.uuid4().hex[:8], keeps_names=False)
    prefixed.part()
    mirror = prefixed.forward.naming.target_topic(prefixed.orders)
    assert prefixed.at_new() == {(mirror, 0): 3}
    prefixed.fail_back(FailbackMode.RESUME)
    assert prefixed.run(prefixed.forward) == prefixed.run(prefixed.reverse) == 2 * RECORDS
    commit(prefixed.new, prefixed.group, {(mirror, 0): 5})
    prefixed.come_home()
    assert committed(prefixed.old, prefixed.group)[prefixed.orders, 0] == 5


def test_doctor_names_all_that_is_missing_and_finds_none_too_many(ways: GuardedWays) -> None:
    for flow in (ways.forward, ways.reverse):
        found = ways.doctor(flow).findings
        checks = {CHECK_FAILOVER, "rights", "rights in excess"}
        assert [f for f in found if f.check in checks and f.result is not Result.PASSED] == []
    besides = (*moving_rights([ways.group]), *forgetting_rights([ways.group]), *export_rights(ways.topics))
    rights = (*besides, *(r for r in drill_rights(ways.forward, [ways.group]) if r.side == "target"))
    with ways.without(ways.forward, *rights):
        lacking = of(ways.doctor(ways.forward), CHECK_FAILOVER)
    assert {each.result for each in lacking} == {Result.WARN}
    remedies = "; ".join(each.remedy for each in lacking)
    for right in rights:
        assert right.command(f"User:{ways.user}") in remedies


def test_the_page_for_people_shows_these_rights() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "rights.md").read_text(encoding="utf-8")
    flow = replace(mirror_of("sf_to_nyc", "orders"), naming=IdentityNaming("sf"))
    listed = (
        *failover_rights(flow, ["billing"]),
        *drill_rights(flow, ["billing"]),
        *failback_rights(["orders"], ["orders"]),
    )
    for right in listed:
        assert f"| {right.why} | `{right.command('User:causeway')}` |" in page
