"""The offset map under maintenance, on real brokers: it says the same in less, and a mirror never notices."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from causeway.brokers.wire.lane_transaction import LaneTransaction
from causeway.core.copy.ports import OutcomeUnknown
from causeway.core.kernel.errors import ClusterUnreachable, FlowFenced, Superseded
from causeway.core.kernel.identity import SourceOffset, TargetOffset
from causeway.core.kernel.identity import TopicPartition as Place
from causeway.core.model.flow import CopyLimits
from causeway.core.offsets import map_maintenance as rules
from causeway.core.offsets.map_format import encode_range
from causeway.core.offsets.offset_map import map_partition
from causeway.core.offsets.translation import PartitionMap, ToSource, ToTarget
from causeway.core.offsets.why_not import OlderThanMap
from causeway.lab.clients import producer, wait_for_leaders
from causeway.lab.cluster import LabCluster
from causeway.usecases.offsets.maintain_map import Maintenance, MaintenanceReport, maintain_map
from causeway.usecases.offsets.translate import load_flow_map
from causeway.usecases.run_lock.fence import fence_flow
from causeway.usecases.run_lock.ownership import RunOwner, acquire_ownership
from causeway.usecases.session.both_clusters import open_target
from tests.support.mirroring import Mirror, make_flow
from tests.support.quick import quick_producer

pytestmark = pytest.mark.integration
RECORDS, A_BATCH = 600, 10


ON_BOTH = pytest.mark.parametrize("mirror", ["nyc", "nyc_v1"], indirect=True)


@pytest.fixture
def mirror(
    request: pytest.FixtureRequest, sf: LabCluster, sf_admin: AdminClient, topic_name: Callable[..., str]
) -> Iterator[Mirror]:
    """60 transactions of a batch each, and a map of its own."""
    topic = topic_name("kept")
    sf_admin.create_topics([NewTopic(topic, 1)])[topic].result(30)
    wait_for_leaders(sf_admin, {topic: 1})
    limits = CopyLimits(transaction_bytes=1, fetch_bytes=256 << 10)
    flow = make_flow(topic.replace("-", "_"), topic, source=topic, lanes=1, limits=limits)
    made = Mirror(flow, sf, request.getfixturevalue(getattr(request, "param", "nyc")))
    write(made)
    assert made.run().outcome == "caught up"
    yield made
    made.close()


def write(mirror: Mirror, count: int = RECORDS) -> None:
    client = quick_producer(mirror.source.endpoint(), batch_num_messages=A_BATCH)
    for number in range(count):
        client.produce(mirror.flow.source, b"%d" % number, b"k", partition=0)
    assert client.flush(30) == 0


def maintain(mirror: Mirror) -> MaintenanceReport:
    return maintain_map(mirror.flow, mirror.target.endpoint(), mirror.said.append)


def index(mirror: Mirror) -> PartitionMap:
    found = load_flow_map(mirror.flow, mirror.target.endpoint())
    there = found.of_target(found.target_of(Place(mirror.flow.source, 0)))
    assert isinstance(there, PartitionMap)
    return there


def told(mirror: Mirror, count: int = RECORDS) -> tuple[list[ToTarget], list[ToSource]]:
    there = index(mirror)
    forth = there.to_targets(map(SourceOffset, range(count + 2)))
    back = there.to_sources(map(TargetOffset, range(count // A_BATCH * (A_BATCH + 1) + 2)))
    return forth, back


def exact(count: int) -> list[int]:
    """Each batch of ten is a transaction; its marker takes an offset on the target."""
    return [n + n // A_BATCH for n in range(count)]


@ON_BOTH
def test_it_says_the_same_in_less_and_a_second_time_there_is_nothing_to_do(mirror: Mirror) -> None:
    before = told(mirror)
    assert before[0][:RECORDS] == exact(RECORDS)
    report = maintain(mirror)
    assert (report.entries_before, report.entries_after, report.put_off) == (60, 1 + rules.KEPT_RUNS, [])
    assert report.bytes_after < report.bytes_before / 3
    assert told(mirror) == before
    again = maintain(mirror)
    assert (again.transactions, again.entries_after, again.bytes_after) == (
        0,
        report.entries_after,
        report.bytes_after,
    )


def test_a_lost_position_is_rebuilt_from_a_map_that_was_merged(
    mirror: Mirror, admin_of: Callable[[LabCluster], AdminClient]
) -> None:
    maintain(mirror)
    group = mirror.flow.group
    admin_of(mirror.target).delete_consumer_groups([group])[group].result(30)
    write(mirror, 20)
    report = mirror.run()
    assert (report.outcome, report.lag, report.parked) == ("caught up", 0, [])
    verified = mirror.verify()
    assert (verified.unequal, verified.records_equal) == ((), RECORDS + 20)
    assert told(mirror, RECORDS + 20)[0][: RECORDS + 20] == exact(RECORDS + 20)


def test_what_the_target_no_longer_holds_is_taken_away(
    mirror: Mirror, admin_of: Callable[[LabCluster], AdminClient]
) -> None:
    target = mirror.flow.naming.target_topic(mirror.flow.source)
    begin = 400 // A_BATCH * (A_BATCH + 1)
    admin_of(mirror.target).delete_records([TopicPartition(target, 0, begin)])[
        TopicPartition(target, 0)
    ].result(30)
    report = maintain(mirror)
    assert (report.entries_before, report.entries_after) == (60, 20)
    found = index(mirror)
    assert found.to_target(SourceOffset(399)) == OlderThanMap(SourceOffset(400), TargetOffset(begin))
    assert found.to_targets(map(SourceOffset, range(400, RECORDS))) == exact(RECORDS)[400:]


def test_a_run_that_a_lane_writes_again_meanwhile_is_not_taken_away(mirror: Mirror) -> None:
    """As after a lost tail: under the same key, between the maintenance's read and its commit."""
    append, written = Maintenance._append_batch, False

    async def first_the_lane(
        self: Maintenance, place: Place, records: Sequence[tuple[bytes, bytes | None]]
    ) -> int:
        nonlocal written
        if not written:
            lane_writes_again(mirror, place, 300)
            written = True
        return await append(self, place, records)

    before = told(mirror)
    with patch.object(Maintenance, "_append_batch", first_the_lane):
        report = maintain(mirror)
    assert (len(report.put_off), report.transactions, report.entries_after) == (1, 0, 60)
    assert told(mirror)[0][:300] == before[0][:300]
    assert index(mirror).to_targets([SourceOffset(300), SourceOffset(309)]) == [
        331,
        340,
    ]  # and all after it is lost
    assert not isinstance(index(mirror).to_target(SourceOffset(311)), int)


def lane_writes_again(mirror: Mirror, place: Place, source_first: int) -> None:
    from dataclasses import replace

    target = Place(mirror.flow.naming.target_topic(mirror.flow.source), 0)
    with open_target(mirror.target.endpoint()) as (network, opened):
        runs = network.run(lambda: opened.map_runs(mirror.flow.map_topic, [target]))[target]
    (run,) = [run for run in runs if run.source_first == source_first]
    key, value = encode_range(replace(run, target_first=TargetOffset(331)))
    assert map_partition(target) == place.partition
    client: Producer = producer(mirror.target.endpoint(), transactional_id=f"lane-of-{mirror.flow.name}")
    client.init_transactions(30)
    client.begin_transaction()
    client.produce(place.topic, value, key, partition=place.partition)
    client.commit_transaction(30)


@contextmanager
def dying_in_front_of_its_commit(mirror: Mirror) -> Iterator[None]:
    end = LaneTransaction.end

    async def die(self: LaneTransaction, *, commit: bool) -> None:
        if self._id == mirror.flow.maintenance_id:
            raise OutcomeUnknown("killed")
        await end(self, commit=commit)

    with patch.object(LaneTransaction, "end", die):
        yield


@ON_BOTH
def test_a_maintenance_that_dies_leaves_the_map_as_it_was_and_holds_nobody_up(mirror: Mirror) -> None:
    before = told(mirror)
    with (
        dying_in_front_of_its_commit(mirror),
        pytest.raises(ClusterUnreachable, match="killed; run it again: the map is right"),
    ):
        maintain(mirror)
    assert told(mirror) == before
    write(mirror, 100)
    assert mirror.run().lag == 0
    assert told(mirror, RECORDS + 100)[0][: RECORDS + 100] == exact(RECORDS + 100)
    report = maintain(mirror)
    assert (report.entries_before, report.entries_after) == (70, 1 + rules.KEPT_RUNS)
    assert told(mirror, RECORDS + 100)[0][: RECORDS + 100] == exact(RECORDS + 100)


def test_a_fence_keeps_it_out_also_one_that_had_begun(mirror: Mirror) -> None:
    endpoint = mirror.target.endpoint()
    with open_target(endpoint) as (network, opened):
        late = Maintenance(mirror.flow, opened, network, mirror.said.append)
        append = late._append_batch

        async def when_fenced(place: Place, records: Sequence[tuple[bytes, bytes | None]]) -> int:
            base = await append(place, records)
            fencing = threading.Thread(
                target=fence_flow, args=(mirror.flow, endpoint), kwargs={"by": "test", "because": "test"}
            )
            fencing.start()
            fencing.join()
            return base

        late._append_batch = when_fenced  # type: ignore[method-assign]
        with pytest.raises(FlowFenced, match="fenced by test"):
            network.run(late.run)
    with pytest.raises(FlowFenced):
        maintain(mirror)
    assert told(mirror)[0][:RECORDS] == exact(RECORDS)


def test_a_run_that_begins_in_the_middle_ends_it(mirror: Mirror) -> None:
    with open_target(mirror.target.endpoint()) as (network, opened):
        late = Maintenance(mirror.flow, opened, network, mirror.said.append)
        append = late._append_batch

        async def when_a_run_began(place: Place, records: Sequence[tuple[bytes, bytes | None]]) -> int:
            base = await append(place, records)
            holder = RunOwner(name="another", run_id="another")
            await acquire_ownership(
                opened, network, mirror.flow, holder, take_over=True, say=mirror.said.append
            )
            return base

        late._append_batch = when_a_run_began  # type: ignore[method-assign]
        with pytest.raises(Superseded, match="began meanwhile"):
            network.run(late.run)
    assert told(mirror)[0][:RECORDS] == exact(RECORDS)


def test_beside_a_running_mirror_both_go_on(mirror: Mirror) -> None:
    stopping, reports = threading.Event(), list[object]()

    def keep_maintaining() -> None:
        while not stopping.is_set():
            try:
                reports.append(maintain(mirror))
            except Superseded as began:
                reports.append(began)

    beside = threading.Thread(target=keep_maintaining)
    with patch.multiple(rules, KEPT_RUNS=1, LEAST_TO_MERGE=2):
        beside.start()
        for _ in range(3):
            write(mirror, 200)
            assert mirror.run().lag == 0
        stopping.set()
        beside.join()
    assert any(isinstance(report, MaintenanceReport) and report.transactions for report in reports)
    assert told(mirror, RECORDS + 600)[0][: RECORDS + 600] == exact(RECORDS + 600)
    assert mirror.verify().unequal == ()
