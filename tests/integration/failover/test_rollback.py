"""A failover taken back on real brokers: by whom, when, and whose fence is whose."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from confluent_kafka import Consumer

from causeway.core.journal.journal import Status
from causeway.core.kernel.errors import BadInput, FlowFenced, StalePlan
from causeway.lab.clients import admin_client
from causeway.usecases.failover import rollback
from causeway.usecases.repair import set_positions
from causeway.usecases.repair.set_positions import Reason, fenced, run_command
from causeway.usecases.run_lock.fence import fence_flow, lift_fence
from causeway.usecases.session.both_clusters import Clusters, open_target, state_on
from tests.integration.failover.conftest import NOWHERE, STEP_MS, held
from tests.integration.failover.stage import BASE_MS, FailoverStage
from tests.support.killing import Killed, killed_after

pytestmark = pytest.mark.integration
MOMENT_MS = BASE_MS + 150 * STEP_MS


@contextmanager
def reading(stage: FailoverStage, name: str) -> Iterator[Consumer]:
    """A member of the group, on the target."""
    settings = {**stage.target.endpoint().settings, "enable.auto.commit": False}
    consumer = Consumer({**settings, "group.id": stage.group(name)})
    try:
        consumer.subscribe([stage.mirrored])
        while not consumer.assignment():
            consumer.poll(0.1)
        yield consumer
    finally:
        consumer.close()


def test_who_reads_on_the_target_is_named_and_nobody_is_put_back(mirrored: FailoverStage) -> None:
    run = mirrored.fail_over(mirrored.wish(MOMENT_MS)).run
    moved = held(mirrored)
    with (
        reading(mirrored, "middle"),
        pytest.raises(BadInput, match=f"{mirrored.group('middle')}.*can't be put back while they read"),
    ):
        mirrored.roll_back(run)
    assert (held(mirrored), mirrored.fence()) == (moved, f"failover {run}")
    assert mirrored.roll_back(run).restored == 6
    assert (held(mirrored), mirrored.fence()) == (NOWHERE, None)


def test_who_has_read_on_is_named_and_put_back_all_the_same(mirrored: FailoverStage) -> None:
    mirrored.commit("middle", {0: 7}, on_target=True)
    before = held(mirrored)
    run = mirrored.fail_over(mirrored.wish(MOMENT_MS)).run
    further = held(mirrored)["middle"][0] + 3
    mirrored.commit("middle", {0: further}, on_target=True)
    back = mirrored.roll_back(run)
    assert [(each.group, each.at) for each in back.read_on] == [(mirrored.group("middle"), further)]
    assert held(mirrored) == before


def test_the_newest_goes_first_and_what_was_given_up_not_at_all(mirrored: FailoverStage) -> None:
    before = held(mirrored)
    first = mirrored.fail_over(mirrored.wish(MOMENT_MS)).run
    middle = held(mirrored)
    second = mirrored.fail_over(mirrored.wish(MOMENT_MS + 30 * STEP_MS)).run
    with pytest.raises(BadInput, match=f"failover {second} came after it"):
        mirrored.roll_back(first)
    mirrored.roll_back(second)
    assert held(mirrored) == middle
    mirrored.roll_back(first)
    assert held(mirrored) == before

    def meanwhile(_sheet: object) -> None:
        mirrored.commit("behind", {0: 6})

    with pytest.raises(StalePlan, match="after the fence"):
        mirrored.fail_over(mirrored.wish(None), consent=meanwhile)
    given_up = mirrored.journal()[-1].run
    with pytest.raises(BadInput, match="was given up before it moved anything"):
        mirrored.roll_back(given_up)


def die_behind_a_fence(stage: FailoverStage) -> None:
    source, target = stage.source.endpoint(), stage.target.endpoint()

    async def work(clusters: Clusters, _: object) -> None:
        async with fenced(stage.flow, clusters, target, Reason(by="amy", because="she adopts")):
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(set_positions, "_lower", lambda *_: None)  # it never comes to that
        run_command(stage.flow, source, target, "adoption", work)


def test_neither_ops_fence_nor_a_killed_commands_goes_with_a_rollback(mirrored: FailoverStage) -> None:
    """One slot for one fence: what stood below was forgotten, and the flow was open afterwards."""
    target = mirrored.target.endpoint()
    fence_flow(mirrored.flow, target, by="ops", because="nyc takes over")
    with pytest.raises(Killed):
        die_behind_a_fence(mirrored)
    done = mirrored.fail_over(mirrored.wish(MOMENT_MS))
    told = mirrored.roll_back(done.run).fence
    assert told.startswith("its own is lifted; the fence stays: raised by amy")
    with pytest.raises(FlowFenced):
        mirrored.run()
    with open_target(target) as (network, opened):
        state = network.run(lambda: state_on(opened, mirrored.flow.name))
    assert [(fence.by, fence.because) for fence in state.standing] == [
        ("ops", "nyc takes over"),
        ("amy", "she adopts"),
    ]
    for fence in state.standing[::-1]:
        lift_fence(mirrored.flow, target, by="ops", because="over", number=fence.generation)
    mirrored.run()


def test_a_fence_that_was_raised_since_stays(mirrored: FailoverStage) -> None:
    run = mirrored.fail_over(mirrored.wish(MOMENT_MS)).run
    target = mirrored.target.endpoint()
    lift_fence(mirrored.flow, target, by="ops", because="a mistake")
    fence_flow(mirrored.flow, target, by="ops", because="nyc takes over")
    assert "stays: raised by ops, nyc takes over" in mirrored.roll_back(run).fence
    assert mirrored.fence() == "nyc takes over"


def test_a_topic_that_was_deleted_since_doesnt_hold_up_the_rest(mirrored: FailoverStage) -> None:
    mirrored.commit("middle", {0: 7}, on_target=True)
    run = mirrored.fail_over(mirrored.wish(MOMENT_MS)).run
    admin = admin_client(mirrored.target.endpoint())
    for answer in admin.delete_topics([mirrored.mirrored]).values():
        answer.result(30)
    back = mirrored.roll_back(run)
    assert (back.fence, mirrored.fence(), mirrored.roll_back(run).was_done) == ("lifted", None, True)


def test_a_rollback_that_ends_before_it_put_anybody_back_leaves_the_failover_as_it_was(
    mirrored: FailoverStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its word stayed, and as long as consumers read there nobody could end it."""
    wish = mirrored.wish(MOMENT_MS)
    run, moved = mirrored.fail_over(wish).run, held(mirrored)

    async def pressed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as interrupted:
        interrupted.setattr(rollback, "outlive_others", pressed)
        with pytest.raises(KeyboardInterrupt, match=f"nobody was put back; failover {run} stands as before"):
            mirrored.roll_back(run)
    assert (held(mirrored), mirrored.fence()) == (moved, f"failover {run}")
    assert (mirrored.journal()[-1].status, mirrored.journal()[-1].claims) == (Status.DONE, ())
    assert mirrored.fail_over(wish).was_done


@pytest.mark.parametrize("step", ["_claim", "_restore", "_put_all_back", "_lift"])
def test_killed_after_a_step_and_run_again_it_ends_in_the_same_state(
    mirrored: FailoverStage, step: str
) -> None:
    mirrored.commit("middle", {0: 7}, on_target=True)
    before = held(mirrored)
    run = mirrored.fail_over(mirrored.wish(MOMENT_MS)).run
    with killed_after(rollback, step):
        mirrored.roll_back(run)
    assert mirrored.fence() == (None if step == "_lift" else f"failover {run}")
    again = mirrored.roll_back(run)
    assert (again.was_done, again.fence) == (
        (True, "left as it is") if step == "_lift" else (False, "lifted")
    )
    assert (held(mirrored), mirrored.fence()) == (before, None)
    assert mirrored.roll_back(run).was_done
