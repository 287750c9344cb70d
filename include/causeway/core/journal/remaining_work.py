"""Where a run of a failover stands, seen from what is committed: what is left to do, in any try.

The offsets themselves say how far a run came, so nothing has to be remembered between tries, and a try that
was killed at any point is simply made again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from causeway.core.groups.stamp import stamp_beside
from causeway.core.groups.sync_rules import Committed, Held
from causeway.core.journal.journal import FailoverRun, Shifts
from causeway.core.kernel.identity import TopicPartition


class Astray(NamedTuple):
    """A group that stands neither where it was nor where it was to go: somebody else has moved it."""

    group: str
    target: TopicPartition
    at: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Remaining:
    to_commit: Mapping[str, Mapping[TopicPartition, Committed]]
    to_forget: Mapping[str, tuple[TopicPartition, ...]]
    """Offsets that weren't there before."""
    astray: tuple[Astray, ...]
    late: tuple[Astray, ...] = ()
    """Moved after the fence by a group sync that had been held up: to be committed again."""

    @property
    def is_nothing(self) -> bool:
        return not self.to_commit and not self.to_forget


def left_to_apply(run: FailoverRun, held: Held, *, was_moved: bool = False) -> Remaining:
    """`was_moved`: all of it was committed, so what stands as before is late, too."""
    to_commit: dict[str, dict[TopicPartition, Committed]] = {}
    astray: list[Astray] = []
    late: list[Astray] = []
    for group, tp, now in _now(run.shifts, held):
        shift = run.shifts[group][tp]
        wanted = Committed(shift.after, failover_mark(run.run))
        if now == wanted:
            continue
        stands, as_before = Astray(group, tp, None if now is None else now.offset), now == shift.before
        is_late = was_moved if as_before else _is_a_syncs(now, run.flow)
        if is_late:
            late.append(stands)
        if is_late or as_before:
            to_commit.setdefault(group, {})[tp] = wanted
        else:
            astray.append(stands)
    return Remaining(to_commit=to_commit, to_forget={}, astray=tuple(astray), late=tuple(late))


class Elsewhere(NamedTuple):
    """A group that this run has moved, and that stands otherwise by somebody else's doing."""

    group: str
    target: TopicPartition
    expected: int
    found: Committed | None

    def __str__(self) -> str:
        now = "has nothing committed" if self.found is None else f"stands at {self.found.offset}"
        by = _whose(self.found)
        return (
            f"{self.group} on {self.target}: was moved to {self.expected} and {now} now"
            f"{by and f', committed by {by}'}"
        )


def moved_elsewhere(run: FailoverRun, held: Held) -> tuple[Elsewhere, ...]:
    """After the last move. A consumer that has begun where it should, and read on, isn't among them."""
    return tuple(
        Elsewhere(group, tp, expected, now)
        for group, tp, now in _now(run.shifts, held)
        if now != Committed(expected := run.shifts[group][tp].after, failover_mark(run.run))
        and not _has_read_on(run, now, expected)
    )


def _has_read_on(run: FailoverRun, now: Committed | None, expected: int) -> bool:
    if now is None or now.offset <= expected:
        return False
    return now.metadata == failover_mark(run.run) or not _whose(now)


def _whose(found: Committed | None) -> str:
    """A mirror or a failover by whose words a place was committed; empty: a consumer, or a person."""
    if found is None:
        return ""
    stamp = stamp_beside(found.offset, found.metadata)
    if stamp is not None:
        return f"a group sync of {stamp.flow}"
    run = _run_of_mark(found.metadata)
    return f"failover {run}" if run else ""


def _is_a_syncs(now: Committed | None, flow: str) -> bool:
    stamp = None if now is None else stamp_beside(now.offset, now.metadata)
    return stamp is not None and stamp.flow == flow


def left_to_roll_back(run: FailoverRun, held: Held, *, is_overtaken: bool = False) -> Remaining:
    """Everything goes back; who has read on since is named, because it will read that again.

    `is_overtaken`: the mirror has gone on since. What its group sync has committed then is newer than what
    stood before the failover, and stays.
    """
    to_commit: dict[str, dict[TopicPartition, Committed]] = {}
    to_forget: dict[str, list[TopicPartition]] = {}
    astray: list[Astray] = []
    for group, tp, now in _now(run.shifts, held):
        shift = run.shifts[group][tp]
        if now == shift.before or (is_overtaken and _is_a_syncs(now, run.flow)):
            continue
        if now is None or now.metadata != failover_mark(run.run):
            astray.append(Astray(group, tp, None if now is None else now.offset))
        if shift.before is None:
            to_forget.setdefault(group, []).append(tp)
        else:
            to_commit.setdefault(group, {})[tp] = shift.before
    return Remaining(
        to_commit=to_commit,
        to_forget={group: tuple(found) for group, found in to_forget.items()},
        astray=tuple(astray),
    )


def failover_mark(run: str) -> str:
    """Metadata of what a failover commits: no mirror's stamp, so that a group sync leaves it alone."""
    return json.dumps({"causeway-failover": 1, "run": run}, separators=(",", ":"))


def _run_of_mark(metadata: str) -> str:
    """Empty: it's no failover's."""
    try:
        said = json.loads(metadata)
    except (ValueError, RecursionError):
        return ""
    run = said.get("run") if isinstance(said, dict) and said.get("causeway-failover") == 1 else None
    return run if isinstance(run, str) else ""


def _now(shifts: Shifts, held: Held) -> list[tuple[str, TopicPartition, Committed | None]]:
    return [(group, tp, held.get(group, {}).get(tp)) for group, of_group in shifts.items() for tp in of_group]
