"""Two flows under the same names in opposite directions: one mirrors, the other is its failback.

No record goes round, whatever is run in whatever order; each flow begins only where an operator set it.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from causeway.core.copy.report import RunReport
from causeway.core.kernel.errors import BadInput, FlowHeld
from causeway.core.kernel.identity import TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.model.naming import IdentityNaming
from causeway.lab.cluster import LabCluster
from causeway.usecases.inspect.flow_status import inspect_flow
from causeway.usecases.repair.adopt import Adopted, adopt_partition
from causeway.usecases.repair.restart_topic import restart_topic
from causeway.usecases.repair.set_positions import Reason
from causeway.usecases.run_lock.fence import fence_flow, lift_fence
from tests.support.inline_flow import (
    InlineFlow,
    create_topic,
    delete_records,
    delete_topic,
    group_offsets,
    mirror_of,
    named,
    topic_ends,
    write,
)
from tests.support.janitor import forget_positions
from tests.support.reading import messages

pytestmark = pytest.mark.integration
PARTITIONS = 3
NOT_ADOPTED = "not adopted, and another flow leads the other way"


@dataclass(frozen=True)
class Both:
    topic: str
    forward: InlineFlow
    back: InlineFlow
    sf: LabCluster
    nyc: LabCluster

    def fence(self, runs: InlineFlow) -> None:
        fence_flow(runs.flow, runs.target, by="a test", because="the other way")

    def lift(self, runs: InlineFlow) -> None:
        lift_fence(runs.flow, runs.target, by="a test", because="this way")

    def adopt(self, runs: InlineFlow, partition: int, offset: int) -> Adopted:
        at = TopicPartition(self.topic, partition)
        reason = Reason(by="a test", because="this way")
        return adopt_partition(
            runs.flow, runs.source, runs.target, at, offset, reason, even_though_healthy=True
        )

    def adopt_ends(self, runs: InlineFlow) -> None:
        cluster = self.sf if runs is self.forward else self.nyc
        for partition in range(PARTITIONS):
            self.adopt(runs, partition, ends_of(cluster, self.topic)[partition][1])


@pytest.fixture
def both(sf: LabCluster, nyc: LabCluster) -> Both:
    name = uuid.uuid4().hex[:8]
    topic = f"both-ways-{name}"
    forward: Flow = replace(
        mirror_of(f"there_{name}", topic), naming=IdentityNaming("sf"), failback=f"back_{name}"
    )
    back = replace(
        mirror_of(f"back_{name}", topic),
        source="nyc",
        target="sf",
        naming=IdentityNaming("nyc"),
        failback_of=forward.name,
    )
    create_topic(sf, topic, PARTITIONS)
    here, there = named(sf, "sf"), named(nyc, "nyc")
    return Both(topic, InlineFlow(forward, here, there), InlineFlow(back, there, here), sf, nyc)


def ends_of(cluster: LabCluster, topic: str) -> list[tuple[int, int]]:
    found = topic_ends(cluster)
    return [found[topic, partition] for partition in range(PARTITIONS)]


def read(cluster: LabCluster, topic: str, partition: int) -> list[tuple[bytes | None, bytes | None]]:
    return [(message.key(), message.value()) for message in messages(cluster, topic, partition)]


def reasons(report: RunReport) -> list[str]:
    return [p.parked["reason"] for p in report.parked if p.parked]


def test_there_and_back_and_there_again_each_record_is_on_both_sides_once(both: Both) -> None:
    topic, forward, back, sf, nyc = both.topic, both.forward, both.back, both.sf, both.nyc
    for partition in range(PARTITIONS - 1):
        write(sf, topic, 10, partition)
    assert forward.run().records == 20
    before = ends_of(sf, topic)
    with pytest.raises(FlowHeld, match="leads the other way under the same names, and isn't fenced"):
        back.run()
    assert back.flow.group not in group_offsets(sf)
    notes = inspect_flow(back.flow, back.source, back.target).landscape.topics.notes
    assert any(note.startswith("a run would refuse: ") for note in notes)

    both.fence(forward)
    for partition in range(PARTITIONS):
        write(nyc, topic, 5, partition)
    assert reasons(back.run()) == [NOT_ADOPTED] * PARTITIONS
    assert ends_of(sf, topic) == before, "nothing begins by itself, the partition that was empty included"
    starts = [10, 10, 0]
    with pytest.raises(BadInput, match="would come back to sf"):
        both.adopt(back, 0, starts[0] - 1)
    for partition, records in enumerate(starts):
        both.adopt(back, partition, records + (1 if records else 0))  # the transaction's marker
    with pytest.raises(FlowHeld):
        forward_lifted_too_early(both)
    assert back.run().records == 5 * PARTITIONS
    assert back.run().records == 0

    both.fence(back)
    both.lift(forward)
    assert reasons(forward.run()) == [NOT_ADOPTED] * PARTITIONS, "its records end in front of the other's"
    both.adopt_ends(forward)
    write(sf, topic, 7, 1)
    report = forward.run()
    assert (report.records, reasons(report)) == (7, [])
    for partition, count in enumerate((15, 22, 5)):
        here = read(sf, topic, partition)
        assert len(here) == count
        assert here == read(nyc, topic, partition)


def forward_lifted_too_early(both: Both) -> None:
    """Both open: neither writes. The remedy is a fence on one of them."""
    both.lift(both.forward)
    with pytest.raises(FlowHeld):
        both.back.run()
    try:
        both.forward.run()
    finally:
        both.fence(both.forward)


def test_a_failback_never_begins_by_itself_where_retention_has_emptied_the_old_side(both: Both) -> None:
    """An empty partition has no foreign data: only the rule stands between it and a second copy of all."""
    topic, forward, back, sf = both.topic, both.forward, both.back, both.sf
    write(sf, topic, 10)
    forward.run()
    both.fence(forward)
    delete_records(sf, topic, 10)
    report = back.run()
    assert reasons(report) == [NOT_ADOPTED] * PARTITIONS
    assert ends_of(sf, topic)[0] == (10, 10)
    parked = report.parked[0].parked
    assert parked is not None
    assert parked["remedy"].startswith(f"`causeway adopt {back.flow.name} {topic} 0 OFFSET --because ")
    assert f"flow {forward.flow.name} leads the other way" in parked["facts"]


def test_expired_positions_open_no_way_round(both: Both) -> None:
    """A fenced flow renews nothing: a week later only its map tells where it wrote."""
    topic, forward, back, sf, nyc = both.topic, both.forward, both.back, both.sf, both.nyc
    write(sf, topic, 10)
    forward.run()
    both.fence(forward)
    forget_positions(nyc, forward.flow.group)
    with pytest.raises(BadInput, match="must be 10 or more"):
        both.adopt(back, 0, 3)
    both.adopt(back, 0, 11)
    write(nyc, topic, 4)
    assert back.run().records == 4
    both.fence(back)
    both.lift(forward)
    assert NOT_ADOPTED in reasons(forward.run())
    assert ends_of(nyc, topic)[0] == (0, 15)


def test_a_topic_of_the_other_side_is_neither_made_nor_begun(
    both: Both, topic_name: Callable[..., str]
) -> None:
    topic, forward, back, sf, nyc = both.topic, both.forward, both.back, both.sf, both.nyc
    forward.run()
    both.fence(forward)
    local = topic_name("only-nyc")
    create_topic(nyc, local)
    write(nyc, local, 3)
    report = back.over(topic, local).run()
    assert f"not on sf, and a failback makes no topics: {local}" in report.notes
    assert not [place for place in topic_ends(sf) if place[0] == local]


def test_what_was_recreated_may_be_filled_from_the_beginning_once(both: Both) -> None:
    """Rebuild: the old side's topic is made again; the way home then begins after what it got."""
    topic, forward, back, sf, nyc = both.topic, both.forward, both.back, both.sf, both.nyc
    write(sf, topic, 10)
    forward.run()
    both.fence(forward)
    delete_topic(sf, topic)
    create_topic(sf, topic, PARTITIONS)
    both.adopt(back, 0, 0)
    report = back.run()
    assert report.records == 10
    assert read(sf, topic, 0) == read(nyc, topic, 0)
    both.fence(back)
    both.lift(forward)
    with pytest.raises(BadInput, match="would come back to nyc"):
        restart_topic(
            forward.flow, forward.source, forward.target, topic, Reason(by="a test", because="anew")
        )
    both.adopt_ends(forward)
    write(sf, topic, 2)
    assert forward.run().records == 2
    assert read(sf, topic, 0) == read(nyc, topic, 0)
