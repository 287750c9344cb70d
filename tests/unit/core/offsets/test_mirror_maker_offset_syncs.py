"""MirrorMaker 2's unit scenarios on offset syncs, under its names.

It keeps some forty syncs of a partition, fewer the older they are; the offset map keeps what is irregular.
So its bounds on how wrong an old offset may be are equalities here.
"""

from __future__ import annotations

import random

import pytest

from causeway.core.kernel.identity import Pair, SourceOffset, TargetOffset, TopicPartition
from causeway.core.offsets.offset_map import MappedRange
from causeway.core.offsets.translation import PartitionMap, Reach
from causeway.core.offsets.why_not import AheadOfMirror, NeverMirrored, OlderThanMap
from causeway.core.records.mm2_formats import OffsetSync
from causeway.usecases.groups.mirror_state import NOTHING, MirrorSeen
from tests.support import builders
from tests.support.builders import SOURCE_ID as SOURCE
from tests.support.builders import TARGET_ID as TARGET

PAIR = Pair(
    source=TopicPartition("topic1", 2),
    target=TopicPartition("source1.topic1", 2),
    source_topic_id=SOURCE,
    target_topic_id=TARGET,
)
KEPT_BY_MIRROR_MAKER = (1000, 4840, 6760, 8680, 9160, 9640, 9880, 9940, 9970, 9990, 10000)
"""Of 10,000 offsets with `offset.lag.max` 10: all others are rounded down to these."""


def run(source_first: int, target_first: int, count: int) -> MappedRange:
    return builders.mapped_range(source_first, target_first, (count, 0), target=PAIR.target)


def reach(source_next: int, target_next: int) -> Reach:
    return Reach(source_next=SourceOffset(source_next), target_next=TargetOffset(target_next))


def known(runs: list[MappedRange], reach: Reach | None) -> PartitionMap:
    return PartitionMap(runs, reach, source_topic_id=SOURCE, target_topic_id=TARGET)


def mirrored(lengths: list[int], holes: list[int]) -> tuple[PartitionMap, dict[int, int]]:
    """A run for each length, a hole after it on the source, a marker after it on the target; and where each
    source offset leads, those in holes to the record after."""
    runs: list[MappedRange] = []
    leads: dict[int, int] = {}
    source = target = 0
    for length, hole in zip(lengths, holes, strict=True):
        runs.append(run(source, target, length))
        leads |= {source + n: target + n for n in range(length)}
        source, target = source + length + hole, target + length + 1
        leads |= dict.fromkeys(range(source - hole, source), target)
    return known(runs, reach(source, target - 1)), {at: min(to, target - 1) for at, to in leads.items()}


def assert_exact(store: PartitionMap, leads: dict[int, int]) -> None:
    """Asked together and one by one: these are two ways through the code."""
    asked, answers = [SourceOffset(at) for at in leads], list(leads.values())
    assert store.to_targets(asked) == answers
    assert [store.to_target(at) for at in asked] == answers


class TestOffsetSyncStore:
    def test_offset_translation(self) -> None:
        """There: 100 leads to 200, all after it to 201. Here each to its own record."""
        store = known([run(100, 200, 50)], reach(150, 250))
        assert [store.to_target(SourceOffset(at)) for at in (100, 101, 140, 149)] == [200, 201, 240, 249]
        assert store.to_target(SourceOffset(150)) == 250
        assert store.to_target(SourceOffset(5)) == OlderThanMap(SourceOffset(100), TargetOffset(200))
        assert store.to_target(SourceOffset(151)) == AheadOfMirror(SourceOffset(150), TargetOffset(250))

    def test_no_translation_if_store_not_started(self) -> None:
        for at in (0, 5, 1000, 1000000):
            assert isinstance(known([], None).to_target(SourceOffset(at)), NeverMirrored)

    def test_past_offset_translation(self) -> None:
        store, leads = mirrored([10] * 1001, [0] * 1001)
        assert_exact(store, leads)
        for at in KEPT_BY_MIRROR_MAKER:
            assert store.to_target(SourceOffset(at)) == 11 * (at // 10)
            assert store.to_target(SourceOffset(at + 1)) == 11 * (at // 10) + 1

    def test_past_offset_translation_without_initialization_read_to_end(self) -> None:
        """Of a map that wasn't read to its end the part that was is as exact; the rest has no answer."""
        runs = [run(10 * n, 11 * n, 10) for n in range(500)]
        store = known(runs, reach(10_000, 11_000))
        assert [store.to_target(SourceOffset(at)) for at in (0, 9, 10, 4_999)] == [0, 9, 11, 5_498]
        rest = AheadOfMirror(SourceOffset(5_000), TargetOffset(5_499))
        assert [store.to_target(SourceOffset(at)) for at in (5_001, 10_000)] == [rest, rest]

    @pytest.mark.parametrize("spacing", [1, 7, 100])
    def test_consistently_spaced_syncs(self, spacing: int) -> None:
        store, leads = mirrored([spacing] * 300, [0] * 300)
        assert_exact(store, leads)

    @pytest.mark.parametrize("seed", range(5))
    def test_randomly_spaced_syncs(self, seed: int) -> None:
        chance = random.Random(seed)
        store, leads = mirrored([chance.randint(1, 200) for _ in range(300)], [0] * 300)
        assert_exact(store, leads)

    @pytest.mark.parametrize("seed", range(5))
    def test_dropped_syncs(self, seed: int) -> None:
        """What never came over is a hole: it leads to the record after it, not to the one before."""
        chance = random.Random(seed)
        lengths, holes = ([chance.randint(least, 90) for _ in range(300)] for least in (1, 0))
        store, leads = mirrored(lengths, holes)
        assert_exact(store, leads)


def seen(found: Reach | None) -> MirrorSeen:
    return MirrorSeen(PAIR, None, found, None, NOTHING)


class TestPartitionState:
    """MirrorSourceTaskTest and OffsetSyncWriterTest: what is written, and when. What was written last isn't
    written again: tests/integration/groups holds that to real topics.
    """

    def test_first_sync(self) -> None:
        assert seen(None).last_sync is None
        assert seen(reach(0, 0)).last_sync is None, "no record is there to tell of"
        assert seen(reach(1, 1)).last_sync == self.sync(0, 0)

    def test_gap_and_distance(self) -> None:
        """Each position has one sync, however near the last one was: `offset.lag.max` has nothing to say."""
        for source, target in ((2, 102), (3, 154), (4, 155), (6, 208), (8, 209)):
            assert seen(reach(source, target)).last_sync == self.sync(source - 1, target - 1)

    def test_upstream_reset_and_downstream_reset(self) -> None:
        assert seen(reach(2, 154)).last_sync == self.sync(1, 153)
        assert seen(reach(154, 2)).last_sync == self.sync(153, 1)

    def sync(self, source: int, target: int) -> OffsetSync:
        return OffsetSync(
            source=PAIR.source, source_offset=SourceOffset(source), target_offset=TargetOffset(target)
        )
