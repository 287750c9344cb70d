"""A janitor who deletes groups that have no members: what seven days without a commit do, at once.

And another one, who makes the offset map forget.
"""

from __future__ import annotations

from collections.abc import Callable

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)

from causeway.core.offsets.map_format import is_ours, target_of
from causeway.lab.clients import admin_client
from causeway.lab.cluster import LabCluster
from tests.support.quick import QUICK_READER

_SECONDS = 20
_GONE = (KafkaError.GROUP_ID_NOT_FOUND,)


def forget_positions(cluster: LabCluster, group: str) -> None:
    """The positions of one flow, which has some."""
    admin = admin_client(cluster.endpoint())  # it answers as long as somebody holds it
    admin.delete_consumer_groups([group])[group].result(_SECONDS)


def forget_all_positions(*clusters: LabCluster, of: Callable[[str], bool] = lambda _group: True) -> int:
    """Those of every flow into these clusters whose group is one `of` these; how many flows had some.

    On clusters that tests share, a test names its own groups: another test's may have more positions than
    a coordinator deletes at once.
    """
    forgotten = 0
    for cluster in clusters:
        admin = admin_client(cluster.endpoint())
        listed = {group.group_id for group in admin.list_consumer_groups().result(_SECONDS).valid}
        ours = sorted(name for name in listed if name.startswith("causeway.") and of(name))
        for answer in (admin.delete_consumer_groups(ours) if ours else {}).values():
            try:
                answer.result(_SECONDS)
                forgotten += 1
            except KafkaException as refused:
                if refused.args[0].code() not in _GONE:
                    raise
    return forgotten


def lose_the_map(cluster: LabCluster, map_topic: str, mirror: str) -> None:
    """All that it has of one topic of the target: somebody has written tombstones."""
    settings = {
        **cluster.endpoint().settings,
        **QUICK_READER,
        "group.id": "unused",
        "enable.partition.eof": True,
    }
    consumer, writer = Consumer(settings), Producer(cluster.endpoint().settings)
    count = len(consumer.list_topics(map_topic, _SECONDS).topics[map_topic].partitions)
    consumer.assign([TopicPartition(map_topic, number, OFFSET_BEGINNING) for number in range(count)])
    waiting = set(range(count))
    try:
        while waiting:
            message = consumer.poll(_SECONDS)
            assert message is not None, "neither a record nor the end of the log"
            if message.error() is not None:
                waiting.discard(message.partition())
            elif _speaks_of(mirror, message):
                writer.produce(map_topic, key=message.key(), value=None, partition=message.partition())
        assert writer.flush(_SECONDS) == 0
    finally:
        consumer.close()


def _speaks_of(mirror: str, message: Message) -> bool:
    """The tombstones that are written meanwhile don't."""
    key = message.key()
    return message.value() is not None and is_ours(key) and target_of(key).topic == mirror
