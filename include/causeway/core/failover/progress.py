"""Where a run of a failover stands, seen from what is committed: what is left to do, in any try.

The offsets themselves say how far a run came, so nothing has to be remembered between tries, and a try that
was killed at any point is simply made again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from causeway.core.failover.journal import FailoverRun, Shifts
from causeway.core.group_sync import Committed
from causeway.core.identity import TopicPartition

Held = Mapping[str, Mapping[TopicPartition, Committed]]
"""What each group has committed on the target."""


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

    @property
    def is_nothing(self) -> bool:
        return not self.to_commit and not self.to_forget


def left_to_apply(run: FailoverRun, held: Held) -> Remaining:
    to_commit: dict[str, dict[TopicPartition, Committed]] = {}
    astray: list[Astray] = []
    for group, tp, now in _now(run.shifts, held):
        shift = run.shifts[group][tp]
        wanted = Committed(shift.after, failover_mark(run.run))
        if now == wanted:
            continue
        if now != shift.before:
            astray.append(Astray(group, tp, None if now is None else now.offset))
        else:
            to_commit.setdefault(group, {})[tp] = wanted
    return Remaining(to_commit=to_commit, to_forget={}, astray=tuple(astray))


def left_to_roll_back(run: FailoverRun, held: Held) -> Remaining:
    """Everything goes back; who has read on since is named, because it will read that again."""
    to_commit: dict[str, dict[TopicPartition, Committed]] = {}
    to_forget: dict[str, list[TopicPartition]] = {}
    astray: list[Astray] = []
    for group, tp, now in _now(run.shifts, held):
        shift = run.shifts[group][tp]
        if now == shift.before:
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


def _now(shifts: Shifts, held: Held) -> list[tuple[str, TopicPartition, Committed | None]]:
    return [(group, tp, held.get(group, {}).get(tp)) for group, of_group in shifts.items() for tp in of_group]
