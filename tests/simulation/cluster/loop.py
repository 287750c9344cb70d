"""Virtual time: coroutines stepped by hand, everything else an event on one heap.

Invariants
    A. One seed, one order of events: nothing here asks a real clock, a thread or the hash of a string.
    B. A process that is frozen isn't stepped, and what happened to it meanwhile happens when it wakes.
       A process that died is never stepped again: its coroutines stay where they were, no cleanup runs.
"""

from __future__ import annotations

import heapq
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from random import Random
from typing import Any, TypeVar

from kafka.future import Future

T = TypeVar("T")

START_MS = 1_700_000_000_000
_MOST_EVENTS = 400_000


class Stuck(Exception):
    """The simulation itself doesn't end."""


class Loop:
    def __init__(self, seed: int | str) -> None:
        self.random = Random(seed)
        self.now = 0.0
        self.events = 0
        self.trace: list[str] | None = None
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._ready: deque[Callable[[], None]] = deque()
        self._number = 0
        self.failure: BaseException | None = None

    def at(self, time: float, act: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._heap, (max(time, self.now), self._number, act))

    def after(self, delay: float, act: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._heap, (self.now + delay, self._number, act))

    def soon(self, act: Callable[[], None]) -> None:
        self._ready.append(act)

    def note(self, line: Callable[[], str]) -> None:
        if self.trace is not None:
            self.trace.append(f"{self.now:10.4f} {line()}")

    def run(self, until: Callable[[], bool], *, deadline: float = float("inf")) -> bool:
        """Whether `until` came true before the deadline, or before nothing was left to happen."""
        ready, heap = self._ready, self._heap
        while not until():
            self.events += 1
            if self.events > _MOST_EVENTS:
                raise Stuck(f"{self.events} events, now {self.now:.1f}")
            if ready:
                ready.popleft()()
            elif heap and heap[0][0] <= deadline:
                self.now, _, act = heapq.heappop(heap)
                act()
            else:
                self.now = max(self.now, min(deadline, heap[0][0] if heap else self.now))
                return False
            if self.failure is not None:
                raise self.failure
        return True

    def pause(self, seconds: float) -> Future:
        done = Future()
        self.after(seconds, lambda: None if done.is_done else done.success(None))
        return done


class Process:
    """What lives, sleeps and dies as one: a worker, a driver, a writer."""

    def __init__(self, loop: Loop, name: str, *, skew_ms: int = 0) -> None:
        self.loop, self.name, self.skew_ms = loop, name, skew_ms
        self.is_alive, self.is_frozen = True, False
        self.missed: list[Callable[[], None]] = []
        self.on_death: list[Callable[[], None]] = []
        self.task: str | None = None
        """What it is working at, for the rules of conduct."""

    def spawn(self, work: Coroutine[Any, Any, Any], *, is_own: bool = True) -> Future:
        """`is_own`: nobody awaits it, so that an error of the code itself has to be reported here."""
        done = Future()
        task = _Task(self, work, done, is_own=is_own)
        self.loop.soon(task.begin)
        return done

    def kill(self) -> None:
        if self.is_alive:
            self.is_alive = False
            self.missed.clear()
            for act in self.on_death:
                act()

    def freeze(self) -> None:
        self.is_frozen = True

    def thaw(self) -> None:
        self.is_frozen = False
        missed, self.missed = self.missed, []
        for act in missed:
            self.loop.soon(act)


class _Task:
    __slots__ = ("_done", "_is_own", "_process", "_work")

    def __init__(
        self, process: Process, work: Coroutine[Any, Any, Any], done: Future, *, is_own: bool
    ) -> None:
        self._process, self._work, self._done, self._is_own = process, work, done, is_own

    def begin(self) -> None:
        self._step(None, None)

    def _step(self, value: Any, error: BaseException | None) -> None:
        process = self._process
        if not process.is_alive:
            return
        if process.is_frozen:
            process.missed.append(lambda: self._step(value, error))
            return
        try:
            waits_for = self._work.send(value) if error is None else self._work.throw(error)
        except StopIteration as stop:
            self._done.success(stop.value)
        except Exception as raised:  # noqa: BLE001 - whoever awaits it gets it
            if self._is_own and isinstance(raised, AssertionError | AttributeError | KeyError | TypeError):
                process.loop.failure = raised  # no trouble that is simulated makes these
            self._done.failure(raised)
        else:
            waits_for.add_callback(self._resume)
            waits_for.add_errback(self._fail)

    def _resume(self, value: Any) -> None:
        self._process.loop.soon(lambda: self._step(value, None))

    def _fail(self, error: BaseException) -> None:
        self._process.loop.soon(lambda: self._step(None, error))


class VirtualNetwork:
    """Stands where `brokers.wire.Network` stands: one process's clock and its way to start coroutines."""

    def __init__(self, process: Process) -> None:
        self.process, self.loop = process, process.loop
        self.selector = self

    def call_soon_with_future(self, work: Any, *arguments: Any) -> Future:
        return self.process.spawn(_invoked(work, arguments), is_own=False)

    async def sleep(self, seconds: float) -> None:
        await self.loop.pause(seconds)

    def monotonic(self) -> float:
        return self.loop.now

    def boottime(self) -> float:
        return self.loop.now

    def time_ms(self) -> int:
        return START_MS + int(self.loop.now * 1000) + self.process.skew_ms

    def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """For tests that have one process only: time goes on until the work is done."""
        done = self.process.spawn(_invoked(work, ()), is_own=False)
        if not self.loop.run(lambda: done.is_done):
            raise Stuck("nothing is left that could finish this")
        if done.exception is not None:
            raise done.exception
        value: T = done.value
        return value

    def close(self) -> None:
        """As `Network` has it."""


async def _invoked(work: Any, arguments: tuple[Any, ...]) -> Any:
    result = work(*arguments)
    while inspect.iscoroutine(result) or hasattr(result, "__await__"):
        result = await result
    return result
