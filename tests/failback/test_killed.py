"""A failback that is killed after any step and run again ends as one that wasn't."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from causeway.core.errors import BadInput, FlowFenced, StalePlan
from causeway.core.failback.plan import export_topic
from causeway.flows.failback import back, home
from causeway.flows.look import look_at_flow
from causeway.lab.cluster import LabCluster
from tests.failback.stage import FailbackStage, read, values
from tests.killing import killed_after

pytestmark = pytest.mark.integration


def test_killed_after_each_step_it_goes_on(parted: FailbackStage) -> None:
    stage = parted
    before = stage.log(stage.old, stage.stem)
    for step in ("begin_run", "_close", "export_tails", "adopt_all", "hand_over", "told"):
        with killed_after(back, step):
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
        with killed_after(home, step):
            stage.come_home()
    assert stage.come_home().moved is None
    assert stage.fences() == (None, done.run.stand_by_words)
    assert stage.forward.run().records == 0, "nothing loops back"
    view = look_at_flow(stage.forward.flow, stage.old.endpoint(), stage.new.endpoint())
    assert (view.plan.lag, dict(view.plan.parked)) == (0, {})


def test_what_is_refused(parted: FailbackStage) -> None:
    stage = parted
    with pytest.raises(BadInput, match="--resume` or `--rebuild` comes first"):
        stage.come_home()

    def meanwhile(_plan: object) -> None:
        stage.write(stage.old, 10, random.Random(1))

    stage._note, note = meanwhile, stage._note  # type: ignore[method-assign,assignment]
    with pytest.raises(StalePlan, match="behind the fences"):
        stage.resume()
    stage._note = note  # type: ignore[method-assign]
    assert stage.resume().run.facts["parted"] is True


def test_a_rollback_of_the_failover_doesnt_open_the_forward_flow_beside_the_way_back(
    parted: FailbackStage,
) -> None:
    from causeway.flows.failover.rollback import roll_back

    stage = parted
    run = stage.fail_over().run
    stage.resume()
    done = roll_back(
        stage.forward.flow,
        stage.new.endpoint(),
        run,
        by="a test",
        consent=lambda _run, _remaining: None,
        say=lambda _: None,
    )
    assert "the fence stays" in done.fence


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
        with killed_after(home, "_open_forward"):
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
