"""Another lane's open transaction holds the offset map's last stable offset back: what is committed after it
still counts. Lanes share the map's partitions, so in a round of several lanes this is the normal case."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from causeway.core.model.naming import PrefixNaming
from causeway.core.offsets.offset_map import MAP_PARTITIONS
from causeway.lab.clients import producer, wait_for_leaders
from causeway.lab.cluster import LabCluster
from tests.support.mirroring import Mirror, make_flow
from tests.support.quick import quick_producer

pytestmark = pytest.mark.integration


@pytest.fixture(params=["nyc", "nyc_v1"])
def mirror(
    request: pytest.FixtureRequest,
    sf: LabCluster,
    sf_admin: AdminClient,
    topic_name: Callable[..., str],
) -> Iterator[Mirror]:
    """With a map of its own: other tests' maps must not be held back."""
    target: LabCluster = request.getfixturevalue(request.param)
    topic = topic_name("held")
    sf_admin.create_topics([NewTopic(topic, 1)])[topic].result(30)
    wait_for_leaders(sf_admin, {topic: 1})
    flow = make_flow(topic.replace("-", "_"), topic, source=topic, naming=PrefixNaming("sf"), lanes=1)
    made = Mirror(flow, sf, target)
    yield made
    made.close()


@pytest.fixture
def other_lane(mirror: Mirror) -> Producer:
    made = producer(mirror.target.endpoint(), transactional_id=f"other-lane-{mirror.flow.name}")
    made.init_transactions(30)
    return made


@pytest.mark.parametrize("in_the_end", ["commit", "abort"])
def test_a_position_is_rebuilt_from_what_is_committed_after_an_open_transaction(
    mirror: Mirror,
    other_lane: Producer,
    admin_of: Callable[[LabCluster], AdminClient],
    in_the_end: str,
) -> None:
    write(mirror, 100)
    assert mirror.run().outcome == "caught up"
    other_lane.begin_transaction()
    for partition in range(MAP_PARTITIONS):
        other_lane.produce(mirror.flow.map_topic, None, b"open", partition=partition)
    assert other_lane.flush(30) == 0
    write(mirror, 100)
    assert mirror.run().outcome == "caught up"

    group = mirror.flow.group
    admin_of(mirror.target).delete_consumer_groups([group])[group].result(30)
    write(mirror, 100)
    report = mirror.run()
    (other_lane.commit_transaction if in_the_end == "commit" else other_lane.abort_transaction)(30)
    assert (report.outcome, report.lag, report.parked) == ("caught up", 0, [])
    verified = mirror.verify()
    assert (verified.unequal, verified.records_equal) == ((), 300)


def write(mirror: Mirror, count: int) -> None:
    client = quick_producer(mirror.source.endpoint(), batch_num_messages=10)
    for number in range(count):
        client.produce(mirror.flow.source, b"%d" % number, b"k", partition=0)
    assert client.flush(30) == 0
