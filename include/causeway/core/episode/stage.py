"""Where a flow may be in its episode: what was found of it, and what is printed of it.

`episode.py` leads from the one to the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from causeway.core.journal.journal import FailoverRun, Journal
from causeway.core.kernel.errors import CausewayError
from causeway.core.kernel.identity import TopicPartition
from causeway.core.kernel.timestamps import rfc3339
from causeway.core.state.flow_state import FlowState
from causeway.core.state.parked import Parked


class Stage(StrEnum):
    HARMED = "harmed"
    """What is kept of the flow is lost in part, or can't be read: nothing else that is printed here is
    sure."""
    NEW = "new"
    """No run has begun yet."""
    MIRRORING = "mirroring"
    DRILL = "drill"
    PARKED = "parked"
    FENCED = "fenced"
    """By people, or by a command at work."""
    FAILING_OVER = "failing over"
    FAILED_OVER = "failed over"
    ROLLING_BACK = "rolling back"
    FAILING_BACK = "failing back"
    """The way back isn't open yet."""
    RESTING = "resting"
    """The other flow leads."""
    COMING_HOME = "coming home"
    HOME_NOT_RUNNING = "home, not running"


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Of the flow, and of its reverse flow; that one is empty where there is none."""

    flow: str
    source: str
    target: str
    reverse: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """All that was found. The reverse flow keeps its state and its journal on the source."""

    names: Names
    now_ms: int
    state: FlowState
    journal: Journal
    parked: Mapping[TopicPartition, Parked] = field(default_factory=dict)
    """What a run found and nobody has cured since, by source partition."""
    reverse_state: FlowState | None = None
    """None: the source wasn't asked, or doesn't answer."""
    homecoming: FailoverRun | None = None
    """The reverse flow's newest failover."""
    is_taken_back: bool = False
    """The newest failback was completed, and that was rolled back since."""
    source_is_silent: bool = False
    troubles: tuple[CausewayError, ...] = ()
    """With Causeway's own topics, the gravest first; each names its remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    flow: str
    stage: Stage
    what: str
    """In words, with who and why."""
    command: str
    """As it is typed; empty: nothing has to be done."""
    success: str
    """What it looks like when that has worked."""
    since_ms: int | None = None
    by: str = ""
    when: str = ""
    """What has to be so before it is typed; empty: now."""
    state: FlowState | None = None
    """By which it was decided, for who prints more of the same moment."""

    @property
    def is_blocked(self) -> bool:
        """Somebody's fence keeps the flow from going on."""
        return self.stage is Stage.FENCED

    def as_dict(self) -> dict[str, object]:
        return {
            "flow": self.flow,
            "stage": str(self.stage),
            "since": None if self.since_ms is None else rfc3339(self.since_ms),
            "by": self.by,
            "what": self.what,
            "command": self.command,
            "when": self.when,
            "success": self.success,
        }
