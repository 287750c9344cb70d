"""What Causeway costs when there is nothing to do: a whole run, and one round of a run that follows."""

from __future__ import annotations

import time
from dataclasses import dataclass

from causeway.config.flows_file.load import load_flows
from causeway.core.copy.lane_task import LaneResult
from causeway.usecases.copy import run
from causeway.usecases.copy.blocking_driver import copy_flow
from causeway.usecases.copy.run import RunOptions
from causeway.usecases.run_lock.ownership import RunOwner
from tests.bench.peers.causeway_spark import CausewayOnSpark, flow_name, flows_file
from tests.bench.peers.contender import Scene
from tests.bench.turn import TurnFailed, run_alone


@dataclass(frozen=True, slots=True, kw_only=True)
class Idleness:
    workload: str
    partitions: int
    run_wall_seconds: float
    run_cpu_seconds: float
    rounds: int
    round_wall_seconds: float
    """Without the pause after it."""
    round_cpu_seconds: float


def measure_idleness(scene: Scene, *, followed_seconds: float) -> Idleness:
    """After a turn of Causeway that has copied everything, before it is swept away."""
    wall, cpu = run_alone(CausewayOnSpark().prepare(scene), scene.folder, "no-op")
    rounds, seconds, used = _follow(scene, followed_seconds)
    return Idleness(
        workload=scene.workload.name,
        partitions=scene.workload.partitions,
        run_wall_seconds=wall,
        run_cpu_seconds=cpu,
        rounds=rounds,
        round_wall_seconds=seconds / rounds - run._IDLE_SECONDS,
        round_cpu_seconds=used / rounds,
    )


def _follow(scene: Scene, followed_seconds: float) -> tuple[int, float, float]:
    """Rounds, wall and CPU seconds of a run in this process: a round without work never gets to Spark."""
    flow = load_flows(flows_file(scene)).flow(flow_name(scene))
    moments: list[tuple[float, float]] = []

    def count() -> bool:
        moments.append((time.monotonic(), time.process_time()))
        return False

    options = RunOptions(
        holder=RunOwner(name="bench", run_id="bench idle"),
        run_for_seconds=followed_seconds,
        is_interrupted=count,
    )
    source, target = scene.source.endpoint(), scene.target.endpoint()
    copy_flow(flow, source, target, _refuse_work, options, lambda _: None)
    (began, used_before), (ended, used_after) = moments[0], moments[-1]
    return len(moments) - 1, ended - began, used_after - used_before


def _refuse_work(tasks: object) -> list[LaneResult]:
    raise TurnFailed(f"a round that should have had nothing to do: {tasks}")
