"""Compare two logs through the offset map: where records are missing on one side, and that may be right.

The map says for each target offset which source offset its record came from. So the records that both sides
still hold are compared in pairs, whatever was taken from between them. That is needed in two cases.

- A compacted partition. A side whose cleaner runs may lack a record that the other one holds. It may, if a
  later record of the same key follows: that one is compared. And it may lack a tombstone, if it shows no
  older record of that key. Whatever else is missing or extra is a difference, and so is every record that
  lacks on a side that isn't compacted.
- A partition that was mirrored back in a failback. What one flow mirrored lies beside what the other one
  brought back; the map of each knows both. Records in `never_crossed` are on the source alone: the divergent
  tail, which the failback exported.

A run may copy meanwhile. What it adds isn't judged, but where a cleaner runs it is read: it may be the later
record that a cleaner took an older one for.

Memory grows with the number of keys of a compacted partition, never with its records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from causeway.core.kernel.identity import SourceOffset, TargetOffset, TopicPartition
from causeway.core.offsets.offset_map import MappedRange
from causeway.core.state.position_ledger import ManualPosition
from causeway.core.verify.comparison import Content, difference_of
from causeway.core.verify.report import Difference, Kind, PartitionVerdict

ENOUGH_DIFFERENCES = 10_000
_SHOWN_DIFFERENCES = 10
_TELL_EVERY = 10_000
Stretch = tuple[int, int, int]
"""First source offset, first target offset, number of records; in order on both sides."""
Gap = tuple[int, int]
Shown = Iterator[tuple[int, Content]]


def stretches_of(runs: Iterable[MappedRange]) -> list[Stretch]:
    """Of runs that hold."""
    found: list[Stretch] = []
    for run in runs:
        source, target = int(run.source_first), int(run.target_first)
        for copied, skipped in run.segments:
            found.append((source, target, copied))
            source, target = source + copied + skipped, target + copied
    return found


def never_crossed(
    runs: Sequence[MappedRange], homecomings: Iterable[tuple[ManualPosition, int]]
) -> list[Gap]:
    """The divergent tails: what the source holds between the last record that the flow had mirrored and the
    first one that a failback brought back.

    `homecomings`: the entries of failbacks, each with the source offset where the flow went on. What a
    failback handed over bears the generation of its entry.
    """
    gaps: list[Gap] = []
    for entry, went_on_at in homecomings:
        brought = [int(run.source_first) for run in runs if run.generation == entry.generation]
        end = min(brought, default=went_on_at)
        before = [int(run.source_next) for run in runs if run.source_first < end]
        gaps.append((max(before, default=0), end))
    return gaps


@dataclass(slots=True, kw_only=True)
class MapComparison:
    """Of one pair of partitions: `compare` once, then ask for the `verdict`."""

    stretches: Sequence[Stretch]
    source_start: int
    target_start: int
    source_log_end: int
    """Source records from it on aren't counted as `behind` either."""
    source_end: int | None
    """Source records below it must be on the target; those from it on aren't judged."""
    target_end: int
    """Target records from it on aren't judged: the map isn't as new as they are."""
    source_is_compacted: bool
    target_is_compacted: bool
    quarantined: Collection[int] = ()
    never_crossed: Sequence[Gap] = ()
    _counts: Counter[str] = field(default_factory=Counter, init=False)
    _differences: list[Difference] = field(default_factory=list, init=False)
    _at_source: int = field(default=0, init=False)
    _at_target: int = field(default=0, init=False)
    _lacks: dict[bytes, tuple[int, bool]] = field(default_factory=dict, init=False)
    """By key: the newest source record that the target lacks, and whether it is a tombstone."""
    _exceeds: dict[bytes, tuple[int, int, bool]] = field(default_factory=dict, init=False)
    """By key: the newest target record that the source lacks: both offsets, and whether it is a tombstone."""
    _live_on_source: set[bytes] = field(default_factory=set, init=False)
    _live_on_target: set[bytes] = field(default_factory=set, init=False)

    def compare(self, source: Shown, target: Shown, tell: Callable[[int], None]) -> None:
        later: list[tuple[int, Content]] = []
        self._compare_records(source, self._to_judge(target, later), tell)
        if self._unequal <= ENOUGH_DIFFERENCES:
            for _, content in chain(later, target):
                self._seen_on_target(content)
        self._judge_the_last()

    def _to_judge(self, target: Shown, later: list[tuple[int, Content]]) -> Shown:
        """Up to the first one that isn't judged; that one is put into `later`."""
        for each in target:
            if each[0] >= self.target_end:
                later.append(each)
                return
            yield each

    def _compare_records(self, source: Shown, target: Shown, tell: Callable[[int], None]) -> None:
        here, there = next(source, None), next(target, None)
        while (here or there) and self._unequal <= ENOUGH_DIFFERENCES:
            came_from = None if there is None else self._source_of(there[0])
            if there is not None and came_from is None:
                self._differ(Difference(kind=Kind.EXTRA, target_offset=TargetOffset(there[0])))
                there = next(target, None)
            elif there is None or (here is not None and here[0] < (came_from or 0)):
                assert here is not None
                self._only_here(*here)
                here = next(source, None)
            elif here is None or here[0] > (came_from or 0):
                self._only_there(came_from or 0, *there)
                there = next(target, None)
            else:
                self._both(here, there)
                here, there = next(source, None), next(target, None)
                if self._counts["equal"] % _TELL_EVERY == 0:
                    tell(self._counts["equal"])

    @property
    def _is_cleaned(self) -> bool:
        return self.source_is_compacted or self.target_is_compacted

    @property
    def _unequal(self) -> int:
        return sum(self._counts[kind.value] for kind in Kind)

    def verdict(self, source: TopicPartition, target: TopicPartition) -> PartitionVerdict:
        in_order = sorted(self._differences, key=lambda each: each.source_offset or each.target_offset or 0)
        trouble = f"not compared further: {self._unequal:,} differences"
        return PartitionVerdict(
            source=source,
            target=target,
            is_by_map=True,
            equal=self._counts["equal"],
            gone_on_target=self._counts["gone_on_target"],
            gone_on_source=self._counts["gone_on_source"],
            cleaned_on_target=self._counts["cleaned_on_target"],
            cleaned_on_source=self._counts["cleaned_on_source"],
            never_crossed=self._counts["never_crossed"],
            quarantined=self._counts["quarantined"],
            behind=self._counts["behind"],
            different=self._counts[Kind.DIFFERENT.value],
            missing=self._counts[Kind.MISSING.value],
            extra=self._counts[Kind.EXTRA.value],
            differences=tuple(in_order[:_SHOWN_DIFFERENCES]),
            trouble=trouble if self._unequal > ENOUGH_DIFFERENCES else "",
        )

    def _source_of(self, target: int) -> int | None:
        """None: no run of the map says where that record came from. Asked in the order of the log."""
        while (
            self._at_target < len(self.stretches) and _target_next(self.stretches[self._at_target]) <= target
        ):
            self._at_target += 1
        if self._at_target == len(self.stretches) or self.stretches[self._at_target][1] > target:
            return None
        first, there, _ = self.stretches[self._at_target]
        return first + target - there

    def _target_of(self, source: int) -> int | None:
        """None: by the map that record was never mirrored. Asked in the order of the log."""
        while (
            self._at_source < len(self.stretches) and _source_next(self.stretches[self._at_source]) <= source
        ):
            self._at_source += 1
        if self._at_source == len(self.stretches) or self.stretches[self._at_source][0] > source:
            return None
        first, there, _ = self.stretches[self._at_source]
        return there + source - first

    def _both(self, here: tuple[int, Content], there: tuple[int, Content]) -> None:
        if here[1] == there[1]:
            self._counts["equal"] += 1
        else:
            self._differ(difference_of(here[0], here[1], there[0], there[1]))
        self._seen_on_source(here[1])
        self._seen_on_target(there[1])

    def _only_here(self, offset: int, content: Content) -> None:
        key, is_tombstone = content[1], content[2] is None
        if self.source_end is not None and offset >= self.source_end:
            if offset < self.source_log_end:
                self._counts.setdefault("behind", self.source_log_end - offset)
            self._seen_on_source(content, is_mirrored=False)
            return
        if offset in self.quarantined:
            self._counts["quarantined"] += 1
            self._seen_on_source(content, is_mirrored=False)
            return
        went_to = self._target_of(offset)
        self._seen_on_source(content, is_mirrored=went_to is not None)
        if went_to is None and any(first <= offset < end for first, end in self.never_crossed):
            self._counts["never_crossed"] += 1
        elif went_to is not None and went_to < self.target_start:
            self._counts["gone_on_target"] += 1
        elif went_to is None or not self.target_is_compacted:
            self._differ(Difference(kind=Kind.MISSING, source_offset=SourceOffset(offset)))
        elif key is None:
            self._counts["cleaned_on_target"] += 1
        else:
            self._lacks[key] = offset, is_tombstone

    def _only_there(self, came_from: int, offset: int, content: Content) -> None:
        key, is_tombstone = content[1], content[2] is None
        self._seen_on_target(content)
        if came_from < self.source_start:
            self._counts["gone_on_source"] += 1
        elif not self.source_is_compacted:
            self._differ(Difference(kind=Kind.EXTRA, target_offset=TargetOffset(offset)))
        elif key is None:
            self._counts["cleaned_on_source"] += 1
        else:
            if key in self._exceeds:
                self._counts["cleaned_on_source"] += 1
            self._exceeds[key] = came_from, offset, is_tombstone

    def _seen_on_source(self, content: Content, *, is_mirrored: bool = True) -> None:
        """A later record of a key is why a cleaner may have taken the one before it."""
        key = content[1]
        if not self._is_cleaned or key is None:
            return
        (self._live_on_source.discard if content[2] is None else self._live_on_source.add)(key)
        if self._exceeds.pop(key, None) is not None:
            self._counts["cleaned_on_source"] += 1
        if is_mirrored and self._lacks.pop(key, None) is not None:
            self._counts["cleaned_on_target"] += 1

    def _seen_on_target(self, content: Content) -> None:
        key = content[1]
        if not self._is_cleaned or key is None:
            return
        (self._live_on_target.discard if content[2] is None else self._live_on_target.add)(key)
        if self._lacks.pop(key, None) is not None:
            self._counts["cleaned_on_target"] += 1

    def _judge_the_last(self) -> None:
        """Nothing of their keys follows these: a cleaner takes no such record, but for a tombstone."""
        for key, (offset, is_tombstone) in self._lacks.items():
            if is_tombstone and key not in self._live_on_target:
                self._counts["cleaned_on_target"] += 1
            else:
                self._differ(Difference(kind=Kind.MISSING, source_offset=SourceOffset(offset)))
        for key, (_, offset, is_tombstone) in self._exceeds.items():
            if is_tombstone and key not in self._live_on_source:
                self._counts["cleaned_on_source"] += 1
            else:
                self._differ(Difference(kind=Kind.EXTRA, target_offset=TargetOffset(offset)))

    def _differ(self, difference: Difference) -> None:
        self._counts[difference.kind.value] += 1
        if len(self._differences) < ENOUGH_DIFFERENCES:
            self._differences.append(difference)


def _source_next(stretch: Stretch) -> int:
    return stretch[0] + stretch[2]


def _target_next(stretch: Stretch) -> int:
    return stretch[1] + stretch[2]
