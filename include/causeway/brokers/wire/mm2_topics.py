"""What the topics of MirrorMaker 2's formats say: checkpoints, offset syncs (ours and others'), its position.

Records that aren't readable are skipped, as MirrorMaker 2 does: others may write these topics, too. In the
topic of its position nothing is skipped: a record that isn't understood might be the one that counts.
"""

from __future__ import annotations

from collections.abc import Collection

from causeway.brokers.transport.connection import Wire
from causeway.brokers.wire.target_log import WireTarget
from causeway.brokers.wire.topic_reader import WireTopicReader
from causeway.core.kernel.acl_vocabulary import Operation
from causeway.core.kernel.errors import ProtocolFault, UnknownName
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.offsets.mm2_offset_syncs import Inherited, inherited_topic_of, parse_inherited
from causeway.core.records.mm2_formats import (
    Checkpoint,
    OffsetSync,
    Unreadable,
    decode_checkpoint,
    decode_offset_sync,
)
from causeway.core.takeover.mm2_mirror import CommittedOffsets, MirrorMakerPlaces, take_connect_offset

Checkpoints = dict[str, dict[TopicPartition, Checkpoint]]
"""By group and target partition."""


async def last_checkpoints(
    target: WireTarget, topic: str, partitions: Collection[TopicPartition]
) -> Checkpoints:
    """Of these target partitions; none if there is no such topic yet.

    :raises NotAuthorized: the topic is there, and this user may not read it.
    """
    found: Checkpoints = {}
    if not await _may_be_read(target.wire, topic):
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
    if not await _may_be_read(target.wire, topic):
        return found
    async for record in target.visible_records(TopicPartition(topic, 0)):
        try:
            sync = decode_offset_sync(record.key, record.value)
        except Unreadable:
            continue
        found[sync.source] = sync
    return found


async def all_offset_syncs(
    cluster: WireTopicReader, topic: str, topics: Collection[str]
) -> dict[TopicPartition, list[OffsetSync]]:
    """Of these source topics, by source partition and in the order in which they were written.

    :raises NotAuthorized: as `last_checkpoints`.
    """
    found: dict[TopicPartition, list[OffsetSync]] = {}
    if not await _may_be_read(cluster.wire, topic):
        return found
    tp = TopicPartition(topic, 0)
    async for record in cluster.records(tp, 0, await cluster.end_of(tp)):
        try:
            sync = decode_offset_sync(record.key, record.value)
        except Unreadable:
            continue
        if sync.source.topic in topics:
            found.setdefault(sync.source, []).append(sync)
    return found


async def read_inherited(target: WireTopicReader, flow: str) -> dict[TopicPartition, Inherited]:
    """What the flow keeps of MirrorMaker 2's offset syncs, by target partition.

    Where it may not be seen there is nothing: a lower bound is given, never a wrong one.
    """
    tp = TopicPartition(inherited_topic_of(flow), 0)
    described = (await target.wire.topics([tp.topic]))[tp.topic]
    found: dict[TopicPartition, Inherited] = {}
    if described.error or described.lacks(Operation.READ):
        return found
    async for record in target.records(tp, 0, await target.end_of(tp)):
        parsed = parse_inherited(record.key, record.value)
        if parsed is not None:
            found[parsed[0]] = parsed[1]
    return found


async def committed_by_mirror_maker(
    target: WireTopicReader, places: MirrorMakerPlaces, source_alias: str
) -> CommittedOffsets:
    """:raises UnknownName: it has never written there. | :raises ProtocolFault: somebody else has."""
    found: CommittedOffsets = {}
    for tp in await offsets_partitions(target, places):
        async for record in target.records(tp, 0, await target.end_of(tp)):
            try:
                take_connect_offset(
                    found, record.key, record.value, connector=places.connector, cluster=source_alias
                )
            except Unreadable as cause:
                raise ProtocolFault(
                    f"record {record.offset} of {tp} on {target.wire.endpoint}",
                    rule=str(cause),
                    remedy="another connector of that name writes there? then take over by `causeway adopt`",
                ) from cause
    return found


async def offsets_partitions(target: WireTopicReader, places: MirrorMakerPlaces) -> list[TopicPartition]:
    """:raises UnknownName: there is no such topic."""
    topic = places.offsets_topic
    described = (await target.wire.topics([topic]))[topic]
    if described.lacks(Operation.READ):
        raise target.wire.lacks_right(topic, Operation.READ)
    if described.error:
        raise UnknownName(
            f"topic {topic}",
            rule=f"isn't on {target.wire.endpoint}, and MirrorMaker 2 keeps its position there",
            remedy="is it this file, and this cluster? what was never mirrored needs no taking over: run it",
        )
    return [TopicPartition(topic, number) for number in sorted(described.leaders)]


async def _may_be_read(wire: Wire, topic: str) -> bool:
    described = (await wire.topics([topic]))[topic]
    if described.lacks(Operation.READ):
        raise wire.lacks_right(topic, Operation.READ)
    return described.error != Code.UNKNOWN_TOPIC_OR_PARTITION
