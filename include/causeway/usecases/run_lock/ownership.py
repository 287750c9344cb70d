"""Beginning and ending a run: whose turn it is, recorded in `causeway-flows.internal`.

Signs of life are courtesy: they let a second run say who holds the flow instead of taking it. Safety
never rests on them, or on any clock: a lane's claim fences whoever came before it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import uuid4

from causeway import interruption
from causeway.brokers.wire.target_log import WireTarget
from causeway.core.copy.ports import Clock
from causeway.core.kernel.errors import FlowFenced, FlowHeld, Superseded
from causeway.core.kernel.identity import Generation
from causeway.core.kernel.timestamps import rfc3339
from causeway.core.model.flow import Flow
from causeway.core.model.naming import FLOWS_TOPIC
from causeway.core.state.fences import Fence, fence_record, lift_record
from causeway.core.state.flow_records import alive_record, clusters_record, run_record
from causeway.core.state.flow_state import FlowState, Run
from causeway.core.state.repair_commands import open_again
from causeway.core.state.unreadable_records import odd_fault

ALIVE_EVERY_SECONDS = 3.0
_SILENT_AFTER_SECONDS = 12.0
_LOOK_EVERY_SECONDS = 0.5

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOwner:
    """Who is running: for people, and to know one's own earlier attempt."""

    name: str
    run_id: str


def refuse_odd(flow: str, state: FlowState) -> None:
    """:raises ProtocolFault: a record that can't be read may be a fence."""
    for _, record in sorted(state.odd.items()):
        raise odd_fault(flow, record)


def refuse_fenced(flow: str, state: FlowState) -> None:
    """:raises FlowFenced: a fence stops the whole flow; those of single topics don't.
    :raises ProtocolFault: there may be one that can't be read.
    """
    refuse_odd(flow, state)
    if state.fence is None:
        return
    stops = sum(fence.stops_the_flow for fence in state.standing)
    more = f"; {stops} fences stand" if stops > 1 else ""
    raise FlowFenced(
        "flow",
        value=flow,
        rule=f"fenced {state.fence}{more}",
        remedy=open_again(flow, state.standing),
    )


async def acquire_ownership(
    target: WireTarget, clock: Clock, flow: Flow, holder: RunOwner, *, take_over: bool, say: Say
) -> Generation:
    """Take the flow's turn, or say who has it.

    :raises FlowFenced: a fence stands.
    :raises FlowHeld: another run shows signs of life and `take_over` isn't asked for.
    """
    state = await target.flow_state(flow.name)
    refuse_fenced(flow.name, state)
    other = state.running
    if other is not None and other.run_id != holder.run_id and not take_over:
        state = await _wait_for_silence(target, clock, flow.name, other, say)
    at_ms = clock.time_ms()

    def record(before: FlowState) -> tuple[bytes, bytes]:
        return run_record(
            flow.name, before, holder=holder.name, run_id=holder.run_id, lanes=flow.lanes, at_ms=at_ms
        )

    with interruption.whole():  # who ends here has to know that the turn is theirs to give up
        while True:
            key, value = record(state)
            offset = await target.append_plain(FLOWS_TOPIC, key, value)
            state = await target.flow_state(flow.name)
            if record(state) == (key, value):
                return state.generation_at(offset)
            # Another run began in the same moment: compaction must not take what only its record says.


async def _wait_for_silence(target: WireTarget, clock: Clock, flow: str, other: Run, say: Say) -> FlowState:
    """A run that died left no word: it is dead when it stays silent while we watch, by our own watch."""
    state = await target.flow_state(flow)
    sign, deadline = state.last_sign_ms, clock.monotonic() + _SILENT_AFTER_SECONDS
    say(f"{flow}: {other.holder} holds it since {rfc3339(other.since_ms)}; watching for signs of life")
    while clock.monotonic() < deadline:
        await clock.sleep(_LOOK_EVERY_SECONDS)
        state = await target.flow_state(flow)
        refuse_fenced(flow, state)
        now = state.running
        if now is None:
            return state
        if state.last_sign_ms != sign or now.generation != other.generation:
            raise FlowHeld(
                "flow",
                value=flow,
                rule=f"held by {now.holder} since {rfc3339(now.since_ms)}, "
                f"alive at {rfc3339(state.last_sign_ms)}",
                remedy="wait for it, or take over with --take-over",
            )
    say(f"{flow}: {other.holder} is silent since {rfc3339(sign)}, going on in its place")
    return state


async def check_still_owner(target: WireTarget, flow: str, generation: Generation) -> FlowState:
    """:raises FlowFenced: | :raises Superseded: it isn't this run's turn any more."""
    state = await target.flow_state(flow)
    refuse_fenced(flow, state)
    if state.generation != generation:
        raise _superseded(flow, state, generation)
    return state


def _superseded(flow: str, state: FlowState, generation: Generation) -> Superseded:
    """By a newer run, or by a fence of topics that was raised or lifted: that starts no other run."""
    numbers = f"(generation {state.generation}, this run's is {generation})"
    newest = state.run
    if newest is not None and newest.generation == state.generation:
        rule = f"{newest.holder} took over since {rfc3339(newest.since_ms)} {numbers}"
        remedy = "nothing to do: the newer run goes on from what this one committed"
    else:
        rule = f"a fence was raised or lifted while this run was at work, and that ends it {numbers}"
        remedy = "the next run goes on from what this one committed: its scheduler starts it, or you do"
    return Superseded("flow", value=flow, rule=rule, remedy=remedy)


async def write_keepalive(
    target: WireTarget, clock: Clock, flow: str, generation: Generation, *, ended: bool
) -> None:
    key, value = alive_record(flow, generation=generation, ended=ended, at_ms=clock.time_ms())
    await target.append_plain(FLOWS_TOPIC, key, value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Of a fence that is to be raised."""

    token: str = field(default_factory=lambda: uuid4().hex)
    """Never used before."""
    owner: str = ""
    topics: frozenset[str] | None = None
    since_ms: int | None = None
    """For so long it has stood already; None: from now on."""


async def write_fence(
    target: WireTarget,
    clock: Clock,
    flow: Flow,
    *,
    by: str,
    because: str,
    terms: Terms | None = None,
) -> Generation:
    """Beside all that stand.

    :raises ProtocolFault: one may stand that can't be read.
    """
    terms = terms or Terms()
    state = await target.flow_state(flow.name)
    refuse_odd(flow.name, state)
    fence = Fence(
        by=by,
        because=because,
        since_ms=clock.time_ms() if terms.since_ms is None else terms.since_ms,
        token=terms.token,
        topics=terms.topics,
        owner=terms.owner,
    )
    key, value = fence_record(flow.name, fence, most_lanes=max(state.most_lanes, flow.lanes))
    return state.generation_at(await target.append_plain(FLOWS_TOPIC, key, value))


async def write_lift(
    target: WireTarget, clock: Clock, flow: Flow, fence: Fence, *, by: str, because: str
) -> Generation:
    """Of that fence, and of no other."""
    state = await target.flow_state(flow.name)
    lanes = max(state.most_lanes, flow.lanes)
    key, value = lift_record(
        flow.name, fence, by=by, because=because, most_lanes=lanes, at_ms=clock.time_ms()
    )
    return state.generation_at(await target.append_plain(FLOWS_TOPIC, key, value))


async def remember_clusters(target: WireTarget, flow: str, *, source_id: str, target_id: str) -> None:
    key, value = clusters_record(flow, source=source_id, target=target_id)
    await target.append_plain(FLOWS_TOPIC, key, value)
