"""The fence: from its last claim on, no worker, however late it wakes, can add a record to the flow.

First the fenced generation is appended, so that nobody who reads the flows topic claims any more; then
every lane that the flow ever had is claimed, so that nobody who read it earlier can append. The order
matters: the other way round, a worker between its look and its claim could take its lane back.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from causeway.brokers.admin import ClusterAdmin
from causeway.brokers.target_log import WireTarget
from causeway.core.endpoint import ClusterEndpoint
from causeway.core.errors import ClusterUnreachable
from causeway.core.flow import Flow
from causeway.core.flow_state import Fence, FlowState
from causeway.core.ports import Beaten, Clock, Doubt, Unreachable
from causeway.flows.clusters import open_target
from causeway.flows.internal_topics import create_internal_topics
from causeway.flows.ownership import refuse_fenced, write_fence, write_fence_again, write_lift

_TRIES = 10
_PAUSE_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceOutcome:
    flow: str
    fenced: bool
    generation: int
    lanes_claimed: int
    changed: bool
    """False: it was so already; fencing again claims the lanes again all the same."""
    stands: Fence | None = None
    """The fence in its own words: of who raised it first."""


def fence_flow(flow: Flow, target: ClusterEndpoint, *, by: str, because: str) -> FenceOutcome:
    """Needs the target only: the source may be gone."""

    async def close(at: WireTarget, clock: Clock) -> FenceOutcome:
        outcome = await _write_or_keep(at, clock, flow, by=by, because=because)
        await _claim(at, clock, flow, flow.maintenance_id)
        return outcome

    return _turn(flow, target, close)


def lift_fence(flow: Flow, target: ClusterEndpoint, *, by: str, because: str) -> FenceOutcome:
    """Open the flow again. Who lifts says that writing is right again.

    :raises FlowFenced: somebody has fenced it again meanwhile; that fence isn't the one that was lifted.
    """
    return _turn(flow, target, lambda at, clock: write_the_lift(at, clock, flow, by=by, because=because))


def _turn(
    flow: Flow, endpoint: ClusterEndpoint, write: Callable[[WireTarget, Clock], Awaitable[FenceOutcome]]
) -> FenceOutcome:
    try:
        with open_target(endpoint) as (network, target):
            existing = frozenset(network.run(lambda: target.wire.topics(None)))
            create_internal_topics(flow, ClusterAdmin(endpoint), existing)
            return network.run(lambda: write(target, network))
    except (Unreachable, Doubt) as trouble:
        raise ClusterUnreachable(
            f"fence of {flow.name}",
            rule=str(trouble),
            remedy="nothing is sure yet: run the same command again",
        ) from trouble


async def write_and_claim(
    target: WireTarget, clock: Clock, flow: Flow, *, by: str, because: str
) -> FenceOutcome:
    """Also where a fence stands: somebody may be about to lift that one. These words take its place."""
    stood = (await target.flow_state(flow.name)).fence
    generation = await write_fence(target, clock, flow, by=by, because=because)
    return await _claimed(target, clock, flow, stood, generation)


async def _write_or_keep(
    target: WireTarget, clock: Clock, flow: Flow, *, by: str, because: str
) -> FenceOutcome:
    """The same, but a fence that stands keeps its words and its time: who raised it first is to be asked.

    Not a command's own, which stands as long as that works and goes away with it.
    """
    stood = (await target.flow_state(flow.name)).fence
    if stood is None or stood.token:
        outcome = await write_and_claim(target, clock, flow, by=by, because=because)
        return replace(outcome, changed=True)
    generation = await write_fence_again(target, clock, flow, stood)
    return await _claimed(target, clock, flow, stood, generation)


async def _claimed(
    target: WireTarget, clock: Clock, flow: Flow, stood: Fence | None, generation: int
) -> FenceOutcome:
    state = await target.flow_state(flow.name)
    claimed = await claim_all_lanes(target, clock, flow, state)
    return FenceOutcome(
        flow=flow.name,
        fenced=True,
        generation=generation,
        lanes_claimed=claimed,
        changed=stood is None,
        stands=state.fence,
    )


async def write_the_lift(
    target: WireTarget, clock: Clock, flow: Flow, *, by: str, because: str
) -> FenceOutcome:
    state = await target.flow_state(flow.name)
    stood = state.fence
    if stood is not None:
        await write_lift(target, clock, flow, lifts=stood.generation, by=by, because=because)
        state = await target.flow_state(flow.name)
        refuse_fenced(flow.name, state)
    return FenceOutcome(
        flow=flow.name,
        fenced=False,
        generation=state.generation,
        lanes_claimed=0,
        changed=stood is not None,
    )


async def claim_all_lanes(target: WireTarget, clock: Clock, flow: Flow, state: FlowState) -> int:
    """Every lane that the flow ever had, whatever its number of lanes is now."""
    lanes = max(state.most_lanes, flow.lanes)
    for lane in range(lanes):
        await _claim(target, clock, flow, flow.transactional_id(lane))
    return lanes


async def _claim(target: WireTarget, clock: Clock, flow: Flow, transactional_id: str) -> None:
    for attempt in range(_TRIES):
        try:
            await target.claim(transactional_id, timeout_ms=flow.limits.transaction_timeout_ms)
        except (Doubt, Beaten, Unreachable):
            if attempt == _TRIES - 1:
                raise
            await clock.sleep(_PAUSE_SECONDS)
        else:
            return
