"""What a comparison found: of one partition, and of a flow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from causeway.core.kernel.identity import SourceOffset, TargetOffset, TopicPartition
from causeway.core.state.position_ledger import ManualPosition

PARKED_EXIT_CODE = 5


class Kind(Enum):
    DIFFERENT = "different"
    MISSING = "missing on the target"
    EXTRA = "only on the target"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One record that isn't as it should be; values are escaped and cut, for people."""

    kind: Kind
    source_offset: SourceOffset | None = None
    target_offset: TargetOffset | None = None
    field: str = ""
    source_value: str = ""
    target_value: str = ""

    def __str__(self) -> str:
        match self.kind:
            case Kind.MISSING:
                return f"source offset {self.source_offset} is missing on the target"
            case Kind.EXTRA:
                return f"target offset {self.target_offset} has no counterpart on the source"
            case Kind.DIFFERENT:
                return (
                    f"source offset {self.source_offset}, target offset {self.target_offset}: "
                    f"{self.field} is {self.source_value} on the source, {self.target_value} on the target"
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionVerdict:
    """What the comparison of one pair of partitions found; `differences` holds the first ones."""

    source: TopicPartition
    target: TopicPartition
    equal: int = 0
    different: int = 0
    missing: int = 0
    extra: int = 0
    gone_on_target: int = 0
    """Source records from before the target's log start: they can't be compared any more."""
    gone_on_source: int = 0
    """Target records from before the source's log start: likewise."""
    quarantined: int = 0
    """Source records that the flow put into quarantine: they aren't missed."""
    cleaned_on_source: int = 0
    """Target records that the cleaner of a compacted source partition has taken there."""
    cleaned_on_target: int = 0
    never_crossed: int = 0
    """Source records of divergent tails: a failback left them there, and exported them."""
    is_by_map: bool = False
    """Compared in pairs that the offset map names, not one after the other."""
    behind: int = 0
    """Source offsets (markers included) after the last record that the target has, or had to have."""
    set_by_hand: ManualPosition | None = None
    """Who set the beginning from which on it was compared, if somebody did."""
    not_compared: int = 0
    """Target offsets before that beginning: what lies there was mirrored under other terms."""
    differences: tuple[Difference, ...] = ()
    trouble: str = ""
    """Why this partition couldn't be compared to its end, if so."""

    @property
    def is_equal(self) -> bool:
        return not (self.different or self.missing or self.extra or self.trouble)


@dataclass(frozen=True, slots=True)
class VerifyReport:
    partitions: tuple[PartitionVerdict, ...]
    parked: Mapping[TopicPartition, str] = field(default_factory=dict)
    """By source partition: what has no mirror that could be compared until somebody cures it, and why."""
    not_begun: int = 0
    """Partitions of which nothing is mirrored yet."""
    notes: tuple[str, ...] = ()
    """What is odd about the selection."""
    rests: str = ""
    """Why the flow adds nothing, if it does so by a failover or failback; then only what it had mirrored is
    compared."""

    @property
    def records_equal(self) -> int:
        return sum(verdict.equal for verdict in self.partitions)

    @property
    def unequal(self) -> tuple[PartitionVerdict, ...]:
        return tuple(verdict for verdict in self.partitions if not verdict.is_equal)

    @property
    def exit_code(self) -> int:
        """Nothing compared is nothing proved."""
        if self.unequal or not (self.partitions or self.parked):
            return 1
        return PARKED_EXIT_CODE if self.parked else 0
