"""The records of the journal, as they are written. What they add up to is `journal.py`'s."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from causeway.core.failback.divergence import FailbackRun, failback_fields
from causeway.core.failover.drill_run import DrillRun
from causeway.core.failover.plan import FailoverPlan
from causeway.core.journal.journal import AGREED, DRILL, FAILBACK, Status
from causeway.core.journal.journal_format import (
    as_journal_record,
)

_MOST_LINES, _LONGEST_LINE = 20, 500


def begun_record(run: str, plan: FailoverPlan, *, by: str, at_ms: int) -> tuple[bytes, bytes]:
    left = [str(each)[:_LONGEST_LINE] for each in plan.left_alone[:_MOST_LINES]]
    more = len(plan.left_alone) - len(left)
    value = {
        "wish": plan.wish.as_dict(),
        "plan": plan.hash,
        "by": by,
        "at_ms": at_ms,
        "left": [*left, *([f"and {more} more"] if more else [])],
        "left_count": len(plan.left_alone),
    }
    return as_journal_record([str(Status.BEGUN), plan.wish.flow, run], value)


def agreed_record(flow: str, run: str, *, by: str, at_ms: int, generation: int) -> tuple[bytes, bytes]:
    return as_journal_record([AGREED, flow, run], {"by": by, "at_ms": at_ms, "generation": generation})


def slipped_record(
    flow: str, run: str, slipped: Sequence[str], *, by: str, at_ms: int, generation: int
) -> tuple[bytes, bytes]:
    """A version that doesn't know it reads it as what it is besides: the plan was agreed to."""
    lines = [line[:_LONGEST_LINE] for line in slipped[:_MOST_LINES]]
    more = len(slipped) - len(lines)
    value = {"by": by, "at_ms": at_ms, "generation": generation}
    said = {**value, "slipped": [*lines, *([f"and {more} more"] if more else [])]}
    return as_journal_record([AGREED, flow, run, "slipped", at_ms], said)


def ended_record(
    flow: str,
    run: str,
    status: Status,
    *,
    by: str,
    at_ms: int,
    generation: int = -1,
    facts: Mapping[str, object] | None = None,
) -> tuple[bytes, bytes]:
    value = {"by": by, "at_ms": at_ms, "generation": generation, "facts": dict(facts or {})}
    return as_journal_record([str(status), flow, run], value)


def drill_record(run: DrillRun) -> tuple[bytes, bytes]:
    return as_journal_record([DRILL, run.flow, run.run], run.as_dict())


def failback_record(run: FailbackRun) -> tuple[bytes, bytes]:
    return as_journal_record([FAILBACK, run.flow, run.run], failback_fields(run))
