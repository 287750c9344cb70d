"""What the topics of MirrorMaker 2's formats say last: checkpoints and offset syncs, ours and others'.

Records that aren't readable are skipped, as MirrorMaker 2 does: others may write these topics, too.
"""

from __future__ import annotations

from collections.abc import Collection

from causeway.brokers.target_log import WireTarget
from causeway.core.identity import TopicPartition
from causeway.core.kafka_errors import KafkaErrorCode as Code
from causeway.core.mirror_maker_records import (
    Checkpoint,
    OffsetSync,
    Unreadable,
    decode_checkpoint,
    decode_offset_sync,
)
from causeway.core.rights import Operation

Checkpoints = dict[str, dict[TopicPartition, Checkpoint]]
"""By group and target partition."""


async def last_checkpoints(
    target: WireTarget, topic: str, partitions: Collection[TopicPartition]
) -> Checkpoints:
    """Of these target partitions; none if there is no such topic yet.

    :raises NotAuthorized: the topic is there, and this user may not read it.
    """
    found: Checkpoints = {}
    if not await _may_be_read(target, topic):
        return found
    async for record in target.visible_records(TopicPartition(topic, 0)):
        try:
            checkpoint = decode_checkpoint(record.key, record.value)
        except Unreadable:
            continue
        if checkpoint.target in partitions:
            found.setdefault(checkpoint.group, {})[checkpoint.target] = checkpoint
    return found


async def last_offset_syncs(target: WireTarget, topic: str) -> dict[TopicPartition, OffsetSync]:
    """By source partition.

    :raises NotAuthorized: as `last_checkpoints`.
    """
    found: dict[TopicPartition, OffsetSync] = {}
    if not await _may_be_read(target, topic):
        return found
    async for record in target.visible_records(TopicPartition(topic, 0)):
        try:
            sync = decode_offset_sync(record.key, record.value)
        except Unreadable:
            continue
        found[sync.source] = sync
    return found


async def _may_be_read(target: WireTarget, topic: str) -> bool:
    described = (await target.wire.topics([topic]))[topic]
    if described.lacks(Operation.READ):
        raise target.wire.lacks_right(topic, Operation.READ)
    return described.error != Code.UNKNOWN_TOPIC_OR_PARTITION
