"""Adopting one partition says nothing about its siblings, nor about what the map knew before."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.ports import Clock
from causeway.core.copy.report import RunReport
from causeway.core.kernel.errors import BadInput, NotAuthorized
from causeway.core.kernel.identity import Generation, TopicPartition
from causeway.core.model.flow import Flow
from causeway.lab.cluster import LabCluster
from causeway.usecases.inspect.flow_status import inspect_flow
from causeway.usecases.repair import adopt as adopt_module
from causeway.usecases.repair import set_positions
from causeway.usecases.repair.adopt import Adopted, adopt_partition
from causeway.usecases.repair.set_positions import Reason
from causeway.usecases.run_lock.fence import fence_flow
from causeway.usecases.run_lock.ownership import write_fence
from tests.support.inline_flow import (
    InlineFlow,
    create_topic,
    delete_topic,
    grow_topic,
    own_flow,
    topic_ends,
    topic_of,
    write,
)
from tests.support.janitor import forget_positions
from tests.support.killing import killed_after
from tests.support.meanwhile import meanwhile

pytestmark = pytest.mark.integration


@pytest.fixture
def runs(sf: LabCluster, nyc: LabCluster) -> InlineFlow:
    return own_flow(sf, nyc, "adopts")


def adopt(runs: InlineFlow, partition: int, offset: int, **options: bool) -> Adopted:
    at = TopicPartition(topic_of(runs), partition)
    reason = Reason(by="a test", because="it is one")
    return adopt_partition(runs.flow, runs.source, runs.target, at, offset, reason, **options)


def reasons(report: RunReport) -> dict[str, str]:
    return {p.source: p.parked["reason"] for p in report.parked if p.parked}


def test_siblings_in_a_recreated_topic_stay_parked(runs: InlineFlow, sf: LabCluster, nyc: LabCluster) -> None:
    topic = topic_of(runs)
    create_topic(sf, topic, 2)
    for partition in (0, 1):
        write(sf, topic, 30, partition)
    assert runs.run().records == 60
    delete_topic(nyc, f"sf.{topic}")
    create_topic(nyc, f"sf.{topic}", 2)
    adopt(runs, 0, 20)

    report = runs.run()

    assert reasons(report) == {f"{topic}-1": "position lost"}
    ends = topic_ends(nyc)
    assert ends[f"sf.{topic}", 0] == (0, 11)  # ten records and the transaction's marker
    assert ends[f"sf.{topic}", 1] == (0, 0)
    adopt(runs, 1, 30)
    assert reasons(runs.run()) == {}


def test_a_partition_that_a_smaller_topic_gets_later_begins_by_itself(
    runs: InlineFlow, sf: LabCluster, nyc: LabCluster
) -> None:
    """It was recreated with one partition; what it had before says nothing of those that come."""
    topic = topic_of(runs)
    create_topic(sf, topic, 3)
    write(sf, topic, 30)
    runs.run()
    for cluster, name in ((sf, topic), (nyc, f"sf.{topic}")):
        delete_topic(cluster, name)
        create_topic(cluster, name)
    write(sf, topic, 5)
    adopt(runs, 0, 0)
    assert runs.run().records == 5
    grow_topic(sf, topic, 2)
    write(sf, topic, 7, 1)
    report = runs.run()
    assert (report.records, reasons(report)) == (7, {})


def test_an_adoption_that_was_broken_off_leaves_more_than_a_committed_offset(
    runs: InlineFlow, sf: LabCluster, nyc: LabCluster
) -> None:
    """From its first word on the map's older runs say nothing of where to go on."""
    topic = topic_of(runs)
    create_topic(sf, topic)
    write(sf, topic, 30)
    runs.run()
    with killed_after(adopt_module, "remember_pair"):
        adopt(runs, 0, 10, even_though_healthy=True)
    assert runs.run().records == 0, "it goes on where it stood"
    forget_positions(nyc, runs.flow.group)
    write(sf, topic, 5)
    report = runs.run()
    assert (report.records, reasons(report)) == (5, {})


def test_an_adoption_that_expired_is_not_replaced_by_what_the_map_knew_before(
    runs: InlineFlow, sf: LabCluster, nyc: LabCluster
) -> None:
    topic = topic_of(runs)
    create_topic(sf, topic)
    write(sf, topic, 30)
    runs.run()
    write(sf, topic, 30)
    assert (
        adopt(runs, 0, 60, even_though_healthy=True).stood_at == 30
    )  # a person decided to leave these thirty out
    forget_positions(nyc, runs.flow.group)
    write(sf, topic, 5)

    assert runs.run().records == 5, "it goes on where a person set it"
    forget_positions(nyc, runs.flow.group)
    write(sf, topic, 7)
    assert runs.run().records == 7, "what was mirrored behind the adoption is in the map"


def test_an_adoption_that_fails_leaves_no_fence(
    sf: LabCluster, nyc: LabCluster, runs: InlineFlow, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = topic_of(runs)
    create_topic(sf, topic)
    create_topic(nyc, f"sf.{topic}")
    write(sf, topic, 3)
    denied = NotAuthorized("group", value=runs.flow.group, rule="a right was taken away just now")

    async def refuse(*_: object) -> None:
        raise denied

    with monkeypatch.context() as broken:
        broken.setattr("causeway.usecases.repair.adopt.commit_positions", refuse)
        with pytest.raises(NotAuthorized):
            adopt(runs, 0, 0)
    assert inspect_flow(runs.flow, runs.source, runs.target).state.fence is None
    adopt(runs, 0, 1)
    assert runs.run().records == 2


def test_a_fence_that_was_raised_in_the_middle_of_an_adoption_stands_in_its_own_words(
    sf: LabCluster, nyc: LabCluster, runs: InlineFlow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Adopting fences the flow for a moment; taking that away must not open what somebody has shut."""
    topic = topic_of(runs)
    create_topic(sf, topic)
    create_topic(nyc, f"sf.{topic}")
    write(sf, topic, 3)
    raised: list[bool] = []
    fence = write_fence

    async def raise_another_first(target: WireTarget, clock: Clock, flow: Flow, **words: Any) -> Generation:
        if not raised:
            raised.append(True)
            await fence(target, clock, flow, by="ops", because="nyc takes over")
        return await fence(target, clock, flow, **words)

    with monkeypatch.context() as racing:
        racing.setattr("causeway.usecases.repair.set_positions.write_fence", raise_another_first)
        adopt(runs, 0, 1)
    stands = inspect_flow(runs.flow, runs.source, runs.target).state.fence
    assert stands is not None
    assert (stands.by, stands.because) == ("ops", "nyc takes over")
    since_ms = stands.since_ms
    adopt(runs, 0, 2, even_though_healthy=True)  # and so it is where the fence was known
    stands = inspect_flow(runs.flow, runs.source, runs.target).state.fence
    assert stands is not None
    assert (stands.by, stands.because, stands.since_ms) == ("ops", "nyc takes over", since_ms)


def test_a_fence_that_is_raised_while_an_adoption_holds_its_own_outlives_it(
    sf: LabCluster, nyc: LabCluster, runs: InlineFlow, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = topic_of(runs)
    create_topic(sf, topic)
    create_topic(nyc, f"sf.{topic}")
    write(sf, topic, 3)
    commit = set_positions.commit_positions

    async def fence_first(*given: Any) -> object:
        meanwhile(lambda: fence_flow(runs.flow, runs.target, by="ops", because="stop"))
        return await commit(*given)

    with monkeypatch.context() as racing:
        racing.setattr("causeway.usecases.repair.adopt.commit_positions", fence_first)
        adopt(runs, 0, 1)
    stands = inspect_flow(runs.flow, runs.source, runs.target).state.fence
    assert stands is not None
    assert (stands.by, stands.because) == ("ops", "stop")


def test_a_healthy_partition_is_adopted_by_those_only_who_mean_it(runs: InlineFlow, sf: LabCluster) -> None:
    topic = topic_of(runs)
    create_topic(sf, topic)
    write(sf, topic, 30)
    runs.run()
    with pytest.raises(BadInput, match=r"stands at source offset 30 .*\(10 to 29\) would be copied again"):
        adopt(runs, 0, 10)
    assert inspect_flow(runs.flow, runs.source, runs.target).state.set_by_hand == {}
    assert adopt(runs, 0, 10, dry_run=True).is_healthy
    adopt(runs, 0, 30)  # moves nothing: a command may be typed again
    adopt(runs, 0, 10, even_though_healthy=True)
    entries = inspect_flow(runs.flow, runs.source, runs.target).state.set_by_hand.values()
    assert [(e.how, e.by, [(p.source_next, p.stood_at) for p in e.places]) for e in entries] == [
        ("adopt", "a test", [(30, 30)]),
        ("adopt", "a test", [(10, 30)]),
    ]


def test_a_second_fence_stands_in_its_own_words(runs: InlineFlow) -> None:
    first = fence_flow(runs.flow, runs.target, by="amy", because="nyc takes over")
    second = fence_flow(runs.flow, runs.target, by="bob", because="what is this?")
    assert (first.changed, second.changed) == (True, True)
    assert second.stands == inspect_flow(runs.flow, runs.source, runs.target).state.fence
    assert first.stands is not None
    assert second.stands is not None
    assert (second.stands.by, second.stands.because) == ("bob", "what is this?")
    assert second.standing == (first.stands, second.stands)
