"""What is kept of failovers, and what is left to do after a kill at any point."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from causeway.core.errors import ProtocolFault
from causeway.core.failback.plan import FailbackRun, Step, Way
from causeway.core.failover.figure import exact
from causeway.core.failover.journal import (
    Journal,
    Status,
    agreed_record,
    begun_record,
    ended_record,
    failback_record,
    fold,
    offset_records,
)
from causeway.core.failover.plan import FailoverPlan, LeftAlone, Move
from causeway.core.failover.progress import failover_mark, left_to_apply, left_to_roll_back
from causeway.core.failover.wish import Wish
from causeway.core.flow_state import FlowState, Run
from causeway.core.group_stamp import parse_stamp
from causeway.core.group_sync import Committed
from causeway.core.identity import Generation, TargetOffset, TopicPartition

P0, P1 = TopicPartition("sf.orders", 0), TopicPartition("sf.orders", 1)
WISH = Wish(flow="f", at_ms=5)
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


def test_what_its_sheet_left_alone_is_told_to_who_goes_on() -> None:
    left = tuple(LeftAlone(group=f"g{n}", target=P0 if n else None, why="w" * 900) for n in range(23))
    told = begun_record("r1", replace(PLAN, left_alone=left), by="amy", at_ms=7)
    lines = folded([told]).runs["r1"].left_alone
    assert (lines[0][:8], lines[1][:20]) == ("g0: wwww", "g1 on sf.orders-0: w")
    assert (len(lines), max(map(len, lines)), lines[-1]) == (21, 500, "and 3 more")
    assert folded(records()).runs["r1"].left_alone == ()


def test_that_its_plan_held_is_said_of_a_run_that_has_begun() -> None:
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
    rival = folded(both).rival_of("r2")
    assert rival is not None
    assert (rival.run, folded(both).rival_of("r1")) == ("r1", None)
    over = ended_record("f", "r1", Status.DONE, by="amy", at_ms=9)
    assert folded([*records("r1"), over, *records("r2")]).rival_of("r2") is None


def test_a_failback_that_came_home_is_no_way_back_from_the_next_failover() -> None:
    def back(step: Step, at_ms: int) -> tuple[bytes, bytes]:
        run = FailbackRun(
            run="b1", flow="f", reverse="g", way=Way.RESUME, step=step, by="amy", begun_ms=8, at_ms=at_ms
        )
        return failback_record(run)

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
        (b"", b"{}"),
        (b'[2,"begun","f","r"]', b"{}"),
        (b'[1,"begun","f","r"]', b'{"v":2}'),
        (b'[1,"begun","f","r"]', b'{"v":1}'),
        (b'[1,"danced","f","r"]', b'{"v":1,"at_ms":1}'),
        (b'[1,"offsets","f","r","g",0]', b'{"v":1,"group":"g","shifts":7}'),
    ],
)
def test_what_this_version_does_not_know_is_refused(key: bytes, value: bytes) -> None:
    with pytest.raises(ProtocolFault, match=r"causeway-failovers\.internal"):
        fold(Journal(), 3, key, value)


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


def test_a_rollback_puts_back_takes_away_and_names_who_has_read_on() -> None:
    held = {**AFTER, "a:b": {P0: Committed(50, "")}}
    remaining = left_to_roll_back(RUN, held)
    assert remaining.to_commit == {"billing": {P0: Committed(3, "theirs")}}
    assert remaining.to_forget == {"billing": (P1,), "a:b": (P0,)}
    assert [(a.group, a.at) for a in remaining.astray] == [("a:b", 50)]
    assert left_to_roll_back(RUN, BEFORE).is_nothing


def test_no_group_sync_takes_a_failovers_commit_for_its_own() -> None:
    assert parse_stamp(MARK) is None
