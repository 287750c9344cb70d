"""What a lane gets and what it reports: small values that travel between driver and executor."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from causeway.core.copy.producer import ProducerEpoch
from causeway.core.copy.target_limits import LimitRaise, TargetLimits
from causeway.core.kernel.errors import CausewayError
from causeway.core.kernel.identity import Generation, Pair, SourceOffset, TopicPartition
from causeway.core.model.flow import CopyLimits, RefusedPolicy
from causeway.core.state.parked import Parked
from causeway.core.state.position import Position
from causeway.core.state.reverse_flow import ReverseLimit
from causeway.core.state.start_ledger import StartAt


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """One partition of a lane. The plan is a hint: what is committed when the lane is owned decides."""

    pair: Pair
    end: SourceOffset
    """The source's last stable offset when the round was planned."""
    start: StartAt | None
    """Where it begins if it has no history, as the flow's state has it; None: nowhere by itself."""
    known: bool
    """Whether an earlier run of this flow has already written this pair of topics."""
    adopted_at: int = -1
    """Generation of this partition's last adoption; -1: none."""
    set_by_hand: Position | None = None
    """What a person set last, by the flow's state, where there is no committed position."""
    demands: TargetLimits = field(default_factory=TargetLimits)
    """What the target asks of the batches."""
    opposite: ReverseLimit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Quarantine:
    """Where records go that the target doesn't take, and what their place on the source is called there."""

    topic: str
    source: str
    """The source's alias."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastOwner:
    """How a run's last owner left a lane. If nobody claimed since, all of it is still so: no fence has
    claimed, and these positions are the committed ones."""

    producer: ProducerEpoch
    positions: Mapping[TopicPartition, Position]
    follows: bool = False
    """Directly the run's owner before it: what that one left of other partitions still stands, too."""

    def after(self, before: LastOwner | None) -> LastOwner:
        """With what still stands of the owner before it."""
        if before is None or not self.follows:
            return self
        return replace(self, positions={**before.positions, **self.positions})

    def of(self, partitions: Iterable[TopicPartition]) -> LastOwner:
        """What a task over these partitions has to know: it travels in each round."""
        positions = {tp: self.positions[tp] for tp in partitions if tp in self.positions}
        return replace(self, positions=positions)


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusedCommit:
    """A broker's word against map, positions or the end of a transaction: its data lies there for nothing."""

    why: str
    code: int
    map_topic: str = ""
    """Set if it was the map that didn't take its part."""
    map_bytes: int = 0
    """So large was that part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneTask:
    flow: str
    group: str
    lane: int
    transactional_id: str
    generation: Generation
    map_topic: str
    map_partitions: int
    limits: CopyLimits
    assignments: tuple[Assignment, ...]
    settles: bool = False
    """Whether a dead owner's transaction is committed, where it is proved right, instead of aborted."""
    last_owner: LastOwner | None = None
    """Of this run; None: it hasn't owned the lane yet."""
    on_refused: RefusedPolicy = RefusedPolicy.PARK
    quarantine: Quarantine | None = None
    """Set exactly if `on_refused` is quarantine."""
    put_off: frozenset[TopicPartition] = frozenset()
    """Target partitions of the flow that this round leaves alone, for a reason that passes."""
    refused_commit: RefusedCommit | None = None
    """Time and again: no data is appended before as much has been committed without any."""


@dataclass(slots=True, kw_only=True)
class PartitionRow:
    """What one lane did to one partition; only what is committed counts."""

    source: TopicPartition
    target: TopicPartition
    source_from: int = -1
    source_next: int = -1
    records: int = 0
    size_bytes: int = 0
    verbatim_batches: int = 0
    repacked_batches: dict[str, int] = field(default_factory=dict)
    """By reason."""
    aborted_records: int = 0
    """Of earlier attempts: default readers saw them once more than others."""
    settled_records: int = 0
    """Of earlier attempts too, but kept: nobody sees them twice."""
    recopied_from: int | None = None
    """Source offset from which a lost tail of the target was copied again."""
    parked: Parked | None = None
    demands: TargetLimits | None = None
    """What the target turned out to ask of the batches; None: nothing new."""
    wanted_limit: LimitRaise | None = None
    """What has to be raised on the target before the next batch can cross."""
    quarantined: dict[int, str] = field(default_factory=dict)
    """Source offsets of records that were put into quarantine, and why."""
    later: str = ""
    """A passing reason why this partition waits for the next round."""


Outcome = Literal["done", "doubt", "beaten", "superseded", "fenced", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneResult:
    lane: int
    outcome: Outcome
    why: str
    transactions: int
    rows: tuple[PartitionRow, ...]
    error: CausewayError | None = None
    """Of a lane that failed for a reason that another try won't cure: a right, a setting."""
    last_owner: LastOwner | None = None
    """Of a lane that is done: what its next task of the same run gets."""
    refused_commit: RefusedCommit | None = None
    """Of a lane in doubt, if that is why."""
