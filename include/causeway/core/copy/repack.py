"""Which way a batch crosses, and the way for those that can't cross as they are.

Verbatim is the rule. A batch is repacked when a broker would refuse it (holes, old format, size), when
only its end is wanted, when the target's topic is set to another codec, or when re-addressing it would
change what readers see (LogAppendTime: the append times that consumers saw on the source become the
records' own, CreateTime, timestamps). Batches of a few records each are joined: a request takes one batch
of a partition, whatever is in it, and costs as much as thousands of records. They are joined up to a bound of
what they hold, not of what they weigh: readers, and this process, have to decompress all of a batch at once.

Invariants: offsets, timestamps and bodies of the wanted records stay, in order; keys, values and headers
aren't read; of the wanted records only those leave that are held out, and they are given back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from causeway.core.copy.target_limits import TargetLimits
from causeway.core.records.batches import (
    CODEC_MASK,
    LOG_APPEND_TIME_BIT,
    NO_PRODUCER_ID,
    BatchHead,
    OversizedBatch,
)
from causeway.core.records.compression import DEFAULT_DECOMPRESSED_LIMIT_BYTES, Codec
from causeway.core.records.record_frames import Frame, write_batch
from causeway.core.records.records import frames_of

RepackReason = Literal[
    "codec", "held_out", "holes", "joined", "log_append_time", "old_format", "split", "starts_inside"
]

JOINED_BYTES = 256 << 10
JOINED_DECOMPRESSED_BYTES = 1 << 20
_FEW_RECORDS = 8
_SMALL_BYTES = 8 << 10
_MOST_FRAMING_BYTES = 21
"""Of a record: length, attributes, both deltas."""


@dataclass(frozen=True, slots=True)
class Verbatim:
    """The batch crosses as it is: `batches.rebase`."""


@dataclass(frozen=True, slots=True)
class Repack:
    """The batch crosses through `repack`."""

    reasons: tuple[RepackReason, ...]


@dataclass(frozen=True, slots=True)
class Repacked:
    """A batch that is nobody's yet (`batches.rebase` makes it ours), and where its records come from."""

    batch: bytes
    record_count: int
    segments: tuple[tuple[int, int], ...]
    """Runs of (first source offset, count)."""
    first_timestamp: int
    max_timestamp: int


@dataclass(frozen=True, slots=True)
class Repacking:
    """What became of some batches: none, if they hold no wanted record; several, if one was too big."""

    made: tuple[Repacked, ...]
    held_out: tuple[Frame, ...]
    taken: int = 1
    """Of the batches given: the first ones. Of several it may be one: that one isn't touched."""


_AS_THEY_ARE = TargetLimits()
_VERBATIM = Verbatim()


def choose_way(
    head: BatchHead, *, first_wanted: int, demands: TargetLimits = _AS_THEY_ARE
) -> Verbatim | Repack:
    """For batches of data; control batches never cross."""
    if demands.asks_nothing and _is_whole(head, first_wanted):
        return _VERBATIM
    applies: tuple[tuple[RepackReason, bool], ...] = (
        ("old_format", head.magic < 2),
        ("holes", head.has_holes),
        ("starts_inside", head.base_offset < first_wanted),
        ("log_append_time", head.is_log_append_time),
        ("codec", demands.codec is not None and head.codec is not demands.codec),
        ("split", demands.splits(head.size_bytes, head.record_count)),
        ("held_out", bool(demands.held_out) and demands.holds_out(head.base_offset, head.next_offset)),
    )
    reasons = tuple(reason for reason, holds in applies if holds)
    return Repack(reasons) if reasons else _VERBATIM


def _is_whole(head: BatchHead, first_wanted: int) -> bool:
    """Nearly every batch; asked for each."""
    return (
        head.magic == 2
        and head.base_offset >= first_wanted
        and head.last_offset_delta + 1 == head.record_count
        and not head.attributes & LOG_APPEND_TIME_BIT
    )


def reasons_of(
    heads: Sequence[BatchHead], *, first_wanted: int, demands: TargetLimits = _AS_THEY_ARE
) -> list[RepackReason]:
    """Why these batches don't cross verbatim, in alphabetical order."""
    ways = [choose_way(head, first_wanted=first_wanted, demands=demands) for head in heads]
    found = {reason for way in ways if isinstance(way, Repack) for reason in way.reasons}
    return sorted(found | {"joined"} if len(heads) > 1 else found)


def is_small(head: BatchHead) -> bool:
    """Whether sending the batch costs more than taking it apart. Old messages come one by one."""
    return head.record_count <= _FEW_RECORDS and head.size_bytes <= _SMALL_BYTES


def repack(
    batches: Sequence[tuple[BatchHead, memoryview]],
    *,
    first_wanted: int,
    demands: TargetLimits = _AS_THEY_ARE,
    limit_bytes: int = DEFAULT_DECOMPRESSED_LIMIT_BYTES,
) -> Repacking:
    """The records of these batches from `first_wanted` on, in the codec demanded, or else the first one's.

    Several are joined as far as they hold no more than `JOINED_DECOMPRESSED_BYTES` together.

    :raises CorruptBatch: a batch can't be read.
    :raises OversizedBatch: a batch by itself is over `limit_bytes` decompressed.
    """
    if len(batches) == 1:
        (only,) = batches
        whole, taken = frames_of(only[1], only[0], limit_bytes=limit_bytes), 1
    else:
        whole, taken = _joined(batches)
        if taken == 1:
            return Repacking((), ())
    frames = whole
    if whole and whole[0].offset < first_wanted:
        frames = [frame for frame in whole if frame.offset >= first_wanted]
    held_out: list[Frame] = []
    if demands.held_out:
        held_out = [frame for frame in frames if frame.offset in demands.held_out]
        frames = [frame for frame in frames if frame.offset not in demands.held_out]
    codec = batches[0][0].codec if demands.codec is None else demands.codec
    return Repacking(tuple(_packed(frames, codec, demands)) if frames else (), tuple(held_out), taken)


def _joined(batches: Sequence[tuple[BatchHead, memoryview]]) -> tuple[list[Frame], int]:
    """The frames of the first ones, as many as fit; no more is decompressed than fits. One is taken at least,
    whatever it holds."""
    joined: list[Frame] = []
    left = JOINED_DECOMPRESSED_BYTES
    for number, (head, batch) in enumerate(batches):
        try:
            frames = frames_of(batch, head, limit_bytes=left)
        except OversizedBatch:
            return joined, max(number, 1)
        if not head.attributes & CODEC_MASK:
            left -= len(batch)  # no less than what it holds, and known at once
        else:
            left -= sum([len(frame.body) + _MOST_FRAMING_BYTES for frame in frames])
        if left < 0:
            return joined, max(number, 1)
        joined += frames
    return joined, len(batches)


def _packed(frames: Sequence[Frame], codec: Codec, demands: TargetLimits) -> list[Repacked]:
    """One batch, or as many as it takes: how small parts get is known when they are compressed."""
    batch = write_batch(frames, codec=codec, producer_id=NO_PRODUCER_ID, producer_epoch=-1, base_sequence=-1)
    if demands.splits(len(batch), len(frames)):
        parts = _even_parts(frames, len(batch), demands)
        return [made for part in parts for made in _packed(part, codec, demands)]
    return [
        Repacked(
            batch=batch,
            record_count=len(frames),
            segments=segments_of(frames),
            first_timestamp=frames[0].timestamp_ms,
            max_timestamp=max(frame.timestamp_ms for frame in frames),
        )
    ]


def _even_parts(frames: Sequence[Frame], size_bytes: int, demands: TargetLimits) -> list[Sequence[Frame]]:
    """As many as would do if all records were alike; two at least."""
    assert demands.largest_bytes is not None
    wanted = -(-size_bytes // max(demands.largest_bytes, 1))
    each = -(-len(frames) // min(wanted, len(frames)))
    return [frames[first : first + each] for first in range(0, len(frames), each)]


def segments_of(frames: Sequence[Frame]) -> tuple[tuple[int, int], ...]:
    """Runs of (first offset, count) without holes."""
    first, last = frames[0].offset, frames[-1].offset
    if last - first + 1 == len(frames):
        return ((first, len(frames)),)  # offsets rise: there is no room for a hole
    runs: list[tuple[int, int]] = []
    for frame in frames:
        first, count = runs[-1] if runs else (0, 0)
        if runs and first + count == frame.offset:
            runs[-1] = (first, count + 1)
        else:
            runs.append((frame.offset, 1))
    return tuple(runs)
