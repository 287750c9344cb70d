"""Where a partition of MirrorMaker 2's mirror stands beside its source: found by records, or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from causeway.brokers.admin.record_reader import RecordReader
from causeway.core.kernel.identity import SourceOffset, TargetOffset
from causeway.core.records.mm2_formats import OffsetSync
from causeway.core.takeover.mm2_mirror import BY_SYNCS, Anchor, Unproved, Walk, Walked, choose_anchor
from causeway.core.verify.tail_search import Search, ShownRecord
from causeway.usecases.takeover.mm2_state import Candidate

_SAMPLE_RECORDS = 16
_FIRST_STRETCH = 1_000
_REWALKED_OFFSETS = 5_000_000
"""More than MirrorMaker 2 copies into a partition between two commits, which are a minute apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Proved: every source record before `source_next` is on the target, and none from it on."""

    source_next: int
    told_by: str
    last: OffsetSync | None
    """The furthest source record, and where its copy lies; None: it isn't known."""
    compared: int = 0
    repeated: int = 0
    lost: int = 0
    """Records that MirrorMaker 2 had committed, and the target has no more: they are copied again."""


class Proof:
    """Two readers, for one partition after the other."""

    def __init__(self, source: RecordReader, target: RecordReader) -> None:
        self._source, self._target = source, target

    def find(self, at: Candidate) -> Place | None:
        """None: nothing was ever mirrored, and the flow's own start rule holds.

        :raises Unproved: the records don't tell.
        """
        if at.target_stable < at.extent.target_end:
            raise Unproved(
                f"a transaction is open on the target from offset {at.target_stable} on: if it is "
                "MirrorMaker 2's, it ends with its time-out of a minute; then run this again"
            )
        if (emptied := _of_nothing_left(at)) is not None:
            return emptied
        anchor = choose_anchor(at.syncs, at.committed, at.extent) or self._by_records(at)
        place = self._of_nothing_shown(at) if anchor is None else self._walked(at, anchor)
        if place is not None and place.source_next > at.source_stable:
            raise Unproved(
                f"it has copied up to source offset {place.source_next - 1}, and a transaction of the "
                f"source is open from {at.source_stable} on: run this again when it has ended"
            )
        return place

    def _walked(self, at: Candidate, anchor: Anchor) -> Place:
        done = self._walk(at, anchor)
        while (before := self._copied_before(at, anchor, done)) is not None:
            earlier = [sync for sync in at.syncs if at.extent.target_start <= sync.target_offset <= before]
            found = choose_anchor(earlier, None, at.extent)
            if found is None:
                raise Unproved(
                    f"what follows source {done.last_source} may be at target offset {before} already, "
                    "and no offset sync from before it tells"
                )
            anchor, done = found, self._walk(at, found)
        self._refuse_what_retention_hides(at, anchor, done)
        last = OffsetSync(
            source=at.pair.source,
            source_offset=SourceOffset(done.last_source),
            target_offset=TargetOffset(done.last_target),
        )
        behind, lost = done.last_source + 1, 0
        if at.committed is not None and at.committed >= behind:
            lost = sum(1 for _ in self._of_source(at, behind, at.committed + 1))
        return Place(
            source_next=behind if lost or at.committed is None else max(behind, at.committed + 1),
            told_by=anchor.told_by,
            last=last,
            compared=done.compared,
            repeated=done.repeated,
            lost=lost,
        )

    def _walk(self, at: Candidate, anchor: Anchor) -> Walked:
        walk = Walk(
            anchor,
            [sync for sync in at.syncs if sync.target_offset >= anchor.target],
            lambda start: self._of_source(at, start, at.extent.source_end),
            at.extent.source_start,
        )
        return walk.over(self._of_target(at, anchor.target))

    def _copied_before(self, at: Candidate, anchor: Anchor, done: Walked) -> int | None:
        """Where an earlier life had copied the next record: one that came further than the last one has.

        Such a life has written all that it wrote after its own last commit, and later ones have never come
        as far: so it isn't far away. A record that only looks the same is found out by the walk from there.
        """
        if anchor.told_by != BY_SYNCS and at.extent.target_start == 0:
            return None  # a record that was there once, or the beginning: the walk has seen all lives
        following = next(self._of_source(at, done.last_source + 1, at.extent.source_end), None)
        if following is None:
            return None
        start = max(at.extent.target_start, anchor.target - _REWALKED_OFFSETS)
        earlier = self._of_target(at, start, anchor.target)
        return next((offset for offset, content in earlier if content == following[1]), None)

    def _refuse_what_retention_hides(self, at: Candidate, anchor: Anchor, done: Walked) -> None:
        """Retention may have taken the copy of the next record, and left what that life had copied after it.

        Then the target's first record is one of those: a life copies without a gap.
        """
        start = at.extent.target_start
        if start == 0 or start < anchor.target - _REWALKED_OFFSETS:
            return
        first = next(self._of_target(at, start, anchor.target), None)
        if first is None:
            return
        following = self._of_source(at, done.last_source + 1, at.extent.source_end)
        for offset, content in islice(following, min(start, _REWALKED_OFFSETS)):
            if content == first[1]:
                raise Unproved(
                    f"what follows source {done.last_source} may have been copied before: the target's first "
                    f"record, at offset {first[0]}, may be source offset {offset}"
                )

    def _of_nothing_shown(self, at: Candidate) -> Place | None:
        """The target holds no record that could be compared: of a log that is whole, none was ever there.

        Exactly-once MirrorMaker leaves the markers of what was aborted.
        """
        if at.committed is None and at.extent.target_start == 0:
            return None
        newest = at.syncs[-1] if at.syncs else None
        is_last = newest is not None and newest.target_offset + 1 == at.extent.target_end
        if newest is None or not is_last or newest.source_offset < (at.committed or 0):
            raise Unproved("the target shows no record, so what else MirrorMaker 2 wrote isn't known")
        return Place(source_next=newest.source_offset + 1, told_by="the last offset sync", last=newest)

    # without offset syncs

    def _by_records(self, at: Candidate) -> Anchor | None:
        """None: the target shows nothing."""
        first = next(self._of_target(at, at.extent.target_start), None)
        if first is None:
            return None
        if at.committed is None:
            return self._by_beginnings(at, first)
        sample = self._last_of_source(at, at.committed)
        if not sample:
            raise Unproved(
                f"no offset sync tells, and the source has nothing left up to offset {at.committed}"
            )
        search = Search(sample)
        for record in self._of_target(at, at.extent.target_start):
            search.offer(record)
        if len(search.places) != 1:
            times = "nowhere" if not search.places else f"{len(search.places)} times"
            raise Unproved(
                f"no offset sync tells, and the source's {len(sample)} records up to {at.committed} are "
                f"{times} on the target"
            )
        return Anchor(sample[-1][0], search.places[0] - 1, "records")

    def _by_beginnings(self, at: Candidate, first: ShownRecord) -> Anchor:
        here = next(self._of_source(at, at.extent.source_start, at.extent.source_end), None)
        if here is None or at.extent.target_start > 0:
            raise Unproved(
                "MirrorMaker 2 has committed no offset, no offset sync tells, and the logs have lost their "
                "beginnings"
            )
        return Anchor(here[0], first[0], "both beginnings")

    def _last_of_source(self, at: Candidate, last: int) -> list[ShownRecord]:
        stretch, start = _FIRST_STRETCH, at.extent.source_start
        while True:
            begin = max(start, last + 1 - stretch)
            shown = list(self._of_source(at, begin, last + 1))[-_SAMPLE_RECORDS:]
            if len(shown) == _SAMPLE_RECORDS or begin == start:
                return shown
            stretch *= 10

    def _of_source(self, at: Candidate, start: int, end: int) -> Iterator[ShownRecord]:
        self._source.open(at.pair.source, start, min(end, at.extent.source_end))
        return self._source.shown()

    def _of_target(self, at: Candidate, start: int, end: int | None = None) -> Iterator[ShownRecord]:
        self._target.open(at.pair.target, start, at.extent.target_end if end is None else end)
        return self._target.shown()


def _of_nothing_left(at: Candidate) -> Place | None:
    """The source holds no record any more, and all that it ever held was committed."""
    extent, end = at.extent, at.extent.source_end
    if extent.source_start < end or at.committed is None or at.committed + 1 < end:
        return None
    known = [s for s in at.syncs if s.source_offset <= at.committed and s.target_offset < extent.target_end]
    return Place(source_next=end, told_by="its last commit", last=known[-1] if known else None)
