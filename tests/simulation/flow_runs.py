"""Runs of a flow as Airflow and Spark make them: a driver that plans rounds, workers that run lanes.

`flows.copy` waits for the network in a thread of its own and can't be stepped; its loop is said again here
in a few lines. All that it calls is the product's own code.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kafka.future import Future

from causeway.brokers.log_reader import WireLogReader
from causeway.brokers.target_log import WireTarget
from causeway.core.doubts import LaneDoubts
from causeway.core.errors import (
    CausewayError,
    ClusterUnreachable,
    FlowFenced,
    FlowHeld,
    Superseded,
    UnknownName,
)
from causeway.core.identity import TopicPartition
from causeway.core.known_pairs import KnownPair
from causeway.core.lane_task import LaneResult, LaneTask, LastOwner, Parked
from causeway.core.ports import Beaten, Doubt, Unreachable
from causeway.core.round_plan import last_owners_after, with_last_owners
from causeway.core.run_end import RunEnd
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
from causeway.flows.planning import plan_round, survey_topics
from causeway.flows.remember import remember_beginnings
from tests.simulation.history import Broken
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
        self._doubts = LaneDoubts(self.flow.name)
        self._end = RunEnd()
        self.parked: dict[TopicPartition, Parked] = {}
        self.outcome = ""
        self._fruitless = 0
        self.ended = self.process.spawn(self._run())

    def has_ended(self) -> bool:
        return bool(self.ended.is_done)

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
                self.world.loop.note(partial("{} waits: {}".format, self.holder.name, trouble))
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
        """Whether the run is done, by the product's own rule."""
        flow, source, target = self.flow, self._source, self._target
        await self._connect()
        state = await check_turn(target, flow.name, self.generation)
        landscape = await survey_topics(flow, source, target, state)
        now = self.clock.monotonic()
        waiting = frozenset(tp for tp, until in self._parked_until.items() if until > now)
        known = self._remembered
        plan = await plan_round(flow, self.generation, source, target, landscape, state, known, waiting)
        seen = with_last_owners(plan, self._last_owners)
        self.parked.update(seen.parked)
        self._end = self._end.after_seeing(seen)
        plan = self._end.left_of(seen, self.clock.time_ms())
        if self._end.outcome(plan, 0.0) is not None:
            return True
        ready = self._doubts.told_to(plan, now)
        if plan.tasks and not ready.tasks:
            await self.clock.sleep(self._doubts.seconds_to_next(now))
            return False
        if not plan.tasks:
            await self._be_patient()
            return False
        ready = await remember_beginnings(flow, self.generation, target, landscape, ready, known)
        self._note_starts(ready.tasks)
        results = await self._carry(ready.tasks)
        self._doubts.learn(results, self.clock.monotonic())
        self._last_owners = last_owners_after(self._last_owners, results)
        self._note_parked(results)
        if any(r.outcome in ("superseded", "fenced") for r in results):
            await check_turn(target, flow.name, self.generation)
        for result in results:
            if result.error is not None:
                raise result.error
        if any(r.transactions for r in results) or not any(row.later for r in results for row in r.rows):
            self._fruitless = 0
        else:
            await self._be_patient()
        return False

    def _note_starts(self, tasks: tuple[LaneTask, ...]) -> None:
        try:
            self.world.starts.carried(tasks)
        except Broken as broken:  # raised here it would only end this run
            self.world.loop.failure = broken

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
            worker.process.on_death.append(partial(self.world.loop.after, 0.2, partial(_give_up, told)))
            worker.process.spawn(worker.run(task, told))
            if self.world.repeats_task():
                twin = self.world.idle_worker()
                delay = self.world.loop.random.choice((0.0, 0.05, 0.5))
                self.world.loop.after(delay, partial(_run_unheard, twin, task))
            self.world.loop.after(
                self.world.loop.random.uniform(3, 12),
                partial(_give_up_if_frozen, worker, told),
            )
            self.world.loop.after(60.0, partial(_give_up, told))
            result: LaneResult | None = await told
            if result is not None:
                return result
        return without_rows(task, "doubt", "no worker brought a result")


def _run_unheard(worker: SimWorker, task: LaneTask) -> None:
    """Nobody waits for its result."""
    worker.process.spawn(worker.run(task, Future()))


def _give_up_if_frozen(worker: SimWorker, told: Future) -> None:
    if worker.process.is_frozen:
        _give_up(told)


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
                if fenced:
                    await fence_module.fence_for_people(
                        self._target, self.clock, world.flow_now(), by="test", because="test"
                    )
                else:
                    await self._lift_all()
            except (Unreachable, Doubt, Beaten, ClusterUnreachable, UnknownName):
                self._target.wire.disconnect()
                await self.clock.sleep(0.3)
            else:
                if fenced:
                    world.is_fenced = True
                world.loop.note(lambda: f"fenced: {fenced}")
                return

    async def _lift_all(self) -> None:
        """One that was given up and sent again stands beside the second one."""
        flow, words = self._world.flow_now(), {"by": "test", "because": "test"}
        while standing := (await self._target.flow_state(flow.name)).standing:
            number = standing[0].generation
            await fence_module.write_the_lift(self._target, self.clock, flow, **words, number=number)
