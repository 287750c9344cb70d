"""Translate offsets through the map: source to target and target to source, exact for any record of any age.

An offset is a group's position, the next one to read. It leads to the first mirrored record that isn't before
it; past the last one, to the place right after that:

    source   100 101 102   .   .   105 106          103 -> 44, 104 -> 44: the next record; 107 -> 46
    target    40  41  42   (a marker) 44  45         43 -> 105: the same rule on the way back; 46 -> 107

Where there is no answer, the answer says why: a value of its own for each reason, never a number.

Invariants
    A. Runs of other topic ids than the pair's of today (a topic was recreated) are never looked at.
    B. What the position doesn't cover isn't mirrored: a lost tail isn't promised before it is copied again.
    C. After the last run, only holes of which the position tells count as mirrored. If the position is
       newer than the map that was read, they belong to records that this map doesn't know yet.
    D. Before the start of the map, what was inherited from MirrorMaker 2 gives a `LowerBound`: a value
       of its own, which nobody can take for an exact answer.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, cast
from uuid import UUID

from causeway.core.kernel.identity import SourceOffset, TargetOffset, TopicPartition
from causeway.core.offsets.mm2_offset_syncs import Inherited, LowerBound
from causeway.core.offsets.offset_map import MappedRange, ranges_of_topics
from causeway.core.offsets.why_not import (
    AheadOfMirror,
    NeverMirrored,
    NotInFlow,
    OlderThanMap,
    OtherGeneration,
    WhyNot,
)
from causeway.core.state.known_pairs import KnownPair
from causeway.core.state.position import ForeignPosition, Position

_NO_END = (1 << 63) - 1


ToTarget = TargetOffset | LowerBound | WhyNot
ToSource = SourceOffset | LowerBound | WhyNot
Older = Callable[[int], LowerBound | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How far the mirror of a partition has come, by its committed position. Read *after* the map: what
    the map has and the position doesn't cover is taken for a lost tail."""

    source_next: SourceOffset
    target_next: TargetOffset
    adopted_at: int = -1
    """Generation in which a person set it, without data: unless there is a newer run, none leads up to it.
    -1: nobody did."""
    target_end: TargetOffset | None = None
    """The end of the target's log, if somebody asked: how far a target offset can be. None: a marker after
    the last mirrored record."""
    began: tuple[SourceOffset, TargetOffset] | None = None
    """Where the mirror of this partition began, or was set, if no record has crossed since."""


def reach_of(
    position: Position | ForeignPosition | None,
    pair: KnownPair,
    partition: int,
    *,
    target_end: TargetOffset | None = None,
    place: Position | None = None,
) -> Reach | None:
    """None: no position of these two topics. `place` is the one that the offset map keeps."""
    if not isinstance(position, Position):
        return None
    if position.ids != pair.ids:
        return None
    adopted_at = pair.adopted_at_of(partition)
    return Reach(
        source_next=position.source_next,
        target_next=position.target_next,
        adopted_at=adopted_at if adopted_at <= position.generation else -1,
        target_end=target_end,
        began=(place.source_next, place.target_next)
        if place is not None and _led_from(place, position, adopted_at)
        else None,
    )


def _led_from(place: Position, position: Position, adopted_at: int) -> bool:
    """Whether nothing but holes of the source lies between: the target hasn't moved on. Where it has, the
    runs that led here may be lost."""
    return (
        place.ids == position.ids
        and adopted_at <= place.generation <= position.generation
        and place.source_next <= position.source_next
        and place.target_next == position.target_next
    )


class PartitionMap:
    """One partition's runs, indexed once; both directions, one by one or many.

    `to_target(offset)` and `to_source(offset)` give an offset or say why not; `to_targets` and `to_sources`
    do the same for many, as a list in the order of the question.
    """

    __slots__ = ("reach", "to_source", "to_sources", "to_target", "to_targets")

    def __init__(
        self,
        runs: Iterable[MappedRange],
        reach: Reach | None,
        *,
        source_topic_id: UUID,
        target_topic_id: UUID,
        inherited: Inherited | None = None,
    ) -> None:
        """`runs` are all that the map holds of the target partition, in the map's order."""
        ids = (source_topic_id, target_topic_id)
        forth, back, self.reach = _directions(list(runs), reach, ids)
        if inherited is not None and inherited.ids == ids:
            forth.older, back.older = inherited.to_target, inherited.to_source
        self.to_target = cast(Callable[[SourceOffset], ToTarget], forth.translate)
        self.to_targets = cast(Callable[[Iterable[SourceOffset]], list[ToTarget]], forth.translate_many)
        self.to_source = cast(Callable[[TargetOffset], ToSource], back.translate)
        self.to_sources = cast(Callable[[Iterable[TargetOffset]], list[ToSource]], back.translate_many)


class FlowMap:
    """All partitions of a flow, by their source's names.

    The flow's topics are those that it has ever written, whatever its configuration says now.
    """

    def __init__(self, pairs: Mapping[str, KnownPair], maps: Mapping[TopicPartition, PartitionMap]) -> None:
        """`pairs` by target topic, as `FlowState` keeps them; `maps` by target partition."""
        self._targets = {pair.source_topic: target for target, pair in pairs.items()}
        self._pairs, self._maps = pairs, maps

    def target_of(self, source: TopicPartition) -> TopicPartition | NotInFlow:
        topic = self._targets.get(source.topic)
        return NotInFlow(source.topic) if topic is None else TopicPartition(topic, source.partition)

    def source_of(self, target: TopicPartition) -> TopicPartition | NotInFlow:
        pair = self._pairs.get(target.topic)
        if pair is None:
            return NotInFlow(target.topic)
        return TopicPartition(pair.source_topic, target.partition)

    def to_target(self, source: TopicPartition, offset: SourceOffset) -> ToTarget:
        found = self.of_target(self.target_of(source))
        return found.to_target(offset) if isinstance(found, PartitionMap) else found

    def to_source(self, target: TopicPartition, offset: TargetOffset) -> ToSource:
        if target.topic not in self._pairs:
            return NotInFlow(target.topic)
        found = self.of_target(target)
        return found.to_source(offset) if isinstance(found, PartitionMap) else found

    def of_target(self, target: TopicPartition | NotInFlow) -> PartitionMap | NotInFlow | NeverMirrored:
        """The index of one partition, for whoever has many offsets of it."""
        if isinstance(target, NotInFlow):
            return target
        return self._maps.get(target, NeverMirrored())


class _Stretches(NamedTuple):
    """Where each stretch without a hole begins here and on the other side, and how long it is."""

    firsts: Sequence[int]
    others: Sequence[int]
    counts: Sequence[int]

    def turned(self) -> _Stretches:
        return _Stretches(self.others, self.firsts, self.counts)


class _Direction:
    """One way through the runs: stretches of offsets, rising, and where each begins on the other side."""

    __slots__ = ("before", "begins", "beyond", "counts", "firsts", "older", "others", "there", "upto")

    def __init__(
        self, stretches: _Stretches, *, begins: int, before: WhyNot, upto: int, there: int, beyond: WhyNot
    ) -> None:
        """From `begins` on the map knows all; after the last stretch, `there` is right up to `upto`."""
        self.firsts, self.others, self.counts = stretches
        self.begins, self.before = begins, before
        self.upto, self.there, self.beyond = upto, there, beyond
        self.older: Older = _nothing_older

    def translate(self, offset: int) -> int | LowerBound | WhyNot:
        at = bisect_right(self.firsts, offset) - 1
        if at >= 0:
            into = offset - self.firsts[at]
            if into < self.counts[at]:
                return self.others[at] + into
        elif offset < self.begins:
            return self.older(offset) or self.before
        if at + 1 < len(self.firsts):
            return self.others[at + 1]
        return self.there if offset <= self.upto else self.beyond

    def translate_many(self, offsets: Iterable[int]) -> list[int | LowerBound | WhyNot]:
        firsts, counts, others = self.firsts, self.counts, self.others
        last, translate = len(firsts) - 1, self.translate
        found: list[int | LowerBound | WhyNot] = []
        add = found.append
        for offset in offsets:
            at = bisect_right(firsts, offset) - 1
            if at >= 0 and (into := offset - firsts[at]) < counts[at]:
                add(others[at] + into)
            elif 0 <= at < last:
                add(others[at + 1])
            else:
                add(translate(offset))
        return found


def _nothing_older(_offset: int) -> LowerBound | None:
    return None


def _directions(
    runs: list[MappedRange], reach: Reach | None, ids: tuple[UUID, UUID]
) -> tuple[_Direction, _Direction, Reach | None]:
    ours = ranges_of_topics(runs, ids)
    is_adopted = _is_adopted(ours, reach)
    if reach is not None:
        ours = _covered(ours, reach, is_adopted=is_adopted)
    ends = _ends(ours, reach, is_adopted=is_adopted)
    if ends is None:
        why = (
            NeverMirrored()
            if not runs
            else OtherGeneration(runs[-1].source_topic_id, runs[-1].target_topic_id)
        )
        nowhere = _Direction(_Stretches((), (), ()), begins=0, before=why, upto=-1, there=-1, beyond=why)
        return nowhere, nowhere, None
    began = (ours[0].source_begins, ours[0].target_begins) if ours else ends.began
    begins = began or (ends.source_next, ends.target_next)
    stretches = _stretches_of(ours)
    before, beyond = OlderThanMap(*begins), AheadOfMirror(ends.source_next, ends.target_next)
    forth = _Direction(
        stretches,
        begins=begins[0],
        before=before,
        upto=ends.source_next,
        there=ends.target_next,
        beyond=beyond,
    )
    back = _Direction(
        stretches.turned(),
        begins=begins[1],
        before=before,
        upto=ends.target_next + 1 if ends.target_end is None else ends.target_end,
        there=ours[-1].source_next if ours and not is_adopted else ends.source_next,
        beyond=beyond,
    )
    return forth, back, ends


def _is_adopted(runs: Sequence[MappedRange], reach: Reach | None) -> bool:
    """Whether a person set the position and nothing was copied since. A run may have committed it again,
    in a generation of its own."""
    return reach is not None and 0 <= reach.adopted_at >= max((run.generation for run in runs), default=-1)


def _covered(runs: list[MappedRange], reach: Reach, *, is_adopted: bool) -> list[MappedRange]:
    """A position before the map's end: the target lost its tail, or an operator set the position there,
    and what comes after it is copied again. Where the source lost records, others have taken their
    offsets."""
    source, target = (reach.source_next, _NO_END) if is_adopted else (_NO_END, reach.target_next)
    while runs and (runs[-1].target_first >= target or runs[-1].source_first >= source):
        runs.pop()
    if runs and (runs[-1].target_next > target or runs[-1].source_next > source):
        runs[-1] = runs[-1].in_front_of(SourceOffset(source), TargetOffset(target))
    return runs


def _ends(runs: list[MappedRange], reach: Reach | None, *, is_adopted: bool) -> Reach | None:
    """How far both know the mirror to be."""
    if not runs:
        return reach
    last = runs[-1]
    if reach is not None and (is_adopted or reach.target_next == last.target_next):
        return reach
    return Reach(
        source_next=last.source_next,
        target_next=last.target_next,
        target_end=reach.target_end if reach else None,
    )


def _stretches_of(runs: Iterable[MappedRange]) -> _Stretches:
    """From the source to the target."""
    sources, targets, counts = array("q"), array("q"), array("q")
    for run in runs:
        source, target = int(run.source_first), int(run.target_first)
        for copied, skipped in run.segments:
            sources.append(source)
            targets.append(target)
            counts.append(copied)
            source, target = source + copied + skipped, target + copied
    return _Stretches(sources, targets, counts)
