"""A run's steps, one by one: what a driver does between them, and what becomes of trouble there."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from causeway.core.copy.lane_task import LaneResult, LaneTask
from causeway.core.kernel.errors import ClusterUnreachable
from causeway.core.model.flow import Flow
from causeway.core.topics.plan import NewTopicPlan
from causeway.core.topics.topic_choice import TopicChoice
from causeway.usecases.copy import blocking_driver
from causeway.usecases.copy.lane.run import run_lane
from causeway.usecases.copy.prepare_topics import TopicOutcome
from causeway.usecases.copy.run import FlowRun, RunOptions
from causeway.usecases.copy.run_steps import Administer, CopyLanes, End, Pause, Step
from causeway.usecases.run_lock.ownership import RunOwner
from causeway.usecases.session.both_clusters import Clusters
from tests.simulation.cases.small_stage import Stage
from tests.simulation.driver import NoAdministration
from tests.simulation.scenario import scenario_of
from tests.simulation.world import World

FLOW = replace(World(scenario_of(0)).flow_now(), lanes=1)


class Admin(NoAdministration):
    """Makes the mirror, once the target answers."""

    def __init__(self, stage: Stage) -> None:
        self._stage, self.asked, self.is_away = stage, 0, False

    def prepare_topics(self, known: frozenset[str], choice: TopicChoice) -> TopicOutcome:  # type: ignore[override]
        self.asked += 1
        if self.is_away:
            raise ClusterUnreachable("cluster nyc", rule="doesn't answer", remedy="wait")
        self._stage.target.create_topic("sf.orders", 1)
        made = (NewTopicPlan("sf.orders", 1),)
        return TopicOutcome(mirrored=(), created=made, grown=(), refused=(), notes=(), is_dry_run=False)


class Scene:
    """A record on the source; the mirror isn't made yet."""

    def __init__(self, flow: Flow = FLOW) -> None:
        self.stage = Stage()
        self.stage.write()
        del self.stage.target.topics["sf.orders"]
        self.stage.target.create_topic(flow.map_topic, 8)
        self.admin, self.said = Admin(self.stage), list[str]()
        self.network, self._source, self._target = self.stage.worker("lane")
        network, source, target = self.stage.worker("run")
        clock: Any = network
        self.clock = network
        options = RunOptions(holder=RunOwner(name="test", run_id="1"), run_for_seconds=None)
        self.run = FlowRun(flow, Clusters(clock, source, target), self.admin, options, self.said.append)
        network.run(self.run.look)
        network.run(self.run.begin)

    def carry(self, tasks: Collection[LaneTask]) -> list[LaneResult]:
        return [
            self.network.run(partial(run_lane, t, self._source, self._target, self.network)) for t in tasks
        ]

    def next_step(self) -> Step:
        return self.clock.run(self.run.next_step)

    def next_but_admin(self) -> Step:
        while isinstance(step := self.next_step(), Administer):
            step.work()
        return step


def test_a_run_asks_admin_clients_and_has_lanes_carried_between_its_steps() -> None:
    scene = Scene()
    step = scene.next_step()
    assert isinstance(step, Administer)
    assert scene.admin.asked == 0, "inside of a step nothing is asked that blocks"
    step.work()
    assert scene.said == ["f: created sf.orders with 1 partition"]
    step = scene.next_but_admin()  # the topics' settings
    assert isinstance(step, CopyLanes)
    scene.run.took(scene.carry(step.tasks))
    assert scene.next_step() == Pause(0.0)
    assert scene.next_step() == End("caught up")
    assert (scene.run.report.records, scene.run.report.lag, scene.admin.asked) == (1, 0, 1)


def test_what_an_admin_client_cant_do_now_is_asked_again_after_a_pause() -> None:
    scene = Scene()
    scene.admin.is_away = True
    assert [scene.next_but_admin() for _ in range(3)] == [Pause(0.1), Pause(0.2), Pause(0.4)]
    assert scene.admin.asked == 3
    assert scene.said == ["f: waiting: cluster nyc: doesn't answer; wait"], "once"
    scene.admin.is_away = False
    assert isinstance(scene.next_but_admin(), CopyLanes)


def test_a_run_loses_patience_with_admin_clients_too() -> None:
    scene = Scene()
    scene.admin.is_away = True
    scene.next_but_admin()
    scene.clock.run(lambda: scene.clock.sleep(91))
    with pytest.raises(
        ClusterUnreachable, match="nothing could be copied for 90 s: cluster nyc: doesn't answer"
    ):
        scene.next_but_admin()


def test_the_blocking_driver_asks_between_rounds_whether_it_is_interrupted() -> None:
    scene, asked = Scene(), list[int]()
    network: Any = scene.clock

    def is_interrupted() -> bool:
        asked.append(scene.run.report.rounds)
        return False

    outcome = blocking_driver._go_on_until_the_end(scene.run, network, scene.carry, is_interrupted)
    assert (outcome, asked) == ("caught up", [0, 1])


def test_a_run_that_is_interrupted_aborts_what_lanes_left_open_and_signs_off() -> None:
    scene = Scene()
    network: Any = scene.clock
    with pytest.raises(KeyboardInterrupt) as end:
        blocking_driver._go_on_until_the_end(scene.run, network, scene.carry, lambda: True)
    scene.run.broke_off(end.value)
    scene.clock.run(scene.run.finish)
    claimed = scene.stage.target.coordinator.known
    state = scene.clock.run(lambda: scene.run._clusters.flow_state(FLOW))
    assert (scene.run.report.outcome, list(claimed), state.running) == (
        "interrupted",
        [FLOW.transactional_id(0)],
        None,
    )
