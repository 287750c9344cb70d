"""Fail over: plan, price, consent, snapshot, fence, move, verify, record.

Each step may be the last one before a kill: the same command again goes on from what is committed and ends in
the same state. The order is the promise. Offsets from before are kept ahead of everything else; the fence
stands before the plan is made once more and compared; only then is a group moved, and only if it stands where
the snapshot says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from uuid import uuid4

from causeway.brokers.consumer_groups import ConsumerGroups
from causeway.core.endpoint import ClusterEndpoint
from causeway.core.errors import BadInput, StalePlan
from causeway.core.failover.journal import (
    FailoverRun,
    Status,
    begun_record,
    ended_record,
    fence_words,
    offset_records,
)
from causeway.core.failover.progress import left_to_apply
from causeway.core.failover.sheet import Sheet
from causeway.core.failover.wish import Active, Wish
from causeway.core.flow import Flow
from causeway.core.flow_state import FlowState
from causeway.core.group_filter import FlowGroups
from causeway.core.kafka_errors import error_name
from causeway.core.ports import Refused
from causeway.flows.failover.checking import Verified, verify_run
from causeway.flows.failover.logbook import create_journal, read_journal, write_journal
from causeway.flows.failover.look import make_sheet
from causeway.flows.failover.sides import Sides, held_by, open_sides, trouble_of
from causeway.flows.fence import claim_all_lanes, write_and_claim
from causeway.flows.ownership import Say, write_lift

Consent = Callable[[Sheet], None]
"""Shows the sheet; raises if the answer isn't yes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """Who fails over, and how they say yes."""

    by: str
    consent: Consent
    say: Say
    expected_plan: str = ""
    """The hash of the plan that was agreed to; empty: whatever the sheet shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedOver:
    run: str
    flow: str
    groups: int
    moved: int
    """Offsets that this try committed; those of an earlier try aren't among them."""
    was_done: bool
    """An earlier run did all of it, and nothing was left to do."""
    verified: Verified
    left_alone: tuple[str, ...] = ()
    sheet: Sheet | None = None
    """None: this try went on with the plan of an earlier one."""


def look_before_failover(
    flow: Flow, source: ClusterEndpoint, target: ClusterEndpoint, wish: Wish, selection: FlowGroups
) -> Sheet:
    """The sheet alone. Nothing is written."""
    with open_sides(source, target) as sides, trouble_of(flow):
        return sides.network.run(lambda: make_sheet(flow, sides, wish, selection))


def fail_over(
    flow: Flow,
    source: ClusterEndpoint,
    target: ClusterEndpoint,
    wish: Wish,
    selection: FlowGroups,
    operator: Operator,
) -> FailedOver:
    """:raises StalePlan: something moved between sheet and fence. | :raises BadInput: as `make_sheet`."""
    with open_sides(source, target) as sides, trouble_of(flow):
        earlier = sides.network.run(lambda: _earlier(flow, sides, wish))
        if earlier is not None:
            if earlier.status is Status.BEGUN:
                operator.say(f"{flow.name}: going on with failover {earlier.run}, begun by {earlier.by}")
            return sides.network.run(lambda: _finish(flow, sides, earlier, None, operator))
        sheet = sides.network.run(lambda: make_sheet(flow, sides, wish, selection))
        if operator.expected_plan not in ("", sheet.plan.hash):
            raise _stale(flow, f"it is {sheet.plan.hash} now, and {operator.expected_plan} was asked for")
        operator.consent(sheet)
        return sides.network.run(lambda: _begin(flow, sides, sheet, selection, operator))


async def _earlier(flow: Flow, sides: Sides, wish: Wish) -> FailoverRun | None:
    """The run that this command means to go on with, or that has done it all.

    :raises BadInput: another one has begun and isn't over.
    """
    newest = (await read_journal(sides)).newest(flow.name)
    if newest is None:
        return None
    if newest.wish.key == wish.key:
        state = await sides.flow_state(flow)
        # Without a fence the mirror went on meanwhile: that failover is history, and this is another one.
        return newest if newest.status is Status.BEGUN or state.fence is not None else None
    if newest.status is Status.BEGUN:
        raise BadInput(
            f"failover {newest.run} of {flow.name}",
            rule=f"was begun by {newest.by} with other parameters and isn't finished",
            remedy=f"run it again as it was, or `causeway failover {flow.name} --rollback {newest.run}`",
        )
    return None


async def _begin(
    flow: Flow, sides: Sides, sheet: Sheet, selection: FlowGroups, operator: Operator
) -> FailedOver:
    run = uuid4().hex[:12]
    clock, plan = sides.network, sheet.plan
    await create_journal(flow, sides)
    await write_journal(sides, offset_records(flow.name, run, plan.moves))
    await write_journal(sides, [begun_record(run, plan, by=operator.by, at_ms=clock.time_ms())])
    operator.say(f"{flow.name}: failover {run}: offsets of {len(plan.groups)} groups kept")
    own_fence = await _fence(flow, sides, run, operator.by)
    operator.say(f"{flow.name}: fenced, nothing can be added any more")
    again = await make_sheet(flow, sides, plan.wish, selection, is_fenced=True)
    if again.plan.hash != plan.hash:
        ended = ended_record(flow.name, run, Status.GIVEN_UP, by=operator.by, at_ms=clock.time_ms())
        await write_journal(sides, [ended])
        if own_fence is not None:
            words = {"by": operator.by, "because": fence_words(run)}
            await write_lift(sides.target, clock, flow, lifts=own_fence, **words)
        raise _stale(flow, f"was {plan.hash} on the sheet and {again.plan.hash} behind the fence")
    begun = (await read_journal(sides)).runs[run]
    return await _finish(flow, sides, begun, sheet, operator)


async def _fence(flow: Flow, sides: Sides, run: str, by: str) -> int | None:
    """Also where one stands: whoever raised it may have died before its last claim.

    :returns: the generation of the run's own fence; None: another one stands.
    """
    target, clock = sides.target, sides.network
    state = await target.flow_state(flow.name)
    if state.fence is None:
        await write_and_claim(target, clock, flow, by=by, because=fence_words(run))
    else:
        await claim_all_lanes(target, clock, flow, state)
    state = await target.flow_state(flow.name)
    if state.fence is None:
        raise _stale(flow, "somebody lifted the fence while it was being raised")
    return _own_fence(state, run)


def _own_fence(state: FlowState, run: str) -> int | None:
    fence = state.fence
    return fence.generation if fence is not None and fence.because == fence_words(run) else None


async def _finish(
    flow: Flow, sides: Sides, run: FailoverRun, sheet: Sheet | None, operator: Operator
) -> FailedOver:
    """From the fence on: what is committed says what is left."""
    if sheet is None and run.status is Status.BEGUN:
        await _fence(flow, sides, run.run, operator.by)
    groups = ConsumerGroups(sides.target.wire)
    left_alone: list[str] = []
    moved = 0
    if run.status is Status.BEGUN:
        moved, left_alone = await _move(flow, run, groups)
        operator.say(f"{flow.name}: {moved} offsets of {len(run.shifts)} groups committed")
    verified = await verify_run(run, sides, groups)
    if run.status is Status.BEGUN:
        facts = {**verified.as_dict(), "left_alone": left_alone}
        at_ms = sides.network.time_ms()
        await write_journal(
            sides, [ended_record(flow.name, run.run, Status.DONE, by=operator.by, at_ms=at_ms, facts=facts)]
        )
    return FailedOver(
        run=run.run,
        flow=flow.name,
        groups=len(run.shifts),
        moved=moved,
        was_done=run.status is Status.DONE,
        verified=verified,
        left_alone=tuple(left_alone),
        sheet=sheet,
    )


async def _move(flow: Flow, run: FailoverRun, groups: ConsumerGroups) -> tuple[int, list[str]]:
    """:raises BadInput: a consumer began on the target just now; once it has stopped, the run goes on."""
    remaining = left_to_apply(run, await held_by(groups, run))
    left = [
        f"{astray.group} on {astray.target} has moved since the plan was made, to {astray.at}"
        for astray in remaining.astray
    ]
    answers = await groups.commit({group: dict(offsets) for group, offsets in remaining.to_commit.items()})
    refused = {group: why for group, answer in answers.items() if (why := refusal(answer))}
    if refused and run.wish.active is Active.REFUSE:
        group, why = next(iter(refused.items()))
        raise BadInput(
            f"group {group}",
            rule=f"and {len(refused) - 1} more can't be moved: {why}; the flow is fenced",
            remedy=f"stop its consumers on {flow.target}, then run the same command again: it goes on",
        )
    left += [f"{group}: {why}" for group, why in refused.items()]
    return sum(len(o) for g, o in remaining.to_commit.items() if g not in refused), left


def refusal(answer: object) -> str:
    """Why a coordinator didn't commit; empty: it did."""
    if isinstance(answer, Refused):
        return str(answer)
    assert isinstance(answer, dict)
    return next((error_name(code) for code in answer.values() if code), "")


def _stale(flow: Flow, rule: str) -> StalePlan:
    return StalePlan(
        f"plan of {flow.name}",
        rule=rule,
        remedy="stop what still moves (consumers, the mirror: `causeway fence`), then look at a new sheet",
    )
