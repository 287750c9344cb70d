"""The rights of a failback, asked for before anybody says yes: what is emptied can't wait for a grant."""

from __future__ import annotations

from causeway.brokers.transport.connection import Wire
from causeway.core.failback.divergence import FailbackMode, FailbackPlan
from causeway.core.kernel.acl_vocabulary import Side
from causeway.core.permissions.failback import emptying_rights, export_rights, widening_rights
from causeway.core.permissions.failover import closing_rights, journal_rights, writing_rights
from causeway.usecases.failback.delete_records import policies_in_the_way
from causeway.usecases.failback.divergence import FailbackSession
from causeway.usecases.run_lock.missing_rights import refuse_without


async def refuse_without_rights(pairing: FailbackSession, plan: FailbackPlan) -> None:
    """:raises NotAuthorized: the first that is missing, with its grant."""
    forward, reverse = pairing.forward, pairing.reverse
    topics = sorted({cut.old.topic for cut in plan.cuts})
    tails = sorted({cut.old.topic for cut in plan.cuts if cut.has_tail})
    there = (*closing_rights(forward), *journal_rights(), *export_rights(tails))
    await refuse_without(there, {"target": pairing.new.wire})
    if topics:
        await refuse_without(writing_rights(reverse, topics), {"target": pairing.old.wire})
    if plan.way is FailbackMode.REBUILD:
        here: dict[Side, Wire] = {"source": pairing.old.wire}
        await refuse_without(emptying_rights(topics), here)
        compacted = policies_in_the_way(pairing.old.wire.endpoint, topics)
        await refuse_without(widening_rights(compacted), here)
