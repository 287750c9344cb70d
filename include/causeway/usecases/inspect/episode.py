"""Look where a flow is in its episode.

The target is enough. The source is asked for what only it knows, if it answers.
"""

from __future__ import annotations

from dataclasses import replace

from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.ports import Unreachable
from causeway.core.episode.episodes import was_rolled_back
from causeway.core.episode.next_step import what_next
from causeway.core.episode.stage import Names, Next, Seen
from causeway.core.journal.journal import Journal
from causeway.core.journal.loss import lost_run_fault, lost_runs
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import CausewayError, NotAuthorized
from causeway.core.kernel.identity import TopicPartition
from causeway.core.model.flow import Flow
from causeway.core.state.flow_state import FlowState
from causeway.core.state.parked import Parked
from causeway.usecases.journal.store import read_journal
from causeway.usecases.session.both_clusters import state_on
from causeway.usecases.session.flows_topic_health import read_log_health
from causeway.usecases.session.pair_positions import read_pair_positions
from causeway.usecases.session.source_may_be_gone import FlowSession, in_session


def find_next_step(
    flow: Flow, reverse: Flow | None, source: ClusterEndpoint, target: ClusterEndpoint
) -> Next:
    """`reverse` mirrors `target` back to `source`; None: no flow does. Nothing is written.

    :raises ClusterTrouble: the target can't be used.
    """
    seen = in_session(flow, source, target, lambda sides: _see_flow(flow, reverse, sides))
    return replace(what_next(seen), state=seen.state)


async def _see_flow(flow: Flow, reverse: Flow | None, sides: FlowSession) -> Seen:
    state = await state_on(sides.target, flow.name)
    journal = await read_journal(sides, flow.name)
    troubles = (await read_log_health(flow, sides.target, state)).troubles
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


async def _at_source(reverse: Flow, sides: FlowSession) -> tuple[FlowState | None, Journal]:
    """What the reverse flow keeps there."""
    if sides.source is None:
        return None, Journal()
    there = FlowSession(sides.network, WireTarget(sides.source.wire), None)
    try:
        return await state_on(there.target, reverse.name), await read_journal(there, reverse.name)
    except (Unreachable, NotAuthorized) as trouble:
        sides.silence(str(trouble))
        return None, Journal()


async def _troubles_of_reverse(
    reverse: Flow | None, state: FlowState | None, sides: FlowSession
) -> tuple[CausewayError, ...]:
    """Of its own topics at the source; a user that may not see them gets none."""
    if reverse is None or state is None or sides.source is None:
        return ()
    try:
        return (await read_log_health(reverse, WireTarget(sides.source.wire), state)).troubles
    except (Unreachable, NotAuthorized):
        return ()


async def _parked(flow: Flow, state: FlowState, sides: FlowSession) -> dict[TopicPartition, Parked]:
    """What a run found, and nobody has set a position since."""
    if state.parked is None or not state.parked.partitions:
        return {}
    mirrors = {pair.source_topic: name for name, pair in state.pairs.items()}
    targets = {
        at: TopicPartition(mirrors[at.topic], at.partition)
        for at in state.parked.partitions
        if at.topic in mirrors
    }
    found = await read_pair_positions(flow, sides.target, state, list(targets.values()), stable=False)
    return state.parked.still({at: found[there] for at, there in targets.items()})
