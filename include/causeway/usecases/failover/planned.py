"""The part of a planned failover that comes before its snapshot: the mirror is brought to its end."""

from __future__ import annotations

from causeway.core.failover.impact_sheet import Sheet
from causeway.usecases.failover.build_plan import make_sheet
from causeway.usecases.failover.copy_remaining import drain, refuse_readers
from causeway.usecases.failover.failover import Failover
from causeway.usecases.failover.refusals import stale_plan
from causeway.usecases.run_lock.ownership import Say
from causeway.usecases.session.source_may_be_gone import run_blocking

STILL_SECONDS = 10.0
"""How long nothing may be written before it is believed that the writers have stopped."""


def bring_to_its_end(
    failover: Failover, sheet: Sheet, say: Say, *, still_seconds: float = STILL_SECONDS, is_priced: bool
) -> Sheet:
    """With nothing left to mirror, the sheet that holds; it moves the same groups as the one before.

    :raises BadInput: as `drain`. | :raises StalePlan: other groups would be moved now.
    """
    flow, sides, selection = failover.flow, failover.sides, failover.selection
    run_blocking(sides, lambda: refuse_readers(flow, sides, sheet.plan))
    assert sides.source is not None, "refused with the readers"
    ends = sides.source.wire.endpoint, sides.target.wire.endpoint
    drain(flow, *ends, selection, still_seconds=still_seconds, by=failover.by, say=say)
    again = run_blocking(
        sides, lambda: make_sheet(flow, sides, sheet.plan.wish, selection, is_priced=is_priced)
    )
    if again.plan.agreement != sheet.plan.agreement:
        raise stale_plan(flow, "other groups than those of the sheet would be moved now", sheet.plan.wish)
    return again
