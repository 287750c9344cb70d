"""A command that sleeps while its fence is lifted writes nothing when it wakes: the mirror has gone on since.

A laptop that is closed, a shell that is stopped: somebody sees a fence that nobody seems to need, lifts it,
and lets the mirror go on. What the command had found out by then isn't true any more.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from causeway.core.kernel.errors import BadInput, NotTheOwner
from causeway.core.kernel.identity import TopicPartition
from causeway.core.model.flow import Flow
from causeway.lab.cluster import LabCluster
from causeway.usecases.failback import adopt_all
from causeway.usecases.failback import export as export_module
from causeway.usecases.inspect.flow_status import inspect_flow
from causeway.usecases.repair import set_positions
from causeway.usecases.repair.accept_gap import accept_gap
from causeway.usecases.repair.adopt import adopt_partition
from causeway.usecases.repair.reconcile import reconcile_partition
from causeway.usecases.repair.restart_topic import restart_topic
from causeway.usecases.repair.set_positions import Reason
from causeway.usecases.run_lock.fence import fence_flow, lift_fence
from causeway.usecases.session.both_clusters import open_target, state_on
from tests.integration.failback.stage import FailbackStage, values
from tests.proofs.gaps.loss_cases import append, shown
from tests.support.inline_flow import create_topic, delete_records, delete_topic
from tests.support.janitor import forget_positions
from tests.support.meanwhile import meanwhile
from tests.support.mirroring import Mirror, make_flow

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("nobody_is_held_up")]
WHY = Reason(by="a test", because="it is one")
Command = Callable[[], object]


@pytest.fixture
def mirror(sf: LabCluster, nyc: LabCluster) -> Iterator[Mirror]:
    name = uuid.uuid4().hex[:8]
    made = Mirror(make_flow(f"sleeps_{name}", f"sleeps-{name}", lanes=1), sf, nyc)
    create_topic(sf, topic_of(made))
    yield made
    made.close()


def topic_of(mirror: Mirror) -> str:
    return mirror.flow.name.replace("_", "-")


def lift_all(flow: Flow, target: LabCluster) -> None:
    """As a colleague does who wants the flow to go on."""
    try:
        lift_fence(flow, target.endpoint(), by="a colleague", because="nobody is there")
    except BadInput:
        with open_target(target.endpoint()) as (network, opened):
            standing = network.run(lambda: state_on(opened, flow.name)).standing
        for fence in standing:
            number = fence.generation
            lift_fence(flow, target.endpoint(), by="a colleague", because="nobody is there", number=number)


class Sleep:
    """At a step of the test's choosing, once; meanwhile a colleague types a command."""

    def __init__(self, patch: pytest.MonkeyPatch, where: Any, step: str, command: Command) -> None:
        self.woke = False
        self._command, self._awake = command, getattr(where, step)

        async def asleep(*given: Any, **named: Any) -> Any:
            done = await self._awake(*given, **named) if step == "claim_all_lanes" else None
            if not self.woke:
                self.woke = True
                meanwhile(self._command)
            return done if step == "claim_all_lanes" else await self._awake(*given, **named)

        patch.setattr(where, step, asleep)


def adopts(mirror: Mirror, patch: pytest.MonkeyPatch) -> tuple[Command, Command]:
    topic = topic_of(mirror)
    append(mirror.source, topic, "first", 40)
    mirror.run()
    append(mirror.source, topic, "second", 60)

    def command() -> object:
        at = TopicPartition(topic, 0)
        return adopt_partition(mirror.flow, mirror.source.endpoint(), mirror.target.endpoint(), at, 40, WHY)

    def colleague() -> object:
        lift_all(mirror.flow, mirror.target)
        return mirror.run()

    return command, colleague


def accepts_a_gap(mirror: Mirror, patch: pytest.MonkeyPatch) -> tuple[Command, Command]:
    topic = topic_of(mirror)
    append(mirror.source, topic, "first", 30)
    mirror.run()
    append(mirror.source, topic, "second", 40)
    delete_records(mirror.source, topic, 40)

    def command() -> object:
        ends = mirror.source.endpoint(), mirror.target.endpoint()
        return accept_gap(mirror.flow, *ends, TopicPartition(topic, 0), 30, 40, WHY)

    def colleague() -> object:
        lift_all(mirror.flow, mirror.target)
        command()
        return mirror.run()

    return command, colleague


def reconciles(mirror: Mirror, patch: pytest.MonkeyPatch) -> tuple[Command, Command]:
    topic = topic_of(mirror)
    append(mirror.source, topic, "first", 40)
    mirror.run()
    append(mirror.source, topic, "second", 60)
    forget_positions(mirror.target, mirror.flow.group)

    def command() -> object:
        ends = mirror.source.endpoint(), mirror.target.endpoint()
        return reconcile_partition(mirror.flow, *ends, TopicPartition(topic, 0), WHY)

    def colleague() -> object:
        lift_all(mirror.flow, mirror.target)
        return mirror.run()

    return command, colleague


def restarts(mirror: Mirror, patch: pytest.MonkeyPatch) -> tuple[Command, Command]:
    topic = topic_of(mirror)
    append(mirror.source, topic, "first", 30)
    mirror.run()
    delete_topic(mirror.source, topic)
    create_topic(mirror.source, topic)
    append(mirror.source, topic, "second", 50)

    def command() -> object:
        return restart_topic(mirror.flow, mirror.source.endpoint(), mirror.target.endpoint(), topic, WHY)

    def colleague() -> object:
        lift_all(mirror.flow, mirror.target)
        command()
        return mirror.run()

    return command, colleague


@pytest.mark.parametrize(
    "step", ["claim_all_lanes", "_commit_lane"], ids=["behind its fence", "before its claim"]
)
@pytest.mark.parametrize("scene", [adopts, accepts_a_gap, reconciles, restarts])
def test_a_command_that_slept_while_its_fence_was_lifted_sets_nothing(
    mirror: Mirror,
    scene: Callable[[Mirror, pytest.MonkeyPatch], tuple[Command, Command]],
    step: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = topic_of(mirror)
    command, colleague = scene(mirror, monkeypatch)
    with monkeypatch.context() as patch:
        sleep = Sleep(patch, set_positions, step, colleague)
        with pytest.raises(NotTheOwner, match="a colleague"):
            command()
        assert sleep.woke

    append(mirror.source, topic, "last", 20)
    assert not mirror.run().parked
    there, here = shown(mirror.target, f"sf.{topic}"), shown(mirror.source, topic)
    assert there[-len(here) :] == here, "in order, and nothing is left out"
    assert len(set(there)) == len(there), "nothing is there twice"
    ends = mirror.source.endpoint(), mirror.target.endpoint()
    assert inspect_flow(mirror.flow, *ends).state.fence is None


def test_growth_before_the_fence_is_the_flows_own_and_no_reason_to_refuse(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that works while somebody adopts: what it committed by then is there, and goes on from there."""
    topic = topic_of(mirror)
    append(mirror.source, topic, "first", 40)
    mirror.run()
    append(mirror.source, topic, "second", 60)
    at = TopicPartition(topic, 0)
    ends = mirror.source.endpoint(), mirror.target.endpoint()
    write = set_positions._CommandFence.write

    async def after_a_run(*given: Any) -> Any:
        meanwhile(mirror.run)
        return await write(*given)

    monkeypatch.setattr(set_positions._CommandFence, "write", after_a_run)
    adopt_partition(mirror.flow, *ends, at, 100, WHY, even_though_healthy=True)

    append(mirror.source, topic, "last", 20)
    assert not mirror.run().parked
    assert shown(mirror.target, f"sf.{topic}") == shown(mirror.source, topic)


def test_who_writes_to_the_mirror_after_the_fence_is_not_passed_over(
    mirror: Mirror, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = topic_of(mirror)
    command, _ = adopts(mirror, monkeypatch)

    def somebody_writes() -> None:
        append(mirror.target, f"sf.{topic}", "foreign", 1)

    Sleep(monkeypatch, set_positions, "_commit_lane", somebody_writes)
    with pytest.raises(NotTheOwner, match="somebody writes there"):
        command()


# Failback: what it writes besides positions, and its own adoptions.


@pytest.fixture
def parted(sf: LabCluster, nyc: LabCluster, topic_name: Callable[..., str]) -> Iterator[FailbackStage]:
    stage, dice = FailbackStage(sf, nyc, topic_name("failback"), keeps_names=True), random.Random(5)
    stage.write(sf, 60, dice)
    stage.forward.run()
    stage.write(sf, 20, dice)
    stage.fail_over()
    stage.write(nyc, 40, dice)
    yield stage
    stage.close()


def there_twice(stage: FailbackStage) -> list[str]:
    """Values that a reader of one of the two clusters meets twice."""
    found: list[str] = []
    for cluster in (stage.old, stage.new):
        for log in stage.log(cluster, stage.stem).values():
            seen = values(log)
            found += [value for value in set(seen) if seen.count(value) > 1]
    return found


def test_a_failback_that_slept_while_its_adoption_was_lifted_adopts_nothing(
    parted: FailbackStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A colleague finishes it, and the way back goes on; then the first one wakes."""

    def colleague() -> None:
        lift_all(parted.reverse.flow, parted.old)
        parted.resume()
        parted.reverse.run()

    with monkeypatch.context() as patch:
        sleep = Sleep(patch, set_positions, "_commit_lane", colleague)
        with pytest.raises(NotTheOwner):
            parted.resume()
        assert sleep.woke
    parted.write(parted.new, 20, random.Random(8))
    parted.reverse.run()
    assert there_twice(parted) == []
    for number, log in parted.log(parted.old, parted.stem).items():
        new = values(parted.log(parted.new, parted.stem)[number])
        assert [value for value in values(log) if value in new] == new


@pytest.mark.parametrize("what", ["export", "map"])
def test_a_failback_whose_fence_was_lifted_writes_neither_export_nor_map(
    parted: FailbackStage, what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = {"export": export_module, "map": adopt_all}[what]
    cut = {
        "export": (parted.forward.flow, parted.new),
        "map": (parted.reverse.flow, parted.old),
    }[what]
    claimed = where.PortionWriter.claimed
    woke: list[bool] = []

    class Asleep:
        @staticmethod
        async def claimed(*given: Any) -> Any:
            woke.append(True)
            meanwhile(lambda: lift_all(*cut))
            return await claimed(*given)

    with monkeypatch.context() as patch:
        patch.setattr(where, "PortionWriter", Asleep)
        with pytest.raises(NotTheOwner, match="a colleague"):
            parted.resume()
    assert woke
    fence_flow(*cut[:1], cut[1].endpoint(), by="a test", because="it is to go on")
    assert parted.resume().run.facts["parted"]
    if what == "map":
        lift_all(*cut)
    parted.reverse.run()
    assert there_twice(parted) == []


def test_a_homecoming_whose_fence_was_lifted_adopts_nothing(
    parted: FailbackStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    parted.resume()
    parted.reverse.run()

    def colleague() -> None:
        lift_all(parted.forward.flow, parted.new)
        parted.forward.run()

    with monkeypatch.context() as patch:
        sleep = Sleep(patch, set_positions, "_commit_lane", colleague)
        with pytest.raises(NotTheOwner, match="a colleague"):
            parted.come_home()
        assert sleep.woke
    assert there_twice(parted) == []
    fence_flow(parted.forward.flow, parted.new.endpoint(), by="a test", because="it is to go on")
    assert parted.come_home().moved
    lift_all(parted.forward.flow, parted.new)
    parted.forward.run()
    assert there_twice(parted) == []
