"""CPU and memory of a contender's processes, by looking at /proc: which kind used how much, and when.

Looking gives the kinds and the moments, and misses what is used between the last look and a process's end;
`meter.py` tells the kernel's sum, and misses children whose parent ignores their end. CPU of a process that
ended stays in the account, as it was last seen.

Memory is the proportional set size: pages that Python workers share with the process that forked them
count once.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from causeway.lab.processes import ProcessIdentity
from tests.proofs.chaos.parts.processes import Member, members

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_USER_TICKS, _SYSTEM_TICKS = 11, 12  # positions in /proc/<pid>/stat, counted after the command's name

KindOf = Callable[[str], str]
"""From a process's command line to what kind of process it is."""


@dataclass(frozen=True, slots=True)
class Seen:
    """One process at one moment."""

    identity: ProcessIdentity
    kind: str
    cpu_seconds: float
    memory_bytes: int


@dataclass(frozen=True, slots=True)
class Sample:
    at: float
    """Monotonic seconds."""
    cpu_seconds: dict[str, float]
    """By kind, since the start, those that ended included."""
    memory_bytes: dict[str, int]
    """By kind, of those that live now."""
    largest_bytes: dict[str, int]
    """By kind, of the largest process."""


@dataclass(slots=True)
class Account:
    """Folds looks into samples; pure."""

    samples: list[Sample] = field(default_factory=list)
    _last: dict[ProcessIdentity, Seen] = field(default_factory=dict)

    def add(self, at: float, looks: Iterable[Seen]) -> Sample:
        now = list(looks)
        self._last.update({seen.identity: seen for seen in now})
        cpu: dict[str, float] = {}
        for seen in self._last.values():
            cpu[seen.kind] = cpu.get(seen.kind, 0.0) + seen.cpu_seconds
        memory: dict[str, int] = {}
        largest: dict[str, int] = {}
        for seen in now:
            memory[seen.kind] = memory.get(seen.kind, 0) + seen.memory_bytes
            largest[seen.kind] = max(largest.get(seen.kind, 0), seen.memory_bytes)
        sample = Sample(at, cpu, memory, largest)
        self.samples.append(sample)
        return sample

    def cpu_between(self, begin: float, end: float) -> dict[str, float]:
        """By kind, between the samples nearest to the two moments."""
        first, last = self._nearest(begin), self._nearest(end)
        return {kind: used - first.cpu_seconds.get(kind, 0.0) for kind, used in last.cpu_seconds.items()}

    def cpu_seconds(self) -> dict[str, float]:
        return dict(self.samples[-1].cpu_seconds) if self.samples else {}

    def whole_cpu_seconds(self, by_kernel: float) -> float:
        """Neither way to count takes too much: the one that missed less is right."""
        return max(by_kernel, sum(self.cpu_seconds().values()))

    def peak_bytes(self) -> int:
        """Of all processes together, at their worst moment."""
        return max((sum(sample.memory_bytes.values()) for sample in self.samples), default=0)

    def peak_bytes_by_kind(self) -> dict[str, int]:
        return _highest(sample.memory_bytes for sample in self.samples)

    def largest_bytes_by_kind(self) -> dict[str, int]:
        """Of a single process."""
        return _highest(sample.largest_bytes for sample in self.samples)

    def _nearest(self, moment: float) -> Sample:
        return min(self.samples, key=lambda sample: abs(sample.at - moment))


def _highest(tables: Iterable[dict[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for table in tables:
        for kind, size in table.items():
            found[kind] = max(found.get(kind, 0), size)
    return found


def look_at(session: int, kind_of: KindOf) -> list[Seen]:
    """Every living process of the session but its leader, which is the meter."""
    looks = (_look(member, kind_of) for member in members(session) if member.pid != session)
    return [seen for seen in looks if seen is not None]


def sample_now(account: Account, session: int, kind_of: KindOf) -> Sample:
    return account.add(time.monotonic(), look_at(session, kind_of))


def _look(member: Member, kind_of: KindOf) -> Seen | None:
    """None: it ended meanwhile."""
    process = Path(f"/proc/{member.pid}")
    try:
        fields = (process / "stat").read_text(errors="replace").rpartition(")")[2].split()
        memory = _proportional_bytes((process / "smaps_rollup").read_text())
    except (FileNotFoundError, ProcessLookupError):
        return None
    ticks = int(fields[_USER_TICKS]) + int(fields[_SYSTEM_TICKS])
    return Seen(member.identity, kind_of(member.command), ticks / _TICKS_PER_SECOND, memory)


def _proportional_bytes(rollup: str) -> int:
    for line in rollup.splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0
