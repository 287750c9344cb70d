"""Processes of a campaign: each in a session of its own, tied to this process, killed by pid and start time.

Whatever a process starts stays in its session, also when its parent is gone: that is how Spark's Python
workers are found, and how nothing is left.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from causeway.lab import processes as lab
from causeway.lab.processes import ProcessIdentity

_TIED_EXEC = Path(lab.__file__).parents[1] / "tied_exec.py"
_PPID, _SESSION = 1, 3  # positions in /proc/<pid>/stat, counted after the command's name


@dataclass(frozen=True, slots=True)
class Member:
    identity: ProcessIdentity
    parent: int
    command: str

    @property
    def pid(self) -> int:
        return self.identity.pid


def members(session: int) -> list[Member]:
    """All living processes of a session."""
    found: list[Member] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            if int(fields[_SESSION]) != session:
                continue
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except (FileNotFoundError, ProcessLookupError):
            continue
        identity = lab.identify(int(entry.name))
        if identity is not None:
            found.append(Member(identity, int(fields[_PPID]), command))
    return found


@dataclass(slots=True)
class Started:
    """One process that the campaign started, with everything that it started in turn."""

    name: str
    log: Path
    popen: subprocess.Popen[bytes] = field(repr=False)

    @property
    def pid(self) -> int:
        return self.popen.pid

    @property
    def exit_code(self) -> int | None:
        return self.popen.poll()

    def members(self) -> list[Member]:
        return members(self.pid)

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    def send(self, number: signal.Signals) -> None:
        if self.exit_code is None:
            os.kill(self.pid, number)

    def is_stopped(self) -> bool:
        """It sleeps, by SIGSTOP."""
        try:
            stat = Path(f"/proc/{self.pid}/stat").read_text(errors="replace")
        except FileNotFoundError:
            return False
        return stat.rpartition(")")[2].split()[0] == "T"

    def kill_all(self) -> None:
        """The process and all of its session, also what is frozen or orphaned."""
        for _ in range(50):
            left = self.members()
            for member in left:
                lab.send(member.identity, signal.SIGKILL)
            if not left and self.popen.poll() is not None:
                return
            time.sleep(0.05)


def start(
    name: str, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
) -> Started:
    tied = [sys.executable, "-I", "-S", str(_TIED_EXEC), str(os.getpid()), *command]
    with log.open("wb") as out:
        popen = subprocess.Popen(
            tied,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            env=None if environment is None else dict(environment),
            start_new_session=True,
        )
    return Started(name, log, popen)


class TookTooLong(Exception):
    """A generous limit was reached: whoever waited tells what for."""


def wait_until(is_so: Callable[[], object], what: str, *, timeout_seconds: float = 600.0) -> None:
    """Not a measurement: a bound, so that a campaign that is stuck ends with a message."""
    deadline = time.monotonic() + timeout_seconds
    while not is_so():
        if time.monotonic() > deadline:
            raise TookTooLong(f"not within {timeout_seconds:.0f} s: {what}")
        time.sleep(0.02)
