"""The workers of executors, which run lanes, and what Spark does with a task whose worker dies."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kafka.future import Future

from causeway.brokers.wire.log_reader import WireLogReader
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.lane_task import LaneResult, LaneTask
from causeway.core.copy.ports import Unreachable
from causeway.core.kernel.errors import CausewayError, ClusterUnreachable
from causeway.usecases.copy.lane.run import run_lane
from causeway.usecases.copy.worker import without_rows
from tests.simulation.cluster.loop import Process, VirtualNetwork
from tests.simulation.cluster.wire import SimWire

if TYPE_CHECKING:
    from tests.simulation.world import World

_MOST_TRIES = 4


class SimWorker:
    """One Python worker of an executor, with `usecases.copy.worker.LaneWorker`'s duties."""

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


async def carry(world: World, driver: Process, tasks: tuple[LaneTask, ...]) -> list[LaneResult]:
    """All side by side, as one job of Spark."""
    running = [driver.spawn(_try(world, task)) for task in tasks]
    return [await each for each in running]


async def _try(world: World, task: LaneTask) -> LaneResult:
    """A task is tried again if its worker dies, or is silent for so long that Spark gives it up."""
    loop = world.loop
    for _ in range(_MOST_TRIES):
        worker = world.idle_worker()
        told = Future()
        worker.process.on_death.append(partial(loop.after, 0.2, partial(_give_up, told)))
        worker.process.spawn(worker.run(task, told))
        if world.repeats_task():
            twin = world.idle_worker()
            loop.after(loop.random.choice((0.0, 0.05, 0.5)), partial(_run_unheard, twin, task))
        loop.after(loop.random.uniform(3, 12), partial(_give_up_if_frozen, worker, told))
        loop.after(60.0, partial(_give_up, told))
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
