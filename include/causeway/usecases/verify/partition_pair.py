"""A source partition and its mirror, with all that a comparison of the two has to know."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from causeway.core.kernel.identity import SourceOffset, TargetOffset, TopicPartition
from causeway.core.offsets.offset_map import MappedRange
from causeway.core.state.position_ledger import ManualPosition
from causeway.core.verify.map_comparison import Gap


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionPair:
    source: TopicPartition
    target: TopicPartition
    source_topic_id: UUID | None = None
    first_source_offset: SourceOffset | None = None
    """Where the flow began to copy; None: at the source's log start."""
    first_target_offset: TargetOffset | None = None
    """Where what it copied since lies; None: at the target's log start."""
    ends_at: TargetOffset | None = None
    """Of a flow that rests: where its last record ends. What others wrote after that is none of its own."""
    set_by_hand: ManualPosition | None = None
    """Who set this beginning; what lies before it is no mirror of what lies before it there."""
    target_end: TargetOffset | None = None
    """How far the target is judged: a run may add more while the two are compared. None: to its end as it is
    then."""
    source_is_compacted: bool = False
    """Its cleaner may have taken records out of the middle; the same of the target."""
    target_is_compacted: bool = False
    came_home: bool = False
    """In a failback: part of it was brought back by the flow of the other direction."""
    runs: tuple[MappedRange, ...] = ()
    """Those of the offset map that hold; read only where the comparison needs them."""
    never_crossed: tuple[Gap, ...] = ()
    quarantined: frozenset[int] = frozenset()
    """Source offsets of records that the flow put aside."""

    @property
    def needs_the_map(self) -> bool:
        return self.source_is_compacted or self.target_is_compacted or self.came_home

    def target_until(self, log_end: int) -> int:
        return min(log_end, *(end for end in (self.ends_at, self.target_end, log_end) if end is not None))

    def source_until(self, log_end: int, source_end: SourceOffset | None) -> int:
        """What follows on the source of a flow that rests isn't its own business either."""
        return log_end if self.ends_at is None or source_end is None else min(log_end, source_end)
