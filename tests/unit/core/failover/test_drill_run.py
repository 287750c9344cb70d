"""What is kept of a drill, and its picture."""

from __future__ import annotations

from dataclasses import replace

import pytest

from causeway.core.failover.drill_run import (
    LONGEST_MS,
    DrillRun,
    at_work,
    clone_of,
    clones_of,
    without_result,
)
from causeway.core.journal.journal import Journal, fold
from causeway.core.journal.written_records import drill_record
from causeway.core.kernel.errors import ProtocolFault
from causeway.core.model.group_filter import FlowGroups
from causeway.render.drill_svg import plot

RUN = DrillRun(
    run="r1",
    flow="f",
    by="me",
    at_ms=1_763_438_580_000,
    groups=2,
    offsets=3,
    as_planned=3,
    read=3,
    probed=3,
    rto_ms=1_500,
    lost_records=7,
    rpo_seconds=None,
    rereads=0,
)


def test_the_journal_keeps_drills_in_their_order() -> None:
    journal = Journal()
    for offset, run in enumerate((RUN, replace(RUN, run="r2"))):
        journal = fold(journal, offset, *drill_record(run))
    assert list(journal.drills.values()) == [RUN, replace(RUN, run="r2")]
    key, value = drill_record(RUN)
    with pytest.raises(ProtocolFault):
        fold(journal, 2, key, value.replace(b'"groups":2', b'"groups":"2"'))


def test_a_drill_that_was_kept_before_probes_were_counted_reads_as_it_was() -> None:
    key, value = drill_record(RUN)
    old = value.replace(b'"probed":3,', b"").replace(b'"probed": 3, ', b"")
    assert old != value
    assert fold(Journal(), 0, key, old).drills["r1"] == RUN


def test_a_drill_is_at_work_from_its_beginning_to_its_end_and_not_for_ever() -> None:
    begun = without_result("f", "r2", by="amy", at_ms=1_000, state="begun")
    journal = fold(Journal(), 0, *drill_record(RUN))
    journal = fold(journal, 1, *drill_record(begun))
    assert at_work(journal.drills.values(), "f", 2_000) == [begun]
    assert at_work(journal.drills.values(), "other", 2_000) == []
    assert at_work(journal.drills.values(), "f", 1_000 + LONGEST_MS) == []
    for ended in (replace(RUN, run="r2"), replace(begun, state="over")):
        assert at_work(fold(journal, 2, *drill_record(ended)).drills.values(), "f", 2_000) == []
    key, value = drill_record(begun)
    with pytest.raises(ProtocolFault):
        fold(journal, 3, key, value.replace(b'"begun"', b'"elsewhere"'))


@pytest.mark.parametrize(
    ("run", "wrong"),
    [
        (RUN, ""),
        (
            replace(RUN, groups=0, offsets=0, as_planned=0, read=0),
            "no group could be moved, so nothing was rehearsed",
        ),
        (replace(RUN, as_planned=2), "1 of 3 offsets differ from the plan"),
        (replace(RUN, read=1), "from there consumers could read on in 1 of 3 partitions"),
    ],
)
def test_a_drill_is_good_if_offsets_and_readers_are_where_the_plan_says(run: DrillRun, wrong: str) -> None:
    assert run.wrong == wrong


def test_no_mirror_sees_to_clones() -> None:
    clone = clone_of("f", "r1", "billing")
    assert clone.startswith(clones_of("f"))
    assert not clone.startswith(clones_of("f2"))
    assert not FlowGroups().selects(clone)


def test_the_picture_leaves_a_gap_where_nothing_is_known_and_runs_nothing_that_a_name_holds() -> None:
    known = replace(RUN, flow="<script>", rpo_seconds=3)
    picture = plot([known, replace(known, rpo_seconds=None), known])
    assert "<script>" not in picture
    assert (picture.count("<circle"), picture.count("<line")) == (5, 2)
    assert "No drills yet" in plot([])
