"""What is kept of a failback: one record in the journal on the new primary, told anew at each step."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import uuid4

from causeway.core.endpoint import ClusterEndpoint
from causeway.core.errors import BadInput
from causeway.core.failback.plan import FailbackPlan, FailbackRun, Step
from causeway.core.failover.journal import failback_record
from causeway.core.flow import Flow
from causeway.core.remedies import next_command
from causeway.flows.clusters import state_on
from causeway.flows.failback.parting import Pairing
from causeway.flows.failover.logbook import create_journal, read_journal, write_journal
from causeway.flows.failover.sides import Sides, open_target_side, trouble_of
from causeway.flows.log_health import refuse_unsound


@dataclass(frozen=True, slots=True)
class Ways:
    """Both flows, and both clusters: `old` is the forward flow's source, `new` its target."""

    forward: Flow
    reverse: Flow
    old: ClusterEndpoint
    new: ClusterEndpoint


def journal_of(pairing: Pairing) -> Sides:
    """The forward flow's target keeps the journal."""
    return Sides(pairing.clusters.network, pairing.new, None, "it isn't asked")


def newest_failback(ways: Ways) -> tuple[FailbackRun | None, bool]:
    """As the journal has it, and whether the forward flow is fenced. Needs the new primary only.

    :raises ProtocolFault: no fence is seen, and one may be lost, or can't be read.
    """

    async def look(sides: Sides) -> tuple[FailbackRun | None, bool]:
        found = (await read_journal(sides, ways.forward.name)).newest_failback(ways.forward.name)
        state = await state_on(sides.target, ways.forward.name)
        if state.fence is None:
            await refuse_unsound(ways.forward, sides.target, state)
        return found, state.fence is not None

    with open_target_side(ways.new) as sides, trouble_of(ways.forward):
        return sides.network.run(lambda: look(sides))


def still_mirrors(forward: Flow) -> BadInput:
    """There was no failover since all was home, so there is no way back."""
    return BadInput(
        f"flow {forward.name}",
        rule=f"isn't fenced: it still mirrors {forward.source} to {forward.target}",
        remedy=f"there is nothing to go back from; {next_command(forward.name)} says where it is",
    )


async def begin_run(pairing: Pairing, plan: FailbackPlan, by: str, **facts: object) -> FailbackRun:
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


async def told(pairing: Pairing, run: FailbackRun, step: Step, **facts: object) -> FailbackRun:
    """The run at its next step, in the journal."""
    now_ms = pairing.clusters.network.time_ms()
    further = replace(run, step=step, at_ms=now_ms, facts={**run.facts, **facts})
    await write_journal(journal_of(pairing), [failback_record(further)])
    return further
