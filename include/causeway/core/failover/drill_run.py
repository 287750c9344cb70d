"""A rehearsal of a failover: what its clones are called, and what is kept of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, cast, get_args

At = Literal["begun", "done", "over"]
"""Over: it ended without a result."""
LONGEST_MS = 180_000
"""A drill that began longer ago than this and hasn't recorded that it ended was killed, or will find that
another one has taken its turn."""

_CLONES = "causeway.drill."
"""No mirror and no sync ever sees to groups that begin like this."""


def clones_of(flow: str) -> str:
    """What the names of all clones of a flow begin with, whichever drill made them."""
    return f"{_CLONES}{flow}/"


def clone_of(flow: str, run: str, group: str) -> str:
    return f"{clones_of(flow)}{run}/{group}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillRun:
    run: str
    flow: str
    by: str
    at_ms: int
    groups: int
    offsets: int
    as_planned: int
    """Read back as the plan says."""
    read: int
    """Partitions whose first record a consumer read at its place, or found that nothing comes after it."""
    probed: int
    """Partitions that consumers were sent to."""
    rto_ms: int
    """From the beginning to the last of these records."""
    lost_records: int | None
    """If the source had died then. None, here and below: not known exactly; a bound isn't kept."""
    rpo_seconds: int | None
    rereads: int | None
    state: At = "done"

    @property
    def wrong(self) -> str:
        """What didn't go as planned; empty: nothing."""
        if not self.groups:
            return "no group could be moved, so nothing was rehearsed"
        if self.as_planned < self.offsets:
            missing = self.offsets - self.as_planned
            return f"{missing} of {self.offsets} offsets differ from the plan"
        if self.read < self.probed:
            return f"from there consumers could read on in {self.read} of {self.probed} partitions"
        return ""

    def as_dict(self) -> dict[str, object]:
        return {
            "by": self.by,
            "at_ms": self.at_ms,
            "groups": self.groups,
            "offsets": self.offsets,
            "as_planned": self.as_planned,
            "read": self.read,
            "probed": self.probed,
            "rto_ms": self.rto_ms,
            "lost_records": self.lost_records,
            "rpo_seconds": self.rpo_seconds,
            "rereads": self.rereads,
            **({} if self.state == "done" else {"state": self.state}),
        }


def without_result(flow: str, run: str, *, by: str, at_ms: int, state: At) -> DrillRun:
    """A version that doesn't know these reads a drill of no groups."""
    return DrillRun(
        run=run,
        flow=flow,
        by=by,
        at_ms=at_ms,
        groups=0,
        offsets=0,
        as_planned=0,
        read=0,
        probed=0,
        rto_ms=0,
        lost_records=None,
        rpo_seconds=None,
        rereads=None,
        state=state,
    )


def at_work(runs: Iterable[DrillRun], flow: str, now_ms: int) -> list[DrillRun]:
    """Those that have begun and may still be at it, in the order in which they began."""
    begun = (run for run in runs if run.flow == flow and run.state == "begun")
    return [run for run in begun if now_ms - run.at_ms < LONGEST_MS]


def parse_drill(flow: str, run: str, fields: Mapping[str, object]) -> DrillRun:
    """:raises KeyError, TypeError: none of this version's."""
    return DrillRun(
        run=run,
        flow=flow,
        by=str(fields["by"]),
        at_ms=_whole(fields["at_ms"]),
        groups=_whole(fields["groups"]),
        offsets=_whole(fields["offsets"]),
        as_planned=_whole(fields["as_planned"]),
        read=_whole(fields["read"]),
        probed=_whole(fields.get("probed", fields["read"])),  # not kept at first
        rto_ms=_whole(fields["rto_ms"]),
        lost_records=_maybe(fields["lost_records"]),
        rpo_seconds=_maybe(fields["rpo_seconds"]),
        rereads=_maybe(fields["rereads"]),
        state=_state(fields.get("state", "done")),  # not kept at first
    )


def _state(value: object) -> At:
    for state in get_args(At):
        if state == value:
            return cast("At", state)
    raise KeyError(value)


def _whole(value: object) -> int:
    if type(value) is not int:
        raise TypeError(value)
    return value


def _maybe(value: object) -> int | None:
    return None if value is None else _whole(value)
