"""A flow, and what a round reads of its partitions."""

from __future__ import annotations

from types import EllipsisType

from causeway.core.copy.ports import LogEnd
from causeway.core.copy.round_plan import PartitionFacts
from causeway.core.model.flow import CopyLimits
from causeway.core.state.position import ForeignPosition, Position
from causeway.core.state.start_ledger import StartAt
from tests.support import builders

NOW_MS = 1_700_000_000_000
LIMITS = CopyLimits(transaction_bytes=1, fetch_bytes=2)
FLOW = builders.flow(limits=LIMITS)


def facts(
    partition: int = 0,
    *,
    at: int = 100,
    end: int = 100,
    age_ms: int = 0,
    position: Position | ForeignPosition | EllipsisType | None = ...,
    start: StartAt | None = None,
    log_start: int = 0,
    known: bool = True,
    target: LogEnd | None = None,
) -> PartitionFacts:
    pair = builders.pair(partition)
    if position is ...:
        position = builders.position(at, at, time_ms=NOW_MS - age_ms, records=at)
    return PartitionFacts(
        pair=pair,
        position=position,
        log_start=log_start,
        last_stable=end,
        start=start,
        known=known,
        target_end=target,
    )
