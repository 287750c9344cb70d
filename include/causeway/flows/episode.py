"""Look where a flow is in its episode.

The target is enough. The source is asked for what only it knows, if it answers.
"""

from __future__ import annotations

from causeway.brokers.target_log import WireTarget
from causeway.core.endpoint import ClusterEndpoint
from causeway.core.errors import CausewayError, NotAuthorized
from causeway.core.failover.episode import what_next
from causeway.core.failover.episode_stage import Names, Next, Seen
from causeway.core.failover.episodes import was_rolled_back
from causeway.core.failover.journal import Journal
from causeway.core.failover.journal_loss import lost_run_fault, lost_runs
from causeway.core.flow import Flow
from causeway.core.flow_state import FlowState
from causeway.core.identity import TopicPartition
from causeway.core.lane_task import Parked
from causeway.core.ports import Unreachable
from causeway.flows.clusters import state_on
from causeway.flows.failover.logbook import read_journal
from causeway.flows.failover.sides import Sides, open_sides, trouble_of
from causeway.flows.log_health import look_at_log
from causeway.flows.standing import where_they_stand


def look_what_is_next(
    flow: Flow, reverse: Flow | None, source: ClusterEndpoint, target: ClusterEndpoint
) -> Next:
    """`reverse` leads back from `target` to `source`; None: no flow does. Nothing is written.

    :raises ClusterTrouble: the target can't be used.
    """
    with open_sides(source, target) as sides, trouble_of(flow):
        return what_next(sides.network.run(lambda: _look(flow, reverse, sides)))


async def _look(flow: Flow, reverse: Flow | None, sides: Sides) -> Seen:
    state = await state_on(sides.target, flow.name)
    journal = await read_journal(sides, flow.name)
    troubles = (await look_at_log(flow, sides.target, state)).troubles
    lost = tuple(lost_run_fault(flow.name, fence) for fence in lost_runs(state, journal))
    reverse_state, there = (None, Journal()) if reverse is None else await _at_source(reverse, sides)
    back = journal.newest_failback(flow.name)
    return Seen(
        names=Names(
            flow=flow.name, source=flow.source, target=flow.target, reverse=reverse.name if reverse else ""
        ),
        now_ms=sides.network.time_ms(),
        state=state,
        journal=journal,
        troubles=(*troubles, *lost, *await _troubles_of_reverse(reverse, reverse_state, sides)),
        parked=await _parked(flow, state, sides),
        reverse_state=reverse_state,
        homecoming=None if reverse is None else there.newest(reverse.name),
        is_taken_back=back is not None and was_rolled_back(back, there),
        source_is_silent=bool(sides.silent),
    )


async def _at_source(reverse: Flow, sides: Sides) -> tuple[FlowState | None, Journal]:
    """What the flow that leads back keeps there."""
    if sides.source is None:
        return None, Journal()
    there = Sides(sides.network, WireTarget(sides.source.wire), None)
    try:
        return await state_on(there.target, reverse.name), await read_journal(there, reverse.name)
    except (Unreachable, NotAuthorized) as trouble:
        sides.silence(str(trouble))
        return None, Journal()


async def _troubles_of_reverse(
    reverse: Flow | None, state: FlowState | None, sides: Sides
) -> tuple[CausewayError, ...]:
    """Of its own topics at the source; who may not see them isn't told."""
    if reverse is None or state is None or sides.source is None:
        return ()
    try:
        return (await look_at_log(reverse, WireTarget(sides.source.wire), state)).troubles
    except (Unreachable, NotAuthorized):
        return ()


async def _parked(flow: Flow, state: FlowState, sides: Sides) -> dict[TopicPartition, Parked]:
    """What a run found, and nobody has set a position since."""
    if state.parked is None or not state.parked.partitions:
        return {}
    mirrors = {pair.source_topic: name for name, pair in state.pairs.items()}
    targets = {
        at: TopicPartition(mirrors[at.topic], at.partition)
        for at in state.parked.partitions
        if at.topic in mirrors
    }
    found = await where_they_stand(flow, sides.target, state, list(targets.values()), stable=False)
    return state.parked.still({at: found[there] for at, there in targets.items()})
