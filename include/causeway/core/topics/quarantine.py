"""Records that a mirror doesn't take, kept in a topic of their own: as they were, and where they came from.

Key, value, headers and timestamp stay; the record's place on the source and the reason come after its own
headers. Invariant: a record is either in the mirror or in quarantine, by one transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from uuid import UUID

from causeway.core.kernel.identity import Pair, TopicPartition
from causeway.core.records.batches import CorruptBatch
from causeway.core.records.record_frames import Frame
from causeway.core.records.records import Headers, Record, parse_body
from causeway.core.records.varint import Malformed
from causeway.core.topics.plan import NewTopicPlan

CLUSTER = "causeway.source.cluster"
TOPIC = "causeway.source.topic"
TOPIC_ID = "causeway.source.topic.id"
PARTITION = "causeway.source.partition"
OFFSET = "causeway.source.offset"
TARGET_TOPIC = "causeway.target.topic"
WHY = "causeway.refused"

_INT64_MAX = (1 << 63) - 1
_LARGEST_BYTES = 80 << 20
_BATCH_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a record in quarantine lies on the source, and which mirror it isn't in."""

    source: TopicPartition
    target: TopicPartition
    source_topic_id: UUID
    offset: int


@dataclass(frozen=True, slots=True)
class HeldOut:
    """A record on its way into quarantine."""

    offset: int
    why: str
    record: Record


def new_quarantine_topic(name: str, replication_factor: int | None) -> NewTopicPlan:
    """It has to take what a mirror doesn't: any size that we can read, any time, no key; and keep it."""
    settings = {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "max.message.bytes": str(_LARGEST_BYTES),
        "message.timestamp.after.max.ms": str(_INT64_MAX),
        "message.timestamp.before.max.ms": str(_INT64_MAX),
        "message.timestamp.type": "CreateTime",
        "retention.bytes": "-1",
        "retention.ms": "-1",
    }
    return NewTopicPlan(name, 1, tuple(settings.items()), replication_factor)


def hold_out(frame: Frame, pair: Pair, alias: str, why: str) -> HeldOut:
    """:raises CorruptBatch: the record can't be read, so headers can't be added to it."""
    try:
        key, value, headers = parse_body(frame.body)
    except (Malformed, IndexError) as fault:
        raise CorruptBatch(frame.offset, f"the record can't be read ({fault})") from fault
    place = (
        (CLUSTER, alias),
        (TOPIC, pair.source.topic),
        (TOPIC_ID, str(pair.source_topic_id)),
        (PARTITION, str(pair.source.partition)),
        (OFFSET, str(frame.offset)),
        (TARGET_TOPIC, pair.target.topic),
        (WHY, why),
    )
    added: Headers = tuple((name.encode(), text.encode()) for name, text in place)
    return HeldOut(frame.offset, why, Record(frame.offset, frame.timestamp_ms, key, value, headers + added))


def in_batches(records: Iterable[Record]) -> Iterator[list[Record]]:
    """About a MiB each; a bigger record goes alone."""
    batch: list[Record] = []
    size_bytes = 0
    for record in records:
        record_bytes = len(record.key or b"") + len(record.value or b"") + _size_of(record.headers)
        if batch and size_bytes + record_bytes > _BATCH_BYTES:
            yield batch
            batch, size_bytes = [], 0
        batch.append(record)
        size_bytes += record_bytes
    if batch:
        yield batch


def _size_of(headers: Headers) -> int:
    return sum(len(name) + len(value or b"") for name, value in headers)


def origin_of(headers: Iterable[tuple[str, bytes | None]]) -> Origin | None:
    """Of a record in quarantine, by the headers that were added; None: it isn't one of ours.

    Ours come last: what a record brought under the same names is its writer's.
    """
    told = dict(headers)
    try:
        topic, target = _decoded_text(told.get(TOPIC)), _decoded_text(told.get(TARGET_TOPIC))
        partition, offset = int(_decoded_text(told.get(PARTITION))), int(_decoded_text(told.get(OFFSET)))
        return Origin(
            TopicPartition(topic, partition),
            TopicPartition(target, partition),
            UUID(_decoded_text(told.get(TOPIC_ID))),
            offset,
        )
    except ValueError:
        return None


def _decoded_text(value: bytes | None) -> str:
    if value is None:
        raise ValueError("absent")
    return value.decode()
