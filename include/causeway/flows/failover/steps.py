"""The steps of a failover. Each may be the last one before a kill; each can be made again, in any try.

The order is the promise. Offsets from before are kept ahead of everything else; the fence stands before
the plan is made once more and compared; only then is a group moved, and only if it stands where the
snapshot says. How far a run came is read from what is committed, and whether its plan held from the
journal: behind the first move a plan can't be compared any more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from uuid import uuid4

from causeway.brokers.consumer_groups import ConsumerGroups
from causeway.core.errors import BadInput, StalePlan, UnknownName
from causeway.core.failover.journal import (
    FailoverRun,
    Status,
    agreed_record,
    begun_record,
    ended_record,
    offset_records,
)
from causeway.core.failover.plan import FailoverPlan
from causeway.core.failover.progress import left_to_apply
from causeway.core.failover.rights import closing_rights, journal_rights, moving_rights
from causeway.core.failover.wish import Active, Wish
from causeway.core.flow import Flow
from causeway.core.flow_state import FlowState
from causeway.core.group_filter import FlowGroups
from causeway.core.kafka_errors import error_name
from causeway.core.ports import Refused
from causeway.core.rights import Operation
from causeway.flows.failover.drain import left_behind
from causeway.flows.failover.logbook import create_journal, read_journal, write_journal
from causeway.flows.failover.look import make_sheet
from causeway.flows.failover.sides import Sides, held_by
from causeway.flows.fence import claim_all_lanes, write_and_claim
from causeway.flows.lacking import refuse_without
from causeway.flows.ownership import write_lift


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    offsets: int = 0
    """That this try committed; those of an earlier try aren't among them."""
    left_alone: tuple[str, ...] = ()


async def earlier_run(flow: Flow, sides: Sides, wish: Wish) -> FailoverRun | None:
    """The run that this wish means to go on with, or that has done it all.

    :raises BadInput: another one has begun and isn't over.
    """
    newest = (await read_journal(sides)).newest(flow.name)
    if newest is None:
        return None
    if newest.wish.key == wish.key:
        state = await sides.flow_state(flow)
        # Where the mirror went on meanwhile, that failover is history, and this is another one, whoever has
        # fenced the flow since.
        stands = state.fence is not None and not newest.is_overtaken(state)
        return newest if newest.status is Status.BEGUN or stands else None
    if newest.status is Status.BEGUN:
        raise _unfinished(newest, "with other parameters and")
    return None


def _unfinished(run: FailoverRun, how: str) -> BadInput:
    return BadInput(
        f"failover {run.run} of {run.flow}",
        rule=f"was begun by {run.by} {how} isn't finished",
        remedy=f"`{run.wish.command}` goes on with it, `causeway failover {run.flow} --rollback {run.run}` "
        "takes it back",
    )


async def known_run(flow: Flow, sides: Sides, run: str) -> FailoverRun:
    """:raises UnknownName: there is none. | :raises BadInput: it was given up, or taken back."""
    known = (await read_journal(sides)).runs.get(run)
    if known is None or known.flow != flow.name:
        raise UnknownName("failover", value=run, rule=f"{flow.name} has no such run", remedy="begin again")
    if known.status not in (Status.BEGUN, Status.DONE):
        raise BadInput(
            f"failover {run} of {flow.name}",
            rule=f"was {known.status}, so there is nothing to go on with",
            remedy="begin another one, with a sheet of its own",
        )
    return known


async def refuse_without_rights(flow: Flow, sides: Sides, groups: Iterable[str]) -> None:
    """Before anybody is asked for a yes: what is begun is never refused in the middle.

    :raises NotAuthorized: the first right that is missing, with its grant.
    """
    needed = (*closing_rights(flow), *journal_rights(), *moving_rights(groups))
    await refuse_without(needed, {"target": sides.target.wire})


async def keep_offsets(flow: Flow, sides: Sides, plan: FailoverPlan, by: str) -> FailoverRun:
    """From here on the run has begun, and can be rolled back.

    :raises BadInput: somebody else's began while this one's sheet was read; nothing was moved.
    """
    run = uuid4().hex[:12]
    await create_journal(flow, sides)
    await write_journal(sides, offset_records(flow.name, run, plan.moves))
    await write_journal(sides, [begun_record(run, plan, by=by, at_ms=sides.network.time_ms())])
    rival = (await read_journal(sides)).rival_of(run)
    if rival is not None:
        await _write_end(flow, sides, run, Status.GIVEN_UP, by)
        raise _unfinished(rival, "a moment ago and")
    return await known_run(flow, sides, run)


async def close_flow(flow: Flow, sides: Sides, run: FailoverRun, by: str) -> None:
    """Also where a fence stands: whoever raised it may have died before its last claim. A command's own
    fence goes away with it, so one is raised above it.

    :raises BadInput: it broke off while it moved groups, and the mirror has gone on since.
    """
    target, clock = sides.target, sides.network
    state = await target.flow_state(flow.name)
    _refuse_overtaken(run, state)
    if state.fence is None or state.fence.token:
        await write_and_claim(target, clock, flow, by=by, because=run.fence_words)
    else:
        await claim_all_lanes(target, clock, flow, state)
    if (await target.flow_state(flow.name)).fence is None:
        raise stale_plan(flow, "somebody lifted the fence while it was being raised")


async def compare_and_move(
    flow: Flow, sides: Sides, run: FailoverRun, selection: FlowGroups, by: str
) -> Moved:
    """:raises StalePlan: something moved between sheet and fence; the run is given up, its own fence lifted.
    :raises BadInput: a consumer began on the target just now; once it has stopped, the run goes on.
    """
    state = await sides.target.flow_state(flow.name)
    if state.fence is None:
        raise BadInput(
            f"failover {run.run} of {flow.name}",
            rule="moves no group while the flow isn't fenced",
            remedy="run it again from the fence on",
        )
    _refuse_overtaken(run, state)
    if not run.is_agreed:
        await _compare(flow, sides, run, selection, by)
    return await move_planned(flow, run, ConsumerGroups(sides.target.wire))


def _refuse_overtaken(run: FailoverRun, state: FlowState) -> None:
    """What a plan said long ago isn't moved to without a new look."""
    if run.is_agreed and run.status is Status.BEGUN and run.is_overtaken(state):
        raise BadInput(
            f"failover {run.run} of {run.flow}",
            rule=f"broke off while it moved groups, begun by {run.by}, and the mirror has gone on since",
            remedy=f"`causeway failover {run.flow} --rollback {run.run}` first, then begin anew",
        )


async def record_done(flow: Flow, sides: Sides, run: str, by: str, facts: Mapping[str, object]) -> None:
    await _write_end(flow, sides, run, Status.DONE, by, facts)


async def _write_end(
    flow: Flow, sides: Sides, run: str, status: Status, by: str, facts: Mapping[str, object] | None = None
) -> None:
    generation, at_ms = (await sides.target.flow_state(flow.name)).generation, sides.network.time_ms()
    said = ended_record(flow.name, run, status, by=by, at_ms=at_ms, generation=generation, facts=facts)
    await write_journal(sides, [said])


async def _compare(flow: Flow, sides: Sides, run: FailoverRun, selection: FlowGroups, by: str) -> None:
    try:
        again = await make_sheet(flow, sides, run.wish, selection, is_fenced=True, is_priced=False)
    except UnknownName as gone:
        return await _give_up(flow, sides, run, by, f"moves {gone.what} that are gone: {gone.value}")
    if again.plan.hash != run.plan_hash:
        silent = f"; {flow.source} can't be asked now" if sides.silent else ""
        rule = f"was {run.plan_hash} on the sheet and {again.plan.hash} behind the fence{silent}"
        return await _give_up(flow, sides, run, by, rule)
    if behind := await left_behind(flow, sides) if run.wish.is_planned else ():
        rule = f"has {len(behind)} partitions that were written to since: {behind[0]}"
        return await _give_up(flow, sides, run, by, rule)
    generation, at_ms = (await sides.target.flow_state(flow.name)).generation, sides.network.time_ms()
    agreed = agreed_record(flow.name, run.run, by=by, at_ms=at_ms, generation=generation)
    await write_journal(sides, [agreed])
    await known_run(flow, sides, run.run)  # somebody who carries out the same run may have given it up
    return None


async def _give_up(flow: Flow, sides: Sides, run: FailoverRun, by: str, rule: str) -> None:
    """Nothing was moved; only the run's own fence is lifted. Unless somebody who carries out the same run
    found that the plan held, a moment before: then it isn't given up.

    :raises StalePlan: it was.
    """
    await _write_end(flow, sides, run.run, Status.GIVEN_UP, by)
    if (await read_journal(sides)).runs[run.run].status is not Status.GIVEN_UP:
        await known_run(flow, sides, run.run)
        return
    fence = (await sides.target.flow_state(flow.name)).fence
    if fence is not None and fence.because == run.fence_words:
        words = {"by": by, "because": run.fence_words}
        await write_lift(sides.target, sides.network, flow, lifts=fence.generation, **words)
    raise stale_plan(flow, rule)


async def move_planned(flow: Flow, run: FailoverRun, groups: ConsumerGroups) -> Moved:
    remaining = left_to_apply(run, await held_by(groups, run))
    left = [
        f"{astray.group} on {astray.target} has moved since the plan was made, to {astray.at}"
        for astray in remaining.astray
    ]
    answers = await groups.commit({group: dict(offsets) for group, offsets in remaining.to_commit.items()})
    refuse_denied(groups, answers, Operation.READ)
    refused = {group: why for group, answer in answers.items() if (why := refusal(answer))}
    if refused and run.wish.active is Active.REFUSE:
        group, why = next(iter(refused.items()))
        more = f"and {len(refused) - 1} more " if len(refused) > 1 else ""
        raise BadInput(
            f"group {group}",
            rule=f"{more}can't be moved: {why}; the flow is fenced",
            remedy=f"stop its consumers on {flow.target}, then run the same command again: it goes on; "
            f"--rollback {run.run} takes back what was moved",
        )
    left += [f"{group}: {why}" for group, why in refused.items()]
    committed = sum(len(o) for g, o in remaining.to_commit.items() if g not in refused)
    return Moved(offsets=committed, left_alone=tuple(left))


def refuse_denied(groups: ConsumerGroups, answers: Mapping[str, object], operation: Operation) -> None:
    """:raises NotAuthorized: a right was taken away in the middle; with it again the same command goes on."""
    for group, answer in answers.items():
        if denied := groups.denied(group, answer, operation):
            raise denied


def refusal(answer: object) -> str:
    """Why a coordinator didn't commit; empty: it did."""
    if isinstance(answer, Refused):
        return str(answer)
    assert isinstance(answer, dict)
    return next((error_name(code) for code in answer.values() if code), "")


def stale_plan(flow: Flow, rule: str) -> StalePlan:
    return StalePlan(
        f"plan of {flow.name}",
        rule=rule,
        remedy="stop what still moves (consumers, the mirror: `causeway fence`), then look at a new sheet",
    )
