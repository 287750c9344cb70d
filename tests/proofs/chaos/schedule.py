"""Which faults, in which order, and how each strikes: decided by a seed before anything starts."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
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
    NODE_KILL = "kill -9 of one of the target's nodes"
    NODE_FREEZE = "one of the target's nodes frozen, then woken"
    NODE_RESTART = "one of the target's nodes restarted"
    LEADERS_MOVED = "leaders and coordinators of the target moved"
    LINK_SILENT = "the network between the mirror and a broker falls silent"
    LINK_CUT = "the network between the mirror and a broker is cut"


OF_NODES = frozenset({Fault.NODE_KILL, Fault.NODE_FREEZE, Fault.NODE_RESTART, Fault.LEADERS_MOVED})
"""They need a target of several nodes."""
OF_LINKS = frozenset({Fault.LINK_SILENT, Fault.LINK_CUT})
"""They need a link between the mirror and each broker."""
_ONE_NODE = tuple(fault for fault in Fault if fault not in OF_NODES | OF_LINKS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    faults: Mapping[Fault, int]
    records_in_front: int
    records_per_fault: int
    live_per_second: int
    settles: bool = False
    has_short_time_outs: bool = True
    """Half of the runs let their transactions time out after seconds."""
    longest_silence_seconds: float = 15.0
    """Of a link; requests are given up after 30."""

    @property
    def fault_count(self) -> int:
        return sum(self.faults.values())

    @property
    def has_links(self) -> bool:
        return any(self.faults.get(fault) for fault in OF_LINKS)


SMALL = Size(
    faults=dict.fromkeys(_ONE_NODE, 1),
    records_in_front=20_000,
    records_per_fault=11_000,
    live_per_second=100,
)
"""Each kind once, as in all small sizes; `make prove` plays each many times."""
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
        Fault.TARGET_KILL: 1,
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
    faults=dict.fromkeys(_ONE_NODE, 2) | {Fault.EXECUTOR_KILL: 1, Fault.SECOND_RUN: 1, Fault.TARGET_KILL: 4},
    records_in_front=50_000,
    records_per_fault=30_000,
)
_ONE_SUCCESSOR = (Fault.WORKER_KILL, Fault.DRIVER_KILL, Fault.FREEZE_PAST_SUCCESSOR)
"""Faults that leave a transaction open, and one run after them, in time."""
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
    faults=dict.fromkeys(_ONE_SUCCESSOR, 1),
    records_in_front=20_000,
    records_per_fault=11_000,
    live_per_second=100,
)
THREE_NODES_SMALL = Size(
    faults={
        Fault.NODE_KILL: 1,
        Fault.NODE_FREEZE: 1,
        Fault.NODE_RESTART: 1,
        Fault.LEADERS_MOVED: 1,
        Fault.LINK_SILENT: 1,
        Fault.LINK_CUT: 1,
        Fault.WORKER_KILL: 1,
    },
    records_in_front=15_000,
    records_per_fault=9_000,
    live_per_second=100,
)
CHAOS = Size(
    faults={
        Fault.WORKER_KILL: 25,
        Fault.EXECUTOR_KILL: 5,
        Fault.DRIVER_KILL: 20,
        Fault.TARGET_KILL: 8,
        Fault.SOURCE_KILL: 14,
        Fault.TAKE_OVER: 12,
        Fault.SECOND_RUN: 4,
        Fault.FREEZE_PAST_SUCCESSOR: 14,
        Fault.FREEZE_PAST_TIME_OUT: 14,
        Fault.NODE_KILL: 24,
        Fault.NODE_FREEZE: 16,
        Fault.NODE_RESTART: 8,
        Fault.LEADERS_MOVED: 16,
        Fault.LINK_SILENT: 10,
        Fault.LINK_CUT: 10,
    },
    records_in_front=2_200_000,
    records_per_fault=93_000,
    live_per_second=200,
    longest_silence_seconds=45.0,
)
_CHAOS_RECORDS = 20_000_000
"""At least, on the source at the end: an eighth goes into transactions, a quarter of which is aborted."""


def chaos_of(*, faults: int, records: int) -> Size:
    """The full chaos in another size: kinds of fault keep their shares, the largest remainders come first."""
    size = CHAOS
    wished = {fault: count * faults / size.fault_count for fault, count in size.faults.items()}
    whole = {fault: int(count) for fault, count in wished.items()}
    by_remainder = sorted(wished, key=lambda fault: whole[fault] - wished[fault])
    for fault in by_remainder[: faults - sum(whole.values())]:
        whole[fault] += 1
    scale = records / _CHAOS_RECORDS
    return replace(
        size,
        faults={fault: count for fault, count in whole.items() if count},
        records_in_front=max(1_000, int(size.records_in_front * scale)),
        records_per_fault=max(1_000, int(size.records_per_fault * scale * size.fault_count / faults)),
    )


def plan_faults(size: Size, chance: random.Random) -> list[Fault]:
    faults = [fault for fault, count in size.faults.items() for _ in range(count)]
    chance.shuffle(faults)
    return faults


def endless_faults(size: Size, chance: random.Random) -> Iterator[Fault]:
    """One plan after the other."""
    while True:
        yield from plan_faults(size, chance)


def fate_of(seed: int, number: int) -> random.Random:
    """What decides how the fault strikes: the same for every mirror that the schedule is played to."""
    return random.Random(f"{seed}/{number}")
