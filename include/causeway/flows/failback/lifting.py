"""Lift a fence by hand, unless that would break into a failback.

What a failback has closed it opens itself, in its own order: lifted by hand, both flows could write.
"""

from __future__ import annotations

from causeway.core.endpoint import ClusterEndpoint
from causeway.core.errors import BadInput
from causeway.core.failback.plan import FailbackRun
from causeway.core.failover.journal import FailoverRun, Journal, Status
from causeway.core.failover.wish import Mode
from causeway.core.fences import Fence
from causeway.core.flow import Flow
from causeway.core.flow_state import FlowState
from causeway.core.instants import rfc3339
from causeway.core.remedies import next_command
from causeway.flows.clusters import state_on
from causeway.flows.failover.logbook import read_journal, seen_journal
from causeway.flows.failover.sides import Sides, open_target_side, trouble_of
from causeway.flows.fence import FenceOutcome, lift_fence


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
    fence, journal = _chosen(flow, target, number)
    if fence is not None:
        _refuse_rolling_back(flow, fence, journal)
        _refuse_homecoming(flow, fence, journal)
        if flow.failback_of:
            _refuse_led(flow, fence, source)
        else:
            _refuse_under_way(fence, journal)
    _refuse_last(flow, target, number)
    return lift_fence(flow, target, by=by, because=because, number=number)


def _chosen(flow: Flow, target: ClusterEndpoint, number: int | None) -> tuple[Fence | None, Journal]:
    """None: it isn't a run's, or `lift_fence` refuses it anyway."""

    async def look(sides: Sides) -> tuple[Fence | None, Journal]:
        standing = (await state_on(sides.target, flow.name)).standing
        named = [each for each in standing if number in (None, each.generation)]
        if len(named) != 1 or not named[0].is_of_a_run:
            return None, Journal()
        return named[0], await read_journal(sides, flow.name)

    with open_target_side(target) as sides, trouble_of(flow):
        return sides.network.run(lambda: look(sides))


def _refuse_under_way(fence: Fence, journal: Journal) -> None:
    """On the forward flow; its target keeps the journal."""
    run = next((each for each in journal.failbacks.values() if each.fence_words == fence.owner), None)
    if run is not None and run.is_under_way:
        raise _refusal(fence, run)


def _refuse_led(flow: Flow, fence: Fence, source: ClusterEndpoint) -> None:
    """On the way back: the failback that raised it is in the journal on its source."""

    async def look(sides: Sides) -> tuple[FlowState, Journal]:
        return await state_on(sides.target, flow.failback_of), await read_journal(sides, flow.failback_of)

    with open_target_side(source) as sides, trouble_of(flow):
        forward, journal = sides.network.run(lambda: look(sides))
    _refuse_under_way(fence, journal)
    run = next((each for each in journal.failbacks.values() if each.stand_by_words == fence.owner), None)
    if run is not None and forward.fence is None:
        raise BadInput(
            f"fence of {flow.name}",
            value=fence.generation,
            rule=f"stands since failback {run.run} came home: {run.flow} leads, and one of the two rests",
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


def _refuse_last(flow: Flow, target: ClusterEndpoint, number: int | None) -> None:
    """Whoever has raised it: of a flow that rests one has to stand until all is home.

    A command's doesn't count: it goes away by itself, and of a dead command it holds up the other flow.
    """

    async def look(sides: Sides) -> tuple[FlowState, FailbackRun | None]:
        journal = await seen_journal(sides, flow.name)
        return await state_on(sides.target, flow.name), journal.newest_failback(flow.name)

    with open_target_side(target) as sides, trouble_of(flow):
        state, run = sides.network.run(lambda: look(sides))
    named = [fence for fence in state.standing if number in (None, fence.generation)]
    closing = [fence for fence in state.standing if fence.stops_the_flow and not fence.is_at_work]
    if run is not None and run.closes_forward and len(closing) == 1 and named == closing:
        raise BadInput(
            f"fence of {flow.name}",
            value=named[0].generation,
            rule=f"is the only one that keeps the flow closed while failback {run.run} leads back "
            f"({run.step}, by {run.by}): without it both flows could write",
            remedy=f"`{run.command}` comes first; once all is home, it can be lifted",
        )


def _refusal(fence: Fence, run: FailbackRun) -> BadInput:
    return BadInput(
        f"fence of failback {run.run}",
        value=fence.generation,
        rule=f"is lifted by that failback itself ({run.step}, by {run.by}): by hand both flows could write",
        remedy=f"`{run.command}` goes on with it",
    )
