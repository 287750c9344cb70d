"""The steps of a run that its driver takes for it: what can't be awaited on the clusters' wires."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from causeway.core.copy.lane_task import LaneTask
from causeway.core.copy.report import RunOutcome


@dataclass(frozen=True, slots=True)
class Administer:
    """Do this work, which blocks; then ask for the next step."""

    work: Callable[[], None]


@dataclass(frozen=True, slots=True)
class CopyLanes:
    """Run each task somewhere and give all results to `FlowRun.took`; then ask for the next step."""

    tasks: tuple[LaneTask, ...]


@dataclass(frozen=True, slots=True)
class Pause:
    """The round is over. Ask for the next one's first step after so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class End:
    """The run is over: nothing is left to do, or its time is."""

    outcome: RunOutcome


Step = Administer | CopyLanes | Pause | End
