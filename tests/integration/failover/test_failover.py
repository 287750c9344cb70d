"""Failover on real brokers: every group ends at the right record, whatever dies on the way, and back."""

from __future__ import annotations

from dataclasses import replace

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import NewPartitions

from causeway.brokers.wire.consumer_groups import ConsumerGroups
from causeway.core.failover.request import Active
from causeway.core.kernel.errors import BadInput, FlowFenced, StalePlan, UnknownName
from causeway.core.kernel.estimate import Bound
from causeway.lab.clients import admin_client, wait_for_leaders
from causeway.usecases.failover import failover as steps
from causeway.usecases.failover import verify
from causeway.usecases.failover.failover import Failover
from causeway.usecases.failover.verify import verify_run
from causeway.usecases.run_lock.fence import lift_fence
from causeway.usecases.session.source_may_be_gone import open_target_session
from tests.integration.failover.conftest import (
    NOWHERE,
    STEP_MS,
    MakeStage,
    held,
    killed_once_one_group_is_moved,
)
from tests.integration.failover.stage import BASE_MS, FailoverStage
from tests.support.killing import killed_after

pytestmark = pytest.mark.integration


def first_at(stage: FailoverStage, moment_ms: int, partition: int = 0) -> int:
    """The offset of the first record that isn't earlier, as a reader sees it."""
    return next(offset for _, offset, time_ms, _ in stage.mirrored_records(partition) if time_ms >= moment_ms)


def test_a_moment_moves_every_group_to_its_record_and_the_sheet_has_the_price(
    mirrored: FailoverStage,
) -> None:
    moment = BASE_MS + 150 * STEP_MS - 400
    at = {p: first_at(mirrored, moment, p) for p in (0, 1)}
    before = mirrored.sheet(mirrored.wish(moment))
    assert held(mirrored) == NOWHERE, "a sheet writes nothing"

    done = mirrored.fail_over(mirrored.wish(moment))

    assert held(mirrored) == {"ahead": at, "middle": at, "behind": at}
    assert done.verified.as_planned == done.verified.offsets == 6
    assert (done.verified.sampled, done.verified.at_the_end, done.verified.earlier) == (2, 0, ())
    assert (str(before.lost), before.topics[0].lost_seconds.number) == ("20", 20)
    price = {
        group.group.rpartition(".")[2]: (str(group.rereads), str(group.skips)) for group in before.groups
    }
    assert price["middle"] == ("50", "0")
    assert price["ahead"] == ("300", "0")
    moves = {(m.group, m.target.partition): m for m in before.plan.moves}
    behind = moves[mirrored.group("behind"), 0]
    assert str(behind.skips) == "145"
    assert moves[mirrored.group("behind"), 1].skips.bound is Bound.UNKNOWN
    assert not [r for m in before.plan.moves for r in m.reasons if "explains" in r]


def test_a_first_record_that_is_earlier_than_the_moment_is_named(mirrored: FailoverStage) -> None:
    moment = BASE_MS + 150 * STEP_MS
    mirrored.fail_over(mirrored.wish(moment))
    (run,) = mirrored.journal()
    later = replace(run, wish=mirrored.wish(moment + 1))
    with open_target_session(mirrored.target.endpoint()) as sides:
        found = sides.network.run(lambda: verify_run(later, sides, ConsumerGroups(sides.target.wire)))
    assert found.earlier == (f"{mirrored.mirrored}-0", f"{mirrored.mirrored}-1")


def test_latest_moves_each_group_to_where_it_stood_and_never_past_the_mirror(mirrored: FailoverStage) -> None:
    done = mirrored.fail_over(mirrored.wish(None))
    records = mirrored.mirrored_records(0)
    assert mirrored.there("middle")[0] == records[200][1]
    assert mirrored.there("behind") == {0: records[5][1]}
    assert mirrored.there("ahead")[0] == records[-1][1] + 1
    assert done.sheet is not None
    assert {str(g.rereads) for g in done.sheet.groups} == {"0"}


def test_latest_leaves_a_group_that_went_on_there_by_itself_and_moves_what_a_sync_committed(
    mirrored: FailoverStage,
) -> None:
    mirrored.sync()
    synced = held(mirrored)
    assert synced["behind"], "the sync has committed for it"
    mirrored.commit("behind", {0: 50})
    mirrored.commit("middle", {0: 7}, on_target=True)
    done = mirrored.fail_over(mirrored.wish(None))
    assert done.sheet is not None
    assert [(e.group, e.target and e.target.partition) for e in done.sheet.plan.left_alone] == [
        (mirrored.group("middle"), 0)
    ]
    records = mirrored.mirrored_records(0)
    assert held(mirrored)["behind"] == {0: records[50][1]}
    assert held(mirrored)["middle"] == {0: 7, 1: synced["middle"][1]}


def test_safety_steps_back_and_the_end_is_the_end(mirrored: FailoverStage) -> None:
    moment = BASE_MS + 150 * STEP_MS
    sheet = mirrored.sheet(mirrored.wish(moment, safety_ms=30 * STEP_MS))
    assert {m.after for m in sheet.plan.moves if m.target.partition == 0} == {
        first_at(mirrored, moment - 30 * STEP_MS)
    }
    end = mirrored.mirrored_records(0)[-1][1] + 1
    for late in (
        310,
        10_000,
    ):  # the source has a record of the one, which isn't mirrored; of the other nobody has
        shown = mirrored.sheet(mirrored.wish(BASE_MS + late * STEP_MS))
        assert {m.after for m in shown.plan.moves if m.target.partition == 0} == {end}


def test_the_second_time_is_no_failover_and_the_fence_holds(mirrored: FailoverStage) -> None:
    wish = mirrored.wish(None)
    first = mirrored.fail_over(wish)
    moved = held(mirrored)
    again = mirrored.fail_over(wish)
    assert (again.was_done, again.run, again.moved) == (True, first.run, 0)
    assert held(mirrored) == moved
    with pytest.raises(FlowFenced, match=f"failover {first.run}"):
        mirrored.run()


def test_once_the_fence_is_lifted_the_same_wish_is_another_failover(mirrored: FailoverStage) -> None:
    """The mirror went on meanwhile, so what was done is history."""
    wish = mirrored.wish(BASE_MS + 150 * STEP_MS)
    first = mirrored.fail_over(wish)
    lift_fence(mirrored.flow, mirrored.target.endpoint(), by="ops", because="sf came back")
    second = mirrored.fail_over(wish)
    assert (first.was_done, second.was_done) == (False, False)
    assert second.run != first.run
    assert mirrored.fence() == f"failover {second.run}"


def test_a_rollback_restores_every_offset_and_lifts_its_fence(mirrored: FailoverStage) -> None:
    mirrored.commit("middle", {0: 7}, on_target=True)
    before = held(mirrored)
    done = mirrored.fail_over(mirrored.wish(BASE_MS + 150 * STEP_MS))
    assert held(mirrored) != before

    back = mirrored.roll_back(done.run)

    assert held(mirrored) == before
    assert (back.fence, back.was_done, back.read_on) == ("lifted", False, ())
    assert mirrored.run().records == 20, "the flow goes on"
    assert mirrored.roll_back(done.run).was_done
    with pytest.raises(UnknownName, match=done.run):
        mirrored.roll_back("nosuchrun")


def test_a_fence_that_stood_before_stays(mirrored: FailoverStage) -> None:
    from causeway.usecases.run_lock.fence import fence_flow

    fence_flow(mirrored.flow, mirrored.target.endpoint(), by="ops", because="nyc takes over")
    done = mirrored.fail_over(mirrored.wish(None))
    assert "stays" in mirrored.roll_back(done.run).fence
    assert mirrored.fence() == "nyc takes over"


STEPS = [
    (steps, "create_journal"),
    (steps, "write_journal"),
    (Failover, "take_snapshot"),
    (steps, "close_for"),
    (Failover, "raise_fence"),
    (Failover, "_compare_plans"),
    (Failover, "move_groups"),
    (Failover, "verify"),
    (verify, "committed_by"),
]


def test_killed_after_each_step_and_run_again_it_ends_in_the_same_state(
    stage: MakeStage, mirrored: FailoverStage
) -> None:
    wish = mirrored.wish(BASE_MS + 150 * STEP_MS)
    expected: dict[str, dict[int, int]] = {
        m.group.rpartition(".")[2]: {} for m in mirrored.sheet(wish).plan.moves
    }
    for move in mirrored.sheet(wish).plan.moves:
        expected[move.group.rpartition(".")[2]][move.target.partition] = move.after
    before = held(mirrored)
    for module, step in STEPS:
        with killed_after(module, step):
            mirrored.fail_over(wish)
        done = mirrored.fail_over(wish)
        assert held(mirrored) == expected, step
        assert mirrored.fail_over(wish).was_done, step
        mirrored.roll_back(done.run)
        assert (held(mirrored), mirrored.fence()) == (before, None), step


def test_killed_in_the_middle_of_moving_it_goes_on_with_the_rest(mirrored: FailoverStage) -> None:
    wish = mirrored.wish(None)
    with killed_once_one_group_is_moved():
        mirrored.fail_over(wish)
    assert [bool(stood) for stood in held(mirrored).values()] == [True, False, False]
    with pytest.raises(BadInput, match="other parameters"):
        mirrored.fail_over(mirrored.wish(BASE_MS))
    done = mirrored.fail_over(wish)
    assert done.verified.as_planned == done.verified.offsets == 5
    assert done.moved == 3


def test_what_moves_between_the_sheet_and_the_fence_stops_it(mirrored: FailoverStage) -> None:
    def meanwhile(_sheet: object) -> None:
        mirrored.commit("middle", {0: 220})

    with pytest.raises(StalePlan):
        mirrored.fail_over(mirrored.wish(None), consent=meanwhile)
    assert held(mirrored) == NOWHERE
    assert mirrored.fence() is None
    with pytest.raises(StalePlan, match="was asked for"):
        mirrored.fail_over(mirrored.wish(None), plan="0123456789abcdef")
    planned = mirrored.sheet(mirrored.wish(None)).plan.hash
    assert mirrored.fail_over(mirrored.wish(None), plan=planned).verified.moved_on == 0


def test_what_moved_while_a_run_was_dead_before_its_first_move_stops_it(mirrored: FailoverStage) -> None:
    """Snapshot taken, fenced, killed: the sheet that was agreed to isn't true any more."""
    wish = mirrored.wish(None)
    with killed_after(Failover, "raise_fence"):
        mirrored.fail_over(wish)
    assert mirrored.fence() is not None
    mirrored.commit("middle", {0: 220})
    with pytest.raises(StalePlan):
        mirrored.fail_over(wish)
    assert (held(mirrored), mirrored.fence()) == (NOWHERE, None)


def test_what_reads_on_after_the_moves_of_a_dead_run_is_no_reason_to_give_it_up(
    mirrored: FailoverStage,
) -> None:
    wish = mirrored.wish(None)
    with killed_after(Failover, "move_groups"):
        mirrored.fail_over(wish)
    for name, stood in held(mirrored).items():
        mirrored.commit(name, {p: offset + 1 for p, offset in stood.items()}, on_target=True)
    read_on = held(mirrored)
    done = mirrored.fail_over(wish)
    assert (done.moved, done.verified.moved_on) == (0, done.verified.offsets)
    assert held(mirrored) == read_on
    assert mirrored.fence() == f"failover {done.run}"


def test_a_group_at_work_on_the_target_is_refused_by_name_or_left(mirrored: FailoverStage) -> None:
    name = mirrored.group("middle")
    consumer = Consumer({**mirrored.target.endpoint().settings, "group.id": name})
    try:
        consumer.subscribe([mirrored.mirrored])
        while not consumer.assignment():
            consumer.poll(0.1)
        with pytest.raises(BadInput, match=name):
            mirrored.fail_over(mirrored.wish(None))
        assert mirrored.fence() is None
        done = mirrored.fail_over(mirrored.wish(None, active=Active.LEAVE))
    finally:
        consumer.close()
    assert done.sheet is not None
    assert [left.group for left in done.sheet.plan.left_alone] == [name]
    assert mirrored.there("ahead")


def test_a_group_from_before_the_mirrors_first_record_begins_with_it(stage: MakeStage) -> None:
    """The flow began where nothing but an aborted transaction lay: the map knows nothing before it."""
    made = stage(partitions=1)
    producer = Producer({**made.source.endpoint().settings, "transactional.id": made.stem})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(made.stem, b"never", partition=0)
    producer.flush(30)
    producer.abort_transaction(30)
    made.run()
    made.write([BASE_MS])
    made.run()
    made.commit("g", {0: 0})
    (move,) = made.sheet(made.wish(None)).plan.moves
    assert (move.after, str(move.rereads), str(move.skips)) == (0, "0", "0")


def test_what_came_after_the_last_run_counts_as_lost_too(mirrored: FailoverStage) -> None:
    """Partitions that the mirror hasn't got yet: nothing of them is on the target."""
    admin = admin_client(mirrored.source.endpoint())
    for answer in admin.create_partitions([NewPartitions(mirrored.stem, 4)]).values():
        answer.result(30)
    wait_for_leaders(admin, {mirrored.stem: 4})
    mirrored.write([BASE_MS] * 7, 3)
    sheet = mirrored.sheet(mirrored.wish(None))
    assert str(sheet.lost) == "27"
    assert {str(loss.source): str(loss.records) for loss in sheet.losses if loss.source.partition > 1} == {
        f"{mirrored.stem}-2": "0",
        f"{mirrored.stem}-3": "7",
    }
    assert any(f"{mirrored.stem}-3 was never mirrored" in why for why in sheet.unknown)


def test_names_that_nobody_knows_are_refused(mirrored: FailoverStage) -> None:
    unknown = mirrored.group("nosuch")
    with pytest.raises(UnknownName, match="full name"):
        mirrored.sheet(mirrored.wish(None, groups=(unknown,)))
    with pytest.raises(BadInput, match=r"= nosuch: .*has mirrored none"):
        mirrored.sheet(mirrored.wish(None, topics=(mirrored.stem, "nosuch")))
    with pytest.raises(UnknownName, match=f"= {unknown}: none"):
        mirrored.sheet(mirrored.wish(None, groups=(mirrored.group("middle"), unknown)))
    with pytest.raises(UnknownName, match="groups doesn't have it"):
        mirrored.sheet(mirrored.wish(None, groups=("nosuch",)))
    name = mirrored.group("unseen")
    sheet = mirrored.sheet(mirrored.wish(BASE_MS + 9 * STEP_MS, groups=(name,), topics=(mirrored.stem,)))
    assert [(m.group, m.target.partition) for m in sheet.plan.moves] == [(name, 0), (name, 1)]
