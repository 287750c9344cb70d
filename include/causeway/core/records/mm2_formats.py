"""MirrorMaker 2's checkpoints and offset syncs, byte for byte: what existing Java clients read.

    checkpoint    key    STRING group, STRING topic (its name on the target), INT32 partition
                  value  INT16 version = 0, INT64 source offset, INT64 target offset, STRING metadata
    offset sync   key    STRING topic (its name on the source), INT32 partition
                  value  INT64 source offset, INT64 target offset                          (no version)

STRING is an INT16 length and UTF-8, never null. All records of a topic are in its partition 0.

Invariants
    A. Neither topic ever gets a record without a value: `RemoteClusterUtils` breaks on one.
    B. A checkpoint never holds a negative offset: `OffsetAndMetadata` refuses it, and so the whole answer.
    C. A reader refuses versions it doesn't know, as a value to skip: others may write these topics, too.
    D. Metadata that doesn't fit is left out: no group may hold up the others.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from causeway.core.kernel.identity import SourceOffset, TargetOffset, TopicPartition

_VERSION = 0
_PARTITION = struct.Struct(">i")
_VERSION_FIELD = struct.Struct(">h")
_OFFSETS = struct.Struct(">qq")
_LENGTH = struct.Struct(">h")
LONGEST_BYTES = 0x7FFF


class Unreadable(ValueError):
    """A record that isn't what its topic holds; who reads skips it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Where a group stands on both clusters: the next offset to read of each."""

    group: str
    target: TopicPartition
    source_next: SourceOffset
    target_next: TargetOffset
    metadata: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetSync:
    """One record's offset on both clusters."""

    source: TopicPartition
    source_offset: SourceOffset
    target_offset: TargetOffset


def is_news(checkpoint: Checkpoint, last: Checkpoint | None, *, is_exact: bool) -> bool:
    """Whether it has to be written. Places only rise, unless the group itself went back on the source, or the
    map says exactly that its record lies lower (the target's log was written again)."""
    if last is None or is_exact:
        return checkpoint != last
    if checkpoint.source_next < last.source_next:
        return True
    return checkpoint != last and checkpoint.target_next >= last.target_next


def encode_checkpoint(checkpoint: Checkpoint) -> tuple[bytes, bytes]:
    """Key and value.

    :raises ValueError: a negative offset.
    """
    key = (
        _string(checkpoint.group)
        + _string(checkpoint.target.topic)
        + _PARTITION.pack(checkpoint.target.partition)
    )
    if min(checkpoint.source_next, checkpoint.target_next) < 0:
        raise ValueError(f"a checkpoint can't hold a negative offset: {checkpoint}")
    offsets = _OFFSETS.pack(checkpoint.source_next, checkpoint.target_next)
    metadata = checkpoint.metadata if len(checkpoint.metadata.encode()) <= LONGEST_BYTES else ""
    return key, _VERSION_FIELD.pack(_VERSION) + offsets + _string(metadata)


def decode_checkpoint(key: bytes | None, value: bytes | None) -> Checkpoint:
    """:raises Unreadable: of another version, or no checkpoint at all."""
    if key is None or value is None:
        raise Unreadable("a checkpoint has a key and a value")
    try:
        group, at = _read_string(key, 0)
        topic, at = _read_string(key, at)
        (partition,) = _PARTITION.unpack(key[at:])
        (version,) = _VERSION_FIELD.unpack_from(value)
        if version != _VERSION:
            raise Unreadable(f"a checkpoint of version {version}, this code knows {_VERSION}")
        source_next, target_next = _OFFSETS.unpack_from(value, _VERSION_FIELD.size)
        metadata, end = _read_string(value, _VERSION_FIELD.size + _OFFSETS.size)
    except (struct.error, UnicodeDecodeError) as cause:
        raise Unreadable(f"not a checkpoint: {cause}") from cause
    if end != len(value):
        raise Unreadable(f"{len(value) - end} bytes are left after a checkpoint")
    return Checkpoint(
        group=group,
        target=TopicPartition(topic, partition),
        source_next=SourceOffset(source_next),
        target_next=TargetOffset(target_next),
        metadata=metadata,
    )


def encode_offset_sync(sync: OffsetSync) -> tuple[bytes, bytes]:
    """Key and value."""
    key = _string(sync.source.topic) + _PARTITION.pack(sync.source.partition)
    return key, _OFFSETS.pack(sync.source_offset, sync.target_offset)


def decode_offset_sync(key: bytes | None, value: bytes | None) -> OffsetSync:
    """:raises Unreadable: no offset sync."""
    if key is None or value is None:
        raise Unreadable("an offset sync has a key and a value")
    try:
        topic, at = _read_string(key, 0)
        (partition,) = _PARTITION.unpack(key[at:])
        source_offset, target_offset = _OFFSETS.unpack(value)
    except (struct.error, UnicodeDecodeError) as cause:
        raise Unreadable(f"not an offset sync: {cause}") from cause
    return OffsetSync(
        source=TopicPartition(topic, partition),
        source_offset=SourceOffset(source_offset),
        target_offset=TargetOffset(target_offset),
    )


def _string(text: str) -> bytes:
    raw = text.encode()
    if len(raw) > LONGEST_BYTES:
        raise ValueError(f"{len(raw)} bytes don't fit into a STRING of MirrorMaker 2's records")
    return _LENGTH.pack(len(raw)) + raw


def _read_string(buffer: bytes, at: int) -> tuple[str, int]:
    (length,) = _LENGTH.unpack_from(buffer, at)
    begin = at + _LENGTH.size
    if not 0 <= length <= len(buffer) - begin:
        raise Unreadable(f"a STRING of {length} bytes doesn't fit into {len(buffer) - begin}")
    return buffer[begin : begin + length].decode(), begin + length
