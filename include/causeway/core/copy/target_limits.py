"""What the target asks of a partition's batches, and what follows when it refuses one.

A refused batch is made smaller first: joined ones travel one by one, big ones are split. What is left is a
record that the target doesn't take as it is, and there the flow's policy decides.

Invariants: each refusal asks for more than the one before, so that a run can't try for ever; nothing is
left out but by `quarantine`, and then each record by its offset and with the broker's own word for why.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from causeway.core.kernel.kafka_errors import KafkaErrorCode as Code
from causeway.core.model.flow import RefusedPolicy
from causeway.core.records.compression import Codec

_INT64_MAX = (1 << 63) - 1
_KIBIBYTE = 1024
_TOO_LARGE = {
    Code.MESSAGE_TOO_LARGE: "max.message.bytes",
    Code.RECORD_LIST_TOO_LARGE: "segment.bytes",
}
RAISED = frozenset(
    {*_TOO_LARGE.values(), *(f"message.timestamp.{side}.max.ms" for side in ("after", "before"))}
)
"""Settings that `raise_limit` may raise."""
_WHY = {
    Code.MESSAGE_TOO_LARGE: "too large",
    Code.RECORD_LIST_TOO_LARGE: "too large",
    Code.INVALID_TIMESTAMP: "timestamp out of the window",
    Code.INVALID_RECORD: "no key on a compacted topic",
}
_CODECS = {
    "uncompressed": Codec.NONE,
    "gzip": Codec.GZIP,
    "snappy": Codec.SNAPPY,
    "lz4": Codec.LZ4,
    "zstd": Codec.ZSTD,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetLimits:
    """Of one source partition. Learned from refusals for as long as a run lasts, but for the codec."""

    codec: Codec | None = None
    """The one that the target's topic is set to; None: as the source has it."""
    may_join: bool = True
    """Whether small batches may travel in one: not once the target refused a joined one."""
    largest_bytes: int | None = None
    """Bigger batches are split; a record by itself may still be bigger."""
    held_out: Mapping[int, str] = field(default_factory=dict)
    """Source offsets of records that go to quarantine, and why."""
    examines: bool = False
    """Whether each batch is read before it is sent: the target broke down over one that may be malformed."""
    cannot_raise: str = ""
    """Why the limit in the way can't be raised, if that was tried."""

    @property
    def asks_nothing(self) -> bool:
        """Of a batch's form."""
        return self.codec is None and self.largest_bytes is None and not self.held_out

    def splits(self, size_bytes: int, records: int) -> bool:
        return self.largest_bytes is not None and size_bytes > self.largest_bytes and records > 1

    def holds_out(self, first: int, behind: int) -> bool:
        """Any offset of `[first, behind)`."""
        return any(first <= offset < behind for offset in self.held_out)


@dataclass(frozen=True, slots=True)
class LimitRaise:
    """A setting of the target's topic that has to be at least so much before the batch is tried again."""

    setting: str
    at_least: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedBatch:
    """A batch that the target didn't take for its own fault."""

    code: int
    segments: tuple[tuple[int, int], ...]
    """Runs of (first source offset, count) of its records."""
    size_bytes: int
    last_timestamp_ms: int
    is_joined: bool
    at_fault: Sequence[int] = ()
    """Which of its records the broker named, counted from 0."""

    @property
    def offsets(self) -> list[int]:
        return [first + n for first, count in self.segments for n in range(count)]


def unexplained(code: int, demands: TargetLimits) -> TargetLimits | None:
    """A broker that stumbles over a batch says no more than "error": the next try reads batches first."""
    return replace(demands, examines=True) if code == Code.UNKNOWN_SERVER_ERROR else None


def answer_refusal(
    batch: RefusedBatch, demands: TargetLimits, policy: RefusedPolicy, *, now_ms: int
) -> TargetLimits | LimitRaise | None:
    """How to continue after a refusal; None: the partition parks."""
    if batch.code not in _WHY:
        return None
    if batch.is_joined:
        return replace(demands, may_join=False)
    offsets = batch.offsets
    if batch.code in _TOO_LARGE and len(offsets) > 1:
        return replace(demands, largest_bytes=batch.size_bytes // 2)
    match policy:
        case RefusedPolicy.PARK:
            return None
        case RefusedPolicy.RAISE_LIMIT:
            return None if demands.cannot_raise else _limit_in_the_way(batch, now_ms)
        case RefusedPolicy.QUARANTINE:
            return _held_out(batch, demands, offsets)


def _limit_in_the_way(batch: RefusedBatch, now_ms: int) -> LimitRaise | None:
    code = Code(batch.code)
    if code in _TOO_LARGE:
        # A KiB more than the batch has: what the broker adds or recompresses must not ask for a second one.
        return LimitRaise(_TOO_LARGE[code], (batch.size_bytes // _KIBIBYTE + 2) * _KIBIBYTE)
    if code == Code.INVALID_TIMESTAMP:
        side = "after" if batch.last_timestamp_ms > now_ms else "before"
        return LimitRaise(f"message.timestamp.{side}.max.ms", _INT64_MAX)
    return None


def _held_out(batch: RefusedBatch, demands: TargetLimits, offsets: list[int]) -> TargetLimits | None:
    """Only what the broker has named, or what is alone: nothing else is known to be at fault."""
    named = [offsets[n] for n in batch.at_fault if 0 <= n < len(offsets)]
    if not named and batch.code in _TOO_LARGE:
        named = offsets
    if not named:
        return None
    why = _WHY[Code(batch.code)]
    return replace(demands, held_out={**demands.held_out, **dict.fromkeys(named, why)})


def codec_wanted(compression_type: str | None) -> Codec | None:
    """Of a topic's `compression.type`; `producer`, and what isn't known, leave each batch its own."""
    return _CODECS.get(compression_type or "")
