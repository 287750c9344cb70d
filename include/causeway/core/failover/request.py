"""What somebody asked a failover for. Two wishes with the same `key` ask for the same thing."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from enum import StrEnum

from causeway.core.kernel.errors import ProtocolFault
from causeway.core.kernel.timestamps import rfc3339_ms
from causeway.core.model.pattern import compiled


class Active(StrEnum):
    """What becomes of a group that has members on the target."""

    REFUSE = "refuse"
    """Nothing is moved at all."""
    LEAVE = "leave"
    """The others are moved."""


class Mode(StrEnum):
    UNPLANNED = "unplanned"
    """The source may be gone; what it didn't give is lost."""
    PLANNED = "planned"
    """The source is alive: its writers have stopped, and everything is mirrored before any group moves."""
    HOME = "home"
    """Planned, to a cluster that was the primary before: what its groups had committed there is history."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailoverRequest:
    flow: str
    at_ms: int | None
    """None: latest, each group where it was last known to stand."""
    safety_ms: int = 0
    """How far to step back from the moment."""
    groups: tuple[str, ...] = ()
    """Names or patterns; none: all of the flow."""
    topics: tuple[str, ...] = ()
    """Of the source; none: all of the flow."""
    active: Active = Active.REFUSE
    clamp: bool = False
    """Begin with the oldest record there is where records of that moment are gone."""
    mode: Mode = Mode.UNPLANNED

    @property
    def is_planned(self) -> bool:
        return self.mode is not Mode.UNPLANNED

    @property
    def moment_ms(self) -> int | None:
        return None if self.at_ms is None else max(self.at_ms - self.safety_ms, 0)

    @property
    def key(self) -> str:
        return json.dumps(self.as_dict(), sort_keys=True, separators=(",", ":"))

    @property
    def command(self) -> str:
        """As it is typed: for whoever goes on with what somebody else has begun."""
        if self.mode is Mode.HOME:
            return f"causeway next {self.flow}"  # the forward flow is another one, and says it
        at = "latest" if self.at_ms is None else rfc3339_ms(self.at_ms)
        words = ["causeway", "failover", self.flow, *(["--planned"] if self.is_planned else ["--at", at])]
        words += ["--safety", f"{self.safety_ms}ms"] if self.safety_ms else []
        words += [f"--groups={name}" for name in self.groups] + [f"--topics={name}" for name in self.topics]
        words += ["--active", str(self.active)] if self.active is not Active.REFUSE else []
        words += ["--clamp", "earliest"] if self.clamp else []
        return shlex.join(words)

    def selects_group(self, group: str) -> bool:
        return not self.groups or _any(self.groups, group)

    def selects_topic(self, source_topic: str) -> bool:
        return not self.topics or _any(self.topics, source_topic)

    def as_dict(self) -> dict[str, object]:
        return {
            "flow": self.flow,
            "at_ms": self.at_ms,
            "safety_ms": self.safety_ms,
            "groups": sorted(self.groups),
            "topics": sorted(self.topics),
            "active": str(self.active),
            "clamp": self.clamp,
            "mode": str(self.mode),
        }


def parse_request(fields: object) -> FailoverRequest:
    """:raises ProtocolFault: no wish that this version could have written."""
    try:
        assert isinstance(fields, dict)
        at_ms = fields["at_ms"]
        return FailoverRequest(
            flow=str(fields["flow"]),
            at_ms=None if at_ms is None else int(at_ms),
            safety_ms=int(fields["safety_ms"]),
            groups=tuple(map(str, fields["groups"])),
            topics=tuple(map(str, fields["topics"])),
            active=Active(fields["active"]),
            clamp=bool(fields["clamp"]),
            mode=Mode(fields.get("mode", Mode.UNPLANNED)),
        )
    except (AssertionError, KeyError, TypeError, ValueError) as cause:
        raise ProtocolFault(
            "parameters of a failover", value=fields, rule="must be of Causeway's format"
        ) from cause


def meets(wanted: str, name: str) -> bool:
    """By its full name, whatever characters that has, or as a pattern."""
    return wanted == name or compiled(wanted).matches(name)


def _any(patterns: tuple[str, ...], name: str) -> bool:
    return any(meets(pattern, name) for pattern in patterns)
