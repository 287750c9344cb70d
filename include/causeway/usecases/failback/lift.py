"""Lift a fence by hand, unless that would break into a failback.

What a failback has closed it opens itself, in its own order: lifted by hand, both flows could write.
"""

from __future__ import annotations

from causeway.core.failback.divergence import FailbackRun
from causeway.core.failover.request import Mode
from causeway.core.journal.journal import FailoverRun, Journal, Status
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import BadInput
from causeway.core.kernel.timestamps import rfc3339
from causeway.core.model.flow import Flow
from causeway.core.state.fences import Fence
from causeway.core.state.repair_commands import next_command
from causeway.usecases.journal.store import read_journal, seen_journal
from causeway.usecases.run_lock.fence import FenceOutcome, lift_fence_at
from causeway.usecases.session.both_clusters import opened_beside, state_on
from causeway.usecases.session.source_may_be_gone import FlowSession, run_in_target_session, trouble_of


def lift_by_hand(
    flow: Flow,
    source: ClusterEndpoint,
    target: ClusterEndpoint,
    *,
    by: str,
    because: str,
    number: int | None = None,
) -> FenceOutcome:
    """As `lift_fence`. The source is asked only about what a failback has raised on the way back.

    :raises BadInput: the fence is a failback's, which goes on; a failover's that is being rolled back; or the
        last one of a flow that rests.
    """

    async def lift(sides: FlowSession) -> FenceOutcome:
        with trouble_of(flow):
            fence, journal = await _chosen(flow, sides, number)
            if fence is not None:
                _refuse_rolling_back(flow, fence, journal)
                _refuse_homecoming(flow, fence, journal)
                if flow.failback_of:
                    await _refuse_led(flow, fence, sides, source)
                else:
                    _refuse_under_way(fence, journal)
            await _refuse_last(flow, sides, number)
        return await lift_fence_at(sides.target, flow, by=by, because=because, number=number)

    return run_in_target_session(target, lift)


async def _chosen(flow: Flow, sides: FlowSession, number: int | None) -> tuple[Fence | None, Journal]:
    """None: it isn't a run's, or `lift_fence_at` refuses it anyway."""
    standing = (await state_on(sides.target, flow.name)).standing
    named = [each for each in standing if number in (None, each.generation)]
    if len(named) != 1 or not named[0].is_of_a_run:
        return None, Journal()
    return named[0], await read_journal(sides, flow.name)


def _refuse_under_way(fence: Fence, journal: Journal) -> None:
    """On the forward flow; its target keeps the journal."""
    run = next((each for each in journal.failbacks.values() if each.fence_words == fence.owner), None)
    if run is not None and run.is_under_way:
        raise _refusal(fence, run)


async def _refuse_led(flow: Flow, fence: Fence, sides: FlowSession, source: ClusterEndpoint) -> None:
    """On the way back: the failback that raised it is in the journal on its source."""
    async with opened_beside(sides.network, source) as log:
        there = FlowSession(sides.network, log, None)
        forward = await state_on(log, flow.failback_of)
        journal = await read_journal(there, flow.failback_of)
    _refuse_under_way(fence, journal)
    run = next((each for each in journal.failbacks.values() if each.stand_by_words == fence.owner), None)
    if run is not None and forward.fence is None:
        raise BadInput(
            f"fence of {flow.name}",
            value=fence.generation,
            rule=f"stands since failback {run.run} was completed: {run.flow} mirrors, so the other rests",
            remedy=f"nothing to lift; {next_command(run.flow)} says what comes next",
        )


def _refuse_rolling_back(flow: Flow, fence: Fence, journal: Journal) -> None:
    """Whoever takes a failover back lifts its fence last: before that a group sync would commit beside it."""
    run = _run_of(flow, fence, journal)
    if run is not None and run.rollback is not None and run.status is Status.ROLLING_BACK:
        raise BadInput(
            f"fence of {flow.name}",
            value=fence.generation,
            rule=f"is of failover {run.run}, and {run.rollback.by} has begun to roll that back at "
            f"{rfc3339(run.rollback.at_ms)}: the rollback lifts it itself, as its last step",
            remedy=f"`causeway failover {flow.name} --rollback {run.run}` goes on with it",
        )


def _refuse_homecoming(flow: Flow, fence: Fence, journal: Journal) -> None:
    """A homecoming has closed the way back, which keeps its journal on its own target. One that was given up,
    or rolled back, and killed before it lifted its fence is over: then nobody else does."""
    run = _run_of(flow, fence, journal)
    if run is not None and run.wish.mode is Mode.HOME and run.status in (Status.BEGUN, Status.DONE):
        raise BadInput(
            f"fence of {flow.name}",
            value=fence.generation,
            rule=f"is of a homecoming, begun by {run.by}, which lifts it itself",
            remedy=f"{next_command(flow.name)} says how to go on with it",
        )


def _run_of(flow: Flow, fence: Fence, journal: Journal) -> FailoverRun | None:
    """The failover that has raised it; None: no failover has."""
    return next((each for each in journal.of_flow(flow.name) if each.fence_words == fence.owner), None)


async def _refuse_last(flow: Flow, sides: FlowSession, number: int | None) -> None:
    """Whoever has raised it: of a flow that rests one has to stand until all is home.

    A command's doesn't count: it goes away by itself, and of a dead command it holds up the other flow.
    """
    run = (await seen_journal(sides, flow.name)).newest_failback(flow.name)
    state = await state_on(sides.target, flow.name)
    named = [fence for fence in state.standing if number in (None, fence.generation)]
    closing = [fence for fence in state.standing if fence.stops_the_flow and not fence.is_at_work]
    if run is not None and run.closes_forward and len(closing) == 1 and named == closing:
        raise BadInput(
            f"fence of {flow.name}",
            value=named[0].generation,
            rule=f"is the only one that keeps the flow closed while failback {run.run} mirrors back "
            f"({run.step}, by {run.by}): without it both flows could write",
            remedy=f"`{run.command}` comes first; once the failback is completed, it can be lifted",
        )


def _refusal(fence: Fence, run: FailbackRun) -> BadInput:
    return BadInput(
        f"fence of failback {run.run}",
        value=fence.generation,
        rule=f"is lifted by that failback itself ({run.step}, by {run.by}): by hand both flows could write",
        remedy=f"`{run.command}` goes on with it",
    )
