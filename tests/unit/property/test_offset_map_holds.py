"""Runs against a plain dict of offsets: whatever batches, holes and lost tails there were."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from causeway.core.kernel.identity import Generation, TargetOffset, TopicPartition
from causeway.core.offsets.map_format import decode_range, encode_range
from causeway.core.offsets.offset_map import MappedRange, RangeBuilder, valid_ranges

TP = TopicPartition("sf.orders", 0)
Batches = list[tuple[list[tuple[int, int]], int]]
"""Of (gap, count) each, and the offsets that a marker takes before it."""
counts, gaps = st.integers(1, 9), st.integers(0, 5)
batches = st.lists(
    st.tuples(st.lists(st.tuples(gaps, counts), min_size=1, max_size=4), st.sampled_from([0, 0, 0, 1, 7])),
    min_size=1,
    max_size=8,
)


def append(batches: Batches, source: int, target: int) -> tuple[tuple[MappedRange, ...], dict[int, int], int]:
    """One transaction: the runs of the map, and the truth as pairs of offsets."""
    building = RangeBuilder(TP, Generation(1), UUID(int=1), UUID(int=2))
    truth: dict[int, int] = {}
    for number, (stretches, marker) in enumerate(batches):
        segments, base = [], target + marker
        target = base
        for gap, count in stretches:
            source += gap
            segments.append((source, count))
            truth.update({target + i: source + i for i in range(count)})
            source, target = source + count, target + count
        building.add(tuple(segments), TargetOffset(base), number, number)
    return building.build(), truth, source


@given(batches, st.integers(0, 2**62), st.integers(0, 2**62))
def test_every_record_is_found_where_it_lies(batches: Batches, source: int, target: int) -> None:
    runs, truth, _ = append(batches, source, target)
    found = {
        t: run.source_of(TargetOffset(t)) for run in runs for t in range(run.target_first, run.target_next)
    }
    assert found == truth
    assert [run.source_next for run in runs] == [truth[run.target_next - 1] + 1 for run in runs]
    assert all(run.source_first == truth[run.target_first] for run in runs)
    assert sum(run.count for run in runs) == len(truth)


@given(batches, st.integers(0, 2**62), st.integers(0, 2**62))
def test_runs_survive_the_wire(batches: Batches, source: int, target: int) -> None:
    runs, _, _ = append(batches, source, target)
    assert tuple(decode_range(*encode_range(run)) for run in runs) == runs


@given(st.lists(st.tuples(batches, st.none() | st.integers(0, 60)), min_size=1, max_size=5))
def test_after_any_lost_tails_the_map_says_what_the_log_holds(
    transactions: list[tuple[Batches, int | None]],
) -> None:
    """Before each transaction the target may lose records at its end; they are copied again from there."""
    written: list[MappedRange] = []
    truth: dict[int, int] = {}
    source, end = 1_000, 0
    for batches, lost in transactions:
        if lost is not None:
            end = max(end - lost, 0)
            source = min([s for t, s in truth.items() if t >= end], default=source)
            truth = {t: s for t, s in truth.items() if t < end}
            (_, count), *rest = batches[0][0]  # what comes first is what was lost first
            again = [([(0, count), *rest], batches[0][1]), *batches[1:]]
        else:
            again = batches
        runs, new, source = append(again, source, end)
        written.extend(runs)
        truth |= new
        end = max(truth) + 2  # the marker of the transaction
        holding = valid_ranges(written)
        found = {
            t: run.source_of(TargetOffset(t))
            for run in holding
            for t in range(run.target_first, run.target_next)
        }
        assert found == truth
