"""The offset map's records as bytes, format by format: docs/offset-map.md says them again for other readers.

Three kinds of record, told apart by the first byte of the key:

    1  a run            key: target partition, first source offset; value: that run
    2  merged runs      key: the same, and the first target offset; value: many runs, one behind the other
    3  a place          key: target partition; value: the position that was committed there without records

Merged runs stay runs: each holds one stretch of one transaction, and what lies between two of them (our own
marker, as a rule) is what their offsets leave out. Only their timestamps are those of the whole.

Values are of version 2, in which a run without holes takes two or three bytes behind another one. Those of
version 1, which held one run in fixed fields, are still read. What a newer Causeway writes is refused by
name. A key of any other shape is somebody else's record, which says nothing (`is_ours`).

A place is where a partition began, or was set by a person: nothing was copied, so there is no run, and a
committed offset expires. Of each target partition the newest is kept.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from uuid import UUID

from causeway.core.errors import NewerFormat, ProtocolFault
from causeway.core.identity import Generation, SourceOffset, TargetOffset, TopicPartition
from causeway.core.offset_map import Run
from causeway.core.position import Position, parse_position

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
_VERSION = 2
_PLAIN, _DEFLATED = 0, 1
_WORTH_DEFLATING_BYTES = 200
_MOST_BYTES = 64 << 20
_IDS_BYTES, _MOST_BITS = 32, 70

# Of a run: what is odd about it, else it is the usual one behind the one before.
_FACTS, _SOURCE_GAP, _TARGET_GAP, _HOLES_BEFORE = 1, 2, 4, 8
_USUAL_TARGET_GAP = 1  # the marker of the transaction in between


def encode_run(run: Run) -> tuple[bytes, bytes]:
    """Key and value of a run's record."""
    place = _RUN_PLACE.pack(run.target.partition, run.source_first)
    return _key(RUN, run.target.topic, place), _encode([run])


def encode_merged(runs: Sequence[Run]) -> tuple[bytes, bytes]:
    """Of runs of one pair of topics, rising on both sides. Their key is another than any single run's: a run
    that is written again, because the target lost its tail, must not take the place of all of them."""
    first = runs[0]
    place = _MERGED_PLACE.pack(first.target.partition, first.source_first, first.target_first)
    return _key(MERGED, first.target.topic, place), _encode(runs)


def encode_place(target: TopicPartition, position: Position) -> tuple[bytes, bytes]:
    """Of a position that is committed in the same transaction."""
    key = _key(PLACE, target.topic, _PARTITION_ONLY.pack(target.partition))
    return key, bytes((_VERSION,)) + _OFFSET.pack(position.source_next) + position.metadata().encode()


def decode_place(key: bytes, value: bytes) -> Position:
    """:raises ProtocolFault: a version that this code doesn't know, or bytes that nobody of ours wrote."""
    if key[:1] != bytes((PLACE,)) or value[:1] != bytes((_VERSION,)) or len(value) <= 1 + _OFFSET.size:
        raise _unreadable(key, "is no place in a version that this code knows")
    (source_next,) = _OFFSET.unpack_from(value, 1)
    found = parse_position(source_next, value[1 + _OFFSET.size :].decode("utf-8", "replace"))
    if not isinstance(found, Position):
        raise _unreadable(key, f"is a place that can't be read: {found.why}")
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


def decode_run(key: bytes, value: bytes) -> Run:
    """Of a record that a lane wrote.

    :raises ProtocolFault: it is another kind of record, or none of ours.
    """
    runs = decode_runs(key, value)
    if is_merged(key):
        raise _unreadable(key, "holds merged runs where a lane's own is looked for")
    return runs[0]


def decode_runs(key: bytes, value: bytes) -> tuple[Run, ...]:
    """One run, or the merged ones in their order.

    :raises ProtocolFault: a version that this code doesn't know, or bytes that nobody of ours wrote.
    """
    kind, topic, place = _parse_key(key)
    target = TopicPartition(topic, place[0])
    if kind == PLACE:
        raise _unreadable(key, "holds a place where runs are looked for")
    try:
        if kind == RUN and value[0] == 1:
            return (_decode_v1(key, value, target, place[1]),)
        if value[0] != _VERSION:
            rule = f"has a value of version {value[0]}, this code knows 1 and {_VERSION}"
            raise _newer(key, rule) if _VERSION < value[0] <= _NEWEST_TO_COME else _unreadable(key, rule)
        runs = tuple(_Decoder(_body(key, value), target).runs(place[1]))
    except (struct.error, IndexError, ValueError, zlib.error) as cause:
        raise _unreadable(key, "is cut short") from cause
    if not runs or (kind == RUN and len(runs) > 1):
        raise _unreadable(key, f"holds {len(runs)} runs")
    if kind == MERGED and place[2] != runs[0].target_first:
        raise _unreadable(key, f"begins at target offset {runs[0].target_first}")
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
            raise _newer(key, rule) if is_newer else _unreadable(key, rule)
        places = _PLACES[kind]
        if len(key) != _KEY_HEAD.size + length + places.size:
            raise _unreadable(key, "has another length than it says")
        topic = key[_KEY_HEAD.size : _KEY_HEAD.size + length].decode()
        return kind, topic, places.unpack_from(key, _KEY_HEAD.size + length)
    except (struct.error, UnicodeDecodeError) as cause:
        raise _unreadable(key, "is cut short") from cause


def _encode(runs: Sequence[Run]) -> bytes:
    first = runs[0]
    body = bytearray(first.source_topic_id.bytes + first.target_topic_id.bytes)
    first_ms, last_ms = first.first_timestamp_ms, max(run.last_timestamp_ms for run in runs)
    _write(body, first.target_first, _folded(first_ms), _folded(last_ms - first_ms), len(runs))
    facts, source, target = (0, -1, -1), int(first.source_first), first.target_first - _USUAL_TARGET_GAP
    for run in runs:
        _write_run(body, run, facts, source, target)
        facts, source, target = _facts(run), int(run.source_next), int(run.target_next)
    packed = zlib.compress(body) if len(body) > _WORTH_DEFLATING_BYTES else body
    if len(packed) < len(body):
        return bytes((_VERSION, _DEFLATED)) + packed
    return bytes((_VERSION, _PLAIN)) + body


def _write_run(
    body: bytearray, run: Run, facts_before: tuple[int, int, int], source: int, target: int
) -> None:
    """`source` and `target` are where the run before it ended."""
    odd = bytearray(1)
    if (facts := _facts(run)) != facts_before:
        odd[0] |= _FACTS
        _write(odd, *(_folded(now - was) for now, was in zip(facts, facts_before, strict=True)))
    if run.source_first != source:
        odd[0] |= _SOURCE_GAP
        _write(odd, run.source_first - source)
    if run.target_first != target + _USUAL_TARGET_GAP:
        odd[0] |= _TARGET_GAP
        _write(odd, run.target_first - target)
    if run.holes_before != (0, 0):
        odd[0] |= _HOLES_BEFORE
        _write(odd, *run.holes_before)
    (copied, skipped), *more = run.segments
    _write(body, copied << 2 | bool(more) << 1 | bool(odd[0]))
    if odd[0]:
        body += odd
    if more:
        _write(body, len(more))
        for each in more:
            _write(body, skipped, each[0])
            skipped = each[1]


def _facts(run: Run) -> tuple[int, int, int]:
    return run.generation, run.source_epoch, run.target_epoch


def _folded(number: int) -> int:
    """Zigzag: small numbers of either sign become small ones without."""
    return number * 2 if number >= 0 else -number * 2 - 1


def _unfolded(number: int) -> int:
    return number // 2 if number % 2 == 0 else -(number + 1) // 2


def _write(out: bytearray, *numbers: int) -> None:
    """Seven bits a byte, low bits first; what is negative can't be written, and mustn't be."""
    for number in numbers:
        if number < 0:
            raise ValueError(f"{number}: runs of the offset map rise on both sides")
        left = number
        while left > 0x7F:
            out.append(left & 0x7F | 0x80)
            left >>= 7
        out.append(left)


def _body(key: bytes, value: bytes) -> bytes:
    if value[1] == _PLAIN:
        return value[2:]
    if value[1] != _DEFLATED:
        raise _unreadable(key, f"is packed in way {value[1]}, which this code doesn't know")
    unpacking = zlib.decompressobj()
    body = unpacking.decompress(value[2:], _MOST_BYTES)
    if not unpacking.eof or unpacking.unused_data:
        raise _unreadable(key, "is cut short, or has another length than it says")
    return body


class _Decoder:
    def __init__(self, body: bytes, target: TopicPartition) -> None:
        self._body, self._at, self._target = body, _IDS_BYTES, target

    def runs(self, source: int) -> Iterator[Run]:
        source_id, target_id = UUID(bytes=self._body[:16]), UUID(bytes=self._body[16:_IDS_BYTES])
        at, first_ms, length_ms, count = self._read(), *self._read_folded(2), self._read()
        target, facts = at - _USUAL_TARGET_GAP, [0, -1, -1]
        for _ in range(count):
            head = self._read()
            gaps, holes = [0, _USUAL_TARGET_GAP], (0, 0)
            if head & 1:
                facts, gaps, holes = self._oddities(facts)
            segments = self._segments(head >> 2, has_more=bool(head & 2))
            run = Run(
                target=self._target,
                source_first=SourceOffset(source + gaps[0]),
                target_first=TargetOffset(target + gaps[1]),
                segments=segments,
                first_timestamp_ms=first_ms,
                last_timestamp_ms=first_ms + length_ms,
                generation=Generation(facts[0]),
                source_topic_id=source_id,
                target_topic_id=target_id,
                source_epoch=facts[1],
                target_epoch=facts[2],
                holes_before=holes,
            )
            source, target = run.source_next, run.target_next
            yield run
        if self._at != len(self._body):
            raise _unreadable(str(self._target).encode(), "has another length than it says")

    def _oddities(self, facts: list[int]) -> tuple[list[int], list[int], tuple[int, int]]:
        kinds = self._body[self._at]
        self._at += 1
        if kinds & _FACTS:
            facts = [was + by for was, by in zip(facts, self._read_folded(3), strict=True)]
        gaps = [
            self._read() if kinds & _SOURCE_GAP else 0,
            self._read() if kinds & _TARGET_GAP else _USUAL_TARGET_GAP,
        ]
        return facts, gaps, (self._read(), self._read()) if kinds & _HOLES_BEFORE else (0, 0)

    def _segments(self, copied: int, *, has_more: bool) -> tuple[tuple[int, int], ...]:
        """A run's last segment has no hole behind it: trailing holes belong to nobody."""
        if not has_more and copied:
            return ((copied, 0),)
        segments: list[tuple[int, int]] = []
        for _ in range(self._read() if has_more else 0):
            segments.append((copied, self._read()))
            copied = self._read()
        if not copied:
            raise ValueError("a run of nothing")
        return (*segments, (copied, 0))

    def _read_folded(self, count: int) -> list[int]:
        return [_unfolded(self._read()) for _ in range(count)]

    def _read(self) -> int:
        byte = self._body[self._at]
        self._at += 1
        number, shift = byte & 0x7F, 7
        while byte > 0x7F:
            byte = self._body[self._at]
            self._at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if shift > _MOST_BITS:
                raise ValueError("a number that is no offset")
        return number


def _decode_v1(key: bytes, value: bytes, target: TopicPartition, source_first: int) -> Run:
    (_, target_first, first_ms, last_ms, generation, *epochs, source_id, target_id, n) = _V1_HEAD.unpack_from(
        value
    )
    if n == 0 or len(value) != _V1_HEAD.size + n * _V1_SEGMENT.size:
        raise _unreadable(key, "has another length than it says")
    return Run(
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


def _unreadable(key: bytes, rule: str) -> ProtocolFault:
    return ProtocolFault(
        "record of the offset map",
        value=key.hex(),
        rule=rule,
        remedy="nothing else may write this topic; a newer Causeway may have: use that one",
    )


def _newer(key: bytes, rule: str) -> NewerFormat:
    return NewerFormat(
        "record of the offset map",
        value=key.hex(),
        rule=f"{rule}: it was written by a newer Causeway",
        remedy="upgrade: run that version of Causeway here",
    )
