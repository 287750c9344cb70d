"""Runs of a flow as Airflow and Spark make them: a driver that plans rounds, workers that run lanes.

`flows.copy` waits for the network in a thread of its own and can't be stepped; its loop is said again here
in a few lines. All that it calls is the product's own code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka.future import Future

from causeway.brokers.log_reader import WireLogReader
from causeway.brokers.target_log import WireTarget
from causeway.core.errors import CausewayError, ClusterUnreachable, FlowFenced, FlowHeld, Superseded
from causeway.core.flow_state import KnownPair, pair_record
from causeway.core.identity import TopicPartition
from causeway.core.lane_task import LaneResult, LaneTask, LastOwner
from causeway.core.naming import FLOWS_TOPIC
from causeway.core.ports import Beaten, Doubt, Unreachable
from causeway.core.round_plan import last_owners_after, with_last_owners
from causeway.flows import fence as fence_module
from causeway.flows.lane.run import run_lane
from causeway.flows.lane_worker import without_rows
from causeway.flows.ownership import (
    ALIVE_EVERY_SECONDS,
    Holder,
    begin_run,
    check_turn,
    refuse_fenced,
    sign_of_life,
)
from causeway.flows.planning import Landscape, pairs_to_remember, plan_round, survey_topics
from tests.simulation.loop import Process, VirtualNetwork
from tests.simulation.wire import SimWire

if TYPE_CHECKING:
    from tests.simulation.world import World

_PASSING = (Unreachable, Doubt, Beaten, ClusterUnreachable)
_PARKED_AGAIN_SECONDS = 30.0
_MOST_ROUNDS = 60
_MOST_TRIES = 4


class SimWorker:
    """One Python worker of an executor, with `flows.lane_worker.LaneWorker`'s duties."""

    def __init__(self, world: World, name: str) -> None:
        random = world.loop.random
        self.process = Process(world.loop, name, skew_ms=random.choice((0, 0, -7_200_000, 90_000)))
        self.network = VirtualNetwork(self.process)
        self._world = world
        self._source = WireLogReader(SimWire(world.source, self.network, "sf"))
        self._target = WireTarget(SimWire(world.target, self.network, "nyc"))
        self.is_busy = self.is_taken = False

    async def run(self, task: LaneTask, told: Future) -> None:
        world = self._world
        self.is_busy = True
        world.started_tasks += 1
        label = self.process.task = f"task {world.started_tasks} on {self.process.name}"
        world.conduct.started(label, task.last_owner.producer if task.last_owner else None)
        world.loop.note(lambda: f"{label}: lane {task.lane} generation {task.generation}")
        try:
            await self._source.wire.connect()
            await self._target.wire.connect()
            result = await run_lane(task, self._source, self._target, self.network)
        except (ClusterUnreachable, Unreachable) as trouble:
            result = without_rows(task, "doubt", str(trouble))
        except CausewayError as error:
            result = without_rows(task, "failed", str(error), error)
        if result.outcome != "done":
            self._source.wire.disconnect()
            self._target.wire.disconnect()
        world.settled += sum(row.settled_records for row in result.rows)
        self.process.task = None
        self.is_busy = self.is_taken = False
        world.loop.note(
            lambda: (
                f"{label}: {result.outcome} {result.why} {[str(r.parked or r.later) for r in result.rows]}"
            )
        )
        if not told.is_done:
            told.success(result)


class FlowRun:
    """One run: `flows.copy._Run` with the same steps in the same order."""

    def __init__(self, world: World, number: int, *, take_over: bool) -> None:
        self.world, self.flow = world, world.flow_now()
        self.process = Process(world.loop, f"run {number}")
        self.clock = VirtualNetwork(self.process)
        self.holder = Holder(name=f"run {number}", run_id=f"run-{number}")
        self._take_over = take_over
        self._source = WireLogReader(SimWire(world.source, self.clock, "sf"))
        self._target = WireTarget(SimWire(world.target, self.clock, "nyc"))
        self._parked_until: dict[TopicPartition, float] = {}
        self._remembered: dict[str, KnownPair] = {}
        self._last_owners: dict[int, LastOwner] = {}
        self.parked: dict[TopicPartition, object] = {}
        self.outcome = ""
        self._fruitless = 0
        self.ended = self.process.spawn(self._run())

    async def _run(self) -> None:
        try:
            self.outcome = await self._begin_and_go_on()
        except (FlowFenced, FlowHeld, Superseded) as turn:
            self.outcome = type(turn).__name__
        except _PASSING as trouble:
            self.outcome = f"can't begin: {trouble}"
        except CausewayError as error:
            self.outcome = f"failed: {error}"
        self.world.loop.note(lambda: f"{self.holder.name} ends: {self.outcome}")

    async def _connect(self) -> None:
        await self._source.wire.connect()
        await self._target.wire.connect()

    async def _begin_and_go_on(self) -> str:
        target, flow = self._target, self.flow
        await self._connect()
        state = await target.flow_state(flow.name)
        refuse_fenced(flow.name, state)
        self._remembered = dict(state.pairs)
        self.generation = await begin_run(
            target, self.clock, flow, self.holder, take_over=self._take_over, say=lambda _: None
        )
        self.world.loop.note(
            lambda: f"{self.holder.name} begins: generation {self.generation}, {flow.lanes} lanes"
        )
        state = await target.flow_state(flow.name)
        if state.lanes_varied:
            await fence_module.claim_all_lanes(target, self.clock, flow, state)
        self.process.spawn(self._live())
        for _ in range(_MOST_ROUNDS):
            try:
                if await self._round():
                    await self._say_ended()
                    return "caught up"
            except _PASSING as trouble:
                self.world.loop.note(lambda t=trouble: f"{self.holder.name} waits: {t}")
                if not await self._be_patient():
                    return "patience ended"
        return "rounds ended"

    async def _live(self) -> None:
        target = WireTarget(SimWire(self.world.target, self.clock, "nyc"))
        while not self.outcome:
            await self.clock.sleep(ALIVE_EVERY_SECONDS)
            try:
                if not self.outcome:
                    await target.wire.connect()
                    await sign_of_life(target, self.clock, self.flow.name, self.generation, ended=False)
            except (Unreachable, CausewayError):
                target.wire.disconnect()

    async def _say_ended(self) -> None:
        try:
            await self._connect()
            await sign_of_life(self._target, self.clock, self.flow.name, self.generation, ended=True)
        except (Unreachable, CausewayError):
            return

    async def _round(self) -> bool:
        """Whether everything is copied."""
        flow, source, target = self.flow, self._source, self._target
        await self._connect()
        state = await check_turn(target, flow.name, self.generation)
        landscape = await survey_topics(flow, source, target, state)
        now = self.clock.monotonic()
        waiting = frozenset(tp for tp, until in self._parked_until.items() if until > now)
        plan = await plan_round(flow, self.generation, source, target, landscape, self._remembered, waiting)
        plan = with_last_owners(plan, self._last_owners)
        self.parked.update(plan.parked)
        if not plan.tasks:
            if plan.later:
                await self._be_patient()
                return False
            return True
        await self._remember_pairs(landscape)
        results = await self._carry(plan.tasks)
        self._last_owners = last_owners_after(self._last_owners, results)
        self._note_parked(results)
        if any(r.outcome in ("superseded", "fenced") for r in results):
            await check_turn(target, flow.name, self.generation)
        for result in results:
            if result.error is not None:
                raise result.error
        if any(r.transactions for r in results) or not any(
            r.why or any(row.later for row in r.rows) for r in results
        ):
            self._fruitless = 0
        else:
            await self._be_patient()
        return False

    async def _remember_pairs(self, landscape: Landscape) -> None:
        for name, pair in pairs_to_remember(self.flow, landscape, self._remembered).items():
            key, value = pair_record(self.flow.name, name, pair)
            await self._target.append_plain(FLOWS_TOPIC, key, value)
            self._remembered[name] = pair

    def _note_parked(self, results: list[LaneResult]) -> None:
        for row in (row for result in results for row in result.rows):
            if row.parked is not None and row.later:
                continue
            if row.parked is not None:
                self._parked_until[row.source] = self.clock.monotonic() + _PARKED_AGAIN_SECONDS
                self.parked[row.source] = row.parked
            else:
                self._parked_until.pop(row.source, None)
                self.parked.pop(row.source, None)

    async def _be_patient(self) -> bool:
        self._fruitless += 1
        self._source.wire.disconnect()
        self._target.wire.disconnect()
        await self.clock.sleep(min(0.05 * 2**self._fruitless, 5.0))
        return self._fruitless < 20

    async def _carry(self, tasks: tuple[LaneTask, ...]) -> list[LaneResult]:
        running = [self.process.spawn(self._try(task)) for task in tasks]
        return [await each for each in running]

    async def _try(self, task: LaneTask) -> LaneResult:
        """A task is tried again if its worker dies, or is silent for so long that Spark gives it up."""
        for _ in range(_MOST_TRIES):
            worker = self.world.idle_worker()
            told = Future()
            worker.process.on_death.append(lambda t=told: self.world.loop.after(0.2, lambda: _give_up(t)))
            worker.process.spawn(worker.run(task, told))
            if self.world.repeats_task():
                twin = self.world.idle_worker()
                delay = self.world.loop.random.choice((0.0, 0.05, 0.5))
                self.world.loop.after(delay, lambda t=twin: t.process.spawn(t.run(task, Future())))
            self.world.loop.after(
                self.world.loop.random.uniform(3, 12),
                lambda w=worker, t=told: w.process.is_frozen and _give_up(t),
            )
            self.world.loop.after(60.0, lambda t=told: _give_up(t))
            result = await told
            if result is not None:
                return result
        return without_rows(task, "doubt", "no worker brought a result")


def _give_up(told: Future) -> None:
    if not told.is_done:
        told.success(None)


class Fencing:
    """`causeway fence` and, a while later, `causeway lift`."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.process = Process(world.loop, "fence")
        self.clock = VirtualNetwork(self.process)
        self._target = WireTarget(SimWire(world.target, self.clock, "nyc"))

    async def turn(self, *, fenced: bool) -> None:
        world = self._world
        for _ in range(100):
            try:
                await self._target.wire.connect()
                if not fenced:
                    world.is_fenced = False
                write = fence_module.write_and_claim if fenced else fence_module.write_the_lift
                await write(self._target, self.clock, world.flow_now(), by="test", because="test")
            except (Unreachable, Doubt, Beaten, ClusterUnreachable):
                self._target.wire.disconnect()
                await self.clock.sleep(0.3)
            else:
                if fenced:
                    world.is_fenced = True
                world.loop.note(lambda: f"fenced: {fenced}")
                return
