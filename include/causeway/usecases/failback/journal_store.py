"""What is kept of a failback: one record in the journal on the new primary, written again at each step."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from uuid import uuid4

from causeway.brokers.wire.target_log import WireTarget
from causeway.core.failback.divergence import FailbackPlan, FailbackRun, Step
from causeway.core.journal.written_records import failback_record
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import BadInput
from causeway.core.model.flow import Flow
from causeway.core.state.repair_commands import next_command
from causeway.usecases.failback.divergence import FailbackSession
from causeway.usecases.journal.store import create_journal, read_journal, write_journal
from causeway.usecases.session.both_clusters import Clusters, opened_beside, state_on
from causeway.usecases.session.flows_topic_health import refuse_unsound
from causeway.usecases.session.source_may_be_gone import FlowSession, run_in_target_session, trouble_of


@dataclass(frozen=True, slots=True)
class FlowPair:
    """Both flows, and both clusters: `old` is the forward flow's source, `new` its target."""

    forward: Flow
    reverse: Flow
    old: ClusterEndpoint
    new: ClusterEndpoint


@asynccontextmanager
async def opened_back(ways: FlowPair, sides: FlowSession) -> AsyncIterator[FailbackSession]:
    """The old primary beside the new one, which is open already: both, as the reverse flow has them."""
    async with opened_beside(sides.network, ways.old) as old:
        clusters = Clusters(sides.network, WireTarget(sides.target.wire), old)
        yield FailbackSession(ways.forward, ways.reverse, clusters)


def journal_of(pairing: FailbackSession) -> FlowSession:
    """The forward flow's target keeps the journal."""
    return FlowSession(pairing.clusters.network, pairing.new, None, "it isn't asked")


def newest_failback(ways: FlowPair) -> tuple[FailbackRun | None, bool]:
    """As the journal has it, and whether the forward flow is fenced. Needs the new primary only.

    :raises ProtocolFault: no fence is seen, and one may be lost, or can't be read.
    """

    return run_in_target_session(ways.new, lambda sides: newest_failback_on(sides, ways.forward))


async def newest_failback_on(sides: FlowSession, forward: Flow) -> tuple[FailbackRun | None, bool]:
    """As `newest_failback`, with connections to the new primary that are open already."""
    with trouble_of(forward):
        found = (await read_journal(sides, forward.name)).newest_failback(forward.name)
        state = await state_on(sides.target, forward.name)
        if state.fence is None:
            await refuse_unsound(forward, sides.target, state)
        return found, state.fence is not None


def still_mirrors(forward: Flow) -> BadInput:
    """There was no failover since all was home, so there is no way back."""
    return BadInput(
        f"flow {forward.name}",
        rule=f"isn't fenced: it still mirrors {forward.source} to {forward.target}",
        remedy=f"there is nothing to go back from; {next_command(forward.name)} says where it is",
    )


async def begin_run(pairing: FailbackSession, plan: FailbackPlan, by: str, **facts: object) -> FailbackRun:
    now_ms = pairing.clusters.network.time_ms()
    run = FailbackRun(
        run=uuid4().hex[:12],
        flow=plan.flow,
        reverse=plan.reverse,
        way=plan.way,
        step=Step.BEGUN,
        by=by,
        begun_ms=now_ms,
        at_ms=now_ms,
        facts={"plan": plan.hash, **facts},
    )
    await create_journal(pairing.forward, journal_of(pairing))
    await write_journal(journal_of(pairing), [failback_record(run)])
    return run


async def told(pairing: FailbackSession, run: FailbackRun, step: Step, **facts: object) -> FailbackRun:
    """The run at its next step, in the journal."""
    now_ms = pairing.clusters.network.time_ms()
    further = replace(run, step=step, at_ms=now_ms, facts={**run.facts, **facts})
    await write_journal(journal_of(pairing), [failback_record(further)])
    return further
