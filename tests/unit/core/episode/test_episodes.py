"""What groups held when they returned: of which failbacks it counts, and until when."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from causeway.core.episode.episodes import closed_by, homecomings, is_closed, is_left_behind
from causeway.core.failback.divergence import FailbackRun, Step
from causeway.core.failover.request import Mode
from causeway.core.groups.sync_rules import Committed
from causeway.core.journal.journal import Journal, Status, fold
from causeway.core.journal.journal_format import named_in
from causeway.core.journal.offset_records import left_records
from causeway.core.journal.written_records import failback_record
from causeway.core.kernel.identity import Generation, TopicPartition
from causeway.core.state.fences import Fence
from causeway.core.state.flow_state import FlowState, Run
from tests.support.episodes import failback_run, failover_run

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
FIRST = failback_run(Step.HOME, facts={"moved": "r1"})
SECOND = replace(FIRST, run="b2", begun_ms=20, at_ms=30, facts={"moved": "r2"})


def journal(*episodes: tuple[FailbackRun, dict[str, dict[TopicPartition, Committed | None]]]) -> Journal:
    made, offset = Journal(), 0
    for run, left in episodes:
        for key, value in (*left_records("f", run.run, left), failback_record(run)):
            made, offset = fold(made, offset, key, value), offset + 1
    return made


def test_each_group_is_known_by_its_last_homecoming() -> None:
    made = journal(
        (FIRST, {"a": {P0: Committed(1), P1: Committed(2)}, "b": {P0: Committed(3, "mine")}}),
        (SECOND, {"a": {P0: Committed(5)}}),
    )
    assert [run.run for run in homecomings(made, "f")] == ["b1", "b2"]
    assert closed_by(made, "f", ()) == {
        "a": {P0: Committed(5), P1: Committed(2)},
        "b": {P0: Committed(3, "mine")},
    }
    assert closed_by(made, "g", ()) == {}


def test_what_an_earlier_try_kept_of_who_doesnt_return_this_time_counts_no_more() -> None:
    made = journal(
        (replace(FIRST, step=Step.RETURNING), {"a": {P0: Committed(1), P1: Committed(2)}}),
        (FIRST, {"a": {P0: Committed(5), P1: None}}),
    )
    assert closed_by(made, "f", ()) == {"a": {P0: Committed(5)}}


def test_what_isnt_home_or_was_taken_back_closes_nothing() -> None:
    left: dict[str, dict[TopicPartition, Committed | None]] = {"a": {P0: Committed(1)}}
    assert closed_by(journal((replace(FIRST, step=Step.RETURNING), left)), "f", ()) == {}
    assert closed_by(journal((replace(FIRST, facts={"given_up": "x"}), left)), "f", ()) == {}
    both = journal((FIRST, left), (SECOND, {"a": {P0: Committed(5)}}))
    assert closed_by(both, "f", {"r2"}) == left
    assert closed_by(both, "f", {"r1", "r2"}) == {}


AWAY = failover_run("f", run="r0")
COMING = failover_run("g", Mode.HOME)


def fenced_by(owner: str) -> FlowState:
    fence = Fence(generation=8, by="amy", because=owner, since_ms=1, token="t", owner=owner)
    return FlowState(generation=Generation(8), fences={"t": fence})


def test_a_homecoming_stands_as_long_as_its_fence_or_the_one_in_its_place() -> None:
    for owner in (COMING.fence_words, FIRST.stand_by_words):
        assert not is_closed(COMING, fenced_by(owner), Journal())
    for owner in ("", SECOND.fence_words, AWAY.fence_words):
        assert is_closed(COMING, fenced_by(owner), Journal())


def test_a_failover_is_closed_once_the_failback_is_completed() -> None:
    kept = replace(journal((FIRST, {})), runs={"r0": AWAY})
    assert is_closed(AWAY, fenced_by(""), kept)
    assert not is_closed(AWAY, fenced_by(""), replace(kept, failbacks={}))
    under_way = replace(FIRST, step=Step.RETURNING)
    assert not is_closed(AWAY, fenced_by(""), replace(kept, failbacks={"b1": under_way}))
    again = replace(AWAY, run="r9", begun_ms=50)
    assert not is_closed(again, fenced_by(""), replace(kept, runs={"r0": AWAY, "r9": again}))


def test_a_rollback_that_broke_off_is_history_once_the_mirror_went_on_or_the_failback_is_completed() -> None:
    rolling = replace(AWAY, status=Status.ROLLING_BACK, generation=20)
    own = fenced_by(AWAY.fence_words).fences

    def at(generation: int, **changes: Any) -> FlowState:
        ran = Run(generation=Generation(generation), holder="", run_id="", lanes=1, since_ms=0)
        return FlowState(generation=Generation(30), run=ran, **changes)

    assert is_left_behind(rolling, at(21), Journal())
    assert is_left_behind(rolling, at(21, fences=fenced_by("").fences), Journal()), "people's"
    for state in (at(19), at(21, fences=own), FlowState()):
        assert not is_left_behind(rolling, state, Journal())
    untold = replace(rolling, generation=-1)
    assert not is_left_behind(untold, at(21), Journal()), "each run of the flow is newer than that"
    home = replace(journal((FIRST, {})), runs={"r0": rolling})
    assert is_left_behind(rolling, at(19), home)
    assert not is_left_behind(replace(COMING, status=Status.ROLLING_BACK), at(19), Journal())
    for status in (Status.BEGUN, Status.DONE, Status.ROLLED_BACK, Status.GIVEN_UP):
        assert not is_left_behind(replace(rolling, status=status), at(21), home)


def test_a_key_tells_kind_flow_and_run_in_any_version() -> None:
    (key, _), *_ = left_records("f", "b1", {"a": {P0: Committed(1)}})
    assert named_in(key) == ("offsets", "f", "b1")
    assert named_in(b'[9,"of tomorrow","f","b1"]') == ("of tomorrow", "f", "b1")
    assert [named_in(each) for each in (None, b"", b"x", b'["a"]', b"[1,2,3,4]")] == [None] * 5
