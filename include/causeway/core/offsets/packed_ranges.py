"""Mapped ranges as the bytes of one value of the offset map: what is usual about a run takes no byte.

A run that follows the one before it takes two or three bytes. What is odd about it, a gap or another
generation, is written beside it. The whole is deflated where that makes it smaller.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from uuid import UUID

from causeway.core.kernel.errors import ProtocolFault
from causeway.core.kernel.identity import Generation, SourceOffset, TargetOffset, TopicPartition
from causeway.core.offsets.offset_map import MappedRange

VERSION = 2
_PLAIN, _DEFLATED = 0, 1
_WORTH_DEFLATING_BYTES = 200
_MOST_BYTES = 64 << 20
_IDS_BYTES, _MOST_BITS = 32, 70
# Of a run: what is odd about it, else it is the usual one after the one before.
_FACTS, _SOURCE_GAP, _TARGET_GAP, _HOLES_BEFORE = 1, 2, 4, 8
_USUAL_TARGET_GAP = 1  # the marker of the transaction in between


def pack_ranges(runs: Sequence[MappedRange]) -> bytes:
    first = runs[0]
    body = bytearray(first.source_topic_id.bytes + first.target_topic_id.bytes)
    first_ms, last_ms = first.first_timestamp_ms, max(run.last_timestamp_ms for run in runs)
    _write_numbers(body, first.target_first, _folded(first_ms), _folded(last_ms - first_ms), len(runs))
    facts, source, target = (0, -1, -1), int(first.source_first), first.target_first - _USUAL_TARGET_GAP
    for run in runs:
        _write_run(body, run, facts, source, target)
        facts, source, target = _facts_of(run), int(run.source_next), int(run.target_next)
    packed = zlib.compress(body) if len(body) > _WORTH_DEFLATING_BYTES else body
    if len(packed) < len(body):
        return bytes((VERSION, _DEFLATED)) + packed
    return bytes((VERSION, _PLAIN)) + body


def unpack_ranges(
    key: bytes, value: bytes, target: TopicPartition, source_first: int
) -> Iterator[MappedRange]:
    """The first of them begins at `source_first`: the key says so, the value doesn't.

    :raises ProtocolFault: none of ours.
    :raises IndexError, ValueError, zlib.error: bytes that are cut short.
    """
    return _Decoder(_unpacked(key, value), target).runs(source_first)


def _write_run(
    body: bytearray, run: MappedRange, facts_before: tuple[int, int, int], source: int, target: int
) -> None:
    """`source` and `target` are where the run before it ended."""
    odd = bytearray(1)
    if (facts := _facts_of(run)) != facts_before:
        odd[0] |= _FACTS
        _write_numbers(odd, *(_folded(now - was) for now, was in zip(facts, facts_before, strict=True)))
    if run.source_first != source:
        odd[0] |= _SOURCE_GAP
        _write_numbers(odd, run.source_first - source)
    if run.target_first != target + _USUAL_TARGET_GAP:
        odd[0] |= _TARGET_GAP
        _write_numbers(odd, run.target_first - target)
    if run.holes_before != (0, 0):
        odd[0] |= _HOLES_BEFORE
        _write_numbers(odd, *run.holes_before)
    (copied, skipped), *more = run.segments
    _write_numbers(body, copied << 2 | bool(more) << 1 | bool(odd[0]))
    if odd[0]:
        body += odd
    if more:
        _write_numbers(body, len(more))
        for each in more:
            _write_numbers(body, skipped, each[0])
            skipped = each[1]


def _facts_of(run: MappedRange) -> tuple[int, int, int]:
    return run.generation, run.source_epoch, run.target_epoch


def _folded(number: int) -> int:
    """Zigzag: small numbers of either sign become small ones without."""
    return number * 2 if number >= 0 else -number * 2 - 1


def _unfolded(number: int) -> int:
    return number // 2 if number % 2 == 0 else -(number + 1) // 2


def _write_numbers(out: bytearray, *numbers: int) -> None:
    """Seven bits a byte, low bits first; what is negative can't be written, and mustn't be."""
    for number in numbers:
        if number < 0:
            raise ValueError(f"{number}: runs of the offset map rise on both sides")
        left = number
        while left > 0x7F:
            out.append(left & 0x7F | 0x80)
            left >>= 7
        out.append(left)


def _unpacked(key: bytes, value: bytes) -> bytes:
    if value[1] == _PLAIN:
        return value[2:]
    if value[1] != _DEFLATED:
        raise unreadable(key, f"is packed in way {value[1]}, which this code doesn't know")
    unpacking = zlib.decompressobj()
    body = unpacking.decompress(value[2:], _MOST_BYTES)
    if not unpacking.eof or unpacking.unused_data:
        raise unreadable(key, "is cut short, or has another length than it says")
    return body


class _Decoder:
    def __init__(self, body: bytes, target: TopicPartition) -> None:
        self._body, self._at, self._target = body, _IDS_BYTES, target

    def runs(self, source: int) -> Iterator[MappedRange]:
        source_id, target_id = UUID(bytes=self._body[:16]), UUID(bytes=self._body[16:_IDS_BYTES])
        at, first_ms, length_ms, count = self._read_number(), *self._read_folded(2), self._read_number()
        target, facts = at - _USUAL_TARGET_GAP, [0, -1, -1]
        for _ in range(count):
            head = self._read_number()
            gaps, holes = [0, _USUAL_TARGET_GAP], (0, 0)
            if head & 1:
                facts, gaps, holes = self._oddities(facts)
            segments = self._segments(head >> 2, has_more=bool(head & 2))
            run = MappedRange(
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
            raise unreadable(str(self._target).encode(), "has another length than it says")

    def _oddities(self, facts: list[int]) -> tuple[list[int], list[int], tuple[int, int]]:
        kinds = self._body[self._at]
        self._at += 1
        if kinds & _FACTS:
            facts = [was + by for was, by in zip(facts, self._read_folded(3), strict=True)]
        gaps = [
            self._read_number() if kinds & _SOURCE_GAP else 0,
            self._read_number() if kinds & _TARGET_GAP else _USUAL_TARGET_GAP,
        ]
        return facts, gaps, (self._read_number(), self._read_number()) if kinds & _HOLES_BEFORE else (0, 0)

    def _segments(self, copied: int, *, has_more: bool) -> tuple[tuple[int, int], ...]:
        """A run's last segment has no hole after it: trailing holes belong to nobody."""
        if not has_more and copied:
            return ((copied, 0),)
        segments: list[tuple[int, int]] = []
        for _ in range(self._read_number() if has_more else 0):
            segments.append((copied, self._read_number()))
            copied = self._read_number()
        if not copied:
            raise ValueError("a run of nothing")
        return (*segments, (copied, 0))

    def _read_folded(self, count: int) -> list[int]:
        return [_unfolded(self._read_number()) for _ in range(count)]

    def _read_number(self) -> int:
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


def unreadable(key: bytes, rule: str) -> ProtocolFault:
    return ProtocolFault(
        "record of the offset map",
        value=key.hex(),
        rule=rule,
        remedy="nothing else may write this topic; a newer Causeway may have: use that one",
    )
