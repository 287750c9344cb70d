"""What a flow finds out about itself and its topics: parked with the remedy, and nothing that is normal."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from causeway.core.copy.ports import Unreachable
from causeway.core.copy.report import RunReport
from causeway.core.kernel.errors import BadInput, ClusterUnreachable, FlowFenced
from causeway.core.kernel.identity import TopicPartition
from causeway.core.state.parked import ParkReason
from causeway.lab.clients import producer
from causeway.lab.cluster import LabCluster
from causeway.usecases.inspect.flow_status import inspect_flow
from causeway.usecases.repair.accept_gap import accept_gap
from causeway.usecases.repair.adopt import adopt_partition
from causeway.usecases.repair.reconcile import Reconciled, reconcile_partition
from causeway.usecases.repair.restart_topic import Restarted, restart_topic
from causeway.usecases.repair.set_positions import Reason
from tests.proofs.gaps.loss_cases import append, shown
from tests.support.inline_flow import (
    InlineFlow,
    create_topic,
    delete_records,
    delete_topic,
    mirror_of,
    named,
    topic_ends,
)
from tests.support.janitor import forget_positions
from tests.support.mirroring import Mirror, make_flow

pytestmark = pytest.mark.integration
WHY = Reason(by="a test", because="it is one")


@pytest.fixture
def name() -> str:
    return uuid.uuid4().hex[:8]


@pytest.fixture
def made(sf: LabCluster, nyc: LabCluster) -> Iterator[Callable[..., Mirror]]:
    mirrors: list[Mirror] = []

    def make(flow: str, *topics: str, **changes: Any) -> Mirror:
        mirrors.append(Mirror(make_flow(flow, *topics, **changes), sf, nyc))
        return mirrors[-1]

    yield make
    for mirror in mirrors:
        mirror.close()


def reasons(report: RunReport) -> dict[str, str]:
    return {p.source: p.parked["reason"] for p in report.parked if p.parked}


def reconcile(mirror: Mirror, topic: str, partition: int = 0) -> Reconciled:
    at = TopicPartition(topic, partition)
    return reconcile_partition(mirror.flow, mirror.source.endpoint(), mirror.target.endpoint(), at, WHY)


def restart(mirror: Mirror, topic: str) -> Restarted:
    return restart_topic(mirror.flow, mirror.source.endpoint(), mirror.target.endpoint(), topic, WHY)


def fence_of(mirror: Mirror) -> Any:
    return inspect_flow(mirror.flow, mirror.source.endpoint(), mirror.target.endpoint()).state.fence


def test_a_flow_that_was_renamed_is_found_and_goes_on_where_the_old_one_ended(
    sf: LabCluster, nyc: LabCluster, made: Callable[..., Mirror], name: str
) -> None:
    topic = f"renamed-{name}"
    create_topic(sf, topic, 2)
    append(sf, topic, "first", 20)
    old = made(f"old_{name}", topic)
    assert old.run().records == 20
    delete_records(nyc, f"sf.{topic}", 21)  # not even data shows that it was mirrored
    append(sf, topic, "second", 10)
    new = made(f"new_{name}", topic)
    before = topic_ends(nyc)[f"sf.{topic}", 0]

    assert reasons(new.run()) == dict.fromkeys([f"{topic}-0", f"{topic}-1"], ParkReason.OTHER_FLOW)
    assert reasons(new.run()) != {}, "looking at it makes it nobody's"
    assert topic_ends(nyc)[f"sf.{topic}", 0] == before
    done = [reconcile(new, topic, partition) for partition in (0, 1)]

    assert [each.found.told_by for each in done] == [f"the position of flow old_{name}"] * 2
    assert new.run().records == 10
    assert shown(nyc, f"sf.{topic}") == shown(sf, topic)[20:]
    with pytest.raises(FlowFenced, match=f"renamed to new_{name}"):
        old.run()


def test_after_a_foreign_writer_a_flow_goes_on_once_it_was_reconciled(
    sf: LabCluster, nyc: LabCluster, made: Callable[..., Mirror], name: str
) -> None:
    topic = f"foreign-{name}"
    create_topic(sf, topic)
    append(sf, topic, "ours", 20)
    mirror = made(f"foreign_{name}", topic)
    mirror.run()
    append(nyc, f"sf.{topic}", "theirs", 3)
    append(sf, topic, "more", 10)

    assert reasons(mirror.run()) == {f"{topic}-0": ParkReason.FOREIGN_WRITER}
    done = reconcile(mirror, topic)
    assert (done.found.found, done.found.foreign) == (0, 3)
    assert mirror.run().records == 10
    seen, ours = shown(nyc, f"sf.{topic}"), shown(sf, topic)
    assert [value for value in seen if not value.startswith("theirs")] == ours
    assert reconcile(mirror, topic).adopted is None, "again: nothing to do"


def test_a_position_that_neither_group_nor_map_knows_is_found_by_the_records(
    sf: LabCluster, nyc: LabCluster, made: Callable[..., Mirror], name: str
) -> None:
    topic = f"lost-{name}"
    create_topic(sf, topic)
    append(sf, topic, "first", 30)
    mirror = made(f"lost_{name}", topic, source=f"sf{name}")  # a map of its own, to be lost
    mirror.run()
    append(sf, topic, "second", 10)
    forget_positions(nyc, mirror.flow.group)
    delete_topic(nyc, mirror.flow.map_topic)

    assert reasons(mirror.run()) == {f"{topic}-0": ParkReason.POSITION_LOST}
    done = reconcile(mirror, topic)
    assert done.found.told_by == "the target's last records"
    assert done.adopted is not None
    assert done.adopted.source_offset == 30
    assert mirror.run().records == 10
    assert shown(nyc, f"sf.{topic}") == shown(sf, topic)


def test_where_the_records_do_not_tell_nothing_is_guessed(
    sf: LabCluster, nyc: LabCluster, made: Callable[..., Mirror], name: str
) -> None:
    topic = f"untold-{name}"
    create_topic(sf, topic)
    create_topic(nyc, f"sf.{topic}")
    append(sf, topic, "ours", 10)
    append(nyc, f"sf.{topic}", "theirs", 10)
    mirror = made(f"untold_{name}", topic)
    assert reasons(mirror.run()) == {f"{topic}-0": ParkReason.FOREIGN_DATA}
    with pytest.raises(BadInput, match="10 records are nowhere in the source"):
        reconcile(mirror, topic)
    assert fence_of(mirror) is None


def test_a_deleted_source_parks_until_a_person_ends_the_matter(
    sf: LabCluster, nyc: LabCluster, made: Callable[..., Mirror], name: str
) -> None:
    gone, stays = f"gone-{name}", f"stays-{name}"
    for topic in (gone, stays):
        create_topic(sf, topic)
        append(sf, topic, "first", 10)
    mirror = made(f"deleted_{name}", f".*-{name}")
    mirror.run()
    delete_topic(sf, gone)
    append(sf, stays, "second", 5)

    report = mirror.run()
    assert reasons(report) == {f"{gone}-0": ParkReason.SOURCE_DELETED}
    assert report.records == 5
    assert [restart(mirror, gone).how for _ in range(2)] == ["forgotten"] * 2, "it may be said again"
    assert reasons(mirror.run()) == {}
    assert len(shown(nyc, f"sf.{gone}")) == 10, "the mirror stays"

    create_topic(sf, gone)
    append(sf, gone, "anew", 4)
    assert reasons(mirror.run()) == {f"{gone}-0": ParkReason.SOURCE_RECREATED}
    assert restart(mirror, gone).how == "begun anew"
    assert restart(mirror, gone).how == "nothing to do"
    assert mirror.run().records == 4
    assert shown(nyc, f"sf.{gone}")[10:] == shown(sf, gone)


def test_a_source_recreated_that_ends_just_where_the_old_one_did_is_no_mirror_that_is_caught_up(
    sf: LabCluster, nyc: LabCluster, made: Callable[..., Mirror], name: str
) -> None:
    """No offset and no epoch tells, and nothing waits to be copied: no lane would look at it."""
    topic = f"level-{name}"
    create_topic(sf, topic)
    append(sf, topic, "first", 10)
    mirror = made(f"level_{name}", topic)
    mirror.run()
    delete_topic(sf, topic)
    create_topic(sf, topic)
    append(sf, topic, "anew", 10)

    assert reasons(mirror.run()) == {f"{topic}-0": ParkReason.SOURCE_RECREATED}
    assert restart(mirror, topic).how == "begun anew"
    assert mirror.run().records == 10
    assert shown(nyc, f"sf.{topic}")[10:] == shown(sf, topic)


def test_a_deleted_target_that_is_forgotten_is_made_again_by_the_next_run(
    sf: LabCluster, nyc: LabCluster, made: Callable[..., Mirror], name: str
) -> None:
    topic = f"remade-{name}"
    create_topic(sf, topic)
    append(sf, topic, "first", 10)
    mirror = made(f"remade_{name}", topic)
    mirror.run()
    delete_topic(nyc, f"sf.{topic}")
    create_topic(nyc, f"sf.{topic}")
    assert reasons(mirror.run()) == {f"{topic}-0": ParkReason.TARGET_RECREATED}
    assert restart(mirror, topic).how == "begun anew"
    assert mirror.run().records == 10
    assert shown(nyc, f"sf.{topic}") == shown(sf, topic)


def test_retention_that_passes_the_position_inside_a_run(sf: LabCluster, nyc: LabCluster, name: str) -> None:
    """Planned when all was there; gone when the lane fetches."""
    topic = f"inside-{name}"
    create_topic(sf, topic)
    append(sf, topic, "first", 5)
    flow = mirror_of(f"inside_{name}", topic)
    runs = InlineFlow(flow, named(sf, "sf"), named(nyc, "nyc"))
    assert runs.run().records == 5
    mirrored = shown(sf, topic)
    append(sf, topic, "second", 20)
    runs.before_round = lambda number: delete_records(sf, topic, 12) if number == 0 else None

    (partition,) = runs.run().parked

    assert partition.parked is not None
    assert partition.parked["reason"] == ParkReason.SOURCE_GAP
    assert f"accept-gap inside_{name} {topic} 0 5 12 " in partition.parked["remedy"]
    assert shown(nyc, f"sf.{topic}") == mirrored
    runs.before_round = lambda _: None
    for first, end in ((5, 11), (5, 13), (4, 12), (6, 12), (0, 25)):
        with pytest.raises(BadInput, match="must be the gap that is seen, offsets 5 to 11") as refused:
            accept_gap(flow, sf.endpoint(), nyc.endpoint(), TopicPartition(topic, 0), first, end, WHY)
        assert f"accept-gap inside_{name} {topic} 0 5 12 " in refused.value.remedy
    assert not inspect_flow(flow, runs.source, runs.target).state.gaps
    done = accept_gap(flow, sf.endpoint(), nyc.endpoint(), TopicPartition(topic, 0), 5, 12, WHY)
    assert done.adopted is not None
    assert runs.run().records == 13
    assert shown(nyc, f"sf.{topic}") == mirrored + shown(sf, topic)
    with pytest.raises(BadInput, match="none is seen: the source has all from 25 on"):
        accept_gap(flow, sf.endpoint(), nyc.endpoint(), TopicPartition(topic, 0), 5, 11, WHY)


def test_what_is_normal_is_not_reported_as_anything(
    sf: LabCluster, nyc: LabCluster, made: Callable[..., Mirror], name: str
) -> None:
    """The target's own retention, past all that was mirrored; markers and aborts at the source's end."""
    topic = f"normal-{name}"
    create_topic(sf, topic)
    append(sf, topic, "first", 10)
    mirror = made(f"normal_{name}", topic)
    mirror.run()
    delete_records(nyc, f"sf.{topic}", topic_ends(nyc)[f"sf.{topic}", 0][1])
    writer = producer(sf.endpoint(), transactional_id=f"normal-{name}")
    writer.init_transactions(30)
    for keep in (True, False, False):
        writer.begin_transaction()
        writer.produce(topic, b"in a transaction", partition=0)
        writer.flush(30)
        if keep:
            writer.commit_transaction(30)
        else:
            writer.abort_transaction(30)

    report = mirror.run()

    assert (reasons(report), report.records, report.lag) == ({}, 1, 0)
    assert shown(nyc, f"sf.{topic}") == ["in a transaction"]
    delete_records(sf, topic, topic_ends(sf)[topic, 0][1])  # after the mirror: nothing is lost
    again = mirror.run()
    assert (reasons(again), again.records, again.lag) == ({}, 0, 0)
    view = inspect_flow(mirror.flow, sf.endpoint(), nyc.endpoint())
    assert (view.plan.parked, view.plan.later) == ({}, {})


def test_aborted_leftovers_that_the_targets_retention_took_are_nobodys_loss(
    sf: LabCluster, nyc: LabCluster, made: Callable[..., Mirror], name: str
) -> None:
    """Where a flow settles, too: nothing was settled there."""
    topic = f"leftovers-{name}"
    create_topic(sf, topic)
    append(sf, topic, "first", 10)
    mirror = made(f"leftovers_{name}", topic, settle=True, lanes=1)
    mirror.run()
    dead = producer(nyc.endpoint(), transactional_id=mirror.flow.transactional_id(0))
    dead.init_transactions(30)
    dead.begin_transaction()
    dead.produce(f"sf.{topic}", b"never seen", partition=0)
    dead.flush(30)
    dead.abort_transaction(30)
    end = topic_ends(nyc)[f"sf.{topic}", 0][1]
    assert end > 12, "ten records, a marker, what was aborted, another marker"
    delete_records(nyc, f"sf.{topic}", end)
    append(sf, topic, "second", 5)

    report = mirror.run()

    assert (reasons(report), report.records, report.lag) == ({}, 5, 0)
    assert shown(nyc, f"sf.{topic}") == shown(sf, topic)[10:]


def test_ctrl_c_leaves_no_fence_or_says_how_to_lift_it(
    sf: LabCluster,
    nyc: LabCluster,
    made: Callable[..., Mirror],
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = f"stopped-{name}"
    create_topic(sf, topic)
    create_topic(nyc, f"sf.{topic}")
    append(sf, topic, "first", 3)
    mirror = made(f"stopped_{name}", topic)

    async def strike(_: object, clusters: Any, *__: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)  # as Ctrl-C does, in the middle of the loop
        await clusters.network.sleep(30)

    def adopt() -> None:
        at = TopicPartition(topic, 0)
        adopt_partition(mirror.flow, sf.endpoint(), nyc.endpoint(), at, 1, WHY)

    with monkeypatch.context() as broken:
        broken.setattr("causeway.usecases.repair.adopt.commit_positions", strike)
        with pytest.raises(KeyboardInterrupt):
            adopt()
        assert fence_of(mirror) is None

        async def unreachable(*_: object) -> None:
            raise Unreachable("the target went away too")

        broken.setattr("causeway.usecases.repair.set_positions._CommandFence.lower", unreachable)
        with pytest.raises(KeyboardInterrupt, match=f"causeway lift stopped_{name}"):
            adopt()
    assert fence_of(mirror) is not None
    with monkeypatch.context() as broken:
        broken.setattr("causeway.usecases.repair.set_positions._CommandFence.lower", unreachable)
        with pytest.raises(ClusterUnreachable, match=f"causeway lift stopped_{name}"):
            adopt()
    adopt()
    assert fence_of(mirror) is not None, "that one was left by another command: only a lift opens it"
