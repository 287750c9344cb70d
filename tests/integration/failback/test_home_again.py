"""A homecoming that was rolled back: the failback is on its way as before, and home can be gone again."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from causeway.core.failback.divergence import Step
from causeway.core.journal.journal import FailoverRun
from causeway.core.kernel.errors import BadInput, FlowFenced
from causeway.core.state.parked import ParkReason
from causeway.lab.cluster import LabCluster
from causeway.usecases.failback import complete, complete_again, start
from causeway.usecases.failback.complete import CompletedFailback, NothingToMoveError
from causeway.usecases.failback.journal_store import newest_failback
from causeway.usecases.failback.lift import lift_by_hand
from causeway.usecases.failover import failover as steps
from causeway.usecases.failover.rollback import roll_back
from causeway.usecases.inspect.episode import find_next_step
from causeway.usecases.journal.store import read_journal
from causeway.usecases.run_lock.fence import fence_flow, lift_fence
from causeway.usecases.session.source_may_be_gone import open_target_session
from tests.integration.failback import stage as stage_module
from tests.integration.failback.stage import FailbackStage, values, written_since
from tests.integration.failback.trials import next_on_new, went_home
from tests.support.killing import killed_after, killed_in_front_of
from tests.support.meanwhile import meanwhile

pytestmark = pytest.mark.integration
GROUPS = ("a", "b")


def take_back(stage: FailbackStage) -> FailoverRun:
    """The newest homecoming."""
    flow, old = stage.reverse.flow, stage.old.endpoint()
    with open_target_session(old) as sides:
        moved = sides.network.run(lambda: read_journal(sides, flow.name)).newest(flow.name)
    assert moved is not None
    roll_back(flow, old, moved.run, by="a test", consent=lambda *_: None, say=lambda _: None)
    return moved


def command_of(stage: FailbackStage) -> str:
    forward, reverse = stage.forward.flow, stage.reverse.flow
    return find_next_step(forward, reverse, stage.old.endpoint(), stage.new.endpoint()).command


def write_there(stage: FailbackStage, dice: random.Random) -> None:
    """Applications are on the new primary again."""
    stage.write(stage.new, 20, dice)
    ends = {p: log[-1][0] for p, log in stage.log(stage.new, stage.stem).items()}
    for name in GROUPS:
        stage.commit(stage.new, name, stage.stem, ends)


def assert_all_is_home(stage: FailbackStage, going: dict[tuple[str, str, int], str | None]) -> None:
    assert went_home(stage, going) == []
    run, _ = newest_failback(stage.ways)
    assert run is not None
    assert (run.step, stage.fences()) == (Step.HOME, (None, run.stand_by_words))
    assert stage.forward.run().records == 0, "nothing loops back"
    olds, news = (stage.log(at, stage.stem) for at in (stage.old, stage.new))
    for p in olds:
        assert set(values(news[p])) <= set(values(olds[p]))
        assert len(values(olds[p])) == len(set(values(olds[p])))
    assert stage.come_home().moved is None
    with pytest.raises(NothingToMoveError):
        stage.look_home()


def test_after_a_rollback_home_can_be_gone_again_wherever_it_was_killed(parted: FailbackStage) -> None:
    stage, dice = parted, random.Random(17)
    write_there(stage, dice)
    stage.resume()
    stage.reverse.run()
    stage.come_home()
    taken = take_back(stage)
    assert command_of(stage) == f"causeway failback {stage.forward.flow.name} --home"
    write_there(stage, dice)
    going = next_on_new(stage, GROUPS)

    for module, step in (
        (complete_again, "_close_forward"),
        (complete_again, "told"),
        (complete_again, "_clear"),
        (complete, "adopt_all"),
    ):
        with killed_after(module, step):
            stage.come_home()
    moved = stage.come_home().moved
    assert moved is not None
    assert moved.run != taken.run
    assert_all_is_home(stage, going)


def test_of_two_at_the_question_the_second_doesnt_lead_away_what_the_first_has_led_home(
    parted: FailbackStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = parted.resume().run
    parted.come_home()
    take_back(parted)

    def while_it_is_read(_sheet: object) -> None:
        monkeypatch.setattr(stage_module, "_yes", lambda _: None)
        assert parted.come_home().moved is not None

    monkeypatch.setattr(stage_module, "_yes", while_it_is_read)
    with pytest.raises(BadInput, match="went on, or is over, since this one's sheet was read"):
        parted.come_home()
    assert parted.fences() == (None, run.stand_by_words)
    assert parted.come_home().moved is None


@pytest.mark.parametrize("step", ["write_fence", "claim_all_lanes", "_refuse_written_at_home"])
def test_who_is_held_up_while_it_closes_the_flow_leads_nobody_away_who_is_home_by_then(
    parted: FailbackStage, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    stage, homes = parted, list[CompletedFailback]()
    run = stage.resume().run
    stage.come_home()
    take_back(stage)
    held_up_after_the_yes(monkeypatch, step, lambda: homes.append(meanwhile(stage.come_home)))
    with pytest.raises(BadInput, match="went on, or is over, since this one's sheet was read"):
        stage.come_home()
    now, _ = newest_failback(stage.ways)
    assert [complete.run for complete in homes] == [now]
    assert stage.fences() == (None, run.stand_by_words)
    assert stage.come_home().moved is None


def test_who_doesnt_close_the_flow_after_all_opens_it_beside_nobody_who_leads_away(
    parted: FailbackStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = parted
    run = stage.resume().run
    stage.come_home()
    take_back(stage)

    def begins() -> None:
        with killed_after(complete_again, "_close_forward"):
            stage.come_home()

    def somebody_else_closes_it_and_something_is_written() -> None:
        meanwhile(begins)
        stage.write_evenly(stage.old, 4)

    held_up_after_the_yes(
        monkeypatch, "_refuse_written_at_home", somebody_else_closes_it_and_something_is_written
    )
    with pytest.raises(BadInput, match="has new records since"):
        stage.come_home()
    assert stage.fences()[0] == run.fence_words, "the other one's stands"


def held_up_after_the_yes(
    monkeypatch: pytest.MonkeyPatch, step: str, in_between: Callable[[], object]
) -> None:
    """Before this step of the second completion, once."""
    real, yes = getattr(complete_again, step), stage_module._yes

    async def late(*arguments: object, **named: object) -> object:
        monkeypatch.setattr(complete_again, step, real)
        in_between()
        return await real(*arguments, **named)

    def said(_sheet: object) -> None:
        monkeypatch.setattr(stage_module, "_yes", yes)
        monkeypatch.setattr(complete_again, step, late)

    monkeypatch.setattr(stage_module, "_yes", said)


def test_taken_back_before_it_was_completed_it_can_be_gone_again(parted: FailbackStage) -> None:
    stage, dice = parted, random.Random(18)
    write_there(stage, dice)
    stage.resume()
    with killed_after(complete, "_let_reverse_stand_by"):
        stage.come_home()
    take_back(stage)
    write_there(stage, dice)
    going = next_on_new(stage, GROUPS)
    assert stage.come_home().moved is not None
    assert_all_is_home(stage, going)


def test_taken_back_before_it_was_completed_what_was_written_at_home_holds_nobody_up(
    parted: FailbackStage,
) -> None:
    """The forward flow rests, so there is no failover to begin with."""
    stage = parted
    flow, reverse = stage.forward.flow, stage.reverse.flow
    old, new = stage.old.endpoint(), stage.new.endpoint()
    run = stage.resume().run
    with killed_after(complete, "adopt_all"):
        stage.come_home()
    take_back(stage)
    stage.write_evenly(stage.old, 1)
    said = find_next_step(flow, reverse, old, new)
    assert "nothing mirrors" in said.what
    assert said.command == f"causeway failback {flow.name} --home"
    for go_home in (stage.come_home, stage.look_home):
        with pytest.raises(BadInput, match=f"`causeway lift {reverse.name} --because"):
            go_home()
    assert stage.fences() == (run.fence_words, run.stand_by_words)
    assert lift_by_hand(reverse, new, old, by="amy", because="it leads").changed
    assert command_of(stage) == f"causeway failback {flow.name} --home"
    stage.write_evenly(stage.new, 4)
    (parked,) = stage.reverse.run().parked
    assert parked.target == f"{stage.stem}-0"
    assert parked.parked is not None
    assert parked.parked["reason"] == ParkReason.FOREIGN_WRITER
    with pytest.raises(BadInput, match="can't be brought to its end"):
        stage.come_home()


def test_what_was_written_at_home_since_is_compared_first(parted: FailbackStage) -> None:
    """Mirrored by then, or not: nothing is closed, and the way that is named leads home."""
    stage, dice = parted, random.Random(19)
    write_there(stage, dice)
    stage.resume()
    stage.come_home()
    take_back(stage)
    stage.write_evenly(stage.old, 10)
    for _ in range(2):
        before = stage.fences()
        for go_home in (stage.come_home, stage.look_home):
            with pytest.raises(BadInput, match=r"that was rolled back; .* has new records since") as told:
                go_home()
            assert f"`causeway failback {stage.forward.flow.name} --resume`" in str(told.value)
        assert stage.fences() == before
        stage.forward.run()
    stage.fail_over()
    stage.resume()
    stage.write(stage.new, 20, dice)
    assert stage.come_home().not_yet == ()


def test_a_homecoming_of_an_earlier_episode_is_history(parted: FailbackStage) -> None:
    """The next failback has the way back fenced, or people have: nothing is home yet."""
    stage, dice = parted, random.Random(21)
    write_there(stage, dice)
    stage.resume()
    assert stage.come_home().moved is not None
    assert stage.fail_over().was_done is False
    write_there(stage, dice)
    going = next_on_new(stage, GROUPS)
    with killed_in_front_of(start, "_open"):
        stage.resume()
    with pytest.raises(BadInput, match="--resume` goes on with it"):
        stage.come_home()
    stage.resume()
    reverse, old = stage.reverse.flow, stage.old.endpoint()
    fence_flow(reverse, old, by="ops", because="not before noon")
    with pytest.raises(FlowFenced, match="not before noon"):
        stage.come_home()
    lift_fence(reverse, old, by="ops", because="noon")
    assert stage.come_home().moved is not None
    assert_all_is_home(stage, going)


def test_a_failover_of_an_earlier_episode_is_history(parted: FailbackStage) -> None:
    """People have fenced the flow since the failback was completed, and it hasn't run in between."""
    stage = parted
    stage.resume()
    stage.come_home()
    fence_flow(stage.forward.flow, stage.new.endpoint(), by="ops", because="not before noon")
    assert stage.fail_over().was_done is False
    assert command_of(stage) == f"causeway failback {stage.forward.flow.name} --resume"


def test_with_prefixes_home_can_be_gone_again(
    sf: LabCluster, nyc: LabCluster, topic_name: Callable[..., str]
) -> None:
    stage, dice = FailbackStage(sf, nyc, topic_name("once-more"), keeps_names=False), random.Random(20)
    try:
        stage.write(sf, 20, dice)
        stage.forward.run()
        stage.commit(sf, "a", stage.stem, {0: 3})
        stage.fail_over()
        stage.resume()
        stage.come_home()
        taken = take_back(stage)
        moved = stage.come_home().moved
        assert moved is not None
        assert moved.run != taken.run
        assert stage.fences() == (None, None)
    finally:
        stage.close()


def test_the_same_command_finishes_a_homecoming_that_was_given_up(
    parted: FailbackStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    parted.resume()
    with monkeypatch.context() as moving:
        moving.setattr(steps, "left_behind", written_since)
        with killed_in_front_of(steps, "open_for"):
            parted.come_home()
    assert str(parted.fences()[1]).startswith("failover ")
    assert parted.come_home().not_yet == ()
