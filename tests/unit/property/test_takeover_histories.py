"""Histories of MirrorMaker 2 by a seed, and where a takeover goes on after each: nothing is left out, and
nothing comes twice that the target still shows.

Each life begins after the last commit and may be killed anywhere: before its commit, before its offset syncs
were sent. Then retention takes the beginning of either log, the syncs are compacted, a tail gets lost.
Records differ, as real ones do by their times.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from causeway.core.kernel.identity import SourceOffset, TargetOffset, TopicPartition
from causeway.core.records.mm2_formats import OffsetSync
from causeway.core.takeover.mm2_mirror import Extent, Unproved
from causeway.core.verify.comparison import Content
from causeway.usecases.takeover.match_tail import Proof
from causeway.usecases.takeover.mm2_state import Candidate
from tests.support import builders

HISTORIES = 20_000
PAIR = builders.pair(0, "t")
Log = list[tuple[int, Content]]


class Reader:
    """A `RecordReader` of a log in memory."""

    def __init__(self, log: Log) -> None:
        self._log, self._start, self._end = log, 0, 0

    def open(self, _: TopicPartition, start: int, end: int) -> None:
        self._start, self._end = start, end

    def shown(self) -> Iterator[tuple[int, Content]]:
        start, end = self._start, self._end
        return (record for record in self._log if start <= record[0] < end)


@dataclass
class History:
    dice: random.Random
    source: Log = field(default_factory=list)
    target: Log = field(default_factory=list)
    source_end: int = 0
    target_end: int = 0
    committed: int | None = None
    """The index of a record of the source, as `reached` is."""
    reached: int = -1
    next_by_truth: int = 0
    """The offset after the furthest record that was ever copied."""
    syncs: list[tuple[int, int]] = field(default_factory=list)

    def write(self) -> None:
        for number in range(self.dice.randrange(16)):
            self.source_end += self.hole(0.1)
            self.source.append((self.source_end, ((1, number), None, b"%d" % number, None)))
            self.source_end += 1
        self.source_end += self.hole(0.2)

    def live(self, *, tells: bool) -> None:
        first = 0 if self.committed is None else self.committed + 1
        stop = self.dice.randrange(first, len(self.source) + 1)
        told: list[tuple[int, int]] = []
        for index in range(first, stop):
            offset, content = self.source[index]
            self.target_end += self.hole(0.05)
            self.target.append((self.target_end, content))
            if tells and (not told or self.dice.random() < 0.3):
                told.append((offset, self.target_end))
            self.target_end += 1
        self.reached = max(self.reached, stop - 1)
        self.syncs += told[: self.dice.randrange(len(told) + 1)] if self.dice.random() < 0.4 else told
        if stop > first and self.dice.random() < 0.7:
            self.committed = self.dice.randrange(first, stop)

    def hole(self, chance: float) -> int:
        return int(self.dice.random() < chance)

    def left_behind(self) -> Candidate:
        """After retention, compaction and an unclean election, each of them now and then."""
        dice, source_start, target_start = self.dice, 0, 0
        if self.syncs and dice.random() < 0.3:
            self.syncs = [sync for sync in self.syncs[:-1] if dice.random() < 0.3] + self.syncs[-1:]
        if dice.random() < 0.2:
            source_start = dice.randrange(self.source_end + 1)
        if dice.random() < 0.2:
            target_start = dice.randrange(self.target_end + 1)
        if dice.random() < 0.1:
            self.target_end = dice.randrange(target_start, self.target_end + 1)
        committed = None if self.committed is None else self.source[self.committed][0]
        self.next_by_truth = self.source[self.reached][0] + 1 if self.reached >= 0 else 0
        self.source = [record for record in self.source if record[0] >= source_start]
        self.target = [r for r in self.target if target_start <= r[0] < self.target_end]
        return Candidate(
            pair=PAIR,
            committed=committed,
            syncs=tuple(
                OffsetSync(
                    source=PAIR.source, source_offset=SourceOffset(here), target_offset=TargetOffset(there)
                )
                for here, there in self.syncs
            ),
            extent=Extent(
                source_start=source_start,
                source_end=self.source_end,
                target_start=target_start,
                target_end=self.target_end,
            ),
            source_stable=self.source_end,
            target_stable=self.target_end,
            own=None,
        )


def test_nothing_is_left_out_and_nothing_that_is_shown_comes_twice() -> None:
    outcomes = Counter(map(played, range(HISTORIES)))
    assert outcomes["adopted"] > HISTORIES / 4, outcomes
    assert outcomes["refused"] < HISTORIES / 3, outcomes


def played(seed: int) -> str:
    history = History(random.Random(seed))
    history.write()
    tells = history.dice.random() < 0.8
    for _ in range(history.dice.randrange(4)):
        history.live(tells=tells)
    left = history.left_behind()
    try:
        place = Proof(Reader(history.source), Reader(history.target)).find(left)  # type: ignore[arg-type]
    except Unproved:
        return "refused"
    goes_on = left.extent.source_start if place is None else place.source_next
    shown = {content[2] for _, content in history.target}
    left_out = [at for at, _ in history.source if history.next_by_truth <= at < goes_on]
    twice = [
        at for at, content in history.source if goes_on <= at < history.next_by_truth and content[2] in shown
    ]
    assert (left_out, twice) == ([], []), (seed, left, place)
    return "begins" if place is None else "adopted"
