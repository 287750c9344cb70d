"""Offsets after what makes a partition go on elsewhere: a gap, growth, an adoption, a topic recreated.

Nothing of the map is believed: the records tell what belongs together, by all that a consumer sees of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from causeway.core.kernel.identity import SourceOffset, TargetOffset, TopicPartition
from causeway.core.offsets.translation import PartitionMap
from causeway.core.offsets.why_not import AheadOfMirror, OlderThanMap
from causeway.core.state.parked import ParkReason
from causeway.lab.cluster import LabCluster
from causeway.translate import flow_map
from causeway.usecases.repair.accept_gap import accept_gap
from causeway.usecases.repair.adopt import adopt_partition
from causeway.usecases.repair.restart_topic import restart_topic
from causeway.usecases.repair.set_positions import Reason
from tests.integration.groups.stage import write
from tests.proofs.translation.truth import Tally, check_direction, contents
from tests.support.inline_flow import create_topic, delete_records, delete_topic, grow_topic
from tests.support.mirroring import Mirror, end_offsets, make_flow

pytestmark = pytest.mark.integration
WHY = Reason(by="a test", because="it is one")


class Story:
    """One topic and its mirror; what the source has ever shown of today's topic is remembered."""

    def __init__(self, source: LabCluster, target: LabCluster, topic: str) -> None:
        self.source, self.target, self.topic = source, target, topic
        self.mirror = Mirror(make_flow(topic.replace("-", "_"), topic), source, target)
        self._seen: dict[int, dict[int, int]] = {}
        self._next = 0

    def write(self, count: int, partitions: int) -> None:
        write(self.source, self.topic, range(self._next, self._next + count), partitions)
        self._next += count
        for number in range(partitions):
            offsets, known = contents(self.source, TopicPartition(self.topic, number))
            self._seen.setdefault(number, {}).update(zip(known, offsets, strict=True))

    def forget(self) -> None:
        """The topic is gone: what is written from now on is another one's."""
        self._seen.clear()

    def map_of(self, partition: int) -> PartitionMap:
        """As a consumer asks that keeps its offsets elsewhere."""
        told = self.target.endpoint().settings
        mirror = flow_map(self.mirror.flow.name, source="sf", target=told, topics=[self.topic])
        found = mirror.of_target(mirror.target_of(TopicPartition(self.topic, partition)))
        assert isinstance(found, PartitionMap)
        return found

    def check(self, partition: int) -> list[tuple[int, int]]:
        """Every offset of both sides; gives which belong together."""
        offsets, known = contents(self.target, TopicPartition(f"sf.{self.topic}", partition))
        seen = self._seen[partition]
        pairs = [(seen[each], at) for each, at in zip(known, offsets, strict=True) if each in seen]
        index, tally = self.map_of(partition), Tally()
        here, there = [source for source, _ in pairs], [at for _, at in pairs]
        check_direction("to the target", here, there, index.to_targets, tally, is_exact=True)
        check_direction("back", there, here, index.to_sources, tally, is_exact=True)
        assert tally.errors == []
        return pairs


@pytest.fixture
def story(sf: LabCluster, nyc: LabCluster, topic_name: Callable[..., str]) -> Iterator[Story]:
    made = Story(sf, nyc, topic_name("begins"))
    yield made
    made.mirror.close()


def test_offsets_lead_to_their_records_across_every_new_beginning(story: Story) -> None:
    flow, source, target = story.mirror.flow, story.source.endpoint(), story.target.endpoint()
    topic, first = story.topic, TopicPartition(story.topic, 0)
    create_topic(story.source, topic, 2)
    story.write(60, 2)
    story.mirror.run()

    story.write(40, 2)  # 30 to 49, of which retention takes ten
    delete_records(story.source, topic, 40)
    assert [p.parked["reason"] for p in story.mirror.run().parked if p.parked] == [ParkReason.SOURCE_GAP]
    accept_gap(flow, source, target, first, 30, 40, WHY)
    story.mirror.run()
    pairs = dict(story.check(0))
    assert (len(pairs), len(story.check(1))) == (40, 50)
    index = story.map_of(0)
    assert {index.to_target(SourceOffset(lost)) for lost in range(30, 41)} == {pairs[40]}

    grow_topic(story.source, topic, 3)
    story.write(30, 3)
    story.mirror.run()
    assert [len(story.check(number)) for number in range(3)] == [50, 60, 10]

    story.write(30, 3)  # 60 to 69, of which a person leaves out five
    adopt_partition(flow, source, target, first, 65, WHY, even_though_healthy=True)
    index, end = story.map_of(0), end_offsets(story.target)[f"sf.{topic}", 0][1]
    assert index.to_targets(map(SourceOffset, (61, 65))) == [end, end], "where the next record will lie"
    assert isinstance(index.to_target(SourceOffset(66)), AheadOfMirror), "not copied yet"
    story.mirror.run()
    pairs = dict(story.check(0))
    assert story.map_of(0).to_target(SourceOffset(62)) == pairs[65]
    assert [len(story.check(number)) for number in range(3)] == [55, 70, 20]


def test_offsets_of_a_topic_recreated_never_lead_to_the_one_before(story: Story) -> None:
    flow, source, target = story.mirror.flow, story.source.endpoint(), story.target.endpoint()
    create_topic(story.source, story.topic)
    story.write(40, 1)
    story.mirror.run()
    before = story.check(0)
    delete_topic(story.source, story.topic)
    create_topic(story.source, story.topic)
    story.forget()
    story.write(25, 1)
    delete_records(story.source, story.topic, 10)  # below it only the topic before has offsets in the map
    story.mirror.run()
    restart_topic(flow, source, target, story.topic, WHY)
    story.mirror.run()
    story.write(5, 1)
    story.mirror.run()

    after = story.check(0)

    assert [here for here, _ in after] == list(range(10, 30))
    assert min(there for _, there in after) > max(there for _, there in before)
    index = story.map_of(0)
    old = [TargetOffset(there) for _, there in before]
    assert {type(found) for found in index.to_sources(old)} == {OlderThanMap}
    assert {type(found) for found in index.to_targets(map(SourceOffset, range(10)))} == {OlderThanMap}
    assert {type(found) for found in index.to_targets(map(SourceOffset, range(31, 40)))} == {AheadOfMirror}
