"""What is kept of failovers, and what is left to do after a kill at any point."""

from __future__ import annotations

import json
from dataclasses import replace
from uuid import UUID

import pytest

from causeway.core.failback.divergence import Step
from causeway.core.failover.plan import FailoverPlan, LeftAlone, Move
from causeway.core.failover.request import FailoverRequest
from causeway.core.groups.stamp import Stamp, parse_stamp, stamped
from causeway.core.groups.sync_rules import Committed
from causeway.core.journal.journal import Journal, RollbackClaim, Status, fold
from causeway.core.journal.offset_records import offset_records
from causeway.core.journal.remaining_work import (
    failover_mark,
    left_to_apply,
    left_to_roll_back,
    moved_elsewhere,
)
from causeway.core.journal.rollback_records import (
    claim_asked,
    claim_record,
    failover_asked,
    rolled_back_record,
)
from causeway.core.journal.written_records import (
    agreed_record,
    begun_record,
    ended_record,
    failback_record,
    slipped_record,
)
from causeway.core.kernel.errors import ProtocolFault
from causeway.core.kernel.estimate import exact
from causeway.core.kernel.identity import Generation, SourceOffset, TargetOffset, TopicPartition
from causeway.core.state.flow_state import FlowState, Run
from tests.support.episodes import failback_run

P0, P1 = TopicPartition("sf.orders", 0), TopicPartition("sf.orders", 1)
WISH = FailoverRequest(flow="f", at_ms=5)
Records = list[tuple[bytes, bytes]]


def move(group: str, tp: TopicPartition, before: Committed | None, after: int) -> Move:
    return Move(
        group=group, target=tp, before=before, after=TargetOffset(after), rereads=exact(0), skips=exact(0)
    )


PLAN = FailoverPlan(
    wish=WISH,
    moves=(
        move("billing", P0, Committed(3, "theirs"), 9),
        move("billing", P1, None, 4),
        move("a:b", P0, None, 1),
    ),
    left_alone=(),
    topic_ids={"sf.orders": UUID(int=2)},
)


def records(run: str = "r1") -> Records:
    return [*offset_records("f", run, PLAN.moves), begun_record(run, PLAN, by="amy", at_ms=7)]


def folded(given: Records) -> Journal:
    journal = Journal()
    for offset, (key, value) in enumerate(given):
        journal = fold(journal, offset, key, value)
    return journal


def test_a_run_is_read_back_as_it_was_planned() -> None:
    run = folded(records()).runs["r1"]
    assert (run.flow, run.wish, run.plan_hash, run.by, run.status) == (
        "f",
        WISH,
        PLAN.hash,
        "amy",
        Status.BEGUN,
    )
    told = [(g, tp, s.before, s.after) for g, shifts in run.shifts.items() for tp, s in shifts.items()]
    assert told == [(m.group, m.target, m.before, m.after) for m in PLAN.moves]


def test_what_its_sheet_left_alone_is_shown_to_who_goes_on() -> None:
    left = tuple(LeftAlone(group=f"g{n}", target=P0 if n else None, why="w" * 900) for n in range(23))
    told = begun_record("r1", replace(PLAN, left_alone=left), by="amy", at_ms=7)
    lines = folded([told]).runs["r1"].left_alone
    assert (lines[0][:8], lines[1][:20]) == ("g0: wwww", "g1 on sf.orders-0: w")
    assert (len(lines), max(map(len, lines)), lines[-1]) == (21, 500, "and 3 more")
    assert folded([told]).runs["r1"].left_count == 23
    none = folded(records()).runs["r1"]
    assert (none.left_alone, none.left_count) == ((), 0)


def test_how_much_was_left_alone_wasnt_kept_at_first() -> None:
    key, value = begun_record("r1", replace(PLAN, left_alone=()), by="amy", at_ms=7)
    told = json.loads(value)
    del told["left_count"]
    told["left"] = ["g0: why", "g1: why"]
    assert folded([(key, json.dumps(told).encode())]).runs["r1"].left_count == 2


def test_that_its_plan_held_is_recorded_of_a_run_that_has_begun() -> None:
    agreed = agreed_record("f", "r1", by="amy", at_ms=8, generation=20)
    assert not folded(records()).runs["r1"].is_agreed
    assert folded([*records(), agreed]).runs["r1"].is_agreed
    assert folded([agreed]).runs == {}


def test_a_run_that_died_before_its_snapshot_was_whole_never_was() -> None:
    for killed in range(len(records())):
        assert folded(records()[:killed]).newest("f") is None
    assert folded(records()).newest("f") is not None


def test_what_was_taken_back_or_given_up_is_no_more() -> None:
    for status in (Status.ROLLED_BACK, Status.GIVEN_UP):
        given = [*records("r1"), *records("r2"), ended_record("f", "r2", status, by="amy", at_ms=9)]
        newest = folded(given).newest("f")
        assert newest is not None
        assert newest.run == "r1"


def test_who_carries_out_the_same_run_cant_give_up_what_another_moves_nor_move_what_was_given_up() -> None:
    agreed = agreed_record("f", "r1", by="amy", at_ms=8, generation=20)
    given_up = ended_record("f", "r1", Status.GIVEN_UP, by="bob", at_ms=8)
    amy_first = folded([*records(), agreed, given_up]).runs["r1"]
    bob_first = folded([*records(), given_up, agreed]).runs["r1"]
    assert (amy_first.status, amy_first.is_agreed) == (Status.BEGUN, True)
    assert (bob_first.status, bob_first.is_agreed) == (Status.GIVEN_UP, False)


def test_of_two_that_began_at_once_the_first_one_goes_on() -> None:
    both = [*records("r1"), *records("r2")]
    assert [each.run for each in folded(both).rivals_of("r2")] == ["r1"]
    assert folded(both).rivals_of("r1") == []
    over = ended_record("f", "r1", Status.DONE, by="amy", at_ms=9)
    assert folded([*records("r1"), over, *records("r2")]).rivals_of("r2") == []


def test_a_failback_that_is_completed_is_no_way_back_from_the_next_failover() -> None:
    def back(step: Step, at_ms: int) -> tuple[bytes, bytes]:
        return failback_record(failback_run(step, at_ms=at_ms))

    going, home = [*records(), back(Step.RETURNING, 9)], [*records(), back(Step.HOME, 10)]
    again = begun_record("r2", PLAN, by="amy", at_ms=11)
    assert [folded(each).newest_failback("f") is None for each in (going, home)] == [False, False]
    assert folded([*home, again]).newest_failback("f") is None
    assert folded([*going, again]).newest_failback("f") is not None, "it goes on"


def test_what_the_mirror_has_gone_on_from_is_history_and_a_fence_of_since_changes_nothing() -> None:
    done = ended_record("f", "r1", Status.DONE, by="amy", at_ms=9, generation=20)
    run = folded([*records("r1"), done]).runs["r1"]
    for generation, is_history in ((19, False), (21, True)):
        ran = Run(generation=Generation(generation), holder="", run_id="", lanes=1, since_ms=0)
        assert run.is_overtaken(FlowState(generation=Generation(30), run=ran)) is is_history
    assert not run.is_overtaken(FlowState())


def test_from_a_rollbacks_claim_on_nothing_counts_that_the_failover_says_late() -> None:
    """Frozen before its last words, it woke when all was back and its fence lifted."""
    begun = folded(records()).runs["r1"]
    agreed = agreed_record("f", "r1", by="amy", at_ms=8, generation=20)
    claim = claim_record(begun, "t1", by="bob", at_ms=9)
    back = rolled_back_record(begun, "t1", by="bob", at_ms=10)
    late = [
        ended_record("f", "r1", Status.DONE, by="amy", at_ms=11, generation=20),
        ended_record("f", "r1", Status.GIVEN_UP, by="amy", at_ms=11),
        slipped_record("f", "r1", ["billing"], by="amy", at_ms=11, generation=21),
        records()[-1],
    ]
    for before in ([], [agreed]):
        for told, status in (([claim], Status.ROLLING_BACK), ([claim, back], Status.ROLLED_BACK)):
            stands = folded([*records(), *before, *told]).runs["r1"]
            assert (stands.status, stands.rollback) == (status, RollbackClaim("t1", "bob", 9))
            assert folded([*records(), *before, *told, *late]).runs["r1"] == stands
    by_an_earlier_version = ended_record("f", "r1", Status.ROLLED_BACK, by="amy", at_ms=9)
    assert folded([*records(), agreed, by_an_earlier_version, *late]).runs["r1"].status is Status.ROLLED_BACK


def test_of_two_rollbacks_only_the_end_of_the_newest_one_counts() -> None:
    begun = folded(records()).runs["r1"]
    first, second = (claim_record(begun, token, by=token, at_ms=9) for token in ("t1", "t2"))
    ends = [rolled_back_record(begun, token, by="bob", at_ms=10) for token in ("t1", "t2")]
    assert folded([*records(), first, second, ends[0]]).runs["r1"].status is Status.ROLLING_BACK
    done = folded([*records(), first, second, ends[1]]).runs["r1"]
    assert done.status is Status.ROLLED_BACK
    assert folded([*records(), first, second, ends[1], ends[0], first]).runs["r1"] == done
    assert len({key for key, _ in (first, second, *ends)}) == 4, "compaction takes none of them"


def test_nobody_begins_to_take_back_what_is_over_or_lies_under_something_newer() -> None:
    claim = claim_record(folded(records()).runs["r1"], "t1", by="bob", at_ms=9)
    given_up = ended_record("f", "r1", Status.GIVEN_UP, by="amy", at_ms=8)
    for newer in ([given_up], records("r2")):
        before = folded([*records(), *newer]).runs["r1"]
        assert folded([*records(), *newer, claim]).runs["r1"] == before
    newest = folded([*records(), claim]).newest("f")
    assert newest is not None, "it isn't over"
    assert folded([*records(), claim, *records("r2")]).rivals_of("r2")


def test_a_rollback_that_has_begun_may_go_on_though_something_newer_has_begun_since() -> None:
    """The newer one died before it gave way: no try of the rollback counted any more, nor did its end."""
    begun = folded(records()).runs["r1"]
    first, second = (claim_record(begun, token, by=token, at_ms=9) for token in ("t1", "t2"))
    end = rolled_back_record(begun, "t2", by="bob", at_ms=10)
    told = [*records(), first, *records("r2"), second]
    run = folded(told).runs["r1"]
    assert run.rollback == RollbackClaim("t2", "t2", 9)
    assert folded([*told, end]).runs["r1"].status is Status.ROLLED_BACK
    back = [claim_record(begun, token, by=token, at_ms=9, withdrawn=True) for token in ("t1", "t2")]
    assert folded([*told, *back]) == folded([*records(), *records("r2")]), "so does a word that is taken back"


def test_a_rollback_that_took_its_word_back_never_was() -> None:
    begun = folded(records()).runs["r1"]
    first, second = (claim_record(begun, token, by=token, at_ms=9) for token in ("t1", "t2"))
    withdrawn = claim_record(begun, "t2", by="t2", at_ms=9, withdrawn=True)
    done = ended_record("f", "r1", Status.DONE, by="amy", at_ms=8)
    assert second[0] == withdrawn[0], "compaction takes what it takes back"
    for before in (records(), [*records(), done], [*records(), first]):
        for told in ([second, withdrawn], [withdrawn]):
            assert folded([*before, *told]) == folded(before)


def test_what_is_written_only_to_read_up_to_it_says_nothing() -> None:
    agreed = agreed_record("f", "r1", by="amy", at_ms=8, generation=20)
    run = folded([*records(), agreed]).runs["r1"]
    claim = claim_record(run, "t1", by="bob", at_ms=9)
    for told in ([*records(), agreed], [*records(), agreed, claim]):
        assert folded([*told, failover_asked(run), claim_asked(run, "t1")]) == folded(told)
    keys = {key for key, _ in (agreed, claim, failover_asked(run), claim_asked(run, "t1"))}
    assert len(keys) == 4, "compaction takes nothing that counts"


@pytest.mark.parametrize(("letter", "count"), [("m", 3), ("\x1b", 14)])
def test_many_partitions_take_several_records_that_fit_a_broker(letter: str, count: int) -> None:
    moves = [move("billing", TopicPartition("t", p), Committed(p, letter * 4_000), p) for p in range(450)]
    given = list(offset_records("f", "r1", moves))
    assert len({key for key, _ in given}) == len(given) == count
    assert max(len(value) for _, value in given) < 1_000_000
    plan = FailoverPlan(wish=WISH, moves=tuple(moves), left_alone=())
    assert (
        len(folded([*given, begun_record("r1", plan, by="amy", at_ms=7)]).runs["r1"].shifts["billing"]) == 450
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b'[2,"begun","f","r"]', b"{}"),
        (b'[2,"begun","f","r"]', b"\x00"),
        (b'[1,"begun","f","r"]', b'{"v":2}'),
        (b'[1,"begun","f","r"]', b'{"v":1}'),
        (b'[1,"danced","f","r"]', b'{"v":1,"at_ms":1}'),
        (b'[1,"offsets","f","r","g",0]', b'{"v":1,"group":"g","shifts":7}'),
    ],
)
def test_what_this_version_does_not_know_is_refused(key: bytes, value: bytes) -> None:
    with pytest.raises(ProtocolFault, match=r"causeway-failovers\.internal"):
        fold(Journal(), 3, key, value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b"hello"),
        (b"", b"{}"),
        (b"\xff\x00", b"\xff"),
        (b"order-7", b'{"v":1}'),
        (b'{"v":1}', b'{"v":1}'),
        (b'["begun","f","r",1]', b'{"v":1}'),
        (b'[0,"begun","f","r"]', b'{"v":1}'),
        (b'[1,"begun"]', b'{"v":1}'),
        (b'[1,"begun","f",7]', b'{"v":1}'),
        (b'[1,"begun","f","r9"]', b"hello"),
        (b'[1,"begun","f","r9"]', b"[7]"),
        (b'[1,"begun","f","r9"]', b"{}"),
        (b"[" * 100_000, b"{}"),
    ],
)
def test_what_somebody_else_wrote_there_is_left_out_and_reported(key: bytes, value: bytes) -> None:
    """Wherever it lies among ours, ours say what they say."""
    ours = records()
    for place in range(len(ours) + 1):
        found = folded([*ours[:place], (key, value), *ours[place:]])
        assert replace(found, foreign=()) == folded(ours)
        assert found.foreign == (place,)
        assert "1 record of causeway-failovers.internal left out" in found.note
    assert folded(ours).note == ""


def test_what_slipped_in_is_reported_with_the_run_and_takes_nothing_of_it_away() -> None:
    def slipped(at_ms: int, *lines: str) -> tuple[bytes, bytes]:
        return slipped_record("f", "r1", lines, by="amy", at_ms=at_ms, generation=20)

    agreed = agreed_record("f", "r1", by="amy", at_ms=8, generation=20)
    given_up = ended_record("f", "r1", Status.GIVEN_UP, by="bob", at_ms=8)
    told = [slipped(9, "billing on sf.orders-0"), slipped(10, *("x" * 900 for _ in range(23)))]
    run = folded([*records(), agreed, *told]).runs["r1"]
    assert run.slipped[:2] == ("billing on sf.orders-0", "x" * 500)
    assert (len(run.slipped), run.slipped[-1]) == (22, "and 3 more")
    assert replace(run, slipped=()) == folded([*records(), agreed]).runs["r1"]
    assert len({key for key, _ in (agreed, *told)}) == 3, "compaction takes none of them"
    late = folded([*records(), agreed, given_up, *told]).runs["r1"]
    assert (late.status, late.slipped) == (Status.BEGUN, run.slipped)
    first = folded([*records(), given_up, agreed, *told]).runs["r1"]
    assert (first.status, first.slipped) == (Status.GIVEN_UP, ())


RUN = folded(records()).runs["r1"]
MARK = failover_mark("r1")
BEFORE = {"billing": {P0: Committed(3, "theirs")}}
AFTER = {"billing": {P0: Committed(9, MARK), P1: Committed(4, MARK)}, "a:b": {P0: Committed(1, MARK)}}


def test_all_is_left_to_do_then_some_then_nothing() -> None:
    assert left_to_apply(RUN, BEFORE).to_commit == AFTER
    half = {"billing": AFTER["billing"]}
    assert left_to_apply(RUN, half).to_commit == {"a:b": AFTER["a:b"]}
    assert left_to_apply(RUN, AFTER).is_nothing
    assert left_to_apply(RUN, AFTER).astray == ()


def test_who_was_moved_by_somebody_else_is_left_and_named() -> None:
    held = {"billing": {**BEFORE["billing"], P1: Committed(99, "own")}}
    remaining = left_to_apply(RUN, held)
    assert set(remaining.to_commit["billing"]) == {P0}
    assert [(a.group, a.target, a.at) for a in remaining.astray] == [("billing", P1, 99)]


def test_what_a_held_up_sync_of_this_flow_committed_is_late_and_committed_again() -> None:
    def synced(flow: str, offset: int) -> Committed:
        stamp = Stamp(flow=flow, source_next=SourceOffset(1), target_next=TargetOffset(offset), time_ms=5)
        return Committed(offset, stamped(stamp))

    held = {"billing": {P0: synced("f", 50), P1: synced("g", 50)}, "a:b": AFTER["a:b"]}
    found = left_to_apply(RUN, held)
    assert found.to_commit == {"billing": {P0: AFTER["billing"][P0]}}
    assert [(a.group, a.target, a.at) for a in found.late] == [("billing", P0, 50)]
    assert [(a.group, a.target, a.at) for a in found.astray] == [("billing", P1, 50)], "another flow's word"
    moved_on = {"billing": {P0: Committed(50, MARK), P1: replace(synced("f", 4), offset=5)}}
    assert left_to_apply(RUN, {**held, **moved_on}).late == (), "a consumer that took the words with it"


def test_what_stands_as_before_was_late_once_all_of_it_was_moved() -> None:
    assert left_to_apply(RUN, BEFORE).late == ()
    found = left_to_apply(RUN, {**AFTER, **BEFORE}, was_moved=True)
    assert [(a.target, a.at) for a in found.late] == [(P0, 3), (P1, None)]
    assert found.to_commit == {"billing": AFTER["billing"]}


def test_who_stands_elsewhere_after_the_last_move_is_named_unless_it_has_begun_there_and_read_on() -> None:
    """Another run's mark came late, after the move: the report was silent about it."""
    sync = Stamp(flow="g", source_next=SourceOffset(1), target_next=TargetOffset(60), time_ms=5)
    others = {
        Committed(50, failover_mark("r0")): "stands at 50 now, committed by failover r0",
        Committed(5, failover_mark("r0")): "stands at 5 now, committed by failover r0",
        Committed(9, ""): "stands at 9 now",
        Committed(5, MARK): f"stands at 5 now, committed by failover {RUN.run}",
        Committed(60, stamped(sync)): "stands at 60 now, committed by a group sync of g",
        None: "has nothing committed now",
    }
    for found, words in others.items():
        now = {} if found is None else {P0: found}
        (line,) = moved_elsewhere(RUN, {**AFTER, "billing": {P1: AFTER["billing"][P1], **now}})
        assert str(line) == f"billing on sf.orders-0: was moved to 9 and {words}"
    for read_on in (Committed(10, ""), Committed(10, MARK), Committed(50, "own"), Committed(50, "[]")):
        assert moved_elsewhere(RUN, {**AFTER, "billing": {**AFTER["billing"], P0: read_on}}) == ()
    assert moved_elsewhere(RUN, AFTER) == ()


def test_a_rollback_puts_back_takes_away_and_names_who_has_read_on() -> None:
    held = {**AFTER, "a:b": {P0: Committed(50, "")}}
    remaining = left_to_roll_back(RUN, held)
    assert remaining.to_commit == {"billing": {P0: Committed(3, "theirs")}}
    assert remaining.to_forget == {"billing": (P1,), "a:b": (P0,)}
    assert [(a.group, a.at) for a in remaining.astray] == [("a:b", 50)]
    assert left_to_roll_back(RUN, BEFORE).is_nothing


def test_a_rollback_leaves_what_a_sync_has_committed_since_the_mirror_went_on() -> None:
    """It was moved back to where it stood months ago, and the next failover believed that."""
    stamp = Stamp(flow="f", source_next=SourceOffset(70), target_next=TargetOffset(60), time_ms=5)
    synced, of_another = Committed(60, stamped(stamp)), Committed(60, stamped(replace(stamp, flow="g")))
    held = {"billing": {P0: synced, P1: AFTER["billing"][P1]}, "a:b": {P0: of_another}}
    found = left_to_roll_back(RUN, held, is_overtaken=True)
    assert (found.to_commit, found.to_forget) == ({}, {"billing": (P1,), "a:b": (P0,)})
    assert [(a.group, a.at) for a in found.astray] == [("a:b", 60)]
    late = left_to_roll_back(RUN, held)
    assert late.to_commit == {"billing": {P0: Committed(3, "theirs")}}, "one that was held up"


def test_no_group_sync_takes_a_failovers_commit_for_its_own() -> None:
    assert parse_stamp(MARK) is None
