"""Which faults, in which order: decided by a seed before anything starts."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum


class Fault(StrEnum):
    WORKER_KILL = "kill -9 of Spark's Python workers"
    EXECUTOR_KILL = "kill -9 of an executor's JVM"
    DRIVER_KILL = "kill -9 of the Spark driver"
    TARGET_KILL = "kill -9 of the target broker"
    SOURCE_KILL = "kill -9 of the source broker"
    TAKE_OVER = "a second run that takes over"
    SECOND_RUN = "a second run that may not take over"
    FREEZE_PAST_SUCCESSOR = "workers frozen past their successor's commits, then woken"
    FREEZE_PAST_TIME_OUT = "workers frozen past the transaction time-out, then woken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    faults: Mapping[Fault, int]
    records_in_front: int
    records_per_fault: int
    live_per_second: int
    settles: bool = False
    has_short_time_outs: bool = True
    """Half of the runs let their transactions time out after seconds."""

    @property
    def fault_count(self) -> int:
        return sum(self.faults.values())


SMALL = Size(
    faults=dict.fromkeys(Fault, 1) | {Fault.WORKER_KILL: 2, Fault.DRIVER_KILL: 2, Fault.TARGET_KILL: 2},
    records_in_front=20_000,
    records_per_fault=11_000,
    live_per_second=100,
)
FULL = Size(
    faults={
        Fault.WORKER_KILL: 18,
        Fault.EXECUTOR_KILL: 5,
        Fault.DRIVER_KILL: 16,
        Fault.TARGET_KILL: 18,
        Fault.SOURCE_KILL: 13,
        Fault.TAKE_OVER: 9,
        Fault.SECOND_RUN: 3,
        Fault.FREEZE_PAST_SUCCESSOR: 11,
        Fault.FREEZE_PAST_TIME_OUT: 12,
    },
    records_in_front=500_000,
    records_per_fault=45_000,
    live_per_second=200,
)
OLD_BROKER = Size(
    faults={
        Fault.WORKER_KILL: 1,
        Fault.DRIVER_KILL: 1,
        Fault.TARGET_KILL: 2,
        Fault.TAKE_OVER: 1,
        Fault.FREEZE_PAST_SUCCESSOR: 1,
        Fault.FREEZE_PAST_TIME_OUT: 1,
    },
    records_in_front=10_000,
    records_per_fault=8_000,
    live_per_second=100,
)
OLD_BROKER_FULL = replace(
    OLD_BROKER,
    faults=dict.fromkeys(Fault, 2) | {Fault.EXECUTOR_KILL: 1, Fault.SECOND_RUN: 1, Fault.TARGET_KILL: 4},
    records_in_front=50_000,
    records_per_fault=30_000,
)
_ONE_SUCCESSOR = (Fault.WORKER_KILL, Fault.DRIVER_KILL, Fault.FREEZE_PAST_SUCCESSOR)
"""Faults that leave a transaction open, and one run behind them, in time."""
SETTLING = Size(
    faults=dict.fromkeys(_ONE_SUCCESSOR, 30),
    records_in_front=500_000,
    records_per_fault=50_000,
    live_per_second=200,
    settles=True,
    has_short_time_outs=False,
)
SMALL_SETTLING = replace(
    SETTLING,
    faults=dict.fromkeys(_ONE_SUCCESSOR, 2),
    records_in_front=20_000,
    records_per_fault=11_000,
    live_per_second=100,
)


def plan_faults(size: Size, chance: random.Random) -> list[Fault]:
    faults = [fault for fault, count in size.faults.items() for _ in range(count)]
    chance.shuffle(faults)
    return faults
