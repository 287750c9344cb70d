"""Compare what two partitions show to a `read_committed` reader, record by record and in order.

`PartitionComparison` is fed two bounded buffers and never asks for more: memory stays bounded however long
the partitions are. The rule: the k-th visible record of the target equals the k-th of the source in key,
value, headers (order, duplicates and nulls included) and timestamp, and its timestamp is a CreateTime.

Where the heads differ, the buffers are searched for the next place where both agree again, so that one lost
record is reported as one missing record and not as a difference of all that follow:

    source  a b c d e f        missing: c
    target  a b   d e f

Before the first common record, logs may start at different records because retention deleted some: those
are counted as gone, not as different, up to a bound that the caller knows from the logs' starts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from causeway.core.kernel.identity import SourceOffset, TargetOffset, TopicPartition
from causeway.core.verify.report import Difference, Kind, PartitionVerdict

CREATE_TIME = 1
LOG_APPEND_TIME = 2

Timestamp = tuple[int, int]
"""Type and milliseconds."""
Headers = Sequence[tuple[str, bytes | None]] | None
Content = tuple[Timestamp, bytes | None, bytes | None, Headers]
"""Timestamp, key, value, headers: what must be equal. Plain tuples: whole buffers compare at once."""

_FIELDS = ("timestamp", "key", "value", "headers")
_AGREEMENT_RECORDS = 3
_SHOWN_DIFFERENCES = 10
_SHOWN_BYTES = 48


class RecordBuffer:
    """Visible records in order that wait for their counterpart."""

    __slots__ = ("contents", "is_complete", "offsets")

    def __init__(self, offsets: Iterable[int] = (), contents: Iterable[Content] = ()) -> None:
        self.offsets: list[int] = list(offsets)
        self.contents: list[Content] = list(contents)
        self.is_complete = False
        """Whether nothing more will come after these."""

    def __len__(self) -> int:
        return len(self.offsets)

    def drop(self, count: int) -> None:
        del self.offsets[:count]
        del self.contents[:count]

    def leave_out(self, offsets: Collection[int]) -> int:
        """Take these out, if they are here; returns how many were."""
        places = [n for n, offset in enumerate(self.offsets) if offset in offsets] if offsets else []
        for place in reversed(places):
            del self.offsets[place]
            del self.contents[place]
        return len(places)


@dataclass(slots=True, kw_only=True)
class PartitionComparison:
    """The comparison of one pair of partitions; `advance` until it says that it is done."""

    may_skip_source: int = 0
    """How many source records the target's retention can have deleted at most."""
    may_skip_target: int = 0
    source_log_end: SourceOffset
    source_end: SourceOffset | None = None
    """What the target must have: source records below it; None: what it has is enough."""
    equal: int = field(default=0, init=False)
    _counts: dict[Kind, int] = field(default_factory=lambda: dict.fromkeys(Kind, 0), init=False)
    _gone_on_target: int = field(default=0, init=False)
    _gone_on_source: int = field(default=0, init=False)
    _behind: int = field(default=0, init=False)
    _differences: list[Difference] = field(default_factory=list, init=False)

    def advance(self, source: RecordBuffer, target: RecordBuffer) -> bool:
        """Take what is decided from the buffers; True: all is. Before each call, fill them as far as may be.

        Heads that differ are judged only in buffers as full as they get: in short ones a lost record and a
        changed one look alike.
        """
        taken = self._take_equal(source, target)
        are_full = not taken or (source.is_complete and target.is_complete)
        if len(source) and len(target) and are_full and not self._skip_what_is_gone(source, target):
            self._judge_heads(source, target)
        if source.is_complete and not len(source):
            self._take_rest_of_target(target)
            return target.is_complete
        return target.is_complete and not len(target) and self._take_rest_of_source(source)

    def verdict(self, source: TopicPartition, target: TopicPartition) -> PartitionVerdict:
        return PartitionVerdict(
            source=source,
            target=target,
            equal=self.equal,
            different=self._counts[Kind.DIFFERENT],
            missing=self._counts[Kind.MISSING],
            extra=self._counts[Kind.EXTRA],
            gone_on_target=self._gone_on_target,
            gone_on_source=self._gone_on_source,
            behind=self._behind,
            differences=tuple(self._differences),
        )

    def _take_equal(self, source: RecordBuffer, target: RecordBuffer) -> int:
        """The fast path: whole buffers in one comparison."""
        count = min(len(source), len(target))
        ours, theirs = source.contents[:count], target.contents[:count]
        if ours != theirs:
            count = next(i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b)
        self.equal += count
        source.drop(count)
        target.drop(count)
        return count

    @property
    def unequal(self) -> int:
        return sum(self._counts.values())

    @property
    def _is_before_first_common(self) -> bool:
        return not self.equal and not self.unequal

    def _skip_what_is_gone(self, source: RecordBuffer, target: RecordBuffer) -> bool:
        """Before the first equal record: drop what only one side still has; False: nothing may be."""
        if not self._is_before_first_common:
            return False
        may_skip_target = self.may_skip_target - self._gone_on_source
        is_target_older = target.contents[0][0][1] < source.contents[0][0][1]
        if self.may_skip_source > self._gone_on_target and not (may_skip_target > 0 and is_target_older):
            self._drop_gone_on_target(source, _distance(source, target, unknown=len(source)))
            return True
        if may_skip_target > 0:
            self._drop_gone_on_source(target, _distance(target, source, unknown=len(target)))
            return True
        return False

    def _drop_gone_on_target(self, source: RecordBuffer, count: int) -> None:
        count = min(count, len(source), max(0, self.may_skip_source - self._gone_on_target))
        self._gone_on_target += count
        source.drop(count)

    def _drop_gone_on_source(self, target: RecordBuffer, count: int) -> None:
        count = min(count, len(target), max(0, self.may_skip_target - self._gone_on_source))
        self._gone_on_source += count
        target.drop(count)

    def _judge_heads(self, source: RecordBuffer, target: RecordBuffer) -> None:
        """The heads differ: a changed record, or the shortest run of missing or extra ones before it."""
        if not _agree(source, 1, target, 1):
            never = max(len(source), len(target)) + 1
            missing = _distance(source, target, unknown=never)
            extra = _distance(target, source, unknown=never)
            if missing < never and missing <= extra:
                self._take_missing(source, missing)
                return
            if extra < never:
                self._take_extra(target, extra)
                return
        self._note(
            difference_of(source.offsets[0], source.contents[0], target.offsets[0], target.contents[0])
        )
        source.drop(1)
        target.drop(1)

    def _take_rest_of_source(self, source: RecordBuffer) -> bool:
        """The target has no more: what it should have had is missing. True: nothing more is due."""
        if self._is_before_first_common:
            self._drop_gone_on_target(source, len(source))
        if self.source_end is not None:
            self._take_missing(source, sum(1 for offset in source.offsets if offset < self.source_end))
        if len(source):
            self._behind = self.source_log_end - source.offsets[0]
        return source.is_complete or len(source) > 0

    def _take_rest_of_target(self, target: RecordBuffer) -> None:
        if self._is_before_first_common:
            self._drop_gone_on_source(target, len(target))
        self._take_extra(target, len(target))

    def _take_missing(self, source: RecordBuffer, count: int) -> None:
        for offset in source.offsets[:count]:
            self._note(Difference(kind=Kind.MISSING, source_offset=SourceOffset(offset)))
        source.drop(count)

    def _take_extra(self, target: RecordBuffer, count: int) -> None:
        for offset in target.offsets[:count]:
            self._note(Difference(kind=Kind.EXTRA, target_offset=TargetOffset(offset)))
        target.drop(count)

    def _note(self, difference: Difference) -> None:
        self._counts[difference.kind] += 1
        if len(self._differences) < _SHOWN_DIFFERENCES:
            self._differences.append(difference)


def _distance(longer: RecordBuffer, shorter: RecordBuffer, *, unknown: int) -> int:
    """How many records of `longer` stand before the head of `shorter`."""
    head = shorter.contents[0]
    for index, content in enumerate(longer.contents):
        if content == head and _agree(longer, index, shorter, 0):
            return index
    return unknown


def _agree(one: RecordBuffer, start: int, other: RecordBuffer, other_start: int) -> bool:
    """Whether the next few records of both are equal, as far as they are there; none left on both is, too."""
    ours = one.contents[start : start + _AGREEMENT_RECORDS]
    theirs = other.contents[other_start : other_start + _AGREEMENT_RECORDS]
    count = min(len(ours), len(theirs))
    return ours[:count] == theirs[:count] and (count > 0 or len(ours) == len(theirs))


def difference_of(source_offset: int, ours: Content, target_offset: int, theirs: Content) -> Difference:
    """Of two records that should be equal and aren't: the first field that tells them apart."""
    index = next(i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b)
    shown = _timestamps if index == 0 else _both_values
    source_value, target_value = shown(ours[index], theirs[index])
    return Difference(
        kind=Kind.DIFFERENT,
        source_offset=SourceOffset(source_offset),
        target_offset=TargetOffset(target_offset),
        field=_FIELDS[index],
        source_value=source_value,
        target_value=target_value,
    )


def _timestamps(one: object, other: object) -> tuple[str, str]:
    return _timestamp(one), _timestamp(other)


def _timestamp(value: object) -> str:
    match value:
        case (int(kind), int(milliseconds)):
            return f"{milliseconds} ms{' (LogAppendTime)' if kind == LOG_APPEND_TIME else ''}"
        case _:
            return repr(value)


def _both_values(one: object, other: object) -> tuple[str, str]:
    """Both sides, cut so that the first difference shows."""
    first, second = _printable(one), _printable(other)
    at = next((i for i, (a, b) in enumerate(zip_longest(first, second)) if a != b), 0)
    start = max(0, at - _SHOWN_BYTES // 2)
    return _cut_text(first, start), _cut_text(second, start)


def _printable(value: object) -> str:
    """Escaped: neither a control character nor a quote of a record reaches a terminal as it is."""
    return "null" if value is None else ascii(value)


def _cut_text(text: str, start: int) -> str:
    end = start + _SHOWN_BYTES
    return f"{'...' if start else ''}{text[start:end]}{'...' if end < len(text) else ''}"
