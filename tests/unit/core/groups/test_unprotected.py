"""Which groups nobody protects after a homecoming, as far as what is committed on the target tells."""

from __future__ import annotations

from causeway.core.groups.stamp import Stamp, stamped
from causeway.core.groups.sync_rules import Committed
from causeway.core.groups.unprotected import Unprotected, find_unprotected, unprotected_lines
from causeway.core.journal.remaining_work import failover_mark
from causeway.core.kernel.identity import SourceOffset, TargetOffset, TopicPartition

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
STAMP = Stamp(flow="f", source_next=SourceOffset(9), target_next=TargetOffset(9), time_ms=1)
SYNCED = Committed(9, stamped(STAMP))
MARKED = Committed(4, failover_mark("r"))


def test_one_partition_that_no_sync_has_reached_is_enough() -> None:
    held = {
        "synced": {P0: SYNCED, P1: SYNCED},
        "half": {P0: SYNCED, P1: MARKED},
        "mixed": {P0: MARKED, P1: Committed(7)},
        "told": {P0: Committed(5)},
    }
    left = {"half": {P1: MARKED}, "mixed": {P0: MARKED, P1: Committed(6)}, "told": {P0: Committed(1)}}
    found = find_unprotected("f", held, left, {"told": {P0: TargetOffset(5)}}, active=())
    assert found == Unprotected(waiting=("half",), own=("mixed",))


def test_a_stamp_of_another_flow_and_members_are_no_protection() -> None:
    held = {"synced": {P0: SYNCED}, "nothing": {}}
    assert find_unprotected("g", held, {}, {}, active=()) == Unprotected(own=("synced",))
    assert find_unprotected("f", held, {}, {}, active={"synced", "nothing"}) == Unprotected(own=("synced",))


def test_the_lines_say_who_why_and_the_remedy() -> None:
    waiting, own = unprotected_lines("f", Unprotected(waiting=("a", "b"), own=("c",)))
    assert waiting.startswith("NOT PROTECTED 2 groups (a, b): ")
    assert waiting.endswith("; `causeway groups f --sync` protects them")
    assert "delete its offsets there" in own
    assert unprotected_lines("f", Unprotected()) == []
