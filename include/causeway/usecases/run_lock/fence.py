"""The fence: from its last claim on, no worker, however late it wakes, can add a record to the flow.

First the fenced generation is appended, so that nobody who reads the flows topic claims any more; then
every lane that the flow ever had is claimed, so that nobody who read it earlier can append. The order
matters: the other way round, a worker between its look and its claim could take its lane back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from causeway.brokers.admin.topics import ClusterAdmin
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.ports import Clock, LaneFenced, OutcomeUnknown, Unreachable
from causeway.core.kernel.endpoint import ClusterEndpoint
from causeway.core.kernel.errors import BadInput, ClusterUnreachable, UnknownName
from causeway.core.model.flow import Flow
from causeway.core.state.fences import Fence
from causeway.core.state.flow_state import FlowState
from causeway.core.state.repair_commands import fence_lines
from causeway.usecases.run_lock.command_fence import CommandFence, command_fence_of
from causeway.usecases.run_lock.internal_topics import create_internal_topics
from causeway.usecases.run_lock.ownership import Terms, refuse_fenced, write_fence, write_lift
from causeway.usecases.session.blocking import blocking
from causeway.usecases.session.both_clusters import run_at_target, state_on
from causeway.usecases.session.flows_topic_health import refuse_unsound

_TRIES = 10
_PAUSE_SECONDS = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class FenceOutcome:
    flow: str
    fenced: bool
    """Whether the whole flow is, by whichever fence."""
    generation: int
    lanes_claimed: int
    changed: bool
    """False: it was so already; fencing again claims the lanes again all the same."""
    stands: Fence | None = None
    """After `fence`: the one that was raised. After `lift`: what still stops the flow."""
    lifted: Fence | None = None
    standing: tuple[Fence, ...] = ()
    """All of them, now."""


def fence_flow(
    flow: Flow, target: ClusterEndpoint, *, by: str, because: str, topics: Sequence[str] = ()
) -> FenceOutcome:
    """Needs the target only: the source may be gone. `topics` of the source; none: the whole flow.

    :raises UnknownName: the flow mirrors no such topic.
    """

    async def close(at: WireTarget) -> FenceOutcome:
        clock = at.wire.network
        await _make_ready(flow, at)
        scope = _mirrors(flow, await at.flow_state(flow.name), topics) if topics else None
        outcome = await fence_for_people(at, clock, flow, by=by, because=because, topics=scope)
        await _claim(at, clock, flow, flow.maintenance_id)
        return outcome

    with _trouble_of_fence(flow):
        return run_at_target(target, close)


def _mirrors(flow: Flow, state: FlowState, topics: Sequence[str]) -> frozenset[str]:
    known = {pair.source_topic: mirror for mirror, pair in state.pairs.items()}
    for topic in topics:
        if topic not in known:
            raise UnknownName(
                "--topics",
                value=topic,
                rule=f"flow {flow.name} hasn't begun with a topic of that name on {flow.source}",
                remedy=f"`causeway status {flow.name}` shows those that it mirrors",
            )
    return frozenset(known[topic] for topic in topics)


def lift_fence(
    flow: Flow, target: ClusterEndpoint, *, by: str, because: str, number: int | None = None
) -> FenceOutcome:
    """The fence with that generation, or the only one. Who lifts says that writing is right again.

    :raises BadInput: several stand, and none is named. | :raises UnknownName: that one doesn't stand.
    :raises FlowFenced: somebody has fenced it again meanwhile; that fence isn't the one that was lifted.
    """

    with _trouble_of_fence(flow):
        return run_at_target(target, lambda at: _lift(flow, at, by, because, number))


async def lift_fence_at(
    target: WireTarget, flow: Flow, *, by: str, because: str, number: int | None = None
) -> FenceOutcome:
    """As `lift_fence`, with connections that are open already."""
    with _trouble_of_fence(flow):
        return await _lift(flow, target, by, because, number)


async def _lift(flow: Flow, target: WireTarget, by: str, because: str, number: int | None) -> FenceOutcome:
    clock = target.wire.network
    await _make_ready(flow, target)
    outcome = await write_the_lift(target, clock, flow, by=by, because=because, number=number)
    await _claim(target, clock, flow, flow.maintenance_id)  # who worked under it without a lane ends, too
    return outcome


async def _make_ready(flow: Flow, target: WireTarget) -> None:
    """:raises ProtocolFault: nothing may be written for the flow before a person has looked."""
    await refuse_unsound(flow, target, await state_on(target, flow.name))
    existing = frozenset(await target.wire.topics(None))
    await blocking(lambda: create_internal_topics(flow, ClusterAdmin(target.wire.endpoint), existing))


@contextmanager
def _trouble_of_fence(flow: Flow) -> Iterator[None]:
    try:
        yield
    except (Unreachable, OutcomeUnknown) as trouble:
        raise ClusterUnreachable(
            f"fence of {flow.name}",
            rule=str(trouble),
            remedy="nothing is sure yet: run the same command again",
        ) from trouble


async def fence_for_people(
    target: WireTarget,
    clock: Clock,
    flow: Flow,
    *,
    by: str,
    because: str,
    topics: frozenset[str] | None = None,
) -> FenceOutcome:
    """One that stands until somebody lifts it, beside those of others: each has a reason of its own.

    Where the same person has raised one of that scope for the same reason, the new one takes its time and its
    place: so a lift of that one which is on its way opens nothing.
    """
    stood = [
        fence
        for fence in (await target.flow_state(flow.name)).standing
        if (fence.owner, fence.topics, fence.by, fence.because) == ("", topics, by, because)
    ]
    terms = Terms(topics=topics, since_ms=stood[0].since_ms if stood else None)
    generation = await write_fence(target, clock, flow, by=by, because=because, terms=terms)
    claimed = await claim_all_lanes(target, clock, flow, await target.flow_state(flow.name))
    for each in stood:
        await write_lift(target, clock, flow, each, by=by, because="raised once more")
    state = await target.flow_state(flow.name)
    return FenceOutcome(
        flow=flow.name,
        fenced=state.fence is not None,
        generation=generation,
        lanes_claimed=claimed,
        changed=not stood,
        stands=state.fences.get(terms.token),
        standing=state.standing,
    )


async def close_for(
    target: WireTarget, clock: Clock, flow: Flow, owner: str, *, by: str, takes_over: bool = False
) -> CommandFence:
    """The fence of a run that closes the flow, in words of its own; one that stands is kept, and its lanes
    are claimed again: whoever raised it may have died before its last claim.

    `takes_over`: fences of runs before it are lifted, once this one holds. What people have raised stands.

    :raises FlowHeld: somebody has lifted it by then.
    """
    if not (await target.flow_state(flow.name)).fences_of(owner):
        await write_fence(target, clock, flow, by=by, because=owner, terms=Terms(owner=owner))
    state = await target.flow_state(flow.name)
    await claim_all_lanes(target, clock, flow, state)
    now = await target.flow_state(flow.name)
    own = command_fence_of(flow.name, now, owner)
    for each in state.standing if takes_over else ():
        if each.is_of_a_run and each.owner != owner:
            await write_lift(target, clock, flow, each, by=by, because=f"{owner} stands in its place")
    return own


async def open_for(
    target: WireTarget, clock: Clock, flow: Flow, owner: str, *, by: str, because: str
) -> FlowState:
    """Lift the fence of that run, and no other; gives what stands then."""
    for each in (await target.flow_state(flow.name)).fences_of(owner):
        await write_lift(target, clock, flow, each, by=by, because=because)
    return await target.flow_state(flow.name)


def left_closed(flow: Flow, state: FlowState) -> list[str]:
    """What a run that has opened the flow has to say of it: fences of others stand."""
    if state.fence is None:
        return []
    return [f"{flow.name} stays closed: {line}" for line in fence_lines(flow.name, state.standing)]


async def write_the_lift(
    target: WireTarget, clock: Clock, flow: Flow, *, by: str, because: str, number: int | None = None
) -> FenceOutcome:
    state = await target.flow_state(flow.name)
    chosen = _chosen(flow, state.standing, number)
    if chosen is not None:
        await write_lift(target, clock, flow, chosen, by=by, because=because)
        state = await target.flow_state(flow.name)
        if number is None:
            refuse_fenced(flow.name, state)
    return FenceOutcome(
        flow=flow.name,
        fenced=state.fence is not None,
        generation=state.generation,
        lanes_claimed=0,
        changed=chosen is not None,
        stands=state.fence,
        lifted=chosen,
        standing=state.standing,
    )


def _chosen(flow: Flow, standing: Sequence[Fence], number: int | None) -> Fence | None:
    if not standing or (number is None and len(standing) == 1):
        return standing[0] if standing else None
    found = next((fence for fence in standing if fence.generation == number), None)
    if found is not None:
        return found
    stand = "; ".join(fence_lines(flow.name, standing))
    if number is None:
        rule = f"must be named: {len(standing)} stand"
        raise BadInput(f"fence of {flow.name}", rule=rule, remedy=stand)
    raise UnknownName("--fence", value=number, rule="doesn't stand (any more)", remedy=stand)


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
        except (OutcomeUnknown, LaneFenced, Unreachable):
            if attempt == _TRIES - 1:
                raise
            await clock.sleep(_PAUSE_SECONDS)
        else:
            return
