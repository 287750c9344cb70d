"""The part of a planned failover that comes before its snapshot: the mirror is brought to its end."""

from __future__ import annotations

from dataclasses import dataclass

from causeway.core.endpoint import ClusterEndpoint
from causeway.core.failover.sheet import Sheet
from causeway.core.flow import Flow
from causeway.core.group_filter import FlowGroups
from causeway.flows.failover.drain import drain, refuse_readers
from causeway.flows.failover.look import make_sheet
from causeway.flows.failover.sides import Sides
from causeway.flows.failover.steps import stale_plan
from causeway.flows.ownership import Say

STILL_SECONDS = 10.0
"""How long nothing may be written before it is believed that the writers have stopped."""


@dataclass(frozen=True, slots=True)
class Switch:
    flow: Flow
    source: ClusterEndpoint
    target: ClusterEndpoint
    selection: FlowGroups
    by: str
    say: Say
    still_seconds: float = STILL_SECONDS

    def bring_to_its_end(self, sides: Sides, sheet: Sheet) -> Sheet:
        """With nothing left to mirror, the sheet that holds; it moves the same groups as the one before.

        :raises BadInput: as `drain`. | :raises StalePlan: other groups would be moved now.
        """
        flow, selection, still = self.flow, self.selection, self.still_seconds
        sides.network.run(lambda: refuse_readers(flow, sides, sheet.plan))
        drain(flow, self.source, self.target, selection, still_seconds=still, by=self.by, say=self.say)
        again = sides.network.run(lambda: make_sheet(flow, sides, sheet.plan.wish, selection))
        if again.plan.agreement != sheet.plan.agreement:
            raise stale_plan(flow, "other groups than those of the sheet would be moved now")
        return again
