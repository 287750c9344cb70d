"""How Ctrl-C and SIGTERM end a command: noted when they come, obeyed at the next safe place.

A signal's exception can strike anywhere: in an import, in a callback of librdkafka, in a task of an event
loop, between the making of a thing and the block that deletes it, in the clean-up itself. There it is
swallowed, becomes another error, or leaves what nobody names. So the handler only takes note, and
`check` raises the KeyboardInterrupt where nothing is half done: between two steps of the event loop, between
two polls of a client. What waits long, and takes an exception well, stands in `at_once`; what may not be cut
in two stands in `whole`. Where none of these comes within some seconds, it is raised wherever the code is,
but never in an import.

It is raised once. The clean-up that follows has a bounded time, and another Ctrl-C doesn't disturb it.

Where nobody listens (in a task of Airflow, in most tests) signals do what they did before. A signal that
was ignored when the process began stays ignored.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

EXIT_CODE = 130
CLEAN_UP_SECONDS = 30.0
_LATEST_SECONDS = 3.0
_AGAIN_SECONDS = 0.5
_IMPORTS = "<frozen importlib"
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_STILL = f"causeway: cleaning up, which takes {CLEAN_UP_SECONDS:.0f} s at most; Ctrl-C changes nothing now"
_NOT_OVER = (
    f"causeway: interrupted; the clean-up wasn't over after {CLEAN_UP_SECONDS:.0f} s: `causeway status` and "
    "`causeway doctor` of the flow show what was left"
)


class _Listener:
    def __init__(self) -> None:
        self.asked_at: float | None = None
        self.is_raised = False
        self.whole = self.at_once = 0
        self.left = ""
        self._had_said = self._is_over = False
        previous: dict[int, Callable[[int, FrameType | None], object] | int | None] = {
            number: signal.signal(number, self._asked)
            for number in _SIGNALS
            if signal.getsignal(number) is not signal.SIG_IGN  # by nohup, or by a shell's &
        }
        previous[signal.SIGALRM] = signal.signal(signal.SIGALRM, self._overdue)
        self._previous = previous

    def close(self) -> None:
        if self.asked_at is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in self._previous.items():
            signal.signal(number, signal.SIG_IGN if self._is_over else handler)

    def become_deaf(self) -> None:
        self._is_over = True
        for number in self._previous:
            signal.signal(number, signal.SIG_IGN)

    @property
    def is_due(self) -> bool:
        """In the main thread only: no other is interrupted by a signal."""
        return (
            self.asked_at is not None
            and not self.is_raised
            and not self.whole
            and threading.current_thread() is threading.main_thread()
        )

    def strike(self) -> None:
        if self.is_due:
            self.is_raised = True
            raise KeyboardInterrupt

    def _asked(self, _number: int, _frame: FrameType | None) -> None:
        if self.asked_at is not None:
            self._say_still()
            return
        self.asked_at = time.monotonic()
        signal.setitimer(signal.ITIMER_REAL, _LATEST_SECONDS, _AGAIN_SECONDS)
        if self.at_once:
            self.strike()

    def _say_still(self) -> None:
        if self.is_raised and not self._had_said:
            self._had_said = True
            _write_to_stderr(_STILL)

    def _overdue(self, number: int, frame: FrameType | None) -> None:
        if self.asked_at is None:
            known = self._previous[signal.SIGALRM]
            if callable(known):
                known(number, frame)
            return
        if time.monotonic() - self.asked_at > CLEAN_UP_SECONDS:
            _write_to_stderr(_NOT_OVER)
            os._exit(EXIT_CODE)
        if not _is_importing(frame):
            self.strike()


_listener: _Listener | None = None


@contextmanager
def listening() -> Iterator[None]:
    """For the whole of a command; inside of itself it changes nothing."""
    global _listener  # noqa: PLW0603 - signals are the process's own
    if _listener is not None or threading.current_thread() is not threading.main_thread():
        yield
        return
    _listener = made = _Listener()
    try:
        yield
    finally:
        _listener = None
        made.close()


def was_asked() -> bool:
    return _listener is not None and _listener.asked_at is not None


def was_not_heard() -> bool:
    """Somebody asked, and nothing was raised: all was done by then."""
    return _listener is not None and _listener.asked_at is not None and not _listener.is_raised


def leaves(words: str) -> None:
    """What a command has done so far, and how to go on: printed if a later signal finds no better words."""
    if _listener is not None:
        _listener.left = words


def left() -> str:
    """Empty: nothing was begun."""
    return "" if _listener is None else _listener.left


def is_due() -> bool:
    """Whether `check` would raise."""
    return _listener is not None and _listener.is_due


def check() -> None:
    """:raises KeyboardInterrupt: somebody asked for the end, and hasn't been heard yet."""
    if _listener is not None:
        _listener.strike()


@contextmanager
def at_once() -> Iterator[None]:
    """Around what waits for long in a call that any exception may end: a JVM's answer, a person's."""
    if (listener := _listener) is None:
        yield
        return
    listener.strike()
    listener.at_once += 1
    try:
        yield
    finally:
        listener.at_once -= 1


@contextmanager
def whole() -> Iterator[None]:
    """Around what is done in one piece, and in a bounded time; who asks meanwhile is heard after it."""
    if (listener := _listener) is None:
        yield
        return
    listener.whole += 1
    try:
        yield
    finally:
        listener.whole -= 1


@contextmanager
def endable() -> Iterator[None]:
    """Inside of `whole`: a part that may be ended all the same."""
    if (listener := _listener) is None:
        yield
        return
    around, listener.whole = listener.whole, 0
    try:
        listener.strike()
        yield
    finally:
        listener.whole = around


def deaf() -> None:
    """From here on the process only ends: its exit code is known, and its last line is written."""
    if _listener is not None:
        _listener.become_deaf()


def _is_importing(frame: FrameType | None) -> bool:
    """An import ends by itself. Inside of one, Python takes the exception for one that nobody has caught, and
    ends as if killed, though it was caught."""
    while frame is not None:
        if frame.f_code.co_filename.startswith(_IMPORTS):
            return True
        frame = frame.f_back
    return False


def _write_to_stderr(line: str) -> None:
    """Straight to the descriptor: a handler may have struck inside of `print`."""
    with suppress(OSError):
        os.write(2, f"{line}\n".encode())
