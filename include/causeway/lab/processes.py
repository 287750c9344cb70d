"""Processes that the lab started, and only those.

Invariants:
(a) a process is its pid *and* its start time, so a pid that now is somebody else's is never signalled;
(b) a tied process doesn't outlive its starter, however that one ends;
(c) no Ctrl-C meant for the starter reaches a broker: each runs in a session of its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from causeway.lab.errors import LabTrouble

_TIED_EXEC = Path(__file__).parents[1] / "tied_exec.py"
_POLL_SECONDS = 0.02
_STATE, _START_TICKS = 0, 19  # positions in /proc/<pid>/stat, counted after the command's name


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    pid: int
    start_ticks: int
    """When it started, in clock ticks since boot."""


Ending = Callable[[ProcessIdentity], None]


def identify(pid: int) -> ProcessIdentity | None:
    """Who has this pid now; None if nobody lives there (a zombie doesn't)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[_STATE] in "ZX" else ProcessIdentity(pid, int(fields[_START_TICKS]))


def is_alive(process: ProcessIdentity) -> bool:
    _reap(process.pid)
    return identify(process.pid) == process


def send(process: ProcessIdentity, number: signal.Signals) -> bool:
    """Signal exactly this process; False if it is gone. The pidfd holds the pid between look and shot."""
    try:
        handle = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return False
    try:
        if not is_alive(process):
            return False
        signal.pidfd_send_signal(handle, number)
    except ProcessLookupError:
        return False
    finally:
        os.close(handle)
    return True


def wait_until_gone(process: ProcessIdentity, *, timeout_seconds: float) -> bool:
    deadline = time.monotonic() + timeout_seconds
    while is_alive(process):
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS)
    return True


def end(process: ProcessIdentity, *, patience_seconds: float) -> None:
    """Ask with SIGTERM (and wake it, if it was paused), insist with SIGKILL."""
    if send(process, signal.SIGTERM):
        send(process, signal.SIGCONT)
        if not wait_until_gone(process, timeout_seconds=patience_seconds):
            kill(process)


def kill(process: ProcessIdentity) -> None:
    send(process, signal.SIGKILL)
    if not wait_until_gone(process, timeout_seconds=30):
        raise LabTrouble(
            "process", value=process.pid, rule="still there 30 s after SIGKILL", remedy="look at `ps`"
        )


def start(command: Sequence[str], *, log_path: Path, tied: bool) -> ProcessIdentity:
    """Start a process that writes into its log; a tied one dies with this process.

    :raises LabTrouble: it ended at once.
    """
    if tied:
        command = [sys.executable, "-I", "-S", str(_TIED_EXEC), str(os.getpid()), *command]
    child = _in_lasting_thread(command, log_path) if tied else _spawn(command, log_path)
    identity = identify(child.pid)
    if identity is None:
        raise LabTrouble(command[0], rule="ended at once", remedy=f"see {log_path}")
    _children[child.pid] = child
    return identity


def _spawn(command: Sequence[str], log_path: Path) -> subprocess.Popen[bytes]:
    with log_path.open("ab") as log:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )


_children: dict[int, subprocess.Popen[bytes]] = {}
"""Popen objects of what this process started: somebody has to reap them."""


def _reap(pid: int) -> None:
    child = _children.get(pid)
    if child is not None and child.poll() is not None:
        _children.pop(pid, None)


# "Parent death" is the death of the parent *thread*. A test may start a broker from a thread that ends:
# so all tied processes are children of one thread that lasts as long as this process.
_lasting_thread_guard = threading.Lock()
_lasting_thread: tuple[int, ThreadPoolExecutor] | None = None


def _in_lasting_thread(command: Sequence[str], log_path: Path) -> subprocess.Popen[bytes]:
    global _lasting_thread  # noqa: PLW0603 - one thread per process is the point
    with _lasting_thread_guard:
        if _lasting_thread is None or _lasting_thread[0] != os.getpid():
            _lasting_thread = (os.getpid(), ThreadPoolExecutor(1, "lab-parent"))
    return _lasting_thread[1].submit(_spawn, command, log_path).result()
