from collections import Counter

import pytest

from causeway.core.copy.lanes import lane_of
from causeway.core.kernel.identity import TopicPartition

# Were one of these ever to change, two owners could write one partition: a new rule needs a fence first.
PINNED = {
    ("sf.orders", 0): (3, 3),
    ("sf.orders", 1): (5, 5),
    ("sf.orders", 9): (7, 7),
    ("orders", 0): (2, 2),
    ("a", 2147483647): (7, 15),
    ("münchen", 3): (3, 3),
}


@pytest.mark.parametrize(("topic", "partition"), PINNED)
def test_a_partition_has_the_same_lane_in_every_process_and_version(topic: str, partition: int) -> None:
    target = TopicPartition(topic, partition)
    assert (lane_of(target, 8), lane_of(target, 16)) == PINNED[topic, partition]


@pytest.mark.parametrize("lanes", [1, 2, 16, 100])
def test_every_partition_has_a_lane_and_every_lane_partitions(lanes: int) -> None:
    found = Counter(lane_of(TopicPartition(f"t{i % 50}", i), lanes) for i in range(5_000))
    assert set(found) == set(range(lanes))
    assert max(found.values()) < 2 * 5_000 / lanes


def test_neighbours_do_not_share_a_lane_by_their_names() -> None:
    assert lane_of(TopicPartition("a1", 1), 1 << 30) != lane_of(TopicPartition("a", 11), 1 << 30)
