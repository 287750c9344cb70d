"""The offset map's records as bytes, format by format: docs/offset-map.md says them again for other readers.

Three kinds of record; the first byte of the key is the kind:

    1  a run            key: target partition, first source offset; value: that run
    2  merged runs      key: the same, and the first target offset; value: many runs, one after the other
    3  a place          key: target partition; value: the position that was committed there without records

Merged runs stay runs: each holds one stretch of one transaction, and what lies between two of them (our own
marker, as a rule) is what their offsets leave out. Only their timestamps are those of the whole.

Values are of version 2, in which a run without holes takes two or three bytes after another one. Those of
version 1, which held one run in fixed fields, are still read. What a newer Causeway writes is refused by
name. A key of any other shape is somebody else's record, which says nothing (`is_ours`).

A place is where a partition began, or was set by a person: nothing was copied, so there is no run, and a
committed offset expires. Of each target partition the newest is kept.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from uuid import UUID

from causeway.core.kernel.errors import NewerFormat, ProtocolFault
from causeway.core.kernel.identity import Generation, SourceOffset, TargetOffset, TopicPartition
from causeway.core.offsets.offset_map import MappedRange
from causeway.core.offsets.packed_ranges import VERSION, pack_ranges, unpack_ranges, unreadable
from causeway.core.state.position import Position, parse_position

RUN, MERGED, PLACE = 1, 2, 3
_NEWEST_TO_COME = 31
"""Kinds of keys, and versions of values, that a newer Causeway may use: below all letters and digits."""
_KEY_HEAD = struct.Struct(">BH")
_RUN_PLACE = struct.Struct(">iq")
_MERGED_PLACE = struct.Struct(">iqq")
_PARTITION_ONLY = struct.Struct(">i")
_PLACES = {RUN: _RUN_PLACE, MERGED: _MERGED_PLACE, PLACE: _PARTITION_ONLY}
_OFFSET = struct.Struct(">q")
_V1_HEAD = struct.Struct(">bqqqqii16s16sI")
_V1_SEGMENT = struct.Struct(">IQ")


def encode_range(run: MappedRange) -> tuple[bytes, bytes]:
    """Key and value of a run's record."""
    place = _RUN_PLACE.pack(run.target.partition, run.source_first)
    return _key(RUN, run.target.topic, place), pack_ranges([run])


def encode_merged(runs: Sequence[MappedRange]) -> tuple[bytes, bytes]:
    """Of runs of one pair of topics, rising on both sides. Their key is another than any single run's: a run
    that is written again, because the target lost its tail, must not take the place of all of them."""
    first = runs[0]
    place = _MERGED_PLACE.pack(first.target.partition, first.source_first, first.target_first)
    return _key(MERGED, first.target.topic, place), pack_ranges(runs)


def encode_place(target: TopicPartition, position: Position) -> tuple[bytes, bytes]:
    """Of a position that is committed in the same transaction."""
    key = _key(PLACE, target.topic, _PARTITION_ONLY.pack(target.partition))
    return key, bytes((VERSION,)) + _OFFSET.pack(position.source_next) + position.metadata().encode()


def decode_place(key: bytes, value: bytes) -> Position:
    """:raises ProtocolFault: a version that this code doesn't know, or bytes that nobody of ours wrote."""
    if key[:1] != bytes((PLACE,)) or value[:1] != bytes((VERSION,)) or len(value) <= 1 + _OFFSET.size:
        raise unreadable(key, "is no place in a version that this code knows")
    (source_next,) = _OFFSET.unpack_from(value, 1)
    found = parse_position(source_next, value[1 + _OFFSET.size :].decode("utf-8", "replace"))
    if not isinstance(found, Position):
        raise unreadable(key, f"is a place that can't be read: {found.why}")
    return found


def is_ours(key: bytes) -> bool:
    """Whether Causeway wrote it, this one or a newer one; else it is a foreign record, which says nothing."""
    try:
        _parse_key(key)
    except ProtocolFault as fault:
        return isinstance(fault, NewerFormat)
    return True


def newer_key(key: bytes) -> NewerFormat | None:
    """That a newer Causeway wrote it, under a kind of key that this one doesn't know."""
    try:
        _parse_key(key)
    except ProtocolFault as fault:
        return fault if isinstance(fault, NewerFormat) else None
    return None


def merged_place(key: bytes) -> int:
    """The first target offset of merged runs, by their key alone."""
    return _parse_key(key)[2][2]


def is_place(key: bytes) -> bool:
    return key[:1] == bytes((PLACE,))


def filling(target: TopicPartition, size_bytes: int) -> list[tuple[bytes, bytes | None]]:
    """Records of at least so many bytes together that say nothing: tombstones of runs that can't be."""
    records: list[tuple[bytes, bytes | None]] = []
    left = size_bytes
    while left > 0:
        place = _RUN_PLACE.pack(target.partition, -1 - len(records))
        records.append((_key(RUN, target.topic, place), None))
        left -= len(records[-1][0])
    return records


def target_of(key: bytes) -> TopicPartition:
    """Whose record it is, of any kind; the cheap question, for whoever wants a few of many."""
    _, topic, place = _parse_key(key)
    return TopicPartition(topic, place[0])


def is_merged(key: bytes) -> bool:
    return key[0] == MERGED


def decode_range(key: bytes, value: bytes) -> MappedRange:
    """Of a record that a lane wrote.

    :raises ProtocolFault: it is another kind of record, or none of ours.
    """
    runs = decode_ranges(key, value)
    if is_merged(key):
        raise unreadable(key, "holds merged runs where a lane's own is looked for")
    return runs[0]


def decode_ranges(key: bytes, value: bytes) -> tuple[MappedRange, ...]:
    """One run, or the merged ones in their order.

    :raises ProtocolFault: a version that this code doesn't know, or bytes that nobody of ours wrote.
    """
    kind, topic, place = _parse_key(key)
    target = TopicPartition(topic, place[0])
    if kind == PLACE:
        raise unreadable(key, "holds a place where runs are looked for")
    try:
        if kind == RUN and value[0] == 1:
            return (_decode_v1(key, value, target, place[1]),)
        if value[0] != VERSION:
            rule = f"has a value of version {value[0]}, this code knows 1 and {VERSION}"
            raise _newer(key, rule) if VERSION < value[0] <= _NEWEST_TO_COME else unreadable(key, rule)
        runs = tuple(unpack_ranges(key, value, target, place[1]))
    except (struct.error, IndexError, ValueError, zlib.error) as cause:
        raise unreadable(key, "is cut short") from cause
    if not runs or (kind == RUN and len(runs) > 1):
        raise unreadable(key, f"holds {len(runs)} runs")
    if kind == MERGED and place[2] != runs[0].target_first:
        raise unreadable(key, f"begins at target offset {runs[0].target_first}")
    return runs


def _key(kind: int, topic: str, place: bytes) -> bytes:
    name = topic.encode()
    return _KEY_HEAD.pack(kind, len(name)) + name + place


def _parse_key(key: bytes) -> tuple[int, str, tuple[int, ...]]:
    try:
        kind, length = _KEY_HEAD.unpack_from(key)
        if kind not in _PLACES:
            rule = f"has a key of version {kind}, this code knows {RUN} to {PLACE}"
            is_newer = (
                PLACE < kind <= _NEWEST_TO_COME and len(key) >= _KEY_HEAD.size + length > _KEY_HEAD.size
            )
            raise _newer(key, rule) if is_newer else unreadable(key, rule)
        places = _PLACES[kind]
        if len(key) != _KEY_HEAD.size + length + places.size:
            raise unreadable(key, "has another length than it says")
        topic = key[_KEY_HEAD.size : _KEY_HEAD.size + length].decode()
        return kind, topic, places.unpack_from(key, _KEY_HEAD.size + length)
    except (struct.error, UnicodeDecodeError) as cause:
        raise unreadable(key, "is cut short") from cause


def _decode_v1(key: bytes, value: bytes, target: TopicPartition, source_first: int) -> MappedRange:
    (_, target_first, first_ms, last_ms, generation, *epochs, source_id, target_id, n) = _V1_HEAD.unpack_from(
        value
    )
    if n == 0 or len(value) != _V1_HEAD.size + n * _V1_SEGMENT.size:
        raise unreadable(key, "has another length than it says")
    return MappedRange(
        target=target,
        source_first=SourceOffset(source_first),
        target_first=TargetOffset(target_first),
        segments=tuple(_V1_SEGMENT.iter_unpack(value[_V1_HEAD.size :])),
        first_timestamp_ms=first_ms,
        last_timestamp_ms=last_ms,
        generation=Generation(generation),
        source_topic_id=UUID(bytes=source_id),
        target_topic_id=UUID(bytes=target_id),
        source_epoch=epochs[0],
        target_epoch=epochs[1],
    )


def _newer(key: bytes, rule: str) -> NewerFormat:
    return NewerFormat(
        "record of the offset map",
        value=key.hex(),
        rule=f"{rule}: it was written by a newer Causeway",
        remedy="upgrade: run that version of Causeway here",
    )
