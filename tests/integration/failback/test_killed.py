"""A failback that is killed after any step and run again ends as one that wasn't."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from causeway.core.failback.divergence import export_topic
from causeway.core.kernel.errors import BadInput, FlowFenced, StalePlan
from causeway.core.state.fences import Fence
from causeway.lab.cluster import LabCluster
from causeway.usecases.failback import complete, start
from causeway.usecases.failback.lift import lift_by_hand
from causeway.usecases.failover import failover as steps
from causeway.usecases.inspect.episode import find_next_step
from causeway.usecases.inspect.flow_status import inspect_flow
from causeway.usecases.run_lock.fence import FenceOutcome, fence_flow, lift_fence
from causeway.usecases.session.both_clusters import open_target, state_on
from tests.integration.failback.stage import FailbackStage, read, values, written_since
from tests.support.killing import killed_after, killed_in_front_of

pytestmark = pytest.mark.integration


def test_killed_after_each_step_it_goes_on(parted: FailbackStage) -> None:
    stage = parted
    before = stage.log(stage.old, stage.stem)
    for step in ("begin_run", "_close", "export_tails", "adopt_all", "hand_over", "told"):
        with killed_after(start, step):
            stage.resume()
        with pytest.raises(FlowFenced):
            stage.forward.run()
    done = stage.resume()
    assert done.was_done, "the last kill came behind the last record, and only the fence was left"
    assert stage.fences() == (done.run.fence_words, None)
    exported = read(stage.new, export_topic(stage.stem, done.run.begun_ms), stage.partitions)
    tail = {p: values(before[p])[-len(messages) :] for p, messages in exported.items() if messages}
    assert {p: [m.value().decode() for m in found] for p, found in exported.items() if found} == tail

    stage.reverse.run()
    for step in ("_let_reverse_stand_by", "adopt_all", "hand_over", "_record_home", "_open_forward"):
        with killed_after(complete, step):
            stage.come_home()
    assert stage.come_home().moved is None
    assert stage.fences() == (None, done.run.stand_by_words)
    assert stage.forward.run().records == 0, "nothing loops back"
    view = inspect_flow(stage.forward.flow, stage.old.endpoint(), stage.new.endpoint())
    assert (view.plan.lag, dict(view.plan.parked)) == (0, {})


def lifted(stage: FailbackStage) -> FenceOutcome:
    flow = stage.reverse.flow
    return lift_by_hand(flow, stage.new.endpoint(), stage.old.endpoint(), by="amy", because="it is dead")


def test_a_homecoming_that_was_given_up_and_killed_before_its_lift_is_finished(
    parted: FailbackStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    parted.resume()
    parted.reverse.run()
    with monkeypatch.context() as moving:
        moving.setattr(steps, "left_behind", written_since)
        with killed_in_front_of(steps, "open_for"):
            parted.come_home()
    assert str(parted.fences()[1]).startswith("failover ")
    assert lifted(parted).changed
    assert parted.come_home().not_yet == ()


def test_the_fence_of_a_homecoming_that_goes_on_is_lifted_by_nobody_else(parted: FailbackStage) -> None:
    parted.resume()
    parted.reverse.run()
    for module, step in ((steps, "move_for_good"), (complete, "_let_reverse_stand_by")):
        with killed_in_front_of(module, step):
            parted.come_home()
        with pytest.raises(BadInput, match="is of a homecoming, begun by a test, which lifts it itself"):
            lifted(parted)
    assert parted.come_home().moved is not None


def test_the_last_fence_of_the_flow_that_rests_is_lifted_by_nobody(parted: FailbackStage) -> None:
    """Its own fence was lost with the flows topic, and a person has raised the one that stands."""
    stage = parted
    flow, old, new = stage.forward.flow, stage.old.endpoint(), stage.new.endpoint()
    run = stage.resume().run
    stage.reverse.run()
    (own,) = standing(stage)
    fence_flow(flow, new, by="ops", because="recovered")
    lift_fence(flow, new, by="nobody", because="lost", number=own.generation)
    (last,) = standing(stage)
    for number in (None, last.generation):
        with pytest.raises(
            BadInput, match=f"is the only one .* while failback {run.run} mirrors back"
        ) as told:
            lift_by_hand(flow, old, new, by="amy", because="it may write", number=number)
        assert f"`causeway failback {flow.name} --home` comes first" in str(told.value)
    fence_flow(flow, new, by="amy", because="two are too many")
    assert lift_by_hand(flow, old, new, by="amy", because="one", number=last.generation).changed
    lift_fence(flow, new, by="nobody", because="lost")

    reverse = stage.reverse.flow
    said = find_next_step(flow, reverse, old, new)
    assert said.command == f'causeway fence {flow.name} --because "{run.fence_words}"'
    fence_flow(flow, new, by="amy", because=run.fence_words)
    assert find_next_step(flow, reverse, old, new).command == f"causeway failback {flow.name} --home"
    assert len(stage.come_home().not_yet) == 1
    assert lift_by_hand(flow, old, new, by="amy", because="all is home").changed
    assert stage.fences() == (None, run.stand_by_words)


def standing(stage: FailbackStage) -> tuple[Fence, ...]:
    """On the forward flow."""
    with open_target(stage.new.endpoint()) as (network, target):
        return network.run(lambda: state_on(target, stage.forward.flow.name)).standing


def test_what_is_refused(parted: FailbackStage) -> None:
    stage = parted
    with pytest.raises(BadInput, match="--resume` or `--rebuild` comes first"):
        stage.come_home()

    def meanwhile(_plan: object) -> None:
        stage.write(stage.old, 10, random.Random(1))

    stage._note, note = meanwhile, stage._note  # type: ignore[method-assign,assignment]
    with pytest.raises(StalePlan, match="after the fences"):
        stage.resume()
    stage._note = note  # type: ignore[method-assign]
    assert stage.resume().run.facts["parted"] is True


def test_a_rollback_of_the_failover_is_refused_in_the_middle_of_a_failback(parted: FailbackStage) -> None:
    """Groups would go back on one side, and the data home on the other."""
    stage = parted
    run = stage.fail_over().run
    with killed_after(start, "_close"):
        stage.resume()
    for command in ("--resume", "--home"):
        with pytest.raises(BadInput, match=f"can't be taken back any more: a test has begun .*{command}`"):
            stage.roll_back(run)
        stage.resume()
    stage.reverse.run()
    stage.come_home()
    assert stage.fences()[0] is None


def test_with_prefixes_both_ways_are_open_whatever_the_last_step_was(
    sf: LabCluster, nyc: LabCluster, topic_name: Callable[..., str]
) -> None:
    stage, dice = FailbackStage(sf, nyc, topic_name("both-ways"), keeps_names=False), random.Random(7)
    try:
        stage.write(sf, 20, dice)
        stage.forward.run()
        stage.commit(sf, "a", stage.stem, {0: 3})
        stage.fail_over()
        stage.resume()
        with killed_after(complete, "_open_forward"):
            stage.come_home()
        assert stage.fences()[1] is not None
        assert stage.come_home().moved is None
        assert stage.fences() == (None, None)
    finally:
        stage.close()


def test_after_the_next_failover_the_last_homecoming_is_none(parted: FailbackStage) -> None:
    parted.resume()
    parted.reverse.run()
    parted.come_home()
    assert parted.come_home().moved is None
    parted.commit(parted.old, "c", parted.stem, {0: 0})
    parted.fail_over()
    with pytest.raises(BadInput, match="--resume` or `--rebuild` comes first"):
        parted.come_home()
