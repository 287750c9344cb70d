"""Two people at four in the morning, and what stood from last time: one failover at a time, none unseen."""

from __future__ import annotations

from typing import Any

import pytest

from causeway.brokers.admin.drill_reader import read_first
from causeway.cli.commands.failover import LEFT_ALONE, failed_over
from causeway.core.failover.impact_sheet import Sheet
from causeway.core.journal.journal import Status
from causeway.core.journal.remaining_work import failover_mark
from causeway.core.kernel.errors import BadInput, FlowHeld, UnknownName
from causeway.lab.clients import admin_client
from causeway.usecases.failover import drill as rehearsal
from causeway.usecases.failover import failover as steps
from causeway.usecases.failover import move_groups
from causeway.usecases.failover.build_plan import make_sheet
from causeway.usecases.failover.drill import history
from causeway.usecases.failover.execute import FailedOver
from causeway.usecases.failover.failover import Failover
from causeway.usecases.repair.set_positions import Reason, fenced, run_command
from causeway.usecases.run_lock.fence import fence_flow, lift_fence
from causeway.usecases.run_lock.write_proof import outlive_others
from causeway.usecases.session.both_clusters import Clusters
from tests.integration.failover.conftest import NOWHERE, STEP_MS, held, killed_once_one_group_is_moved
from tests.integration.failover.stage import BASE_MS, FailoverStage, statuses
from tests.integration.groups.stage import commit
from tests.support.killing import killed_after
from tests.support.meanwhile import meanwhile

pytestmark = pytest.mark.integration
MOMENT_MS = BASE_MS + 150 * STEP_MS


def test_who_goes_on_with_the_same_run_doesnt_give_up_what_the_other_moves(
    mirrored: FailoverStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both found it begun; one has moved the groups while the other still looks after the fence."""
    wish, real, other = mirrored.wish(MOMENT_MS), make_sheet, list[FailedOver]()
    with killed_after(Failover, "take_snapshot"):
        mirrored.fail_over(wish)

    async def slowly(*arguments: Any, **named: Any) -> Sheet:
        monkeypatch.setattr(steps, "make_sheet", real)
        other.append(meanwhile(lambda: mirrored.fail_over(wish)))
        return await real(*arguments, **named)

    monkeypatch.setattr(steps, "make_sheet", slowly)
    done = mirrored.fail_over(wish)
    assert (done.run, done.moved, other[0].moved) == (other[0].run, 0, 6)
    assert done.verified.as_planned == 6
    assert statuses(mirrored) == [(done.run, Status.DONE)]
    assert mirrored.fence() == f"failover {done.run}"


def test_of_two_at_the_question_one_fails_over_and_the_other_learns_how_to_go_on(
    mirrored: FailoverStage,
) -> None:
    first = mirrored.wish(MOMENT_MS, safety_ms=1_500)

    def while_it_is_read(_sheet: Sheet) -> None:
        with killed_after(Failover, "take_snapshot"):
            mirrored.fail_over(first)

    with pytest.raises(BadInput, match="was begun by a test a moment ago and isn't finished") as told:
        mirrored.fail_over(mirrored.wish(None), consent=while_it_is_read)
    assert (held(mirrored), mirrored.fence()) == (NOWHERE, None)
    assert f"`{first.command}` goes on with it" in str(told.value)
    with pytest.raises(BadInput, match="with other parameters"):
        mirrored.fail_over(mirrored.wish(None))
    done = mirrored.fail_over(first)
    assert statuses(mirrored)[0] == (done.run, Status.DONE)
    assert statuses(mirrored)[1][1] is Status.GIVEN_UP


def test_a_fence_that_ops_raised_makes_no_failover_of_last_time_todays(mirrored: FailoverStage) -> None:
    """The runbook fences first; the same words may have been typed a year ago."""
    wish, target = mirrored.wish(MOMENT_MS), mirrored.target.endpoint()
    first = mirrored.fail_over(wish)
    lift_fence(mirrored.flow, target, by="ops", because="sf came back")
    mirrored.run()
    fence_flow(mirrored.flow, target, by="ops", because="sf is gone again")
    second = mirrored.fail_over(wish)
    assert (second.was_done, second.run == first.run) == (False, False)
    again = mirrored.fail_over(wish)
    assert (again.was_done, again.run) == (True, second.run)


def test_what_broke_off_long_ago_moves_nobody_once_the_mirror_has_gone_on(mirrored: FailoverStage) -> None:
    wish = mirrored.wish(MOMENT_MS)
    with killed_once_one_group_is_moved():
        mirrored.fail_over(wish)
    lift_fence(mirrored.flow, mirrored.target.endpoint(), by="ops", because="sf came back")
    mirrored.run()
    stood = held(mirrored)
    with pytest.raises(BadInput, match="the mirror has gone on since") as told:
        mirrored.fail_over(wish)
    assert (held(mirrored), mirrored.fence()) == (stood, None)
    run = mirrored.journal()[-1].run
    assert f"--rollback {run}" in str(told.value)
    mirrored.roll_back(run)
    assert held(mirrored) == NOWHERE
    assert mirrored.fail_over(wish).moved == 6


def test_what_another_run_commits_after_the_move_is_reported(
    mirrored: FailoverStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was named nowhere, and the failover was a success."""
    place, real = (mirrored.mirrored, 1), outlive_others
    moved = list[int]()

    async def then_it_comes(clock: Any) -> None:
        await real(clock)
        moved.append(mirrored.there("middle")[1])
        commit(mirrored.target, mirrored.group("middle"), {place: 7}, failover_mark("earlier"))

    monkeypatch.setattr(move_groups, "outlive_others", then_it_comes)
    done = mirrored.fail_over(mirrored.wish(MOMENT_MS))
    line = (
        f"{mirrored.group('middle')} on {mirrored.mirrored}-1: was moved to {moved[0]} and stands at 7 now, "
        "committed by failover earlier"
    )
    assert done.left_alone == (line,)
    assert mirrored.journal()[-1].facts["left_alone"] == [line]
    told = failed_over(done)
    assert (told.exit_code, f"LEFT ALONE {line}" in told.text) == (LEFT_ALONE, True)


def test_the_fence_outlives_that_of_a_command_at_work(mirrored: FailoverStage) -> None:
    """`accept-gap` and its like fence for as long as they work, and open the flow as it was."""
    flow, target = mirrored.flow, mirrored.target.endpoint()

    async def work(clusters: Clusters, _: object) -> FailedOver:
        async with fenced(flow, clusters, target, Reason(by="ops", because="a gap")):
            return mirrored.fail_over(mirrored.wish(MOMENT_MS))

    done = run_command(flow, mirrored.source.endpoint(), target, "a command", work)
    assert mirrored.fence() == f"failover {done.run}"


def test_ctrl_c_in_the_middle_says_how_to_go_on(
    mirrored: FailoverStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as interrupted:
        interrupted.setattr(Failover, "move_groups", pressed)
        with pytest.raises(KeyboardInterrupt, match="isn't finished: the same command goes on with it"):
            mirrored.fail_over(mirrored.wish(MOMENT_MS))
    assert mirrored.fail_over(mirrored.wish(MOMENT_MS)).moved == 6


def test_who_goes_on_sees_what_the_sheet_left_alone(mirrored: FailoverStage) -> None:
    mirrored.commit("own", {0: 3}, on_target=True)
    with killed_after(Failover, "raise_fence"):
        mirrored.fail_over(mirrored.wish(None))
    done = mirrored.fail_over(mirrored.wish(None))
    assert done.sheet is None
    assert [line.partition(":")[0] for line in done.left_alone] == [
        f"{mirrored.group('own')} on {mirrored.mirrored}-0"
    ]
    assert mirrored.fail_over(mirrored.wish(None)).left_alone == ()


def test_a_group_that_is_gone_after_the_fence_ends_it_with_nothing_moved(mirrored: FailoverStage) -> None:
    name = mirrored.group("late")
    mirrored.commit("late", {0: 3}, on_target=True)

    def meanwhile_deleted(_sheet: Sheet) -> None:
        admin = admin_client(mirrored.target.endpoint())
        for answer in admin.delete_consumer_groups([name]).values():
            answer.result(30)

    wish = mirrored.wish(MOMENT_MS, groups=(mirrored.group("middle"), name))
    with pytest.raises(BadInput, match=f"moves groups that are gone: {name}"):
        mirrored.fail_over(wish, consent=meanwhile_deleted)
    assert (held(mirrored), mirrored.fence()) == (NOWHERE, None)
    with pytest.raises(UnknownName, match=name):
        mirrored.fail_over(wish)


def test_of_two_drills_the_first_goes_on_and_the_other_learns_who(
    mirrored: FailoverStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second one would remove the first one's clones."""
    real, told, clones = read_first, list[str](), list[str]()

    def second() -> None:
        with pytest.raises(FlowHeld, match="is at work, begun by a test at") as refused:
            mirrored.rehearse()
        told.append(str(refused.value))

    def while_it_reads(*arguments: Any, **named: Any) -> Any:
        if not told:
            clones.extend(mirrored.clones())
            meanwhile(second)
            assert mirrored.clones() == clones
        return real(*arguments, **named)

    monkeypatch.setattr(rehearsal, "read_first", while_it_reads)
    done = mirrored.rehearse()
    assert (done.wrong, bool(clones), mirrored.clones()) == ("", True, [])
    assert f"drill {done.run} is at work" in told[0]
    assert history(mirrored.flow, mirrored.target.endpoint())[-1] == done
    assert mirrored.rehearse().wrong == "", "one that was refused is in nobody's way"
