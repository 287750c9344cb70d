"""Translations, and the map under maintenance, against a plain dict, whatever is copied and lost."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from unittest.mock import patch
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from causeway.core.kernel.errors import ProtocolFault
from causeway.core.kernel.identity import Generation, SourceOffset, TargetOffset, TopicPartition
from causeway.core.offsets import map_maintenance
from causeway.core.offsets.map_entries import MapEntries
from causeway.core.offsets.map_format import decode_ranges, encode_range
from causeway.core.offsets.map_maintenance import plan_target
from causeway.core.offsets.offset_map import RangeBuilder
from causeway.core.offsets.translation import PartitionMap
from causeway.core.offsets.why_not import AheadOfMirror, OlderThanMap

TP = TopicPartition("sf.orders", 0)
SOURCE_ID, TARGET_ID = UUID(int=1), UUID(int=2)
History = list[tuple[list[tuple[int, int]], int | None, int]]
"""Stretches that are copied, what was lost before them, and offsets that a marker takes."""
segments = st.lists(st.tuples(st.integers(0, 4), st.integers(1, 9)), min_size=1, max_size=4)
losses = st.none() | st.integers(0, 80)
histories = st.lists(st.tuples(segments, losses, st.sampled_from([1, 1, 1, 4])), min_size=1, max_size=40)
sizes = st.fixed_dictionaries(
    {
        "KEPT_RUNS": st.integers(1, 5),
        "LEAST_TO_MERGE": st.integers(1, 5),
        "MOST_SEGMENTS": st.sampled_from([3, 10, 40, 1_000]),
    }
)


class Mirrored:
    """A partition as it is copied: the map's entries, and where each record of the target is from."""

    def __init__(self) -> None:
        self.entries, self.source_at = MapEntries(), dict[int, int]()
        self.source = self.target = 1_000

    def lose(self, count: int) -> None:
        self.target = max(self.target - count, 1_000)
        lost = [s for t, s in self.source_at.items() if t >= self.target]
        self.source = min(lost, default=self.source)
        self.source_at = {t: s for t, s in self.source_at.items() if t < self.target}

    def copy(self, stretches: list[tuple[int, int]], marker: int) -> None:
        building, base = RangeBuilder(TP, Generation(1), SOURCE_ID, TARGET_ID), TargetOffset(self.target)
        told: list[tuple[int, int]] = []
        for number, (gap, count) in enumerate(stretches):
            self.source += gap if number else 0
            told.append((self.source, count))
            self.source_at.update({self.target + i: self.source + i for i in range(count)})
            self.source, self.target = self.source + count, self.target + count
        building.add(tuple(told), base, 1, 1)
        for run in building.build():
            self.entries.take(*encode_range(run))
        self.target += marker

    def index(self) -> PartitionMap:
        return PartitionMap(self.entries.runs(TP), None, source_topic_id=SOURCE_ID, target_topic_id=TARGET_ID)

    def check(self, log_start: int) -> None:
        """Each place on either side, also those in holes, by the rule of translation.py and no other."""
        found, targets = self.index(), sorted(self.source_at)
        if not targets or targets[-1] < log_start:
            return
        asked = range(log_start, targets[-1] + 2)
        told = found.to_sources(map(TargetOffset, asked))
        after = [
            next((self.source_at[t] for t in targets if t >= at), self.source_at[targets[-1]] + 1)
            for at in asked
        ]
        assert told == after
        readable = {s: t for t, s in self.source_at.items() if t >= log_start}
        rising = sorted(readable)
        for at in range(rising[0], rising[-1] + 1):
            assert found.to_target(SourceOffset(at)) == readable[next(s for s in rising if s >= at)]
        source_next, target_next = SourceOffset(rising[-1] + 1), TargetOffset(targets[-1] + 1)
        assert found.to_target(source_next) == target_next
        ahead = found.to_target(SourceOffset(source_next + 1))
        assert ahead == AheadOfMirror(source_next, target_next)
        assert isinstance(found.to_target(SourceOffset(999)), OlderThanMap)


@given(histories)
def test_every_offset_is_translated_by_the_rule(history: History) -> None:
    mirror = Mirrored()
    for stretches, lost, marker in history:
        if lost is not None:
            mirror.lose(lost)
        mirror.copy(stretches, marker)
    mirror.check(1_000)


@given(histories, sizes, st.data())
def test_maintenance_at_any_time_changes_nothing_but_what_is_too_old(
    history: History, sizes: dict[str, Any], data: st.DataObject
) -> None:
    mirror, log_start = Mirrored(), 1_000
    with patch.multiple(map_maintenance, **sizes):
        for stretches, lost, marker in history:
            if lost is not None:
                mirror.lose(lost)
            mirror.copy(stretches, marker)
            if data.draw(st.booleans()):
                log_start = min(log_start + data.draw(st.integers(0, 9)), max(mirror.source_at))
                entries = mirror.entries.entries(TP)
                steps = plan_target(TP, entries, target_topic_id=UUID(int=2), log_start=log_start)
                for step in steps[: data.draw(st.integers(0, len(steps)))]:  # it may die between any two
                    for record in step.records:
                        mirror.entries.take(*record)
                    mirror.check(log_start)
    mirror.check(log_start)


@given(
    st.sampled_from([b"\x01\0\x01x", b"\x02\0\x01x", b""]), st.binary(max_size=24), st.binary(max_size=120)
)
def test_bytes_of_another_maker_are_a_fault_or_runs(head: bytes, key: bytes, value: bytes) -> None:
    for version in (b"\x02\0", b"\x02\x01", b"\x01", b""):
        with suppress(ProtocolFault):
            assert all(run.count > 0 for run in decode_ranges(head + key, version + value))
