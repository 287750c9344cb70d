"""Which way a batch crosses, and the way for those that can't cross as they are.

Verbatim is the rule. A batch is repacked when a broker would refuse it (holes, old format), when only
its end is wanted, or when re-addressing it would change what readers see (LogAppendTime: the append
times that consumers saw on the source become the records' own, CreateTime, timestamps). Batches of a
few records each are joined: a request takes one batch of a partition, whatever is in it, and costs as
much as thousands of records.

Invariants: the codec stays; offsets, timestamps and bodies of the wanted records stay, in order;
keys, values and headers aren't read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from causeway.core.batches import BatchHead
from causeway.core.codecs import DEFAULT_DECOMPRESSED_LIMIT_BYTES
from causeway.core.record_frames import Frame, write_batch
from causeway.core.records import frames_of

RepackReason = Literal["holes", "starts_inside", "log_append_time", "old_format", "joined"]

JOINED_BYTES = 256 << 10
_FEW_RECORDS = 8
_SMALL_BYTES = 8 << 10


@dataclass(frozen=True, slots=True)
class Verbatim:
    """The batch crosses as it is: `batches.rebase`."""


@dataclass(frozen=True, slots=True)
class Repack:
    """The batch crosses through `repack`."""

    reasons: tuple[RepackReason, ...]


@dataclass(frozen=True, slots=True)
class Repacked:
    """A batch to append and where its records come from: runs of (first source offset, count)."""

    batch: bytes
    record_count: int
    segments: tuple[tuple[int, int], ...]
    first_timestamp: int
    max_timestamp: int


def choose_way(head: BatchHead, *, first_wanted: int) -> Verbatim | Repack:
    """For batches of data; control batches never cross."""
    applies: tuple[tuple[RepackReason, bool], ...] = (
        ("old_format", head.magic < 2),
        ("holes", head.has_holes),
        ("starts_inside", head.base_offset < first_wanted),
        ("log_append_time", head.is_log_append_time),
    )
    reasons = tuple(reason for reason, holds in applies if holds)
    return Repack(reasons) if reasons else Verbatim()


def reasons_of(heads: Sequence[BatchHead], *, first_wanted: int) -> list[RepackReason]:
    """Why these batches don't cross verbatim, in alphabetical order."""
    ways = [choose_way(head, first_wanted=first_wanted) for head in heads]
    found = {reason for way in ways if isinstance(way, Repack) for reason in way.reasons}
    return sorted(found | {"joined"} if len(heads) > 1 else found)


def is_small(head: BatchHead) -> bool:
    """Whether sending the batch costs more than taking it apart."""
    return head.magic == 2 and head.record_count <= _FEW_RECORDS and head.size_bytes <= _SMALL_BYTES


def repack(
    batches: Sequence[tuple[BatchHead, memoryview]],
    *,
    first_wanted: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    limit_bytes: int = DEFAULT_DECOMPRESSED_LIMIT_BYTES,
) -> Repacked | None:
    """The records of these batches from `first_wanted` on as one, in the first one's codec; None: no record.

    :raises CorruptBatch: the batch can't be read.
    """
    frames = [
        frame
        for head, batch in batches
        for frame in frames_of(batch, head, limit_bytes=limit_bytes)
        if frame.offset >= first_wanted
    ]
    if not frames:
        return None
    return Repacked(
        batch=write_batch(
            frames,
            codec=batches[0][0].codec,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
        ),
        record_count=len(frames),
        segments=segments_of(frames),
        first_timestamp=frames[0].timestamp_ms,
        max_timestamp=max(frame.timestamp_ms for frame in frames),
    )


def segments_of(frames: Sequence[Frame]) -> tuple[tuple[int, int], ...]:
    """Runs of (first offset, count) without holes."""
    runs: list[tuple[int, int]] = []
    for frame in frames:
        first, count = runs[-1] if runs else (0, 0)
        if runs and first + count == frame.offset:
            runs[-1] = (first, count + 1)
        else:
            runs.append((frame.offset, 1))
    return tuple(runs)
