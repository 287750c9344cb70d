"""Drives runs of a flow in virtual time: the product's `FlowRun`, step by step, beside its signs of life."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from causeway.brokers.wire.log_reader import WireLogReader
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.lane_task import LaneTask
from causeway.core.copy.ports import Unreachable
from causeway.core.copy.report import RunOutcome
from causeway.core.copy.target_limits import LimitRaise
from causeway.core.kernel.errors import CausewayError, FlowFenced, FlowHeld, Superseded
from causeway.core.kernel.identity import TopicPartition
from causeway.core.state.parked import Parked, ParkReason
from causeway.core.topics.topic_choice import TopicChoice
from causeway.usecases.copy.administration import SettingsOrError
from causeway.usecases.copy.run import PASSING, FlowRun, RunOptions
from causeway.usecases.copy.run_steps import Administer, CopyLanes, End, Pause
from causeway.usecases.run_lock.ownership import ALIVE_EVERY_SECONDS, RunOwner, write_keepalive
from causeway.usecases.session.both_clusters import Clusters
from tests.simulation.cluster.history import Broken
from tests.simulation.cluster.loop import Process, VirtualNetwork
from tests.simulation.cluster.wire import SimWire
from tests.simulation.workers import carry

if TYPE_CHECKING:
    from tests.simulation.world import World

_MOST_ROUNDS = 200
"""Seeds take 15 at most. A run that doesn't end breaks a promise."""


class NoAdministration:
    """The world makes and grows its topics by itself, and its mirrors refuse no batch for its size."""

    def create_internal_topics(self, existing: frozenset[str]) -> None:
        """They are there."""

    def prepare_topics(self, known: frozenset[str], choice: TopicChoice) -> NoReturn:
        raise AssertionError("a mirror is missing, or smaller than its source")

    def topic_settings(self, topics: Collection[str]) -> Mapping[str, SettingsOrError]:
        return {}

    def raise_limit(self, topic: str, limit: LimitRaise) -> NoReturn:
        raise AssertionError(f"{topic} refuses a batch for its size")


class DrivenRun:
    """One run of the flow. When its process dies, nothing of it is stepped again."""

    def __init__(self, world: World, number: int, *, take_over: bool) -> None:
        self._world, self._name, self._flow = world, f"run {number}", world.flow_now()
        self.process = Process(world.loop, self._name)
        clock: Any = VirtualNetwork(self.process)
        self._clock = clock
        source = WireLogReader(SimWire(world.source, clock, "sf"))
        self._clusters = Clusters(clock, source, WireTarget(SimWire(world.target, clock, "nyc")))
        holder = RunOwner(name=self._name, run_id=f"run-{number}")
        options = RunOptions(holder=holder, run_for_seconds=None, take_over=take_over)
        self._run = FlowRun(self._flow, self._clusters, NoAdministration(), options, self._note)
        self._shows_life = True
        self.outcome = ""
        self.ended = self.process.spawn(self._play())

    @property
    def parked(self) -> dict[TopicPartition, Parked]:
        return {
            tp: Parked(ParkReason(p.parked["reason"]), p.parked["facts"], p.parked["remedy"])
            for tp, p in self._run.report.partitions.items()
            if p.parked
        }

    def has_ended(self) -> bool:
        return bool(self.ended.is_done)

    def _note(self, line: str) -> None:
        self._world.loop.note(lambda: f"{self._name}: {line}")

    async def _play(self) -> None:
        """Without a `finally`: of a process that died no cleanup runs."""
        run = self._run
        try:
            await self._begin()
        except PASSING as trouble:
            self.outcome = f"can't begin: {trouble}"
        except CausewayError as error:
            self.outcome = _named(error)
        else:
            self.process.spawn(self._show_life())
            try:
                outcome: str = await self._go_on()
            except CausewayError as error:
                run.broke_off(error)
                outcome = _named(error)
            self._shows_life = False
            await run.finish()
            self.outcome = outcome
        self._note(f"ends: {self.outcome}")

    async def _begin(self) -> None:
        run = self._run
        await self._clusters.connect()
        await run.look()
        run.create_internal_topics()
        await run.begin()
        self._note(f"begins: generation {run.generation}, {self._flow.lanes} lanes")

    async def _go_on(self) -> RunOutcome:
        run, rounds = self._run, 0
        while True:
            match await run.next_step():
                case Administer(work):
                    work()
                case CopyLanes(tasks):
                    self._note_starts(tasks)
                    run.took(await carry(self._world, self.process, tasks))
                case Pause(seconds):
                    rounds += 1
                    if rounds > _MOST_ROUNDS:
                        self._world.loop.failure = Broken(f"{self._name} doesn't end")
                    await self._clock.sleep(seconds)
                case End(outcome):
                    run.report.outcome = outcome
                    return outcome

    async def _show_life(self) -> None:
        """On a connection of its own, as `Keepalive` does it from a thread."""
        target = WireTarget(SimWire(self._world.target, self._clock, "nyc"))
        while self._shows_life:
            await self._clock.sleep(ALIVE_EVERY_SECONDS)
            try:
                if self._shows_life:
                    await target.wire.connect()
                    await write_keepalive(
                        target, self._clock, self._flow.name, self._run.generation, ended=False
                    )
            except (Unreachable, CausewayError):
                target.wire.disconnect()

    def _note_starts(self, tasks: tuple[LaneTask, ...]) -> None:
        try:
            self._world.starts.carried(tasks)
        except Broken as broken:  # raised here it would only end this run
            self._world.loop.failure = broken


def _named(error: CausewayError) -> str:
    is_turn = isinstance(error, FlowFenced | FlowHeld | Superseded)
    return type(error).__name__ if is_turn else f"failed: {error}"
