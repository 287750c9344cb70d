"""The rights of a failback, asked for before anybody says yes: what is emptied can't wait for a grant."""

from __future__ import annotations

from causeway.brokers.wire import Wire
from causeway.core.failback.plan import FailbackPlan, Way
from causeway.core.failover.rights import (
    closing_rights,
    emptying_rights,
    export_rights,
    journal_rights,
    widening_rights,
    writing_rights,
)
from causeway.core.rights import Side
from causeway.flows.failback.emptying import policies_in_the_way
from causeway.flows.failback.parting import Pairing
from causeway.flows.lacking import refuse_without


async def refuse_without_rights(pairing: Pairing, plan: FailbackPlan) -> None:
    """:raises NotAuthorized: the first that is missing, with its grant."""
    forward, reverse = pairing.forward, pairing.reverse
    topics = sorted({cut.old.topic for cut in plan.cuts})
    tails = sorted({cut.old.topic for cut in plan.cuts if cut.has_tail})
    there = (*closing_rights(forward), *journal_rights(), *export_rights(tails))
    await refuse_without(there, {"target": pairing.new.wire})
    if topics:
        await refuse_without(writing_rights(reverse, topics), {"target": pairing.old.wire})
    if plan.way is Way.REBUILD:
        here: dict[Side, Wire] = {"source": pairing.old.wire}
        await refuse_without(emptying_rights(topics), here)
        compacted = policies_in_the_way(pairing.old.wire.endpoint, topics)
        await refuse_without(widening_rights(compacted), here)
