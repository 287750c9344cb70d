"""One turn: a contender copies one workload, and is watched from outside.

What counts is what the target's brokers say. The first record is seen when anything was appended, the last
when a `read_committed` reader could read it: whoever writes in transactions gets nothing for free.
"""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.bench.accounting import Account, sample_now
from tests.bench.gauge import Gauge
from tests.bench.peers.contender import Contender, Launch, Scene
from tests.proofs.chaos.parts.processes import Started, start, wait_until

_METER = Path(__file__).with_name("meter.py")
_SAMPLE_SECONDS = 0.2
_QUIET_SECONDS = 3.0
_LONGEST_SECONDS = 1_800.0
_STILL_SECONDS = 120.0
_MANY_PARTITIONS = 100


class TurnFailed(Exception):
    """A contender didn't copy everything, or ended as it shouldn't."""


class StoodStill(TurnFailed):
    """Nothing came any more, for longer than any contender ever pauses; killed."""

    def __init__(self, contender: str, records: int, why: str) -> None:
        super().__init__(f"{contender} stood still at {records:,} records: {why}")
        self.contender, self.records, self.why = contender, records, why


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    workload: str
    contender: str
    records: int
    """On the target at the end."""
    repeated: int
    """Of these, more than the source has."""
    starting_seconds: float
    """From the start of the process to the first record on the target."""
    copying_seconds: float
    """From there to the last record."""
    copying_records: int
    """What arrived in that time."""
    wall_seconds: float
    """From the start of the process to its end; of one that never ends, to the last record."""
    cpu_seconds: float
    """In that time."""
    copying_cpu_seconds: dict[str, float] = field(default_factory=dict)
    """By kind of process, while copying."""
    cpu_by_kind: dict[str, float] = field(default_factory=dict)
    peak_bytes: int
    """All processes together."""
    peak_bytes_by_kind: dict[str, int] = field(default_factory=dict)
    largest_bytes_by_kind: dict[str, int] = field(default_factory=dict)
    """Of a single process."""
    idle_cpu_per_second: float | None = None
    """Of one that never ends, once everything was copied."""

    @property
    def records_per_second(self) -> float:
        return self.copying_records / max(self.copying_seconds, 0.001)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"records_per_second": round(self.records_per_second)}


@dataclass(slots=True)
class _Sight:
    began: float
    account: Account = field(default_factory=Account)
    first_at: float = 0.0
    first_count: int = 0
    last_at: float = 0.0
    last_count: int = 0


def take_turn(contender: Contender, scene: Scene) -> Measurement:
    """:raises TurnFailed: with the end of the contender's log."""
    launch = contender.prepare(scene)
    told = scene.folder / "meter.json"
    command = [*_metered(told), *launch.command]
    with Gauge(scene.target.endpoint(), scene.copies) as gauge:
        sight = _Sight(time.monotonic())
        run = start(contender.name, command, scene.folder / "contender.log", launch.environment)
        try:
            _watch(run, launch, gauge, sight, scene)
            idle = None if launch.ends_by_itself else _idle_cpu_per_second(sight)
            _end(run)
        finally:
            run.kill_all()
        launch.check_log(run.output())
        found = gauge.tally().records
    if found < scene.workload.records or not sight.first_at:
        raise TurnFailed(f"{contender.name}: {found:,} of {scene.workload.records:,} records; {_tail(run)}")
    return _measurement(contender.name, scene, sight, found, launch, told, idle)


def run_alone(launch: Launch, folder: Path, name: str) -> tuple[float, float]:
    """Wall and CPU seconds of a run that has nothing to copy."""
    told = folder / f"{name}.json"
    began = time.monotonic()
    run = start(name, [*_metered(told), *launch.command], folder / f"{name}.log", launch.environment)
    try:
        wait_until(lambda: run.exit_code is not None, f"{name} to end", timeout_seconds=_LONGEST_SECONDS)
    finally:
        run.kill_all()
    if run.exit_code != 0:
        raise TurnFailed(f"{name} ended with {run.exit_code}; {_tail(run)}")
    meter = json.loads(told.read_text(encoding="utf-8"))
    return meter["ended_at"] - began, meter["cpu_seconds"]


def _metered(told: Path) -> list[str]:
    return [sys.executable, "-I", "-S", str(_METER), str(told)]


def _watch(run: Started, launch: Launch, gauge: Gauge, sight: _Sight, scene: Scene) -> None:
    pause = 0.1 if scene.workload.partitions > _MANY_PARTITIONS else 0.02
    sampled_at = 0.0
    while True:
        over = run.exit_code is not None
        _look(gauge, sight)
        now = time.monotonic()
        if not over and now - sampled_at >= _SAMPLE_SECONDS:
            sample_now(sight.account, run.pid, launch.kind_of)
            sampled_at = now
        if launch.ends_by_itself and over:
            if run.exit_code != 0:
                raise TurnFailed(f"{run.name} ended with {run.exit_code}; {_tail(run)}")
            return
        if not launch.ends_by_itself and _is_complete(sight, scene, now):
            return
        if not over and now - max(sight.last_at, sight.began) > _STILL_SECONDS:
            raise StoodStill(run.name, sight.last_count, _last_error(run))
        if over or now - sight.began > _LONGEST_SECONDS:
            raise TurnFailed(f"{run.name} stopped at {sight.last_count:,} records; {_tail(run)}")
        time.sleep(pause)


def _is_complete(sight: _Sight, scene: Scene, now: float) -> bool:
    return sight.last_count >= scene.workload.records and now - sight.last_at >= _QUIET_SECONDS


def _look(gauge: Gauge, sight: _Sight) -> None:
    if not sight.first_at:
        count = gauge.end()
        if count:
            sight.first_at, sight.first_count = time.monotonic(), count
    if sight.first_at:
        count = gauge.stable_end()
        if count != sight.last_count:
            sight.last_at, sight.last_count = time.monotonic(), count


def _idle_cpu_per_second(sight: _Sight) -> float:
    """Over the time in which nothing came any more."""
    begin, end = sight.last_at + _SAMPLE_SECONDS, sight.account.samples[-1].at
    return sum(sight.account.cpu_between(begin, end).values()) / (end - begin)


def _end(run: Started) -> None:
    if run.exit_code is None:
        run.send(signal.SIGTERM)
        wait_until(lambda: run.exit_code is not None, f"{run.name} to end", timeout_seconds=60)


def _measurement(
    name: str, scene: Scene, sight: _Sight, found: int, launch: Launch, told: Path, idle: float | None
) -> Measurement:
    account, wanted = sight.account, scene.workload.records
    if launch.ends_by_itself:
        meter = json.loads(told.read_text(encoding="utf-8"))
        wall, cpu = meter["ended_at"] - sight.began, account.whole_cpu_seconds(meter["cpu_seconds"])
    else:
        wall = sight.last_at - sight.began
        cpu = sum(account.cpu_between(sight.began, sight.last_at).values())
    return Measurement(
        workload=scene.workload.name,
        contender=name,
        records=found,
        repeated=found - wanted,
        starting_seconds=sight.first_at - sight.began,
        copying_seconds=sight.last_at - sight.first_at,
        copying_records=max(found - sight.first_count, 1),
        wall_seconds=wall,
        cpu_seconds=cpu,
        copying_cpu_seconds=account.cpu_between(sight.first_at, sight.last_at),
        cpu_by_kind=account.cpu_seconds(),
        peak_bytes=account.peak_bytes(),
        peak_bytes_by_kind=account.peak_bytes_by_kind(),
        largest_bytes_by_kind=account.largest_bytes_by_kind(),
        idle_cpu_per_second=idle,
    )


def _last_error(run: Started) -> str:
    errors = re.findall(r"Error: ([A-Z_]+)", run.output())
    return errors[-1] if errors else "its log says no error"


def _tail(run: Started) -> str:
    return f"its log ends: {run.output()[-1500:]}"
